"""One brew, seen by the shipped figures hour by hour, and what they were worth."""

import dataclasses
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.insight.progress import Progress
from gateway.insight.records import Facts, Insight, PhaseChange, Sample
from tests.backtest.beer import Course, ferment
from tests.backtest.kinds import Ending, Kind
from tests.backtest.sensor import Reading, read

PITCHED_AT = 1_700_000_000

DONE_POINTS = 1.5
"""Points that may still come when a brew is called done."""

END_POINTS = 1.0
"""Points above the end at which a brew is finished."""

LATER_POINTS = 3.0
"""A later fall that must be told."""

FALLEN_POINTS = 1.0
"""Fall since *finished* below which *resumed* is false."""

STILL_POINTS_PER_DAY = 0.7
STILL_H = 12
FRACTIONS = (50, 75, 90)
"""Percents of the fall at which the forecast is looked at."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of a brew. Points above water by hours since pitching."""

    kind: str
    ending: Ending
    course: Course
    og: float
    end: float
    """Points at the end, or where the brew stalled, before anything that nobody can foresee."""


@dataclass(slots=True)
class Outcome:
    """Errors are points and hours, those of the forecast absolute; None where nothing was said."""

    kind: str
    ending: Ending
    still: list[float] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)
    """Errors of the current gravity while it is still, beyond the drift of the device."""
    moving: list[float] = field(default_factory=list)
    og: float | None = None
    rate: list[float] = field(default_factory=list)
    done_after_h: float | None = None
    """Hours from the time within 1.5 points of the end to *finished*; negative: too early."""
    false_done: int = 0
    is_done: bool = False
    stuck_after_h: float | None = None
    is_stuck: bool = False
    ended_high: bool = False
    changes: int = 0
    falls_later: int = 0
    falls_told: int = 0
    false_resumed: int = 0
    finish: dict[int, float | None] = field(default_factory=dict)
    bias: dict[int, float] = field(default_factory=dict)
    fg: dict[int, float] = field(default_factory=dict)
    holds: dict[int, bool] = field(default_factory=dict)
    unknown: dict[int, str] = field(default_factory=dict)


def simulate(kind: Kind, seed: str) -> Outcome:
    """Simulate a brew and its hydrometer, and look at it."""
    dice = random.Random(seed)  # noqa: S311
    recipe = kind.recipe(dice)
    course = ferment(recipe, dice)
    readings = read(course, dice)
    end = course.points[-1]
    if recipe.later:
        end = recipe.og * (1 - recipe.attenuation)
        end = min(points for points in course.points if points >= end)
    facts = Facts(recipe_og=1 + (recipe.og + dice.gauss(0, 2)) / 1000, pitched_at=PITCHED_AT)
    if dice.random() < 0.5:
        fg = recipe.og * (1 - recipe.attenuation) + dice.gauss(0, 1.5)
        facts = dataclasses.replace(facts, recipe_fg=1 + fg / 1000)
    truth = Truth(kind.name, kind.ending, course, recipe.og, end)
    return look(truth, readings, facts)


def look(truth: Truth, readings: Sequence[Reading], facts: Facts) -> Outcome:
    """Put the readings in as they arrive, and compare what is said each hour with the truth."""
    outcome = Outcome(truth.kind, truth.ending)
    progress = Progress(facts)
    course = truth.course
    fallen = truth.og - truth.end
    asked: dict[int, int] = {}
    if truth.ending == "ends" and fallen > 5:
        asked = {
            int(course.first_below(truth.og - fallen * percent / 100)) + 1: percent for percent in FRACTIONS
        }
    finished = course.first_below(truth.end + END_POINTS)
    changes: tuple[PhaseChange, ...] = ()
    place = 0
    for hour in range(1, int(course.hours[-1]) + 1):
        until = bisect_left(readings, (hour * 3600 + 1,), place)
        progress.put(
            Sample(PITCHED_AT + reading.at, reading.sg, reading.celsius) for reading in readings[place:until]
        )
        fresh, place = until > place, until
        insight = progress.insight(PITCHED_AT + hour * 3600)
        changes = insight.changes
        if fresh and insight.sg is not None:
            _compare(outcome, course, hour, insight, readings[place - 1].drift)
        if (percent := asked.get(hour)) is None:
            continue
        outcome.finish[percent] = None
        if insight.finish is None:
            outcome.unknown[percent] = str(insight.unknown)
            continue
        begin, at, end = (
            (time - PITCHED_AT) / 3600
            for time in (insight.finish.early, insight.finish.at, insight.finish.late)
        )
        outcome.finish[percent] = abs(at - finished)
        outcome.bias[percent] = at - finished
        outcome.fg[percent] = abs(insight.finish.fg * 1000 - 1000 - truth.end)
        outcome.holds[percent] = begin <= finished <= end
    if insight.og is not None and insight.og.origin == "readings":
        outcome.og = insight.og.sg * 1000 - 1000 - truth.og
    outcome.ended_high = insight.ended_high
    _judge_phases(outcome, truth, changes)
    return outcome


def _compare(outcome: Outcome, course: Course, hour: int, insight: Insight, drift: float) -> None:
    """Compare current gravity and rate with the truth."""
    if course.crashed_at is not None and hour > course.crashed_at:
        # A cold spindle reads high: no estimate can help that.
        return
    now, before = course.points_at(hour), course.points_at(max(hour - STILL_H, 0))
    error = (insight.sg or 0.0) * 1000 - 1000 - now
    per_day = (before - now) * 24 / STILL_H
    if hour >= STILL_H and per_day < STILL_POINTS_PER_DAY:
        outcome.still.append(error)
        outcome.noise.append(error - drift)
    elif hour >= STILL_H:
        outcome.moving.append(error)
    if insight.rate is not None and hour >= 24:
        outcome.rate.append(insight.rate * 1000 - (now - course.points_at(hour - 24)))


def _judge_phases(outcome: Outcome, truth: Truth, changes: Sequence[PhaseChange]) -> None:
    """Compare the phases with what the beer did later."""
    course = truth.course
    outcome.changes = len(changes)
    last = course.points[-1]
    near = course.first_below(truth.end + DONE_POINTS)
    for number, change in enumerate(changes):
        hour = (change.at - PITCHED_AT) / 3600
        points = course.points_at(hour)
        if change.phase == "stuck" and not outcome.is_stuck:
            outcome.is_stuck = True
            outcome.stuck_after_h = hour - course.first_below(truth.end + END_POINTS)
        if change.resumed:
            before = course.points_at((changes[number - 1].at - PITCHED_AT) / 3600)
            outcome.false_resumed += before - points < FALLEN_POINTS
        if change.phase != "finished":
            continue
        outcome.false_done += points - last > DONE_POINTS
        if not outcome.is_done:
            outcome.is_done = True
            outcome.done_after_h = hour - near
        if points - last >= LATER_POINTS and change.sg is not None:
            outcome.falls_later += 1
            outcome.falls_told += any(later.resumed for later in changes[number + 1 :])
