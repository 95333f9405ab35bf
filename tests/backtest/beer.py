"""Simulated beer: yeast that takes up three sugars. No sensor is in it, and no code of the gateway."""

import math
import random
from bisect import bisect_left
from dataclasses import dataclass, field

STEP_H = 0.25

GLUCOSE_STOPS_MALTOSE = 4.0
MALTOSE_STOPS_TRIOSE = 9.0
"""Points of the one sugar that halve the uptake of the next."""

MONOD_POINTS = (1.5, 4.0, 3.5)
"""Points of glucose, maltose and maltotriose at which uptake has half its speed."""

MOST_CELLS = 1.0
GIVES_UP = 0.2
"""Part of the fall of a stalled brew in which its yeast gives up."""

STALLED_SHARE = 0.01
"""Share of the whole fall from which on a brew stands still."""

KELVIN_TO_E = 11.0
"""Warming that makes the yeast e times as fast."""


@dataclass(frozen=True, slots=True)
class Later:
    """Points that become fermentable later: dry hops, or a yeast that splits dextrins."""

    hours_after_end: float
    points: float
    per_h: float
    """Share of the points that becomes sugar in an hour."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a fermentation is made of. Gravities are points above water, times hours, temperatures °C."""

    og: float
    attenuation: float
    """Share of the original gravity that the yeast can take up."""
    shares: tuple[float, float, float]
    speed: float
    """Points that the full cells take up in an hour at their usual temperature."""
    triose_speed: float
    """Share of it at which maltotriose is taken up."""
    usual_c: float
    lag_h: float
    settles: float
    """Share of the cells that falls out in an hour when the sugar is gone."""
    room_c: tuple[tuple[float, float], ...]
    """Settings of the chamber: (hour, °C), from that hour on."""
    cools_in_h: float = 5.0
    heat_k: float = 1.5
    """Warming at a point per hour."""
    stalls_at: float | None = None
    """Share of the fall at which the yeast gives up."""
    starts: bool = True
    later: Later | None = None
    crash: tuple[float, float] | None = None
    """Hours after the end, and °C."""
    hours_after_end: float = 240.0
    most_hours: float = 60 * 24.0


@dataclass(slots=True)
class Course:
    """The truth: hours since pitching, points above water, °C."""

    hours: list[float] = field(default_factory=list)
    points: list[float] = field(default_factory=list)
    celsius: list[float] = field(default_factory=list)
    crashed_at: float | None = None

    def points_at(self, hour: float) -> float:
        """Return the gravity at an hour."""
        return self.points[min(bisect_left(self.hours, hour), len(self.hours) - 1)]

    def first_below(self, points: float) -> float:
        """Return the first hour with a gravity of at most so many points; the last one without such."""
        below = (hour for hour, each in zip(self.hours, self.points, strict=True) if each <= points)
        return next(below, self.hours[-1])


def ferment(recipe: Recipe, dice: random.Random) -> Course:
    """Return the course of a fermentation, until some days after its end."""
    course = Course()
    can = recipe.og * recipe.attenuation
    sugars = [can * share for share in recipe.shares]
    cells, celsius, hour = 0.1, recipe.room_c[0][1], 0.0
    ended_at: float | None = None
    later = recipe.later
    to_come = later.points if later else 0.0
    swing = dice.uniform(0.0, 0.6), dice.uniform(0.0, 6.3)
    stalled = 0.0
    wakes = dice.uniform(3.0, 6.0)
    left = recipe.og - can
    speeds = (1.15 * recipe.speed, recipe.speed, recipe.triose_speed * recipe.speed)
    while hour < recipe.most_hours:
        gravity = left + sum(sugars)
        course.hours.append(hour)
        course.points.append(gravity)
        course.celsius.append(celsius)
        fallen = (recipe.og - gravity) / can
        pace = math.exp((celsius - recipe.usual_c) / KELVIN_TO_E) if celsius > 4 else 0.0
        pace *= 1 - math.exp(-((hour / recipe.lag_h) ** wakes)) if recipe.starts else 0.0
        if recipe.stalls_at is not None:
            # The yeast gives up over the last part of its fall, and never gets below.
            rest = recipe.stalls_at - fallen
            pace *= min(max(rest / (GIVES_UP * recipe.stalls_at), 0.0), 1.0)
            stalled += STEP_H if rest < STALLED_SHARE else 0.0
        taken = _take_up(sugars, pace * cells, speeds)
        cells += (0.11 * pace * cells * (1 - cells / MOST_CELLS) if taken else 0.0) * STEP_H
        if fallen > 0.6:
            cells -= recipe.settles * cells * ((fallen - 0.6) / 0.4) ** 2 * STEP_H
        room = _room_c(recipe, hour, ended_at, course)
        room += swing[0] * math.sin(hour / 24 * 2 * math.pi + swing[1])
        celsius += ((room - celsius) / recipe.cools_in_h + recipe.heat_k * taken / STEP_H / 5) * STEP_H
        still = sum(sugars) < 0.4 or stalled > 24 or not recipe.starts
        if ended_at is None and still:
            ended_at = hour
        if ended_at is not None:
            if later and hour >= ended_at + later.hours_after_end and celsius > 8:
                freed = to_come * later.per_h * STEP_H
                to_come -= freed
                left -= freed
            if hour >= ended_at + recipe.hours_after_end:
                break
        hour += STEP_H
    return course


def _take_up(sugars: list[float], cells: float, speeds: tuple[float, float, float]) -> float:
    """Take sugar away, and return how much, in points."""
    glucose, maltose, _ = sugars
    stops = (
        1.0,
        GLUCOSE_STOPS_MALTOSE / (GLUCOSE_STOPS_MALTOSE + glucose),
        MALTOSE_STOPS_TRIOSE / (MALTOSE_STOPS_TRIOSE + maltose),
    )
    taken = 0.0
    for number, (stop, speed, half) in enumerate(zip(stops, speeds, MONOD_POINTS, strict=True)):
        sugar = sugars[number]
        most = min(speed * cells * stop * sugar / (half + sugar) * STEP_H, sugar)
        sugars[number] -= most
        taken += most
    return taken


def _room_c(recipe: Recipe, hour: float, ended_at: float | None, course: Course) -> float:
    if recipe.crash and ended_at is not None and hour >= ended_at + recipe.crash[0]:
        if course.crashed_at is None:
            course.crashed_at = hour
        return recipe.crash[1]
    return [celsius for begin, celsius in recipe.room_c if begin <= hour][-1]
