"""What all outcomes come to, and the figures that are demanded of them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.backtest.outcome import FRACTIONS, Outcome

FINISH_H = {50: 12.0, 75: 10.0, 90: 8.0}
"""Median error of the forecast, at most, by the share of the fall."""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure; `limit` is demanded where there is one, and `at_least` is its direction."""

    what: str
    value: float | None
    unit: str = ""
    limit: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the demand is met; None without a demand. Nothing measured does not meet it."""
        if self.limit is None:
            return None
        if self.value is None:
            return False
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def quantile(values: Iterable[float], share: float) -> float | None:
    """Return the value that a share of all does not exceed; None without values."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else None


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """Return all figures."""
    return [
        *_of_done(outcomes),
        *_of_stuck(outcomes),
        *_of_finish([outcome for outcome in outcomes if outcome.finish]),
        *_of_gravity(outcomes),
    ]


def _percent(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole else None


def _of_done(outcomes: Sequence[Outcome]) -> list[Row]:
    ends = [outcome for outcome in outcomes if outcome.ending == "ends"]
    others = [outcome for outcome in outcomes if outcome.ending in ("stalls", "never starts")]
    later = [outcome for outcome in outcomes if outcome.ending in ("hop creep", "diastatic")]
    delays = [outcome.done_after_h for outcome in ends if outcome.done_after_h is not None]
    falls = sum(outcome.falls_later for outcome in outcomes)
    told = sum(outcome.falls_told for outcome in outcomes)
    return [
        Row("done: false", sum(outcome.false_done > 0 for outcome in ends), f"of {len(ends)}", 0),
        Row("done: missed", _percent(sum(not outcome.is_done for outcome in ends), len(ends)), "%", 2),
        Row("done: delay, median", quantile(delays, 0.5), "h", 60),
        Row("done: delay, p90", quantile(delays, 0.9), "h", 100),
        Row(
            "done: stuck or never started",
            sum(outcome.is_done and not outcome.ended_high for outcome in others),
            f"of {len(others)}",
            0,
        ),
        Row(
            "done: before hop creep or diastatic yeast",
            sum(outcome.false_done > 0 for outcome in later),
            f"of {len(later)}",
            note="nobody can know",
        ),
        Row("resumed: told of later falls of 3 points", _percent(told, falls), f"% of {falls}", 100, True),
        Row(
            "resumed: false",
            sum(outcome.false_resumed > 0 for outcome in [*ends, *others]),
            f"of {len(ends) + len(others)}",
            note="drift, mostly",
        ),
        Row("changes of phase of a brew that ends, p90", quantile([o.changes for o in ends], 0.9), "", 7),
    ]


def _of_stuck(outcomes: Sequence[Outcome]) -> list[Row]:
    stalls = [outcome for outcome in outcomes if outcome.ending == "stalls"]
    others = [outcome for outcome in outcomes if outcome.ending != "stalls"]
    delays = [outcome.stuck_after_h for outcome in stalls if outcome.stuck_after_h is not None]
    return [
        Row(
            "stuck: missed",
            sum(not outcome.is_stuck and not outcome.ended_high for outcome in stalls),
            f"of {len(stalls)}",
            0,
        ),
        Row(
            "stuck: told as *ended high*",
            sum(not outcome.is_stuck and outcome.ended_high for outcome in stalls),
            f"of {len(stalls)}",
            note="60 to 65 %",
        ),
        Row(
            "stuck: false",
            _percent(sum(outcome.is_stuck for outcome in others), len(others)),
            f"% of {len(others)}",
            2,
        ),
        Row("stuck: delay, median", quantile(delays, 0.5), "h", 48),
        Row("stuck: delay, p90", quantile(delays, 0.9), "h", 66),
    ]


def _of_finish(outcomes: Sequence[Outcome]) -> list[Row]:
    found = []
    for percent in FRACTIONS:
        errors = [error for o in outcomes if (error := o.finish.get(percent)) is not None]
        asked = sum(percent in outcome.finish for outcome in outcomes)
        held = [outcome.holds[percent] for outcome in outcomes if percent in outcome.holds]
        name = f"finish at {percent} %"
        found += [
            Row(f"{name}: error, median", quantile(errors, 0.5), "h", FINISH_H[percent]),
            Row(f"{name}: error, p90", quantile(errors, 0.9), "h"),
            Row(
                f"{name}: bias", quantile([o.bias[percent] for o in outcomes if percent in o.bias], 0.5), "h"
            ),
            Row(
                f"{name}: FG, median error",
                quantile([o.fg[percent] for o in outcomes if percent in o.fg], 0.5),
                "points",
            ),
            Row(f"{name}: interval holds", _percent(sum(held), len(held)), "%", 85, True),
            Row(
                f"{name}: answers",
                _percent(len(errors), asked),
                f"% of {asked}",
                90 if percent == 75 else None,
                True,
            ),
        ]
    return found


def _of_gravity(outcomes: Sequence[Outcome]) -> list[Row]:
    still = [abs(error) for outcome in outcomes for error in outcome.still]
    noise = [abs(error) for outcome in outcomes for error in outcome.noise]
    moving = [error for outcome in outcomes for error in outcome.moving]
    og = [abs(outcome.og) for outcome in outcomes if outcome.og is not None]
    rate = [abs(error) for outcome in outcomes for error in outcome.rate]
    return [
        Row("S still: error, median", quantile(still, 0.5), "points"),
        Row("S still: error, p95", quantile(still, 0.95), "points", 1.8),
        Row("S still: error, p99", quantile(still, 0.99), "points"),
        Row("S still: error beyond the drift, p95", quantile(noise, 0.95), "points", 0.8),
        Row("S moving: bias", quantile(moving, 0.5), "points"),
        Row("S moving: error, p95", quantile(map(abs, moving), 0.95), "points"),
        Row("OG: error, p95", quantile(og, 0.95), "points", 0.9),
        Row("OG: error, worst", max(og, default=None), "points"),
        Row("rate: error, median", quantile(rate, 0.5), "points a day"),
        Row("rate: error, p95", quantile(rate, 0.95), "points a day"),
    ]
