"""A simulated hydrometer in simulated beer: all that makes its readings wrong."""

import random
from typing import NamedTuple

from tests.backtest.beer import STEP_H, Course

DRIFT_POINTS = (0.05, 0.35)
"""Drift in a day, from device to device: with it a still gravity errs by 0.4 points (median)."""


class Reading(NamedTuple):
    """Seconds since pitching, SG, °C, and the points by which the device has drifted."""

    at: int
    sg: float
    celsius: float
    drift: float = 0.0


class Bump(NamedTuple):
    """Points that foam, or the wall, add between two hours; foam may grow until it breaks down."""

    begin: float
    end: float
    points: float
    grows: bool = False

    def at(self, hour: float) -> float:
        """Return the points that are added at an hour."""
        if not self.begin <= hour < self.end:
            return 0.0
        return self.points * ((hour - self.begin) / (self.end - self.begin) if self.grows else 1.0)


def read(course: Course, dice: random.Random) -> list[Reading]:
    """Return the readings of one device."""
    interval_s = dice.choice((300, 900, 900, 900, 1800, 3600))
    noise = dice.uniform(0.2, 0.7)
    walk = dice.uniform(*DRIFT_POINTS)
    tilt = dice.random() < 0.2
    spikes = dice.choice((0.0, 0.002, 0.01))
    cold_points = dice.uniform(1.0, 3.0) if dice.random() < 0.7 else 0.0
    bumps = _bumps(course, dice)
    gaps = _gaps(course, dice)
    readings = []
    drift, at = 0.0, dice.randrange(60, 1800)
    usual_c = course.celsius[0]
    while at / 3600 < course.hours[-1]:
        hour = at / 3600
        step = int(hour / STEP_H)
        celsius = course.celsius[step]
        drift += dice.gauss(0.0, walk) * (interval_s / 86400) ** 0.5
        points = course.points[step] + drift + dice.gauss(0.0, noise)
        points += sum(bump.at(hour) for bump in bumps)
        if celsius < usual_c:
            points += cold_points * min((usual_c - celsius) / 15, 1.0)
        if dice.random() < spikes:
            points += dice.choice((-1, 1)) * dice.uniform(5, 40)
        if not any(begin <= hour < end for begin, end in gaps):
            sg = round(1 + points / 1000, 3 if tilt else 4)
            readings.append(Reading(at, sg, round(celsius + dice.gauss(0.0, 0.1), 2), drift))
        at += interval_s + dice.randrange(-20, 21)
    return readings


def _bumps(course: Course, dice: random.Random) -> list[Bump]:
    """Foam at the height of fermentation, and a wall that the device touches."""
    bumps = []
    begin, end = course.points[0], course.points[-1]
    if begin - end > 10:
        height = course.first_below(begin - 0.3 * (begin - end))
        # Foam falls when the yeast is nearly through; none is made after that.
        falls = course.first_below(begin - 0.9 * (begin - end)) + dice.uniform(2, 12)
        for _ in range(dice.choice((0, 0, 1, 1, 2))):
            start = height + dice.uniform(-12, 30)
            stop = min(start + dice.uniform(3, 40), falls)
            bumps.append(Bump(start, stop, dice.uniform(2, 12), dice.random() < 0.5))
    for _ in range(dice.choice((0, 0, 1))):
        start = dice.uniform(0, course.hours[-1])
        bumps.append(Bump(start, start + dice.uniform(2, 10), dice.choice((-1, 1)) * dice.uniform(1, 6)))
    return bumps


def _gaps(course: Course, dice: random.Random) -> list[tuple[float, float]]:
    gaps = []
    for _ in range(dice.choice((0, 0, 1, 2))):
        begin = dice.uniform(20, course.hours[-1])
        gaps.append((begin, begin + dice.uniform(2, 24)))
    return gaps
