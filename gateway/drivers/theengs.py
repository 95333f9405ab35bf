"""Theengs Gateway and OpenMQTTGateway: the Bluetooth advertisements of hydrometers, by MQTT.

Theengs Gateway (theengs/gateway TheengsGateway/ble_gateway.py, 1.8) publishes to
`home/TheengsGateway/BTtoMQTT/<MAC without colons>`, OpenMQTTGateway (1technophile/OpenMQTTGateway
main/ZgatewayBT.cpp) to `home/<its name>/BTtoMQTT/<MAC>`, QoS 0, not retained, with each advertisement:
`{"id" MAC,"name","rssi","brand","model","model_id","type", and the decoder's values}`. `mac` occurs if the
advertisement has it, and goes before `id`.

The decoder (theengs/decoder src/devices/TILT_json.h, src/decoder.cpp, 2.5) knows only the Tilt:
`"model_id":"TILT","type":"THBX","color":"red","tempf":68,"tempc":20,"gravity":1.016,"txpower":-59`; of a Tilt
Pro both are times 10. Others, of later decoders, are read by `gravity`, `temp...`, `batt` %, `volt`.

An advertisement that it does not know is published as `{"manufacturerdata" hex,"name","id","rssi"}` by
Theengs Gateway (`publish_all`, its default), and by OpenMQTTGateway with `onlysensors` off and `pubadvdata`
on. Read of these, big endian, are the RAPT Pill's (sairon/rapt-ble src/rapt_ble/parser.py), the Tilt's own
iBeacon, and GravityMon's (mp-se/gravitymon src/ble_gravitymon.cpp).

Everything else in the house, thermometers and phones, is on the same topics and is passed over. The MAC is
the identity; a Tilt's name is its colour. Each device is heard every few seconds: one reading a minute is
kept.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, wire
from gateway.drivers.base import Driver
from gateway.drivers.tilts import is_version_beacon, mend_high_resolution
from gateway.errors import DriverError

SPACING_S = 60.0

NUMBERS = {
    "rssi": "rssi", "batt": "battery_percent", "volt": "battery", "angle": "angle",
    "weeks_on_battery": "weeks_on_battery",
}  # fmt: skip

RAPT, TILT, TILT_END, GRAVITYMON = (
    "52415054", "4c000215a495bb", "c5b14b44b5121370f02d74de", "4c000315475241564d4f4e2e",
)  # fmt: skip
"""Beginnings of advertisements: `RAPT`; the Tilt's UUID up to the colour's byte, and after it; `GRAVMON.`"""

COLORS = {
    "10": "red", "20": "green", "30": "black", "40": "purple",
    "50": "orange", "60": "blue", "70": "yellow", "80": "pink",
}  # fmt: skip

RAPT_VERSIONS = (1, 2)

ADVERTISED_HEX = 128
"""The most digits of an advertisement; it has no more than 31 bytes."""

KELVIN = 273.15


def parse(payload: Payload) -> list[Report]:
    """Return one report per hydrometer; none for the other things of a house."""
    sent = wire.fields(payload)
    source = {**sent, **_advertised(wire.text(sent, "manufacturerdata") or "")}
    if "gravity" not in source:
        return []
    device_id = wire.text(source, "mac", "id") or payload.label
    if not device_id:
        raise DriverError("no MAC of a hydrometer")
    report = Report(
        stable_id=device_id,
        name=wire.text(source, "color", "name") or wire.text(source, "model_id") or device_id,
    )
    fill.gravity(report, source, "gravity", unit="G", reason=fill.FORMAT_SAYS)
    fill.temperature(report, source, fill.NAMED_TEMPERATURES, None)
    mend_high_resolution(report)
    fill.facts(report, source, NUMBERS)
    return (
        [] if is_version_beacon(report) else fill.only_measured(report, source, "gravity", "tempf", "tempc")
    )


def _advertised(digits: str) -> Mapping[str, Any]:
    """Return the members of an advertisement that the decoder left alone; none of an unknown one."""
    found = next((read for begin, read in ADVERTISEMENTS if digits.lower().startswith(begin)), None)
    if found is None or len(digits) > ADVERTISED_HEX:
        return {}
    try:
        return found(bytes.fromhex(digits))
    except (ValueError, IndexError, struct.error):
        return {}  # cut short, or of a version that is not known


def _rapt(data: bytes) -> Mapping[str, Any]:
    """Read a RAPT Pill's advertisement. Version 1 has the MAC where 2 has a zero byte and a velocity."""
    if data[4] not in RAPT_VERSIONS:
        return {}
    temp, gravity, _, _, _, battery = struct.unpack(">Hf4h", data[11:25])
    return {
        "model_id": "RAPT Pill", "gravity": f"{gravity / 1000:.4f}", "tempc": f"{temp / 128 - KELVIN:.2f}",
        "batt": f"{battery / 256:.0f}",
    }  # fmt: skip


def _tilt(data: bytes) -> Mapping[str, Any]:
    digits = data.hex()
    color = COLORS.get(digits[14:16])
    if color is None or not digits.startswith(TILT_END, 16):
        return {}
    temp, gravity = struct.unpack(">HH", data[20:24])
    return {"model_id": "TILT", "color": color, "tempf": str(temp), "gravity": f"{gravity / 1000:g}"}


def _gravitymon(data: bytes) -> Mapping[str, Any]:
    angle, battery, gravity, temp = struct.unpack(">4H", data[16:24])
    return {
        "model_id": "GravityMon", "gravity": f"{gravity / 10_000:.4f}", "tempc": f"{temp / 1000:.2f}",
        "angle": f"{angle / 100:.2f}", "volt": f"{battery / 1000:.2f}",
    }  # fmt: skip


ADVERTISEMENTS: tuple[tuple[str, Callable[[bytes], Mapping[str, Any]]], ...] = (
    (RAPT, _rapt),
    (TILT, _tilt),
    (GRAVITYMON, _gravitymon),
)

DRIVER = Driver(
    "theengs",
    "Theengs Gateway, OpenMQTTGateway",
    parse,
    topics=("home/+/BTtoMQTT/{label}",),
    spacing_s=SPACING_S,
    of_a_house=True,
)
