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
interval, RSSI, in this order, with the number text of the JSON.  The firmware always hands user and
password to PubSubClient, which sends both fields, empty where nothing is configured.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sample_devices.fermentation import Point, plato
from sample_devices.wire.esp import chip_id, one_value_messages, post
from sample_devices.wire.numbers import arduino_json, ds18b20
from sample_devices.wire.report import Address, HttpReport, Login, MqttReport, Place, Said

DEFAULT_PATH = "/ingest/ispindel"
INTERVAL_S = 900
KEEP_ALIVE_S = 15  # MQTT_KEEPALIVE of PubSubClient

_NAMES_PER_SEED = 100


class _Texts(NamedTuple):
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


@dataclass(frozen=True, slots=True)
class ISpindelHttp:
    """An iSpindel set to the generic HTTP service."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the device has no clock, so the moment is not used."""
        name, device_id, texts = device_name(self.place), str(chip_id(self.place)), _texts(point)
        body = (
            f'{{"name":{json.dumps(name, ensure_ascii=False)},"ID":{device_id},"angle":{texts.tilt},'
            f'"temperature":{texts.temperature},"temp_units":"{texts.temp_units}",'
            f'"battery":{texts.battery},"gravity":{texts.gravity},'
            f'"interval":{texts.interval},"RSSI":{texts.RSSI}}}'
        )
        return HttpReport(_said(name, device_id, texts), post(to, DEFAULT_PATH, body.encode()))


@dataclass(frozen=True, slots=True)
class ISpindelMqtt:
    """An iSpindel set to MQTT."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the seven messages; neither address nor moment is on the wire."""
        name, texts = device_name(self.place), _texts(point)
        login = Login(name, KEEP_ALIVE_S, user="", password="")
        return MqttReport(_said(name, None, texts), login, one_value_messages(name, texts._asdict()))


def _texts(point: Point) -> _Texts:
    """Print the values in the order of the MQTT messages, as ArduinoJson prints them."""
    return _Texts(
        tilt=arduino_json(point.tilt_deg),
        temperature=arduino_json(ds18b20(point.temperature_c)),
        temp_units="C",
        battery=arduino_json(point.battery_v),
        gravity=arduino_json(plato(point.gravity_sg)),
        interval=str(INTERVAL_S),
        RSSI=str(point.rssi_dbm),
    )


def _said(name: str, device_id: str | None, texts: _Texts) -> Said:
    return Said(name, device_id, texts.gravity, "P", texts.temperature, texts.temp_units)
