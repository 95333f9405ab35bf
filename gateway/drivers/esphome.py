"""ESPHome, and topics of one value that users map themselves: values with names of the user's choice.

`<prefix>/sensor/<object_id>/state`, plain number text, retained by default (esphome/esphome
esphome/components/mqtt/mqtt_component.cpp); `nan` where a sensor has no value; availability
`<prefix>/status` with `online` or `offline`. The MQTT part makes one object of them, by object id. A
value that the user mapped (`TOPIC=DEVICE:FIELD`) has the key `:FIELD`; no object id has a colon.

Words of the object id give a value its meaning (`WORDS`); a canonical name (`gravity`, `plato`, `temp`,
`temp_c`, `temp_f`, `angle`, `battery`, `rssi`) wins over them, and the user's mapping wins over all. Targets,
and temperatures of the electronics (ESPHome's examples have `esp32_internal_temperature` and
`mpu6050_temperature`), are not the beer's; temperatures of fridge and room are kept beside it. Sensors
publish in any order, so of two values the names decide which counts: a raw value never counts beside another.

A colour of Tilt among the words is a device of its own, `<prefix>/<colour>`. The temperature comes without a
unit. A group is a hydrometer's if it has gravity, angle or velocity, if the user mapped a value of it or the
topic, or if an object id has a word like `beer` or `tilt` (`HYDROMETER_WORDS`): the other sensors of a house
have temperatures, pressures and batteries, too.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from gateway.domain.payload import Payload
from gateway.domain.report import GravityUnit, Report
from gateway.drivers import fill, wire
from gateway.drivers.base import Driver, ValueTopics
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

SPACING_S = 30.0
"""Seconds between kept readings: sensors publish on their own clocks, some every few seconds."""

CHOSEN_MARK = ":"
"""The first character of a key that the user chose, as in `TOPIC=DEVICE:FIELD`."""

CANONICAL = frozenset({
    "gravity", "sg", "plato", "temp", "temp_c", "temp_f", "temp_unit", "gravity_unit", "angle", "battery",
    "battery_percent", "rssi", "velocity", "interval", "ph", "pressure", "og", "abv", "bpm",
})  # fmt: skip

WORDS = (
    ("original", "og"), ("alcohol", "abv"), ("abv", "abv"),
    ("plato", "plato"), ("sg", "sg"), ("gravity", "gravity"), ("density", "gravity"),
    ("tempf", "temp_f"), ("tempc", "temp_c"), ("temperature", "temp"), ("temp", "temp"),
    ("battery", "battery"), ("voltage", "battery"),
    ("rssi", "rssi"), ("signal", "rssi"), ("wifi", "rssi"),
    ("angle", "angle"), ("pitch", "angle"),
    ("tilt", "angle"),
)  # fmt: skip
"""The meaning of a word in an object id, the first that occurs; `tilt`, also a brand, comes last."""

ELSEWHERE = {
    "fridge": "aux_temp", "freezer": "aux_temp", "chamber": "aux_temp",
    "room": "ext_temp", "ambient": "ext_temp",
}  # fmt: skip
"""The meaning of a temperature beside such a word: not the beer's."""

NOT_MEASURED = frozenset({"target", "setpoint", "set", "final"})
"""Words of values that are wished for, not measured."""

ELECTRONICS = frozenset({
    "internal", "esp", "esp32", "esp8266", "cpu", "mcu", "chip", "board", "gyro", "mpu6050",
})  # fmt: skip
"""Words of the electronics, whose temperatures are never the beer's."""

RAW_WORDS = frozenset({"raw", "uncalibrated", "uncorrected", "uncali"})
CORRECTED_WORDS = frozenset({"corrected", "calibrated", "smoothed", "filtered"})

PERCENT_WORDS = frozenset({"percent", "percentage", "level"})
FAHRENHEIT_WORDS = frozenset({"f", "fahrenheit", "degf"})
CELSIUS_WORDS = frozenset({"c", "celsius", "degc"})

COLORS = frozenset({"red", "green", "black", "purple", "orange", "blue", "yellow", "pink"})

HYDROMETER_WORDS = frozenset({
    "tilt", "ispindel", "spindel", "spindle", "hydrometer", "pill", "beer", "wort", "brew", "ferment",
    "fermenter", "fermentation",
})  # fmt: skip

STATES = frozenset({b"online", b"offline"})

GRAVITIES: dict[str, GravityUnit | None] = {"sg": "G", "gravity": None, "plato": "P"}
TEMPERATURES: dict[str, fill.Unit | None] = {"temp_c": "C", "temp_f": "F", "temp": None}

OF_A_HYDROMETER = frozenset({*GRAVITIES, "angle", "velocity"})
"""Values that nothing else in a house has."""

FURTHER_TEMPERATURES = {"aux_temp": "aux_temp", "ext_temp": "ext_temp"}

_BETWEEN_WORDS = re.compile(r"[^a-z0-9]+")


MAPPED, CANONICALLY, CORRECTED, OF_HYDROMETER, PLAIN, RAW = range(6)
"""Ranks of names that mean the same value: the lowest counts."""

KINDS = dict.fromkeys(GRAVITIES, "gravity") | dict.fromkeys(TEMPERATURES, "temp")
"""Meanings that are the same quantity in different units."""


class Name(NamedTuple):
    """The meaning of an object id or of a mapped field, its Tilt colour, and its rank."""

    key: str
    meaning: str
    color: str
    rank: int
    of_hydrometer: bool


def parse(payload: Payload) -> list[Report]:
    """Return one report per device of the group; none for a state or the sensors of a house."""
    if wire.stripped(payload).lower() in STATES:
        return []
    source = {key: value for key, value in wire.fields(payload).items() if not is_aside(words_of(key))}
    devices = _devices(source)
    if source and not devices and any(is_of_hydrometer(words_of(name)) for name in (payload.label, *source)):
        raise DriverError("no name in it means gravity, temperature or angle")
    base, _, last = payload.label.rpartition("/")
    label = base if base and last in devices else payload.label
    reports = [_report(payload, label, color, *found) for color, found in devices.items()]
    return [report for report in reports if report is not None]


def _devices(source: Fields) -> dict[str, tuple[dict[str, Any], bool]]:
    """Return the members of each colour by canonical name, and whether the names alone mean a hydrometer."""
    names = [name for key in source if (name := _name(key)) is not None]
    named = any(name.of_hydrometer for name in names)
    shared: dict[str, Any] = {}
    devices: dict[str, dict[str, Any]] = {name.color: {} for name in names if name.color}
    best: dict[tuple[str, str], int] = {}
    for name in sorted(names, key=lambda name: (name.rank, name.key)):
        members = devices[name.color] if name.color else shared
        if best.setdefault((name.color, KINDS.get(name.meaning, name.meaning)), name.rank) == name.rank:
            members.setdefault(name.meaning, source[name.key])
    if not devices and shared:
        return {"": (shared, named)}
    return {color: ({**shared, **members}, named) for color, members in devices.items()}


def words_of(key: str) -> list[str]:
    """Return the words of an object id, in lower case."""
    return _BETWEEN_WORDS.split(key.lower())


def is_of_hydrometer(words: list[str]) -> bool:
    """Return whether one of the words names a hydrometer, or beer."""
    return not HYDROMETER_WORDS.isdisjoint(words)


def is_aside(words: list[str]) -> bool:
    """Return whether the words mean no measurement, or the temperature of the electronics."""
    if not NOT_MEASURED.isdisjoint(words):
        return True
    return not ELECTRONICS.isdisjoint(words) and meaning_of(words) in TEMPERATURES


def _name(key: str) -> Name | None:
    """Return the meaning of an object id; None if no word of it is known."""
    if key.startswith(CHOSEN_MARK):
        return Name(key, key.removeprefix(CHOSEN_MARK), "", MAPPED, of_hydrometer=True)
    words = words_of(key)
    meaning = key if key in CANONICAL else meaning_of(words)
    if meaning is None:
        return None
    of_hydrometer = is_of_hydrometer(words)
    color = next((word for word in words if word in COLORS), "")
    if key in CANONICAL:
        rank = CANONICALLY
    elif not RAW_WORDS.isdisjoint(words):
        rank = RAW
    elif not CORRECTED_WORDS.isdisjoint(words):
        rank = CORRECTED
    else:
        rank = OF_HYDROMETER if of_hydrometer else PLAIN
    return Name(key, meaning, color, rank, of_hydrometer)


def meaning_of(words: list[str]) -> str | None:
    """Return the canonical name of the value with these words; None if no word names a value."""
    meaning = next((name for word, name in WORDS if word in words), None)
    if meaning == "battery" and not PERCENT_WORDS.isdisjoint(words):
        return "battery_percent"
    if meaning == "rssi" and not PERCENT_WORDS.isdisjoint(words):
        return None
    if meaning == "temp":
        elsewhere = next((ELSEWHERE[word] for word in words if word in ELSEWHERE), None)
        in_beer = "temp" if CELSIUS_WORDS.isdisjoint(words) else "temp_c"
        return elsewhere or (in_beer if FAHRENHEIT_WORDS.isdisjoint(words) else "temp_f")
    return meaning


def _report(
    payload: Payload, label: str, color: str, members: Mapping[str, Any], named: bool
) -> Report | None:
    name = "/".join(part for part in (label, color) if part)
    report = Report(stable_id=name, name=name)
    fill.token(report, payload, {})
    key = next((key for key in GRAVITIES if wire.numeral(members, key) is not None), "gravity")
    required = not GRAVITIES.keys().isdisjoint(members)
    fill.gravity(report, members, key, unit=GRAVITIES[key], reason=f"the name of {key}", required=required)
    fill.temperature(report, members, TEMPERATURES, None)
    fill.further_temperatures(report, members, FURTHER_TEMPERATURES)
    fill.interval(report, members)
    fill.facts(report, members, fill.NUMBER_NAMES, fill.NUMERAL_NAMES)
    if not fill.measures(report):
        return None
    is_asked_for = payload.chosen is not False  # the user named the topic, or it is read once more
    return report if named or is_asked_for or not OF_A_HYDROMETER.isdisjoint(members) else None


DRIVER = Driver(
    "esphome",
    "ESPHome",
    parse,
    values=(ValueTopics("{label}/sensor/{key}/state"),),
    spacing_s=SPACING_S,
)
