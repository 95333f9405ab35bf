"""Fermentations for tests: straight pieces of gravity and temperature, hour by hour."""

import itertools
from collections.abc import Callable, Iterator

from gateway.insight.progress import Progress
from gateway.insight.records import Facts, Insight, Sample

T0 = 1_700_002_800
"""A full hour."""

QUARTER_S = 900
HOUR_S = 3600

Curve = Callable[[float], float]


def between(*corners: tuple[float, float]) -> Curve:
    """Return the straight lines through (hour, value); flat before and after."""

    def value(hour: float) -> float:
        for (begin, low), (end, high) in itertools.pairwise(corners):
            if begin <= hour < end:
                return low + (high - low) * (hour - begin) / (end - begin)
        return corners[0][1] if hour < corners[0][0] else corners[-1][1]

    return value


def samples(
    gravity: Curve,
    hours: float,
    celsius: Curve = lambda hour: 19.0,
    every_s: int = QUARTER_S,
    begin: float = 0.0,
) -> Iterator[Sample]:
    """Yield what a device without noise sends."""
    at = int(begin * HOUR_S)
    while at <= hours * HOUR_S:
        yield Sample(T0 + at, gravity(at / HOUR_S), celsius(at / HOUR_S))
        at += every_s


def figures_at(
    gravity: Curve, hours: float, facts: Facts | None = None, celsius: Curve = lambda hour: 19.0
) -> Insight:
    """Return the figures at an hour of a brew that was pitched at hour 0."""
    progress = Progress(facts or Facts(pitched_at=T0))
    progress.put(samples(gravity, hours, celsius))
    return progress.insight(T0 + int(hours * HOUR_S))


def story(insight: Insight) -> list[tuple[str, int]]:
    """Return each phase that was entered, and its hour."""
    return [(change.phase, (change.at - T0) // HOUR_S) for change in insight.changes]


def phases(insight: Insight) -> list[str]:
    """Return each phase that was entered."""
    return [change.phase for change in insight.changes]


def ale(end: float = 1.012, og: float = 1.050) -> Curve:
    """Return an ale that ends after four days."""
    fall = og - end
    return between((10, og), (60, og - 0.8 * fall), (80, og - 0.97 * fall), (96, end))
