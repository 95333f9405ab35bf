"""A reading as named values, for kinds of targets that do not take the specification's shape."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.domain.units import celsius_to_fahrenheit, sg_to_plato

NUMBERS = ("sg", "plato", "temp_c", "temp_f", "battery_v", "battery_pct", "rssi", "angle", "pressure_kpa")
"""Names of measured values; each is a float, or None where it is not known."""

NAMES = ("id", "at", "time", "device", "name", "brew_id", "batchcode", *NUMBERS, "comment")
"""All names: `at` is Unix seconds, `time` the same in ISO 8601, `brew_id` the number of the brew session."""

DECIMALS = {"sg": 5, "plato": 3, "temp_c": 3, "temp_f": 3, "pressure_kpa": 4}
"""Decimals that are kept: a conversion must not look more precise than what was measured."""

FACTS = {"battery": "battery_v", "battery_percent": "battery_pct", "rssi": "rssi", "angle": "angle"}
"""Facts of a report by their names here."""

KPA = {"kpa": 1.0, "hpa": 0.1, "mbar": 0.1, "bar": 100.0, "psi": 6.894757, "pa": 0.001}
"""Kilopascals of one unit of pressure."""


def values_of(row: str) -> dict[str, Any]:
    """Return all values of a row of `RouteStore.begin`, by their names."""
    stored = json.loads(row)
    facts: Mapping[str, Any] = stored["facts"]
    sg, celsius = _number(stored["sg"]), _number(stored["temp_c"])
    pressure, unit = _number(facts.get("pressure")), KPA.get(str(facts.get("pressure_unit", "")).lower())
    numbers = {
        "sg": sg,
        "plato": None if sg is None else sg_to_plato(sg),
        "temp_c": celsius,
        "temp_f": None if celsius is None else celsius_to_fahrenheit(celsius),
        **{name: _number(facts.get(fact)) for fact, name in FACTS.items()},
        "pressure_kpa": None if pressure is None or unit is None else pressure * unit,
    }
    for name, decimals in DECIMALS.items():
        number = numbers[name]
        if number is not None:
            numbers[name] = round(number, decimals)
    return {
        "id": stored["id"],
        "at": stored["at"],
        "time": datetime.fromtimestamp(stored["at"], UTC).isoformat().replace("+00:00", "Z"),
        "device": stored["device"] or "import",
        "name": stored["name"],
        "brew_id": stored["session"],
        "batchcode": stored["batchcode"],
        **numbers,
        "comment": stored["comment"],
    }


def _number(value: object) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
