"""The states that Home Assistant shows. What is not known is null; every member is always there."""

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from gateway.domain.alarm import Alarm, AlarmEvent
from gateway.domain.brewsession import SessionEntry
from gateway.domain.reading import Reading
from gateway.domain.units import sg_to_plato
from gateway.insight.records import Insight

TEXT_CHARACTERS = 255
"""Characters that a state of Home Assistant can have."""

LARGEST = 1e9
"""A number beyond it measures nothing that we know of."""

KPA = {"kpa": 1.0, "hpa": 0.1, "mbar": 0.1, "bar": 100.0, "psi": 6.894757, "pa": 0.001}
"""Kilopascals of each unit, in lower case."""

RULES_OF_BREW = ("stuck", "not_started", "done", "temperature")
RULES_OF_DEVICE = (*RULES_OF_BREW, "silent", "battery")
"""Alarms that have an entity."""


class Brew(NamedTuple):
    """An open brew with its figures."""

    entry: SessionEntry
    insight: Insight

    @property
    def title(self) -> str:
        """Return batch code and title of the recipe, whichever there is."""
        words = (self.entry.session.batchcode, self.entry.recipe_title)
        return " ".join(word for word in words if word) or f"#{self.entry.session.id}"


def device_values(reading: Reading | None) -> dict[str, Any]:
    """Return what one reading of a device says, by the members of its state."""
    values: dict[str, Any] = dict.fromkeys(
        ("at", "sg", "plato", "temp_c", "battery_v", "battery_pct", "rssi", "angle", "pressure_kpa")
    )
    if reading is None:
        return values
    facts: dict[str, Any] = json.loads(reading.facts or "{}")
    sg = _number(reading.sg)
    pressure = _number(facts.get("pressure"))
    per_unit = KPA.get(str(facts.get("pressure_unit", "")).lower())
    return {
        "at": time_text(reading.created_at),
        "sg": _rounded(sg, 5),
        "plato": None if sg is None else _rounded(sg_to_plato(sg), 3),
        "temp_c": _rounded(_number(reading.celsius), 3),
        "battery_v": _number(facts.get("battery")),
        "battery_pct": _number(facts.get("battery_percent")),
        "rssi": _number(facts.get("rssi")),
        "angle": _number(facts.get("angle")),
        "pressure_kpa": None if pressure is None or per_unit is None else _rounded(pressure * per_unit, 3),
    }


def seen_members(values: Mapping[str, Any]) -> set[str]:
    """Return the members that have a value; with either battery, `battery`, too."""
    seen = {name for name, value in values.items() if value is not None}
    return seen | {"battery"} if seen & {"battery_v", "battery_pct"} else seen


def device_state(values: Mapping[str, Any], brew: Brew | None, alarms: Iterable[Alarm]) -> str:
    """Return the state of a device as JSON."""
    figures = _figures(None if brew is None else brew.insight)
    return _json(
        {
            **values,
            "brew": None if brew is None else brew.title[:TEXT_CHARACTERS],
            "brew_id": None if brew is None else brew.entry.session.id,
            **figures,
            "alarms": _alarms(alarms, RULES_OF_DEVICE),
        }
    )


def brew_state(brew: Brew, alarms: Iterable[Alarm]) -> str:
    """Return the state of a brew as JSON; its gravity is the smoothed one."""
    insight = brew.insight
    return _json(
        {
            "at": None if insight.last_at is None else time_text(insight.last_at),
            "brew_id": brew.entry.session.id,
            "sg": _rounded(insight.sg, 5),
            "temp_c": _rounded(insight.temp_c, 3),
            **_figures(insight),
            "alarms": _alarms(alarms, RULES_OF_BREW),
        }
    )


def gateway_state(waiting: int, quarantine: int, free_bytes: int, targets: Mapping[str, bool]) -> str:
    """Return the state of the gateway as JSON; `targets` are by their slugs."""
    # Steps of 0.1 GB: a free byte more or less is nothing new.
    free_gb = math.floor(free_bytes / 1e8) / 10
    return _json({"waiting": waiting, "quarantine": quarantine, "disk_free": free_gb, "targets": targets})


def event_message(alarm: Alarm, event: AlarmEvent) -> str:
    """Return what is said of an alarm event as JSON; a receiver can drop an `id` that it had before."""
    return _json(
        {
            "event_type": event.kind,
            "id": event.id,
            "at": time_text(event.at),
            "rule": alarm.rule,
            "severity": alarm.severity,
            "scope": alarm.scope,
            "subject": alarm.subject,
            "text": event.text,
        }
    )


def time_text(unix_seconds: float) -> str:
    """Return a time as Home Assistant reads it: `2026-11-23T14:10:00+00:00`."""
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat(timespec="seconds")


def _figures(insight: Insight | None) -> dict[str, Any]:
    if insight is None:
        insight = Insight(now=0)
    return {
        "og": _rounded(None if insight.og is None else insight.og.sg, 5),
        "attenuation": _rounded(insight.attenuation, 2),
        "abv": _rounded(insight.abv, 3),
        "rate": _rounded(insight.rate, 5),
        "phase": insight.phase,
        "finish": None if insight.finish is None else time_text(insight.finish.at),
    }


def _alarms(alarms: Iterable[Alarm], rules: Iterable[str]) -> dict[str, bool]:
    firing = {alarm.rule for alarm in alarms}
    return {rule: rule in firing for rule in rules}


def _number(value: Any) -> float | None:
    """Return a number, also of a text that is one; None for all else."""
    if isinstance(value, str):  # a pressure keeps its digits
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -LARGEST < value < LARGEST else None


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _json(state: Mapping[str, Any]) -> str:
    return json.dumps(state, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
