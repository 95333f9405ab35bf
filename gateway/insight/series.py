"""Series of values by time, medians of buckets, and lines by Theil-Sen."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

HOUR_S = 3600
DAY_S = 24 * HOUR_S

MOST_SLOTS = 26_280
"""Slots that a series keeps, a year of 20 min; the oldest go first."""


class Series:
    """Values by time (Unix seconds), one for each slot of time: the first of the slot.

    Which values stay does not depend on the order in which they were put in.
    """

    __slots__ = ("at", "slot_s", "values")

    def __init__(self, slot_s: int, typecode: Literal["d", "f"] = "d") -> None:
        self.slot_s = slot_s
        self.at: array[int] = array("q")
        self.values: array[float] = array(typecode)

    def put(self, at: int, value: float) -> bool:
        """Put a value in its place, and return whether the series has changed."""
        times, values = self.at, self.values
        place = bisect_left(times, at)
        slot = at // self.slot_s
        if place and times[place - 1] // self.slot_s == slot:
            return False
        if place < len(times) and times[place] // self.slot_s == slot:
            if times[place] == at and values[place] == value:
                return False
            times[place], values[place] = at, value
            return True
        times.insert(place, at)
        values.insert(place, value)
        if len(times) > MOST_SLOTS:
            del times[0], values[0]
        return True

    def until(self, at: int) -> int:
        """Return the number of values until a time, this included."""
        return bisect_right(self.at, at)

    def forget_after(self, at: int) -> None:
        """Forget the values later than a time."""
        place = bisect_right(self.at, at)
        del self.at[place:], self.values[place:]

    def forget_before(self, at: int) -> None:
        """Forget the values earlier than a time."""
        place = bisect_left(self.at, at)
        del self.at[:place], self.values[:place]

    def between(self, after: int, until: int) -> "array[float]":
        """Return the values later than `after`, until `until`."""
        return self.values[bisect_right(self.at, after) : bisect_right(self.at, until)]


def median(values: Sequence[float]) -> float:
    """Return the median. Raises IndexError without values."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


Point = tuple[float, float]
"""Hours before or after a time, and a value."""


def bucket_medians(
    at: Sequence[int], values: Sequence[float], end: int, bucket_s: float, buckets: int, since: int
) -> list[Point]:
    """Return (hours before `end`, median) of each bucket that has values; the buckets end at `end`.

    Nothing before `since` is used. The time of a bucket is the middle of its first and its last value.
    """
    points = []
    low = bisect_left(at, max(since, int(end - buckets * bucket_s) + 1))
    last = bisect_right(at, end)
    for number in range(buckets - 1, -1, -1):
        high = bisect_right(at, end - number * bucket_s, low, last)
        if high > low:
            x = (at[low] + at[high - 1]) / 2 - end
            points.append((x / HOUR_S, median(values[low:high])))
            low = high
    return points


def line(points: Sequence[Point]) -> Point:
    """Return the slope per hour and the value at hour 0, by Theil-Sen. The points have different times."""
    slope = median([(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2)])
    return slope, median([y - slope * x for x, y in points])
