"""Broken twins of the rules. A backtest that does not fail with one of them proves nothing."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gateway.insight import figures, finish, phase, series
from gateway.insight.phase import Beer, State
from gateway.insight.series import HOUR_S, Series


def _done_of_range(state: State, now: int, looks: Series, beer: Beer) -> bool:
    """The rule of other programs: still for a day, whatever the attenuation."""
    seen = looks.between(now - 24 * HOUR_S, now)
    return len(seen) > 12 and max(seen) - min(seen) <= 0.004


def _done_without_gate() -> None:
    phase._is_still = _done_of_range
    phase._is_attenuated = lambda sg, share, beer: True
    phase._is_low = lambda sg, share, beer: False


def _stuck_without_gate() -> None:
    phase.STUCK_ATTENUATION = 1000.0


def _without_hysteresis() -> None:
    """One look is enough, and what ends a phase is what begins it."""
    phase.LOOKS = 1
    phase.FASTER = phase.SLOWER
    phase.FALLS_AGAIN_SG = phase.STEP_SG = 0.0005


def _done_never_revised() -> None:
    phase.FALLS_AGAIN_SG = math.inf


def _last_reading(at: Sequence[int], values: Sequence[float], since: int) -> float | None:
    return values[-1] if at else None


def _gravity_is_last_reading() -> None:
    figures.current_gravity = _last_reading


def _og_is_highest() -> None:
    def highest(at: Sequence[int], values: Sequence[float], pitched: int) -> float | None:
        return max(
            (sg for time, sg in zip(at, values, strict=True) if time <= pitched + 24 * HOUR_S), default=None
        )

    figures.gravity_of_readings = highest


def _exponential() -> None:
    def decay(numbers: Iterable[float]) -> list[float]:
        return [math.exp(-z) for z in numbers]

    finish.MODELS = ((decay, lambda share: -math.log(share)),) * 2


def _done_early() -> None:
    """A slope of a day only, and no time since pitching."""
    phase.DONE_S = 0
    phase.DONE_48H_SG = phase.DONE_24H_SG = 0.004
    phase.DONE_ATTENUATION = 40.0


def _done_late() -> None:
    """The range of 48 h within one point, as in the first draft."""
    phase.DONE_RANGE_SG = 0.0006


def _mean_of(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _mean() -> None:
    for module in (series, figures, phase):
        vars(module)["median"] = _mean_of


@dataclass(frozen=True, slots=True)
class Twin:
    """What breaks a rule in this process, a figure that it spoils, and brews of each kind that show it."""

    breaks: Callable[[], None]
    spoils: str
    per: int = 2


BROKEN = {
    "done-without-gate": Twin(_done_without_gate, "done: stuck or never started"),
    "done-early": Twin(_done_early, "done: false"),
    "done-late": Twin(_done_late, "done: delay, median"),
    "done-never-revised": Twin(_done_never_revised, "resumed: told of later falls of 3 points"),
    "stuck-without-gate": Twin(_stuck_without_gate, "stuck: false"),
    "no-hysteresis": Twin(_without_hysteresis, "changes of phase of a brew that ends, p90"),
    "last-reading": Twin(_gravity_is_last_reading, "S still: error beyond the drift, p95"),
    "mean": Twin(_mean, "S still: error, p95"),
    "og-highest": Twin(_og_is_highest, "OG: error, p95"),
    "exponential": Twin(_exponential, "finish at 50 %: error, median"),
}
