"""The rule for temperatures, of a brew or of a device in none. Pure: °C, Unix seconds."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from gateway.insight.series import median

MEDIAN_OF = 3
"""Readings of which the median is looked at: one odd value is no alarm."""

HELD_S = 30 * 60
"""Seconds that it must be outside, or inside again."""

HELD_READINGS = 2
"""Medians in a row that must be outside."""

INSIDE_K = 0.5
"""Kelvin inside the limits from which it is over."""

MOVED_K, MOVED_S = 3.0, 3_600
"""A change so large within so many seconds fires, too."""

SETTLED_S = 6 * 3_600
"""Seconds since the beginning of a brew in which a change is nothing special: the wort still cools."""

OLD_S = 3 * 3_600
"""A temperature so old says nothing of now."""


class Limits(NamedTuple):
    """The least and the most °C, None for no limit; `moves_from` is the time from which a change counts."""

    lo: float | None
    hi: float | None
    moves_from: int | None = None


class Course(NamedTuple):
    """What temperatures say at the end: since when they have been outside or inside, and what is wrong.

    `holds` is None between the limits for firing and for clearing.
    """

    holds: bool | None
    since: int
    readings: int
    celsius: float
    kind: str


def course(temps: Sequence[tuple[int, float]], limits: Limits) -> Course | None:
    """Return what a series (oldest first) says; None without enough temperatures.

    It follows from the series alone, and not from what was said before, so that late readings change nothing.
    """
    medians = [
        (temps[place][0], median([celsius for _, celsius in temps[place - MEDIAN_OF + 1 : place + 1]]))
        for place in range(MEDIAN_OF - 1, len(temps))
    ]
    if not medians:
        return None
    kinds = _kinds(medians, limits)
    last_at, celsius = medians[-1]
    kind = kinds[-1]
    if kind is None:
        return Course(None, last_at, 0, celsius, "")
    # Just inside a limit is neither the end of being outside, nor of being well.
    first = place = len(kinds) - 1
    while place >= 0 and (kinds[place] is None or bool(kinds[place]) == bool(kind)):
        first = place if kinds[place] is not None else first
        place -= 1
    readings, since = sum(each is not None for each in kinds[first:]), medians[first][0]
    if kind:
        return Course(True, since, readings, celsius, kind)
    return Course(False if last_at - since >= HELD_S or first == 0 else None, since, readings, celsius, "")


def _kinds(medians: Sequence[tuple[int, float]], limits: Limits) -> list[str | None]:
    """Return what is wrong: `warm`, `cold`, `moved`; "" if all is well, None just inside a limit."""
    kinds: list[str | None] = []
    # The highest and the lowest of the last hour stand first: a device may report each few seconds.
    highest: deque[tuple[int, float]] = deque()
    lowest: deque[tuple[int, float]] = deque()
    for at, celsius in medians:
        if limits.hi is not None and celsius > limits.hi:
            kinds.append("warm")
            continue  # the way back into the limits is what the brewer wants, and no change that counts
        if limits.lo is not None and celsius < limits.lo:
            kinds.append("cold")
            continue
        if limits.moves_from is not None and at >= limits.moves_from:
            for extreme, sign in ((highest, 1), (lowest, -1)):
                while extreme and sign * extreme[-1][1] <= sign * celsius:
                    extreme.pop()
                extreme.append((at, celsius))
                while extreme[0][0] < at - MOVED_S:
                    extreme.popleft()
            if max(highest[0][1] - celsius, celsius - lowest[0][1]) >= MOVED_K:
                kinds.append("moved")
                continue
        near_hi = limits.hi is not None and celsius > limits.hi - INSIDE_K
        near_lo = limits.lo is not None and celsius < limits.lo + INSIDE_K
        kinds.append(None if near_hi or near_lo else "")
    return kinds
