"""Tilts by MQTT: TiltBridge new and old, tilt2mqtt, and brewblox-tilt old and new.

Sources: thorrak/tiltbridge `src/sendData.cpp` (HEAD and tag v0.2.2), LinuxChristian/tilt2mqtt `tilt2mqtt.py`,
j616/brewblox-tilt `brewblox_tilt/tiltScanner.py`, BrewBlox/brewblox-tilt `brewblox_tilt/broadcaster.py`,
`parser.py` (devices.md 7.5, 7.8).

    TiltBridge      three retained discovery messages, then `<topic>/tilt_<Color>`, not retained: Color,
                    timeStamp (Unix seconds), fermunits, SG, Temp, tempunits, WoB (weeks), all but one text
    TiltBridge 0.2  `<topic>` for all colours: color, device, gravity, gravity_unit, temp, temp_unit
    tilt2mqtt       `tilt/<Color>`, QoS 2, retained: four texts, keys end in `_uncali`, `farenheit` so spelled
    brewblox, j616  `brewcast/history/<service>`: {"key","data":{<Color>:{..}}}, numbers
    brewblox        retained presence, `brewcast/history/..` with the same reading, retained state with
                    timestamp (milliseconds), colour, MAC, name, data

A real Tilt has one of eight colours, and these programs know no more of it; the ninth of a fleet gets a
number behind its colour, which only brewblox does in truth.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import DAY_S, Point, plato
from sample_devices.wire.bodies import compact_json, python_json
from sample_devices.wire.identity import serial
from sample_devices.wire.numbers import fixed
from sample_devices.wire.report import Address, Login, Message, MqttReport, Place, Said
from sample_devices.wire.tilt_pi import COLORS
from sample_devices.wire.tilt_values import beacon, mac

TOPIC = "tiltbridge"
VERSION = "1.3.0-alpha1"
BRIDGE_KEEP_ALIVE_S = 30  # its push interval
PAHO_LOGIN = Login("", 60)  # paho.mqtt.publish: the broker names the client
SERVICE = "tilt"  # of brewblox
MAC_FAMILY = 40

_WEEK_S = 7 * DAY_S


def tilt_name(place: Place, first: int = 0, between: str = "") -> str:
    """Give the colour as bridges write it, `Black`, from a family's first on; then `Black2`."""
    if place.name is not None:
        return place.name
    colour = COLORS[(place.ordinal + first) % len(COLORS)].capitalize()
    rounds = place.ordinal // len(COLORS)
    return colour + (f"{between}{rounds + 1}" if rounds else "")


@dataclass(frozen=True, slots=True)
class TiltBridgeMqtt:
    """A TiltBridge with MQTT, seen with one Tilt Pro."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make three discovery messages and the data message, stamped with the moment."""
        name, seen = tilt_name(self.place, 2), beacon(point, fine=True)
        gravity, temp = fixed(seen.gravity_sg, 4), fixed(seen.temp_f, 1)
        topic = f"{TOPIC}/tilt_{name}"
        data = {
            "Color": name,
            "timeStamp": int(sent_at.timestamp()),
            "fermunits": "SG",
            "SG": gravity,
            "Temp": temp,
            "tempunits": "F",
            "WoB": str(int(point.elapsed_s // _WEEK_S)),
        }
        messages = (*_announcements(name, topic), Message(topic, compact_json(data).encode()))
        facts = {"weeks_on_battery": str(data["WoB"])}
        said = Said(name, None, gravity, "G", temp, "F", facts, int(sent_at.timestamp()))
        return MqttReport((said,), _bridge_login(self.place), messages)


@dataclass(frozen=True, slots=True)
class TiltBridgeMqttOld:
    """A TiltBridge 0.2.2 with MQTT: one topic for all Tilts."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the message; it has no time."""
        name, seen = tilt_name(self.place, 3), beacon(point)
        gravity, temp = fixed(seen.gravity_sg, 4), fixed(seen.temp_f, 1)
        data = {
            "color": name,
            "device": mdns_id(self.place),
            "gravity": gravity,
            "gravity_unit": "G",
            "temp": temp,
            "temp_unit": "F",
        }
        messages = (Message(TOPIC, compact_json(data).encode()),)
        return MqttReport((Said(name, None, gravity, "G", temp, "F"),), _bridge_login(self.place), messages)


@dataclass(frozen=True, slots=True)
class Tilt2Mqtt:
    """A tilt2mqtt without calibration."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the retained message; it has no time."""
        name, seen = tilt_name(self.place, 4), beacon(point)
        gravity, fahrenheit = f"{seen.gravity_sg:.3f}", f"{seen.temp_f:.1f}"
        data = {
            "specific_gravity_uncali": gravity,
            "plato_uncali": f"{plato(seen.gravity_sg):.2f}",
            "temperature_celsius_uncali": f"{_celsius(seen.temp_f):.2f}",
            "temperature_farenheit_uncali": fahrenheit,
        }
        message = Message(f"tilt/{name}", python_json(data).encode(), qos=2, retain=True)
        return MqttReport((Said(name, None, gravity, "G", fahrenheit, "F"),), PAHO_LOGIN, (message,))


@dataclass(frozen=True, slots=True)
class BrewbloxTiltOld:
    """A brewblox-tilt of j616, without calibration, with one Tilt."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the history message; it has no time and no MAC."""
        name, seen = tilt_name(self.place, 5), beacon(point)
        values = {
            "Temperature[degF]": round(seen.temp_f),
            "Temperature[degC]": _celsius(seen.temp_f),
            "Specific gravity": seen.gravity_sg,
            "Signal strength[dBm]": point.rssi_dbm,
            "Plato[degP]": plato(seen.gravity_sg),
        }
        payload = python_json({"key": SERVICE, "data": {name: values}}).encode()
        temp = str(round(seen.temp_f))
        said = Said(name, None, repr(seen.gravity_sg), "G", temp, "F", {"rssi": point.rssi_dbm})
        return MqttReport((said,), PAHO_LOGIN, (Message(f"brewcast/history/{SERVICE}", payload),))


@dataclass(frozen=True, slots=True)
class BrewbloxTilt:
    """A brewblox-tilt of BrewBlox, without calibration, with one Tilt."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make presence, history and state, stamped with the moment: three messages, one reading."""
        name, colour = tilt_name(self.place, 7, "-"), COLORS[(self.place.ordinal + 7) % 8].capitalize()
        address, seen = mac(self.place, MAC_FAMILY).replace(":", ""), beacon(point)
        values = {
            "temperature[degF]": round(seen.temp_f),
            "temperature[degC]": round(_celsius(seen.temp_f), 2),
            "specificGravity": seen.gravity_sg,
            "plato[degP]": round(plato(seen.gravity_sg), 3),
            "rssi[dBm]": point.rssi_dbm,
        }
        at = int(sent_at.timestamp() * 1000)
        presence = {"key": SERVICE, "type": "Tilt.state.service", "timestamp": at}
        state = {"key": SERVICE, "type": "Tilt.state", "timestamp": at, "color": colour, "mac": address}
        state |= {"name": name, "data": values}
        history = {"key": SERVICE, "data": {name: values}}
        root = f"brewcast/state/{SERVICE}"
        messages = (
            Message(root, python_json(presence).encode(), retain=True),
            Message(f"brewcast/history/{SERVICE}", python_json(history).encode()),
            Message(f"{root}/{colour}/{address}", python_json(state).encode(), retain=True),
        )
        measured = repr(seen.gravity_sg), "G", str(round(seen.temp_f)), "F"
        said = Said(name, address, *measured, {"rssi": point.rssi_dbm}, at / 1000)
        return MqttReport((said,), PAHO_LOGIN, messages)


def mdns_id(place: Place) -> str:
    """Give the bridge's own name: each of a fleet's Tilts has a bridge of its own."""
    return f"tiltbridge{serial(place)}"


def _bridge_login(place: Place) -> Login:
    return Login(mdns_id(place), BRIDGE_KEEP_ALIVE_S)


def _celsius(fahrenheit: float) -> float:
    return (fahrenheit - 32) * 5 / 9


def _announcements(name: str, topic: str) -> tuple[Message, ...]:
    """Make the discovery messages for temperature, gravity and weeks on battery."""
    temperature = {"dev_cla": "temperature", "unit_of_meas": "°F", "ic": "mdi:thermometer-lines"}
    gravity = {"unit_of_meas": "SG", "ic": "mdi:trending-down"}
    battery = {"unit_of_meas": "weeks", "ic": "mdi:battery"}
    return (
        _announcement(name, topic, ("", "temperature"), "Temperature", temperature, ("Temp", "T")),
        _announcement(name, topic, ("G", "sp_gravity"), "Specific Gravity", gravity, ("SG", "G")),
        _announcement(name, topic, ("WoB", "weeks_on_battery"), "Weeks On Battery", battery, ("WoB", "WoB")),
    )


def _announcement(
    name: str, topic: str, where: tuple[str, str], title: str, head: dict[str, str], keys: tuple[str, str]
) -> Message:
    device = {
        "name": f"Tilt {name}",
        "ids": name,
        "mdl": "Tilt Hydrometer",
        "mf": "Baron Brew Equipment LLC",
        "sw": VERSION,
        "sa": "Brewery",
        "cu": "http://192.168.4.23/",
    }
    tail = {
        "name": f"Tilt {title} - {name}",
        "val_tpl": f"{{{{value_json.{keys[0]}}}}}",
        "uniq_id": f"tiltbridge_tilt{name}{keys[1]}",
        "stat_t": topic,
        "dev": device,
        "json_attr_t": topic,
        "json_attr_tpl": '{ "Uptime": "{{ value_json.timeStamp }}" }\n',
    }
    where_to = f"homeassistant/sensor/{TOPIC}_tilt_{name}{where[0]}/{where[1]}/config"
    return Message(where_to, compact_json(head | tail).encode(), retain=True)
