"""Current and original gravity, and what follows from the two."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from gateway.domain import units
from gateway.insight.records import Facts, OriginalGravity
from gateway.insight.series import DAY_S, HOUR_S, bucket_medians, line, median

LEAST_READINGS = 3
"""Readings that a median is made of, at least."""

MEDIAN_S = 6 * HOUR_S
LINE_HOURS = 12
LINE_POINTS = 4
"""Hours with a reading that a line needs."""

MOVES_SG_PER_H = 0.0006 / 3
"""Slope from which the line tells the current gravity better than the median."""

OG_S = 12 * HOUR_S
OG_MEDIAN_S = 3 * HOUR_S
OG_FALL_SG = 0.002

LEAST_OG_SG = 1.005
"""Original gravity up to which there is nothing to ferment."""

ATTENUATION = (-5.0, 110.0)
"""Percents that are believed."""

STRONG_SG = 1.070
"""Original gravity from which on the other formula of alcohol is shown, too."""


def current_gravity(at: Sequence[int], values: Sequence[float], since: int) -> float | None:
    """Return the gravity at the last reading (SG): a median where it is still, a line where it moves.

    Nothing before `since` is used. None with fewer than three readings.
    """
    if not at:
        return None
    last = at[-1]
    low = bisect_right(at, last - MEDIAN_S)
    # A device that sends each three hours has two readings in six.
    low = max(min(low, len(at) - LEAST_READINGS), bisect_left(at, since))
    if len(at) - low < LEAST_READINGS:
        return None
    points = bucket_medians(at, values, last, HOUR_S, LINE_HOURS, since)
    if len(points) >= LINE_POINTS:
        slope, end = line(points)
        if abs(slope) >= MOVES_SG_PER_H:
            return end
    return median(values[low:])


def gravity_of_readings(at: Sequence[int], values: Sequence[float], pitched: int) -> float | None:
    """Return the median of the readings since pitching until gravity has fallen 2 points, 12 h at most.

    None with fewer than three readings.
    """
    low, high = bisect_left(at, pitched), bisect_right(at, pitched + OG_S)
    if high - low < LEAST_READINGS:
        return None
    begun = bisect_right(at, at[low] + OG_MEDIAN_S, low, high)
    fallen = median(values[low:begun]) - OG_FALL_SG
    for end in range(begun, high):
        if median(values[bisect_right(at, at[end] - OG_MEDIAN_S, low, high) : end + 1]) <= fallen:
            return median(values[low : end + 1])
    return median(values[low:high])


def original_gravity(facts: Facts, of_readings: float | None) -> OriginalGravity | None:
    """Return the best known original gravity."""
    if facts.og_by_hand is not None:
        return OriginalGravity(facts.og_by_hand, "hand")
    if facts.og_measured is not None:
        return OriginalGravity(facts.og_measured, "measured")
    if of_readings is not None:
        return OriginalGravity(of_readings, "readings")
    return None if facts.recipe_og is None else OriginalGravity(facts.recipe_og, "recipe")


def attenuation(og: float | None, sg: float | None) -> float | None:
    """Return the apparent attenuation in percent; None where it cannot be known or believed."""
    if og is None or sg is None or og <= LEAST_OG_SG:
        return None
    percent = 100 * (og - sg) / (og - 1)
    low, high = ATTENUATION
    return percent if low <= percent <= high else None


def abv(og: float, sg: float) -> tuple[float, float | None]:
    """Return the alcohol in percent by volume, and that of the other formula where the wort was strong."""
    other = max(units.abv_alternate(og, sg), 0.0) if og >= STRONG_SG else None
    return max(units.abv(og, sg), 0.0), other


def day(pitched: int, now: int) -> float:
    """Return the days since pitching, from 0."""
    return max(now - pitched, 0) / DAY_S
