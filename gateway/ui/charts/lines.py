"""Lines of a chart: where they break, the band around them, and the running median. Pure."""

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from gateway.insight.series import median
from gateway.services.series import Line, Series

GAP_INTERVALS, GAP_BUCKETS = 3, 2
"""Intervals between readings, and buckets, after which a line breaks; the longer of both counts."""

ENOUGH_POINTS = 5
"""Points of a line from which on their usual distance means something."""

MEDIAN_S = 6 * 3600
"""Seconds that the running median goes over."""


def gap_s(series: Series, line: Line) -> float:
    """Return the seconds without a reading after which a line breaks."""
    usual = [found for each in series.lines if (found := _interval(each)) is not None]
    # That of the line itself, because two devices may report at different paces. A line of few points has
    # none, and those of another device say more than the distances of a handful of points.
    own = _interval(line) or min(usual, default=series.interval_s)
    return max(GAP_INTERVALS * own, GAP_BUCKETS * series.width_s) or float("inf")


def _interval(line: Line) -> float | None:
    """Return the usual seconds between two readings of a line; None for a line of few points."""
    if len(line.t) < ENOUGH_POINTS:
        return None
    return median(
        [
            (later - earlier) / max(1, count)
            for (earlier, later), count in zip(pairwise(line.t), line.n[:-1], strict=True)
        ]
    )


def runs(t: Sequence[int], values: Sequence[float | None], gap: float) -> list[list[tuple[int, float]]]:
    """Return the values with their times, in runs without a gap. A missing value alone breaks no run."""
    found: list[list[tuple[int, float]]] = []
    for at, value in zip(t, values, strict=True):
        if value is None:
            continue
        if not found or at - found[-1][-1][0] > gap:
            found.append([])
        found[-1].append((at, value))
    return found


def bands(line: Line, gap: float) -> Iterator[list[tuple[int, float, float]]]:
    """Yield runs of time, lowest and highest gravity, where a bucket holds more than one reading."""
    run: list[tuple[int, float, float]] = []
    for at, low, high in zip(line.t, line.sg_min, line.sg_max, strict=True):
        flat = low is None or high is None or low == high
        if run and (flat or at - run[-1][0] > gap):
            yield run
            run = []
        if not flat and low is not None and high is not None:
            run.append((at, low, high))
    if run:
        yield run


def running_median(t: Sequence[int], values: Sequence[float | None]) -> list[float | None]:
    """Return for each value the median of those within three hours before and after it; None stays None."""
    pairs = [(at, value) for at, value in zip(t, values, strict=True) if value is not None]
    times = [at for at, _ in pairs]
    found: list[float | None] = []
    for at, value in zip(t, values, strict=True):
        first = bisect.bisect_left(times, at - MEDIAN_S / 2)
        last = bisect.bisect_right(times, at + MEDIAN_S / 2)
        found.append(None if value is None else median([each for _, each in pairs[first:last]]))
    return found


def smooth(line: Line) -> Line:
    """Return the line with the running median in place of its averages."""
    return replace(line, sg=running_median(line.t, line.sg), temp=running_median(line.t, line.temp))
