"""A series with half as many buckets: a phone's chart needs no second look at the readings. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from gateway.services.series import Line, Series


def halved(series: Series) -> Series:
    """Return the series with buckets of double width; it must have buckets."""
    lines = [_halved(line, 2 * series.width_s, series.start, series.end) for line in series.lines]
    return replace(series, width_s=2 * series.width_s, lines=lines)


def _halved(line: Line, width: int, start: int, end: int) -> Line:
    # Buckets begin at multiples of their width, and so do these.
    groups = groupby(range(len(line.t)), key=lambda place: line.t[place] // width)
    pairs = [list(places) for _, places in groups]

    def time(pair: Sequence[int]) -> int:
        at = line.t[pair[0]]
        alone = len(pair) == 1 and line.n[pair[0]] == 1
        return at if alone else min(max(at // width * width + width // 2, start), end)

    counted = [n - left for n, left in zip(line.n, line.left_out, strict=True)]
    return replace(
        line,
        t=[time(pair) for pair in pairs],
        n=[sum(line.n[place] for place in pair) for pair in pairs],
        sg_min=[_least(line.sg_min, pair) for pair in pairs],
        sg_max=[_most(line.sg_max, pair) for pair in pairs],
        sg=[_mean(line.sg, counted, pair) for pair in pairs],
        temp_min=[_least(line.temp_min, pair) for pair in pairs],
        temp_max=[_most(line.temp_max, pair) for pair in pairs],
        temp=[_mean(line.temp, line.n, pair) for pair in pairs],
        left_out=[sum(line.left_out[place] for place in pair) for pair in pairs],
    )


Column = Sequence[float | None]


def _least(column: Column, pair: Sequence[int]) -> float | None:
    return min((value for place in pair if (value := column[place]) is not None), default=None)


def _most(column: Column, pair: Sequence[int]) -> float | None:
    return max((value for place in pair if (value := column[place]) is not None), default=None)


def _mean(column: Column, weights: Sequence[int], pair: Sequence[int]) -> float | None:
    """Return the average of both buckets; each counts by its readings."""
    found = [(value, max(weights[place], 1)) for place in pair if (value := column[place]) is not None]
    total = sum(weight for _, weight in found)
    return sum(value * weight for value, weight in found) / total if total else None
