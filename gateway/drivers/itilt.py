"""iTilt, which publishes to Cayenne, Adafruit IO or Ubidots by MQTT (broker hosts compiled in).

JJSlabbert/iTilt-digital-hydrometer SOURCE CODE/: to Cayenne up to 1.08 by
`v1/<user>/things/<client>/data/<number>`, plain text, temperatures as `temp,c=20.5`; in 1.09 by
`.../data/json`, three messages with five, five and two of `[{"channel": 4,"value": 20.5},...]`, whose values
are put together by channel as those of 1.08 are. Channels: 0 number of the iTilt, 1 battery percent,
2 temperature of the gyroscope, 3 firmware, 4 temperature °C, 5 tilt degree, 6 battery volt, 7 gravity,
8 interval s, 9 original gravity, 10 ABV, 11 signal. Adafruit (1.09): `<user>/feeds/<name>`, plain text.
Ubidots (1.09): `/v1.6/devices/<name>`, one JSON object; that topic is Torpedo's, too, whose driver hands it
over.

[?] The unit of the gravity is that of the user's polynomial. The signal is RSSI + 90 in 1.01 and 1.8 times
that, at most 100, since 1.02: no dBm, so it is not kept.
"""

from collections.abc import Iterable
from typing import Any

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, wire
from gateway.drivers.base import Driver, ValueTopics
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

FAMILY = "itilt"
"""The family's name, for Torpedo's driver: it hands over messages of their common topic."""

MEANINGS = {
    "1": "battery_percent", "battery-capacity": "battery_percent", "Battery Capacity": "battery_percent",
    "2": "aux_temp", "gyro-temperature": "aux_temp", "Temperature in Gyro": "aux_temp",
    "4": "temp", "beer-temperature": "temp", "Temperature from DS18B20": "temp",
    "5": "angle", "tilt": "angle", "Tilt": "angle",
    "6": "battery", "battery-voltage": "battery", "Battery Voltage": "battery",
    "7": "gravity", "gravity": "gravity", "Gravity": "gravity",
    "8": "interval", "publication-interval": "interval", "Publication Interval": "interval",
    "9": "og", "original-gravity": "og", "Original Gravity": "og",
    "10": "abv", "alcohol-by-volume": "abv", "ABV": "abv",
}  # fmt: skip
"""Channels of Cayenne, feeds of Adafruit and variables of Ubidots."""

OTHERS = frozenset({
    "0", "3", "firmware-version", "Firmware Version", "11", "wifi-signalstrength", "WiFi Signalstrength",
})  # fmt: skip
"""Members that are no measurement, or a measurement in a unit of its own."""

NUMBERS = {key: key for key in ("battery", "battery_percent", "angle", "abv")}
NUMERALS = {key: key for key in ("aux_temp", "og")}


def parse(payload: Payload) -> list[Report]:
    """Return one report per group of values; none without gravity, temperature and angle."""
    source = wire.fields(payload)
    if "channel" in source:
        source = _by_channel([source])
    if not any(key in MEANINGS or key in OTHERS for key in source):
        raise DriverError("no value that an iTilt sends")
    members = {
        # Cayenne's values begin with their kind: `temp,c=20.5`.
        MEANINGS[key]: value.rpartition("=")[2] if isinstance(value, str) else value
        for key, value in source.items()
        if key in MEANINGS
    }
    report = Report(stable_id=payload.label, name=payload.label, family=FAMILY)
    fill.token(report, payload, {})
    fill.gravity(report, members, "gravity", required="gravity" in members)
    fill.temperature(report, members, {"temp": None}, "C")
    fill.interval(report, members)
    fill.facts(report, members, NUMBERS, NUMERALS)
    return [report] if fill.measures(report) else []


def fits(source: Fields) -> bool:
    """Return whether these are iTilt's variables at Ubidots."""
    return "Temperature from DS18B20" in source


def channels(message: bytes) -> dict[str, bytes]:
    """Return the values of a message of Cayenne's JSON by channel; none for another message."""
    try:
        items = wire.items(Payload(message, 0.0, ""))
    except DriverError:
        return {}
    found = _by_channel(items or ())
    return {
        channel: value.encode("utf-8", "replace") if isinstance(value, str) else b"null"
        for channel, value in found.items()
        if channel
    }


def _by_channel(items: Iterable[Fields]) -> dict[str, Any]:
    return {wire.numeral(item, "channel") or "": item.get("value") for item in items}


DRIVER = Driver(
    FAMILY,
    "iTilt",
    parse,
    values=(
        ValueTopics("v1/+/things/{label}/data/{key}", parts=channels),
        ValueTopics("{label}/feeds/{key}"),
    ),
)
