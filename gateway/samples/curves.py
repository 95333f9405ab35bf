"""Fermentation curves: the beer itself, and the readings of a hydrometer that floats in it.

Pure: the same course and dice give the same result. Gravities are SG, temperatures °C, times hours or days
since pitching, or seconds if the name says so.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

INTERVAL_S = 900
HOURS = INTERVAL_S / 3600
"""A step of the curve, and the devices' interval, in hours."""

FIRST_SIGN = 0.02
"""Share of the attenuation that is done at the end of the lag."""

TAIL = 1.5
"""The slowing of the last sugars: 1 would be a logistic curve."""

DOUBLING_K = 8.0
"""Kelvin of warming that double the speed of the yeast."""

HEAT_K = 11.0
"""Kelvin by which fermenting 40 gravity points would warm the beer if no heat could leave."""

HEATED_POINTS = 0.040

COOLING_H = 4.0
"""Time constant of the beer towards its surroundings, in a fermentation chamber."""

SWINGS = ((1.2, 2.5), (0.5, 24.0))
"""Swings of the chamber's air about its setting, in K and hours: of the thermostat and of the day."""


@dataclass(frozen=True, slots=True)
class Course:
    """A batch: its gravities, its yeast, and the chamber's settings as (day, °C), straight between them.

    `speed` is the yeast's exponential growth per hour at `usual_c`.
    """

    og: float
    fg: float
    speed: float
    usual_c: float
    lag_h: float
    settings: tuple[tuple[float, float], ...]


class CurvePoint(NamedTuple):
    """A moment of a curve; `activity` is the share of the attenuation that an hour takes at this moment."""

    seconds: int
    sg: float
    celsius: float
    activity: float


def setting_c(settings: tuple[tuple[float, float], ...], day: float) -> float:
    """Return the chamber's setting. The last setting stays."""
    for (begin, cool), (end, warm) in pairwise(settings):
        if day < end:
            return cool + (warm - cool) * max(day - begin, 0.0) / (end - begin)
    return settings[-1][1]


def fermentation(course: Course, days: float) -> Iterator[CurvePoint]:
    """Calculate the beer itself, without any sensor, every `INTERVAL_S`."""
    done = FIRST_SIGN * math.exp(-course.speed * course.lag_h)
    celsius = course.settings[0][1]
    drop = course.og - course.fg
    for step in range(int(days * 24 / HOURS) + 1):
        hour = step * HOURS
        pace = course.speed * 2 ** ((celsius - course.usual_c) / DOUBLING_K)
        activity = pace * done * (1 - done) ** TAIL
        yield CurvePoint(step * INTERVAL_S, course.og - drop * done, celsius, activity)
        done += activity * HOURS
        around = setting_c(course.settings, hour / 24)
        around += sum(kelvin * math.sin(math.tau * hour / hours) for kelvin, hours in SWINGS)
        celsius += (around - celsius) * HOURS / COOLING_H
        celsius += HEAT_K * drop / HEATED_POINTS * activity * HOURS


WANDER_SG, WANDER_KEPT = 0.00006, 0.985
"""Slow drift of a floating hydrometer per reading, and the share of it that the next reading still has."""

STILL_SG, BUBBLES_SG = 0.00015, 0.02
"""Noise of a reading in still beer, and further noise per `activity`."""

STUCK_CHANCE, STUCK_READINGS, STUCK_SG = 0.0025, (2, 7), 0.0035
"""Krausen that holds the hydrometer for some readings while the beer works."""

WORKING = 0.008
"""The `activity` at which krausen begins."""

COLD_SG, COLD_FROM_C = 0.00003, 15.0
"""The error of an uncompensated hydrometer for each degree below that temperature: it reads too high."""

LOST_CHANCE = 0.004
"""The chance that a report is lost."""

OUTAGE_CHANCE, OUTAGE_READINGS = 0.0003, (8, 40)
"""The chance that the network goes down, and the number of reports that are then lost."""

GAPLESS = 48
"""Reports at the end that all arrive, so that the device looks present."""

CLOCK_S = (-1, 8)
"""Seconds beyond its interval after which a device reports: it measures first."""


def measured(beer: Sequence[CurvePoint], dice: random.Random) -> Iterator[CurvePoint]:
    """Return the points that arrive from a hydrometer: with noise, drift, krausen, gaps and its own clock."""
    wander = stuck = late = 0.0
    stuck_for = lost_for = 0
    for number, point in enumerate(beer):
        wander = wander * WANDER_KEPT + dice.gauss(0, WANDER_SG)
        late += dice.uniform(*CLOCK_S)
        if stuck_for:
            stuck_for -= 1
        elif point.activity > WORKING and dice.random() < STUCK_CHANCE:
            stuck_for, stuck = dice.randint(*STUCK_READINGS), abs(dice.gauss(0, STUCK_SG))
        lost_for = max(lost_for - 1, 0)
        if not lost_for:
            luck = dice.random()
            if luck < OUTAGE_CHANCE:
                lost_for = dice.randint(*OUTAGE_READINGS)
            elif luck < OUTAGE_CHANCE + LOST_CHANCE:
                lost_for = 1
        if lost_for and 0 < number < len(beer) - GAPLESS:
            continue
        noise = dice.gauss(0, STILL_SG + BUBBLES_SG * point.activity)
        cold = COLD_SG * max(0.0, COLD_FROM_C - point.celsius)
        sg = point.sg + wander + noise + cold + (stuck if stuck_for else 0.0)
        yield point._replace(seconds=point.seconds + round(late), sg=sg)
