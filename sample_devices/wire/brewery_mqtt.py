"""Controllers, bridges and builds of one's own by MQTT, and the TCP forward of iSpindel-TCP-Server.

Sources (devices.md 8.3, 10.1, 10.4, 10.6, 10.7, 10.9, 10.10):

    raptpill2mqtt       sgoadhouse/raptpill2mqtt `raptpill2mqtt.py`: `rapt/pill/<color>`, retained, texts
    BrewPiLess          vitotai/BrewPiLess `src/LogFormatter.cpp` (nonNullJson), `src/MqttRemoteControl.cpp`:
                        QoS 1, retained; JSON at the base topic, or `<base>/<key>` with fixed decimals
    eManometer          JackFrost80/eManometer `pio/src/main.cpp` (forwardMQTT): `ispindel/<name>/<key>`,
                        bar, no gravity; in spunding mode num-openings and open-time come after RSSI, which
                        it adds twice, and ArduinoJson keeps where it was added first
    Torpedo             dukeduck1984/Hydrometer-Esp32-Micropython `torpedo/main.py`, `mqtt_client.py`
    ESPHome             esphome/esphome `esphome/components/mqtt/mqtt_component.cpp`: retained states
    SmartPID M5         secuspec/homeassistant-smartpid-md5 `discovery.py`: temperature of a channel
    iSpindel-TCP-Server DottoreTozzi/iSpindel-TCP-Server `iSpindle.py`: json.dumps with recipe, no line end
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import HOUR_S, Point, plato
from sample_devices.wire.bodies import compact_json, python_json
from sample_devices.wire.brewpiless_http import BEER_SET_C, FRIDGE_BELOW_BEER_C, WARMER_PROBE_C
from sample_devices.wire.emanometer_http import (
    INTERVAL_S,
    OPEN_S,
    OPENINGS,
    SPUNDING_FACTS,
    emanometer_facts,
)
from sample_devices.wire.esp import chip_id, one_value_messages
from sample_devices.wire.identity import named
from sample_devices.wire.ispindel import device_name, facts_of, texts
from sample_devices.wire.numbers import arduino_json, ds18b20, fixed
from sample_devices.wire.rapt_http import battery_percent
from sample_devices.wire.report import Address, Login, Message, MqttReport, Place, Said, TcpReport, local_time
from sample_devices.wire.tilt_mqtt import PAHO_LOGIN, tilt_name
from sample_devices.wire.tilt_values import beer

BREWPILESS_FACTS = {
    "tilt": "angle", "voltage": "battery", "hydrometerRssi": "rssi", "fridgeTemp": "aux_temp",
    "beerSet": "temp_target",
}  # fmt: skip
YELLOW = 6  # the only colour that raptpill2mqtt knows
VELOCITY_AFTER_S = HOUR_S  # until then the Pill marks its gravity velocity as invalid
ESP_KEEP_ALIVE_S = 15
MICROPYTHON_KEEP_ALIVE_S = 10


@dataclass(frozen=True, slots=True)
class RaptPill2Mqtt:
    """A raptpill2mqtt without calibration."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the retained message; lastActivityTime is local time without a zone."""
        name, fahrenheit = tilt_name(self.place, YELLOW), f"{point.temperature_c * 9 / 5 + 32:.1f}"
        gravity = f"{point.gravity_sg:.4f}"
        data = {"specific_gravity_uncali": gravity}
        if point.elapsed_s > VELOCITY_AFTER_S:
            data["specific_gravity_pts_per_day_uncali"] = f"{point.velocity_points_per_day:.1f}"
        data |= {
            "temperature_celsius_uncali": f"{point.temperature_c:.2f}",
            "temperature_fahrenheit_uncali": fahrenheit,
            "battery": f"{battery_percent(point):.1f}",
            "rssi": str(point.rssi_dbm),
            "lastActivityTime": str(sent_at.replace(tzinfo=None)),
        }
        message = Message(f"rapt/pill/{name}", python_json(data).encode(), retain=True)
        facts = local_time(sent_at) | {"battery_percent": data["battery"], "rssi": data["rssi"]}
        if "specific_gravity_pts_per_day_uncali" in data:
            facts["velocity"] = data["specific_gravity_pts_per_day_uncali"]
        said = Said(name, None, gravity, "G", fahrenheit, "F", facts)
        return MqttReport((said,), PAHO_LOGIN, (message,))


@dataclass(frozen=True, slots=True)
class BrewPiLessMqtt:
    """A BrewPiLess that takes an iSpindel's reports and publishes all it knows."""

    place: Place
    one_by_one: bool = False

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make one JSON message, or one per value; neither has a temperature unit or a time."""
        base = f"brewery/{named(self.place._replace(name=None), 'bpl')}"
        hydrometer = device_name(self.place)
        if self.one_by_one:
            values = _brewpiless_values(point, hydrometer)
            messages = tuple(Message(f"{base}/{key}", text.encode(), 1, True) for key, text in values.items())
        else:
            values = _brewpiless_members(point, hydrometer)
            pairs = ",".join(f'"{key}":{text}' for key, text in values.items())
            messages = (Message(base, f"{{{pairs}}}".encode(), 1, True),)
        facts = {fact: values[key] for key, fact in BREWPILESS_FACTS.items()}
        said = Said(hydrometer, None, values["gravity"], "G", values["beerTemp"], None, facts)
        return MqttReport((said,), Login(f"esp8266{chip_id(self.place):06x}", ESP_KEEP_ALIVE_S), messages)


@dataclass(frozen=True, slots=True)
class EManometerMqtt:
    """An eManometer set to MQTT, which shares the iSpindel's topics."""

    place: Place
    spunding: bool = False

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the six messages, and two more in spunding mode."""
        name, temp = named(self.place, "eMano"), arduino_json(ds18b20(point.temperature_c))
        facts = emanometer_facts(point)
        values = {
            "temperature": temp,
            "temp_units": "C",
            "pressure": str(facts["pressure"]),
            "co2": str(facts["co2"]),
            "interval": str(INTERVAL_S),
            "RSSI": str(point.rssi_dbm),
        }
        if self.spunding:
            values |= {"num-openings": str(OPENINGS), "open-time": str(OPEN_S)}
            facts |= SPUNDING_FACTS
        said = Said(name, None, None, None, temp, "C", facts)
        login = Login(name, ESP_KEEP_ALIVE_S, user="", password="")
        return MqttReport((said,), login, one_value_messages(name, values))


@dataclass(frozen=True, slots=True)
class TorpedoMqtt:
    """A Torpedo with MQTT, by default below the topic of the project's example."""

    place: Place
    topic: str = "/v1.6/devices"

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the message; the name is in the topic only."""
        name = named(self.place, "hydrometer")
        gravity, temp = round(point.gravity_sg, 3), round(point.temperature_c, 1)
        data = {
            "temperature": temp,
            "sg": gravity,
            "plato": round(plato(gravity), 1),
            "battery": round(point.battery_v, 2),
        }
        message = Message(f"{self.topic}/{name}", python_json(data).encode())
        said = Said(name, None, repr(gravity), "G", repr(temp), "C", {"battery": data["battery"]})
        return MqttReport((said,), Login(name, MICROPYTHON_KEEP_ALIVE_S), (message,))


@dataclass(frozen=True, slots=True)
class EspHomeMqtt:
    """An ESPHome node with entities that its user has called so, at the default topics."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make availability and three states, all retained; no unit is on the wire."""
        prefix = named(self.place, "cellar-tilt")
        gravity, temp = fixed(point.gravity_sg, 4), fixed(point.temperature_c, 1)
        values = {
            "status": "online",
            "sensor/tilt_specific_gravity/state": gravity,
            "sensor/tilt_temperature/state": temp,
            "sensor/wifi_signal/state": str(point.rssi_dbm),
        }
        messages = tuple(
            Message(f"{prefix}/{key}", text.encode(), retain=True) for key, text in values.items()
        )
        said = Said(prefix, None, gravity, "G", temp, None, {"rssi": point.rssi_dbm})
        return MqttReport((said,), Login(prefix, ESP_KEEP_ALIVE_S), messages)


@dataclass(frozen=True, slots=True)
class SmartPidMqtt:
    """A SmartPID M5 PRO that monitors its first channel: a temperature and no gravity."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the channel's message; the retained status is left out, its content is not known."""
        device, temp = f"791402d5{chip_id(self.place):06x}", fixed(point.temperature_c, 1)
        payload = f'{{"temp":{temp},"unit":"C","runmode":"monitor"}}'.encode()
        said = Said(f"{device}/CH1", None, None, None, temp, "C")
        messages = (Message(f"smartpidM5/pro/{device}/dynamic/CH1", payload),)
        return MqttReport((said,), Login(f"smartpid{device}", ESP_KEEP_ALIVE_S), messages)


@dataclass(frozen=True, slots=True)
class TcpServerForward:
    """An iSpindel-TCP-Server that forwards one spindle to another server of its kind."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> TcpReport:
        """Make the object, the numbers as Python reads and prints them; no units, nothing ends it."""
        values, name = texts(point), device_name(self.place)
        gravity, temp = float(values.gravity), float(values.temperature)
        data = {
            "name": name, "ID": chip_id(self.place), "angle": float(values.tilt), "temperature": temp,
            "battery": float(values.battery), "gravity": gravity, "token": "*",
            "interval": int(values.interval), "recipe": beer(self.place), "RSSI": point.rssi_dbm,
        }  # fmt: skip
        facts = facts_of(values) | {"beer": beer(self.place)}
        said = Said(name, str(chip_id(self.place)), repr(gravity), "P", repr(temp), "C", facts)
        return TcpReport((said,), python_json(data).encode())


def _brewpiless_members(point: Point, hydrometer: str) -> dict[str, str]:
    """Give the members of the JSON in its order, in ArduinoJson's numbers, without what is not fitted."""
    beer_c = ds18b20(point.temperature_c)
    fridge = arduino_json(beer_c - FRIDGE_BELOW_BEER_C)
    return {
        "state": "4",
        "beerTemp": arduino_json(beer_c),
        "beerSet": arduino_json(BEER_SET_C),
        "fridgeTemp": fridge,
        "fridgeSet": fridge,
        "mode": "2",
        "gravity": arduino_json(point.gravity_sg),
        "plato": arduino_json(plato(point.gravity_sg)),
        "voltage": arduino_json(point.battery_v),
        "auxTemp": arduino_json(beer_c + WARMER_PROBE_C),
        "tilt": arduino_json(point.tilt_deg),
        "hydrometerRssi": str(point.rssi_dbm),
        "hydrometerName": compact_json(hydrometer),
    }


def _brewpiless_values(point: Point, hydrometer: str) -> dict[str, str]:
    """Give the values of the single topics: fixed decimals, the mode as a letter."""
    fridge = fixed(point.temperature_c - FRIDGE_BELOW_BEER_C, 1)
    return {
        "state": "4",
        "beerTemp": fixed(point.temperature_c, 1),
        "beerSet": fixed(BEER_SET_C, 1),
        "fridgeTemp": fridge,
        "fridgeSet": fridge,
        "mode": "b",
        "gravity": fixed(point.gravity_sg, 5),
        "plato": fixed(plato(point.gravity_sg), 1),
        "voltage": fixed(point.battery_v, 2),
        "auxTemp": fixed(point.temperature_c + WARMER_PROBE_C, 1),
        "tilt": fixed(point.tilt_deg, 2),
        "hydrometerRssi": str(point.rssi_dbm),
        "hydrometerName": hydrometer,
    }
