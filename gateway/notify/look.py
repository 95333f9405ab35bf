"""A look at a brew: what all rules about brews share. Pure.

A rule follows from the view alone, and not from what was said before. So the order in which readings came
does not matter, and `alarms check` can say what a rule saw at any time. The limits of phases are in
`gateway/insight/phase.py`; a phase is entered once it was seen for 3 h, so these rules hold at once.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from gateway.domain.alarm import Alarm
from gateway.insight.records import Phase, PhaseChange
from gateway.notify.views import BrewView, Finding

HOUR_S, DAY_S = 3_600, 86_400

NO_GRAVITY = "no gravity of the last 24 h is known"

Setting = Mapping[str, Any]
SettingOf = Callable[[str], Setting | None]
"""Returns the setting of a rule, None if it is off."""


class Look(NamedTuple):
    """A look at a brew: the view, the rule's setting, the rule's alarms that ever fired, and the time."""

    view: BrewView
    setting: Setting
    told: Sequence[Alarm]
    now: int


class Episode(NamedTuple):
    """A time in one phase, without the cold crashes in it; `end` is None while it lasts."""

    phase: Phase
    start: int
    end: int | None
    sg: float | None
    resumed: bool


def moment(at: float) -> str:
    """Return a time in the gateway's zone as a person says it: `Tue 24 Nov 14:05`."""
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%a %d %b %H:%M}"


def sg_text(sg: float | None) -> str:
    """Return a gravity to the point: `1.018`."""
    return "unknown" if sg is None else f"{sg:.3f}"


def episodes(changes: Sequence[PhaseChange]) -> list[Episode]:
    """Return the times in each phase, oldest first. A cold crash does not end the phase before it."""
    found: list[Episode] = []
    for change in changes:
        if change.phase == "cold_crash" or (found and found[-1].phase == change.phase):
            continue
        if found:
            found[-1] = found[-1]._replace(end=change.at)
        found.append(Episode(change.phase, change.at, None, change.sg, change.resumed))
    return found


def of_brew(view: BrewView, rule: str, holds: bool | None, **members: Any) -> Finding:
    """Return a finding about a brew, with the figures that every rule saw."""
    figures, parts = view.insight, []
    if figures.sg is None:
        parts.append(NO_GRAVITY if figures.last_at else "no reading")
    else:
        parts.append(f"gravity {sg_text(figures.sg)}")
        if figures.attenuation is not None:
            parts.append(f"{figures.attenuation:.0f} % attenuated")
    if figures.phase is not None:
        since = "" if figures.phase_since is None else f" since {moment(figures.phase_since)}"
        parts.append(f"phase {figures.phase.replace('_', ' ')}{since}")
    members.setdefault("saw", ", ".join(parts))
    return Finding(rule, "brew", str(view.session_id), view.account_id, holds, **members)


def evidence_of(view: BrewView, at: int, **more: Any) -> dict[str, Any]:
    """Return the figures that make an alarm, so that the history explains itself later; `at` is its event."""
    figures = view.insight
    known = {
        "at": at,
        "sg": figures.sg,
        "og": figures.og.sg if figures.og else None,
        "recipe_fg": view.recipe_fg,
        "attenuation": figures.attenuation,
        "rate": figures.rate,
        "fell_24h": figures.fell_24h,
        "fell_36h": figures.fell_36h,
        "fell_48h": figures.fell_48h,
        "temp_c": figures.temp_c,
        **more,
    }
    rounded = {name: round(value, 5) if isinstance(value, float) else value for name, value in known.items()}
    return {name: value for name, value in rounded.items() if value is not None}
