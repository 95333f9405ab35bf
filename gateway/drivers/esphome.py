"""ESPHome, and one-value topics that users map by themselves: values whose names somebody chose.

`<prefix>/sensor/<object_id>/state`, plain number text, retained by default (esphome/esphome
esphome/components/mqtt/mqtt_component.cpp); `nan` where a sensor has no value; availability
`<prefix>/status` with `online` or `offline`. The MQTT part puts them together, as one object by object id.

Words of the object id say what a value is (`WORDS`); a canonical name (`gravity`, `plato`, `temp`, `temp_c`,
`temp_f`, `angle`, `battery`, `rssi`) wins. A colour of Tilt among them is a device of its own,
`<prefix>/<colour>`. Nothing says the temperature's unit. A group without gravity or angle is a hydrometer's
only where a name says so: the other sensors of a house have temperatures, too.
"""

import re
from collections.abc import Mapping
from typing import Any

from gateway.domain.payload import Payload
from gateway.domain.report import GravityUnit, Report
from gateway.drivers import fill, wire
from gateway.drivers.base import Driver, ValueTopics
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

SPACING_S = 30.0
"""Sensors publish on their own clocks, some every few seconds."""

CANONICAL = frozenset({
    "gravity", "sg", "plato", "temp", "temp_c", "temp_f", "temp_unit", "gravity_unit", "angle", "battery",
    "battery_percent", "rssi", "velocity", "interval", "ph", "pressure", "og", "abv", "bpm",
})  # fmt: skip

WORDS = (
    ("original", "og"), ("alcohol", "abv"), ("abv", "abv"),
    ("plato", "plato"), ("sg", "sg"), ("gravity", "gravity"), ("density", "gravity"),
    ("temperature", "temp"), ("temp", "temp"),
    ("battery", "battery"), ("voltage", "battery"),
    ("rssi", "rssi"), ("signal", "rssi"), ("wifi", "rssi"),
    ("angle", "angle"), ("pitch", "angle"),
    ("tilt", "angle"),
)  # fmt: skip
"""What a word of an object id means, the first that is in it; `tilt`, also a brand, comes last."""

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

NUMBERS = {key: key for key in ("angle", "battery", "battery_percent", "rssi", "velocity", "bpm", "abv")}
NUMERALS = {key: key for key in ("ph", "pressure", "og")}

_BETWEEN_WORDS = re.compile(r"[^a-z0-9]+")


def parse(payload: Payload) -> list[Report]:
    """One report per device of the group; none for a state or the sensors of a house."""
    if wire.stripped(payload).lower() in STATES:
        return []
    source = wire.fields(payload)
    devices = _devices(source)
    if not devices and any(_is_of_hydrometer(name) for name in (payload.label, *source)):
        raise DriverError("no name in it says gravity, temperature or angle")
    base, _, last = payload.label.rpartition("/")
    label = base if base and last in devices else payload.label
    reports = [_report(payload, label, color, *found) for color, found in devices.items()]
    return [report for report in reports if report is not None]


def _devices(source: Fields) -> dict[str, tuple[dict[str, Any], bool]]:
    """The members of each colour by canonical name, and whether they are a hydrometer's by name alone."""
    shared: dict[str, Any] = {}
    devices: dict[str, dict[str, Any]] = {}
    named = False
    for key, value in source.items():
        words = _BETWEEN_WORDS.split(key.lower())
        canonical = key if key in CANONICAL else _meaning(words)
        color = next((word for word in words if word in COLORS), "")
        if canonical is None:
            continue
        members = devices.setdefault(color, {}) if color else shared
        if key in CANONICAL:
            members[canonical] = value
        else:
            members.setdefault(canonical, value)
        named = named or key in CANONICAL or _is_of_hydrometer(key)
    if not devices and shared:
        return {"": (shared, named)}
    return {color: ({**shared, **members}, named) for color, members in devices.items()}


def _is_of_hydrometer(name: str) -> bool:
    return not HYDROMETER_WORDS.isdisjoint(_BETWEEN_WORDS.split(name.lower()))


def _meaning(words: list[str]) -> str | None:
    meaning = next((name for word, name in WORDS if word in words), None)
    if meaning == "battery" and not PERCENT_WORDS.isdisjoint(words):
        return "battery_percent"
    if meaning == "temp" and not FAHRENHEIT_WORDS.isdisjoint(words):
        return "temp_f"
    if meaning == "temp" and not CELSIUS_WORDS.isdisjoint(words):
        return "temp_c"
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
    fill.temperature(report, members, {"temp_c": "C", "temp_f": "F", "temp": None}, None)
    fill.interval(report, members)
    fill.facts(report, members, NUMBERS, NUMERALS)
    if not fill.measures(report):
        return None
    return report if named or required or "angle" in report.facts else None


DRIVER = Driver(
    "esphome",
    "ESPHome",
    parse,
    values=(ValueTopics("{label}/sensor/{key}/state"),),
    spacing_s=SPACING_S,
)
