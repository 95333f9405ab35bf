"""Theengs Gateway and OpenMQTTGateway, which pass on by MQTT what they hear by Bluetooth.

Sources: theengs/gateway `TheengsGateway/ble_gateway.py` (1.8: `decode_advertisement`, `publish_json`),
1technophile/OpenMQTTGateway `main/ZgatewayBT.cpp` (`PublishDeviceData`), theengs/decoder `src/decoder.cpp`,
`src/devices/TILT_json.h` (2.5), sairon/rapt-ble `src/rapt_ble/parser.py`.

    Theengs          `home/TheengsGateway/BTtoMQTT/<MAC without colons>`, QoS 0, json.dumps: id, rssi, then
                     what the decoder adds: brand, model, model_id, type, color, tempf, tempc, gravity,
                     txpower.  What it does not know: manufacturerdata (hex, company id first), name, id, rssi
    OpenMQTTGateway  `home/<name>/BTtoMQTT/<MAC>`, QoS 0, ArduinoJson, the same members

The decoder computes degrees Celsius from Fahrenheit in a double, of which ArduinoJson prints ten digits.
"""

import struct
from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.bodies import compact_json, python_json
from sample_devices.wire.identity import serial
from sample_devices.wire.report import Address, Facts, Login, Message, MqttReport, Place, Said
from sample_devices.wire.tilt_values import beacon, colour, mac

THEENGS, OPEN_MQTT_GATEWAY = "TheengsGateway", "OpenMQTTGateway"
THEENGS_MACS, OPEN_MACS, RAPT_MACS = 70, 71, 72
TX_POWER_DBM = -59
DIGITS = 10

KELVIN = 273.15
LEAST_BATTERY_PERCENT, FULL_PERCENT = 20.0, 95.0


def topic(gateway: str, address: str) -> str:
    """Give the topic of a device, whose MAC has no colons there."""
    return f"home/{gateway}/BTtoMQTT/{address.replace(':', '')}"


def _tilt(place: Place, first: int, program: int, point: Point) -> tuple[Said, dict[str, object]]:
    seen, name, address = beacon(point), colour(place, first).lower(), mac(place, program)
    fahrenheit = round(seen.temp_f)
    celsius = float(f"{(fahrenheit - 32) * 5 / 9:.{DIGITS}g}")
    said = Said(name, address, f"{seen.gravity_sg:g}", "G", str(fahrenheit), "F", {"rssi": point.rssi_dbm})
    return said, {
        "id": address, "rssi": point.rssi_dbm, "brand": "Tilt", "model": "Brewing Hydro- Thermometer",
        "model_id": "TILT", "type": "THBX", "color": name, "tempf": fahrenheit,
        "tempc": int(celsius) if celsius.is_integer() else celsius,
        "gravity": seen.gravity_sg, "txpower": TX_POWER_DBM,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class TheengsTilt:
    """A Tilt heard by Theengs Gateway."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the message; it has no time."""
        said, members = _tilt(self.place, 0, THEENGS_MACS, point)
        message = Message(topic(THEENGS, str(said.device_id)), python_json(members).encode())
        return MqttReport((said,), Login(f"{THEENGS}{serial(self.place)}", 60), (message,))


@dataclass(frozen=True, slots=True)
class OpenMqttGatewayTilt:
    """A Tilt heard by OpenMQTTGateway."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the message; it has no time."""
        said, members = _tilt(self.place, 3, OPEN_MACS, point)
        message = Message(topic(OPEN_MQTT_GATEWAY, str(said.device_id)), compact_json(members).encode())
        return MqttReport((said,), Login(f"{OPEN_MQTT_GATEWAY}{serial(self.place)}", 15), (message,))


@dataclass(frozen=True, slots=True)
class TheengsRapt:
    """A RAPT Pill heard by Theengs Gateway, whose decoder does not know it: version 2, big endian."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the message with the advertisement as it is; it has no time."""
        name = "RAPT Pill" if self.place.name is None else self.place.name
        address = mac(self.place._replace(name=None), RAPT_MACS)
        temp = round((point.temperature_c + KELVIN) * 128)
        gravity = struct.unpack(">f", struct.pack(">f", point.gravity_sg * 1000))[0]
        battery = max(LEAST_BATTERY_PERCENT, FULL_PERCENT - point.elapsed_s / 86_400)
        numbers = struct.pack(">BBBfHf4h", 2, 0, 0, 0.0, temp, gravity, 0, 0, 1, round(battery * 256))
        advertised = (b"RAPT" + numbers).hex()
        members = {"manufacturerdata": advertised, "name": name, "id": address, "rssi": point.rssi_dbm}
        facts: Facts = {"rssi": point.rssi_dbm, "battery_percent": f"{round(battery * 256) / 256:.0f}"}
        measured = f"{gravity / 1000:.4f}", "G", f"{temp / 128 - KELVIN:.2f}", "C"
        message = Message(topic(THEENGS, address), python_json(members).encode())
        login = Login(f"{THEENGS}{serial(self.place)}", 60)
        return MqttReport((Said(name, address, *measured, facts),), login, (message,))
