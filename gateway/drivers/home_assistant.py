"""Home Assistant: states of its sensors, by REST or by MQTT from `mqtt_statestream`.

A state object as `/api/states/<entity>` has it (home-assistant/core homeassistant/core.py, `State.as_dict`),
posted by a `rest_command`: `{"entity_id": "sensor.tilt_red_gravity","state": "1.045","attributes":
{"unit_of_measurement": "SG","device_class","friendly_name"},"last_changed","last_updated","context"}`, or a
list of them. Its times are of the value's last change, not of the measurement: they are not taken.

mqtt_statestream (homeassistant/components/mqtt_statestream/__init__.py), retained, QoS 1:
`<base_topic>/sensor/tilt_red_gravity/state` with the plain state, and with `publish_attributes` each
attribute as JSON, `.../unit_of_measurement` with `"SG"`; `publish_timestamps` adds `last_changed` and
`last_updated`. The base topic is the user's: `statestream` needs no option; any other needs
`--mqtt-topic "BASE/sensor/{label}/{key}=home_assistant"`.

An entity has one value. The words of its object id that name the value, in ESPHome's words (`gravity`,
`temperature`, `battery`, `sg`, `f` ...), are taken off; the rest, `tilt_red`, is the device, whose values the
MQTT part makes one reading of. `unavailable` and `unknown` are no value. By MQTT the whole house comes, so
there a device is a hydrometer only if it has a gravity or an angle, or a word like `tilt` or `beer` in its
name. A posted state needs no such sign, because its user chose it.
"""

import json
from typing import Any

from gateway.domain.payload import Payload
from gateway.domain.report import GravityUnit, Report
from gateway.drivers import esphome, fill, wire
from gateway.drivers.base import Driver, ValueTopics
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

DOMAINS = frozenset({"sensor", "number", "input_number"})
"""The kinds of entity with a number."""

STATE, UNIT = "state", "unit_of_measurement"

OF_VALUES = frozenset({
    *(word for word, _ in esphome.WORDS if word != "tilt"),
    *esphome.PERCENT_WORDS, *esphome.FAHRENHEIT_WORDS, *esphome.CELSIUS_WORDS, *esphome.ELSEWHERE,
    *esphome.RAW_WORDS, *esphome.CORRECTED_WORDS, "specific", "strength",
})  # fmt: skip
"""Words of an object id that name the value; all other words name the device."""

MEANINGS_OF_UNITS = {"SG": "gravity", "°P": "plato", "°C": "temp", "°F": "temp", "K": "temp", "dBm": "rssi"}
"""The meaning of a value by its unit, if its name has none."""

RAW = "raw_"

GRAVITIES: dict[str, GravityUnit | None] = {
    **esphome.GRAVITIES,
    **{RAW + key: unit for key, unit in esphome.GRAVITIES.items()},
}
"""Names of a gravity; a raw one counts only without another."""

NUMBERS = {
    "battery": "battery",
    "battery_percent": "battery_percent",
    "rssi": "rssi",
    "angle": "angle",
    "abv": "abv",
}

NUMERALS = {"og": "og"}


def parse(payload: Payload) -> list[Report]:
    """Return one report of a state object, or of a device's values; none for other things of a house."""
    sent = wire.fields(payload)
    if "entity_id" in sent:
        label, source = _of_state(sent)
    else:
        states = {key: value for key, value in sent.items() if "." not in key and key != STATE}
        units = {key.partition(".")[0]: _plain(sent[key]) for key in sent if key.endswith(f".{UNIT}")}
        label, source = payload.label, _members(states, units)
    if not source:
        return []
    report = Report(stable_id=label, name=label)
    fill.token(report, payload, sent)
    fill.named_gravity(report, source, GRAVITIES)
    fill.temperature(report, source, esphome.TEMPERATURES, None)
    fill.further_temperatures(report, source, esphome.FURTHER_TEMPERATURES)
    fill.facts(report, source, NUMBERS, NUMERALS)
    if "gravity_missing" in report.flags:
        report.flags.remove("gravity_missing")  # an entity of its own says it
    by_mqtt = payload.chosen is not None
    is_hydrometer = esphome.is_of_hydrometer(esphome.words_of(label)) or not source.keys().isdisjoint(
        esphome.OF_A_HYDROMETER | GRAVITIES.keys()
    )
    if not fill.measures(report) or (by_mqtt and not is_hydrometer):
        return []
    return [report]


def _of_state(sent: Fields) -> tuple[str, Fields]:
    """Return the device and the value of a state; nothing if it is no number of a hydrometer."""
    domain, _, object_id = (wire.text(sent, "entity_id") or "").partition(".")
    if not object_id or STATE not in sent:
        raise DriverError("no state of an entity")
    if domain not in DOMAINS:
        return "", {}
    attributes = sent.get("attributes")
    unit = wire.text(attributes, UNIT) if isinstance(attributes, dict) else None
    label, key = named(object_id, STATE)
    if key == STATE:
        key = MEANINGS_OF_UNITS.get(unit or "", STATE)
    return label, _members({key: sent[STATE]}, {key: unit or ""})


def _members(states: dict[str, Any], units: dict[str, str]) -> Fields:
    members = {key: value for key, value in states.items() if key != STATE}
    for key in ("temp", "gravity"):
        if key in members and units.get(key):
            members[f"{key}_unit"] = units[key]
    if "battery" in members and units.get("battery") == "%":
        members["battery_percent"] = members.pop("battery")
    return members


def _plain(value: Any) -> str:
    try:
        text = json.loads(value)
    except (ValueError, TypeError):
        text = value
    return text if isinstance(text, str) else ""


def named(label: str, key: str) -> tuple[str, str]:
    """Return device and value of an object id, and the published member, `state` or an attribute.

    `tilt_red_gravity`, `unit_of_measurement`: `tilt_red`, `gravity.unit_of_measurement`. If the topic map has
    the object id as the key, `sensor` is the label.
    """
    object_id, told = (key, STATE) if label in DOMAINS else (label, key)
    words = esphome.words_of(object_id)
    meaning = None if esphome.is_aside(words) else esphome.meaning_of(words)
    if meaning is None:
        return object_id, told
    rest = "_".join(word for word in words if word not in OF_VALUES)
    if not esphome.RAW_WORDS.isdisjoint(words):
        meaning = RAW + meaning
    return rest or object_id, meaning if told == STATE else f"{meaning}.{told}"


DRIVER = Driver(
    "home_assistant",
    "Home Assistant",
    parse,
    values=(ValueTopics("statestream/sensor/{label}/{key}", named=named),),
    of_a_house=True,
)
