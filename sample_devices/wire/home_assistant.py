"""Home Assistant and CraftBeerPi 4, which hand on what other devices measure.

Sources: home-assistant/core `homeassistant/components/rest_command/__init__.py` (aiohttp; the payload is a
template of the user's), `homeassistant/core.py` (State), `homeassistant/components/mqtt_statestream`: for
each entity `<base>/<domain>/<object>/state` and, with `publish_attributes`, an attribute a topic as JSON,
QoS 1, retained.  PiBrewing/craftbeerpi4 `cbpi/api/sensor.py`, `cbpi/craftbeerpi.py`: a number a sensor, at
`cbpi/sensordata/<id>`, which says neither what it is nor whose.
"""

import json
from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.bodies import python_json
from sample_devices.wire.clients import aiohttp_post, target
from sample_devices.wire.identity import named, serial
from sample_devices.wire.numbers import fixed
from sample_devices.wire.report import Address, HttpReport, Message, MqttReport, Place, Said
from sample_devices.wire.tilt_mqtt import PAHO_LOGIN

REST_PATH = "/ingest/stream"
STATE_PATH = "/ingest/home_assistant"
BASE_TOPIC = "statestream"

CRAFTBEERPI_DEVICE = "fermenter1"
CRAFTBEERPI_SENSORS = {"gravity": "Y8mGxVZpCZ4bjEzXWZkLkM", "temp_c": "hN3rT9vLq2sKxWcYbEaUdP"}
"""The sensors by what the user says that they measure."""


@dataclass(frozen=True, slots=True)
class HomeAssistantRest:
    """An automation that calls a rest_command for one hydrometer."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        name = named(self.place, "Fermenter ")
        gravity, temp = fixed(point.gravity_sg, 4), fixed(point.temperature_c, 1)
        body = f'{{"name": {json.dumps(name)}, "gravity": {gravity}, "temp": {temp}, "temp_unit": "C"}}'
        said = Said(name, None, gravity, "G", temp, "C")
        return HttpReport((said,), aiohttp_post(to, target(to, REST_PATH), body.encode()))


@dataclass(frozen=True, slots=True)
class HomeAssistantState:
    """An automation that calls a rest_command with the state of a gravity."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of the state and its unit."""
        name, gravity = _object_id(self.place), fixed(point.gravity_sg, 4)
        body = python_json({
            "entity_id": f"sensor.{name}_gravity", "state": gravity,
            "attributes": {"unit_of_measurement": "SG"},
        })  # fmt: skip
        said = Said(name, None, gravity, "G", None, None)
        return HttpReport((said,), aiohttp_post(to, target(to, STATE_PATH), body.encode()))


@dataclass(frozen=True, slots=True)
class HomeAssistantStatestream:
    """mqtt_statestream with two entities of a hydrometer and their attributes."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make state and unit of each entity."""
        name = _object_id(self.place)
        gravity, temp = fixed(point.gravity_sg, 4), fixed(point.temperature_c, 1)
        entities = {"gravity": (gravity, "SG"), "temperature": (temp, "°C")}
        messages = [
            Message(f"{BASE_TOPIC}/sensor/{name}_{what}/{member}", text.encode(), 1, True)
            for what, (state, unit) in entities.items()
            for member, text in (("state", state), ("unit_of_measurement", json.dumps(unit)))
        ]
        return MqttReport((Said(name, None, gravity, "G", temp, "C"),), PAHO_LOGIN, tuple(messages))


@dataclass(frozen=True, slots=True)
class CraftBeerPi:
    """A CraftBeerPi 4 with a sensor of a gravity and one of a temperature; all of a kind are the same one."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make a message for each sensor."""
        values = {"gravity": round(point.gravity_sg, 4), "temp_c": round(point.temperature_c, 2)}
        messages = tuple(
            Message(
                f"cbpi/sensordata/{sensor}",
                python_json(
                    {
                        "id": sensor,
                        "value": values[what],
                        "datatype": "value",
                        "inrange": True,
                    }
                ).encode(),
                qos=1,
                retain=True,
            )
            for what, sensor in CRAFTBEERPI_SENSORS.items()
        )
        said = Said(CRAFTBEERPI_DEVICE, None, repr(values["gravity"]), "G", repr(values["temp_c"]), "C")
        return MqttReport((said,), PAHO_LOGIN, messages)


def _object_id(place: Place) -> str:
    """Name the device as its entities do; a chosen name changes nothing, as words in it mean values."""
    return f"fermenter_{serial(place)}"
