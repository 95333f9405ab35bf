"""Views and findings for tests of rules and states."""

from typing import Any

from gateway.domain.alarm import Alarm
from gateway.insight.records import Insight, OriginalGravity, Phase, PhaseChange
from gateway.notify.views import BrewView, DeviceView, Finding
from gateway.store.protocols.alarms import Signs

NOW = 1_772_616_000
"""2026-03-04T09:20:00Z."""

HOUR_S, DAY_S = 3_600, 86_400


def insight(*changes: tuple[float, Phase], **members: Any) -> Insight:
    """Make the figures of a beer five days old whose phases were entered so many hours ago."""
    made: list[PhaseChange] = []
    for hours, phase in changes:
        resumed = bool(made) and made[-1].phase == "finished" and phase == "active"
        made.append(PhaseChange(NOW - int(hours * HOUR_S), phase, 1.020, resumed))
    known: dict[str, Any] = {
        "last_at": NOW - 60, "sg": 1.020, "og": OriginalGravity(1.050, "readings"), "attenuation": 60.0,
        "day": 5.0, "phase": made[-1].phase if made else "lag", "changes": tuple(made),
    }  # fmt: skip
    return Insight(NOW, **known | members)


def brew(figures: Insight, **members: Any) -> BrewView:
    return BrewView(1, None, "B1 Stout", figures, **members)


def device(**members: Any) -> DeviceView:
    known: dict[str, Any] = {
        "title": "GREEN", "family": "ispindel", "signs": Signs(), "session_id": 1, "brew": "B1 Stout",
        "interval_s": 900,
    }  # fmt: skip
    return DeviceView(7, None, **known | members)


def finding(**members: Any) -> Finding:
    known: dict[str, Any] = {
        "rule": "stuck", "scope": "brew", "subject": "1", "account_id": None, "holds": True,
        "since": NOW - HOUR_S, "text": "It is stuck.", "ended": "It ferments.", "evidence": {"sg": 1.02},
    }  # fmt: skip
    return Finding(**known | members)


def alarm(**members: Any) -> Alarm:
    known: dict[str, Any] = {
        "id": 5, "account_id": None, "rule": "stuck", "scope": "brew", "subject": "1", "state": "firing",
        "since": NOW - 2 * HOUR_S, "fired_at": NOW - HOUR_S, "evidence": {"sg": 1.02}, "text": "It is stuck.",
    }  # fmt: skip
    return Alarm(**known | members)
