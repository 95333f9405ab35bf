"""The figures of a brew, against a bare `sorted()` of the same buckets."""

import itertools
import math
import random
import time
import tracemalloc
from collections.abc import Callable

from gateway.insight.progress import Progress
from gateway.insight.records import Facts, Sample
from tests.benchmarks.plan import Plan, alternate
from tests.benchmarks.report import Figure, Goal

PITCHED_AT = 1_770_001_200
INTERVAL_S = 900
HOUR_S = 3600
DAYS = 14
FACTS = Facts(pitched_at=PITCHED_AT, recipe_fg=1.012)

CALLS = 2_000
READ_GOAL = Goal("measured", "<=", 100)
ALL_GOAL = Goal("measured", "<=", 5)
AGAIN_GOAL = Goal("measured", "<=", 1_000)
MEMORY_GOAL = Goal("measured", "<=", 40)

WINDOW_BUCKETS = 4 * 12
FORECAST_BUCKETS = 57
"""Medians that the looks at three windows and the rate take, and those of a forecast."""


def measure(plan: Plan) -> list[Figure]:
    """Microseconds for a reading, milliseconds for a new hour and for two weeks, kilobytes of a brew."""
    calls = min(CALLS, plan.payloads)
    readings = _brew(DAYS)
    active = [sample for sample in readings if sample.at <= PITCHED_AT + 60 * HOUR_S]
    hours = range(60, 72)
    return [
        Figure.of_rounds(
            "figures after each reading",
            "us",
            READ_GOAL,
            alternate(plan.rounds, lambda: _reading_us(active, calls), lambda: _sorted_us(12, 3, calls)),
            "no new look",
        ),
        Figure.of_rounds(
            "all figures of a brew: look, slopes, forecast",
            "ms",
            ALL_GOAL,
            alternate(
                plan.rounds,
                lambda: _hour_ms(readings, hours),
                lambda: _sorted_us(WINDOW_BUCKETS + FORECAST_BUCKETS, 6, calls) / 1000,
            ),
            "the dearest hour",
        ),
        Figure.of_rounds(
            "two weeks of a brew from the start",
            "ms",
            AGAIN_GOAL,
            alternate(
                plan.rounds, lambda: _again_ms(readings), lambda: _sorted_us(len(readings), 1, 1) / 1000
            ),
        ),
        Figure("memory of a brew of two weeks", "kB", MEMORY_GOAL, _memory_kb(readings)),
    ]


def _brew(days: int) -> list[Sample]:
    """An ale with noise."""
    dice = random.Random(1)  # noqa: S311
    return [
        Sample(
            PITCHED_AT + at,
            1.012 + 0.04 / (1 + math.exp(0.08 * (at / HOUR_S - 55))) + dice.gauss(0, 0.0004),
            19 + dice.gauss(0, 0.1),
        )
        for at in range(0, days * 24 * HOUR_S, INTERVAL_S)
    ]


def _timed(work: Callable[[], object]) -> float:
    """Return the seconds of this process."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _reading_us(readings: list[Sample], calls: int) -> float:
    progress = Progress(FACTS)
    progress.put(readings)
    now = readings[-1].at
    progress.insight(now)

    def each() -> None:
        for second in range(1, calls + 1):
            # Not a minute of an hour later, so that no look is due.
            progress.put([Sample(now + second % 1700, 1.02, 19.0)])
            progress.insight(now + 1700)

    return _timed(each) / calls * 1e6


def _hour_ms(readings: list[Sample], hours: range) -> float:
    """The hour that takes longest, of some in the midst of fermentation."""
    longest = 0.0
    progress = Progress(FACTS)
    for hour in hours:
        now = PITCHED_AT + hour * HOUR_S
        progress.put(sample for sample in readings if sample.at <= now)
        progress.insight(now - HOUR_S)
        longest = max(longest, _timed(lambda at=now: progress.insight(at)))  # type: ignore[misc]
    return longest * 1000


def _again_ms(readings: list[Sample]) -> float:
    def whole() -> None:
        progress = Progress(FACTS)
        progress.put(readings)
        progress.insight(readings[-1].at)

    return _timed(whole) * 1000


def _sorted_us(buckets: int, size: int, calls: int) -> float:
    dice = random.Random(2)  # noqa: S311
    made = [[dice.random() for _ in range(size)] for _ in range(buckets)]

    def each() -> None:
        for _ in range(calls):
            for bucket in made:
                sorted(bucket)

    return _timed(each) / calls * 1e6


def _memory_kb(readings: list[Sample]) -> float:
    """What a second brew adds: the first one has loaded the code."""
    brews = []
    sizes = []
    for _ in range(2):
        tracemalloc.start()
        progress = Progress(FACTS)
        for hour, samples in itertools.groupby(readings, lambda sample: -(-sample.at // HOUR_S)):
            progress.put(samples)
            progress.insight(hour * HOUR_S)
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        brews.append(progress)
    return sizes[-1] / 1000
