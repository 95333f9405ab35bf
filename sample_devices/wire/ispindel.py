"""iSpindel, firmware 7.3.3: generic HTTP and MQTT.

Source: universam1/iSpindel `pio/src/iSpindel.cpp`, `pio/lib/Sender/Sender.cpp` (devices.md 5.2, 5.3).

HTTP: `POST <uri>` with `Content-Type: application/json`, one JSON object without spaces:

    name         text      configured name
    ID           number    chip id, decimal
    token        text      only present when configured; here it is not
    angle        number    degrees
    temperature  number    in temp_units, DS18B20 steps of 1/16 degree Celsius
    temp_units   text      "C", "F" or "K"; here "C"
    battery      number    volts
    gravity      number    degrees Plato by the default polynomial; null for NaN
    interval     number    seconds of sleep
    RSSI         number    dBm

MQTT: one QoS 0 message per value, `ispindel/<name>/` + tilt, temperature, temp_units, battery, gravity,
interval, RSSI, in this order, with the number text of the JSON.  Without a user (`mqttConnect` of
Sender.cpp, since Nov 2020) the CONNECT has neither user nor password; before, and in the eManometer's copy
of the code, it has both, empty.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal, NamedTuple

from sample_devices.fermentation import Point, plato
from sample_devices.wire.esp import chip_id, one_value_messages, post
from sample_devices.wire.numbers import arduino_json, ds18b20
from sample_devices.wire.report import Address, HttpReport, Login, MqttReport, Place, Said

DEFAULT_PATH = "/ingest/ispindel"
INTERVAL_S = 900
KEEP_ALIVE_S = 15  # MQTT_KEEPALIVE of PubSubClient

ZERO_CELSIUS_K = Decimal("273.15")
IN_UNIT: dict[str, Callable[[float], float]] = {
    "C": lambda celsius: celsius,
    "F": lambda celsius: celsius * 9 / 5 + 32,
    "K": lambda celsius: celsius + 273.15,
}

FACTS = ("angle", "battery", "rssi", "interval_s")
"""Of the services that send all of it."""

_NAMES_PER_SEED = 100


class Texts(NamedTuple):
    """The values of a report as ArduinoJson prints them, in the order and with the names of the services."""

    tilt: str
    temperature: str
    temp_units: str
    battery: str
    gravity: str
    interval: str
    RSSI: str


def device_name(place: Place) -> str:
    """Name the device in the style of the default `iSpindel000`; the firmware turns blanks into `_`."""
    if place.name is not None:
        return place.name.replace(" ", "_")
    return f"iSpindel{place.seed * _NAMES_PER_SEED + place.number:03d}"


class Setup(NamedTuple):
    """What the user configured: the unit that the polynomial gives, and the temperature's."""

    gravity_unit: Literal["G", "P"] = "P"
    temp_unit: Literal["C", "F", "K"] = "C"


DEFAULT_SETUP = Setup()


@dataclass(frozen=True, slots=True)
class ISpindelHttp:
    """An iSpindel set to the generic HTTP service."""

    place: Place
    default_path: str = DEFAULT_PATH
    setup: Setup = DEFAULT_SETUP

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the device has no clock, so the moment is not used."""
        values = texts(point, self.setup)
        body = generic_json(self.place, values).encode()
        return HttpReport(
            (said(self.place, values, self.setup, with_id=True),), post(to, self.default_path, body)
        )


@dataclass(frozen=True, slots=True)
class ISpindelMqtt:
    """An iSpindel set to MQTT."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the seven messages; neither address nor moment is on the wire."""
        name, values = device_name(self.place), texts(point)
        return MqttReport(
            (said(self.place, values),), login(name), one_value_messages(name, values._asdict())
        )


def login(name: str) -> Login:
    """Give the login of PubSubClient where no user is configured."""
    return Login(name, KEEP_ALIVE_S)


def texts(point: Point, setup: Setup = DEFAULT_SETUP) -> Texts:
    """Print the values of a point, gravity and temperature in the units that are set up."""
    celsius = ds18b20(point.temperature_c)
    sg = point.gravity_sg
    return Texts(
        tilt=arduino_json(point.tilt_deg),
        temperature=arduino_json(IN_UNIT[setup.temp_unit](celsius)),
        temp_units=setup.temp_unit,
        battery=arduino_json(point.battery_v),
        gravity=arduino_json(plato(sg) if setup.gravity_unit == "P" else sg),
        interval=str(INTERVAL_S),
        RSSI=str(point.rssi_dbm),
    )


def generic_json(place: Place, values: Texts) -> str:
    """Make the JSON object of the HTTP, TCP and CraftBeerPi services."""
    return (
        f'{{"name":{json.dumps(device_name(place), ensure_ascii=False)},"ID":{chip_id(place)},'
        f'"angle":{values.tilt},"temperature":{values.temperature},"temp_units":"{values.temp_units}",'
        f'"battery":{values.battery},"gravity":{values.gravity},'
        f'"interval":{values.interval},"RSSI":{values.RSSI}}}'
    )


def said(
    place: Place,
    values: Texts,
    setup: Setup = DEFAULT_SETUP,
    with_id: bool = False,
    with_facts: Sequence[str] = FACTS,
) -> Said:
    """Say what a report's one reading is; only some services send the chip id, and some lack other values."""
    device_id = str(chip_id(place)) if with_id else None
    facts = facts_of(values, with_facts)
    temp, unit = values.temperature, values.temp_units
    if unit == "K":  # which no reading has
        temp, unit = str(Decimal(temp) - ZERO_CELSIUS_K), "C"
    return Said(device_name(place), device_id, values.gravity, setup.gravity_unit, temp, unit, facts)


def facts_of(values: Texts, names: Sequence[str] = FACTS) -> dict[str, str]:
    """Give the further values of a report that are sent."""
    every = dict(zip(FACTS, (values.tilt, values.battery, values.RSSI, values.interval), strict=True))
    return {name: every[name] for name in names}
