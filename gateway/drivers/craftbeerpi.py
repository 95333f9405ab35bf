"""CraftBeerPi 4, whose sensors send a number by MQTT without its meaning.

`cbpi/sensordata/<id>`, retained, QoS 1, every few seconds (PiBrewing/craftbeerpi4 cbpi/api/sensor.py,
cbpi/craftbeerpi.py): `{"id": "Y8mGxVZpCZ4bjEzXWZkLkM","value": 1.045,"datatype": "value","inrange": true}`.
The id is random; `datatype` is `value`, `datetime` or `string`. Name and kind of a sensor stand only in
`cbpi/sensorupdate/<id>`, after a change: `{"id","name","type","props","state"}`. The plugin
PiBrewing/cbpi4-iSpindle has one sensor for each value: temperature, gravity or angle, battery, RSSI.

So the user gives each value its meaning: `--mqtt-topic "cbpi/sensordata/<id>=DEVICE:gravity"`. Values of one
device are put together and read as ESPHome's.
"""

import json
from dataclasses import replace

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import esphome, wire
from gateway.drivers.base import Driver
from gateway.errors import DriverError

SPACING_S = 30.0
"""Seconds between kept readings, as ESPHome's: each sensor has its own clock."""


def parse(payload: Payload) -> list[Report]:
    """Return one report of the values that the user named; none if none of these sensors has a value."""
    source = wire.fields(payload)
    if "value" in source and "id" in source:
        raise DriverError(
            "a number without a meaning: --mqtt-topic cbpi/sensordata/ID=DEVICE:gravity gives it one"
        )
    values = dict(source)
    for key, text in source.items():
        if isinstance(text, str) and text.lstrip().startswith("{"):  # the sensor's object has it as `value`
            values[key] = wire.json_object(text.strip().encode()).get("value")
    reports = esphome.parse(replace(payload, body=json.dumps(values).encode(), query="", fields=None))
    if not reports and not all(wire.is_missing(values, key) for key in values):
        raise DriverError("no number in it")
    return reports


DRIVER = Driver("craftbeerpi", "CraftBeerPi 4", parse, spacing_s=SPACING_S, of_a_house=True)
