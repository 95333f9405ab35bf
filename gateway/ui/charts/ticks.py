"""Ticks of time in the viewer's zone: at full hours, local midnights and the first days of months. Pure."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Literal, NamedTuple, Protocol

from gateway.domain.units import SECONDS_PER_DAY

Unit = Literal["hour", "day", "month"]

SECONDS: dict[Unit, int] = {"hour": 3600, "day": SECONDS_PER_DAY, "month": 28 * SECONDS_PER_DAY}
"""The shortest length of each unit in seconds. A month has 28 days at least."""

MOST_MOMENTS = 64
"""Ticks that a step may have before it is passed over: no chart has room for so many."""


class Step(NamedTuple):
    """So many units of time between two ticks."""

    number: int
    unit: Unit


STEPS = (
    *(Step(number, "hour") for number in (1, 3, 6, 12)),
    *(Step(number, "day") for number in (1, 2, 4, 7, 14)),
    *(Step(number, "month") for number in (1, 2, 3, 6, 12)),
)
"""Steps between ticks, from the smallest to the largest."""


class Moments(Protocol):
    """Texts of moments, as the viewer reads them."""

    def clock(self, at: float) -> str:
        """Return the time of day: 14:00."""
        ...

    def day(self, at: float) -> str:
        """Return the day: 3 Nov."""
        ...

    def month(self, at: float) -> str:
        """Return the month: Nov 2026."""
        ...


class Tick(NamedTuple):
    """A moment (Unix seconds, or days) and its label."""

    at: float
    label: str


def moments(start: float, end: float, step: Step, zone: tzinfo) -> list[int]:
    """Return the moments of a step between two times (Unix seconds), ascending.

    Steps of hours begin at each local midnight, so a day of 23 or 25 hours moves no later day. An hour that
    the clock leaves out has no moment.
    """
    if (end - start) / (SECONDS[step.unit] * step.number) > MOST_MOMENTS:
        return []
    first, last = (datetime.fromtimestamp(at, zone).date() for at in (start, end))
    found: list[int] = []
    for day in _days(first, last, step):
        for hour in range(0, 24, step.number) if step.unit == "hour" else (0,):
            at = int(datetime.combine(day, time(hour), zone).timestamp())
            # Not an hour that does not exist: that would be the next one a second time. A midnight that does
            # not exist is the moment at which the day begins.
            exists = hour == 0 or datetime.fromtimestamp(at, zone).time() == time(hour)
            if exists and start <= at <= end and (not found or at > found[-1]):
                found.append(at)
    return found


def _days(first: date, last: date, step: Step) -> list[date]:
    if step.unit == "month":
        months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
        return [date(each // 12, each % 12 + 1, 1) for each in months if each % 12 % step.number == 0]
    every = step.number if step.unit == "day" else 1
    # 1 is a Monday, so steps of 7 and 14 days are Mondays.
    ahead = (1 - first.toordinal()) % every
    count = (last.toordinal() - first.toordinal() - ahead) // every + 1
    return [first + timedelta(days=ahead + number * every) for number in range(count)]


def label(at: int, step: Step, zone: tzinfo, words: Moments) -> str:
    """Return the label of a moment: a month, a day, or a time of day where it is not midnight."""
    if step.unit == "month":
        return words.month(at)
    local = datetime.fromtimestamp(at, zone)
    if step.unit == "day" or local.hour + local.minute == 0:
        return words.day(at)
    return words.clock(at)


def time_ticks(
    start: float, end: float, zone: tzinfo, words: Moments, fits: Callable[[list[Tick]], bool]
) -> list[Tick]:
    """Return the ticks of the smallest step whose labels all fit; none if no step's do."""
    for step in STEPS:
        ticks = [Tick(at, label(at, step, zone, words)) for at in moments(start, end, step, zone)]
        if ticks and fits(ticks):
            return ticks
    return []


DAY_STEPS = (1, 2, 5, 7, 14, 28, 56, 91, 182, 364)
"""Days between ticks where brews are compared by their days."""


def day_ticks(end_s: float, name: Callable[[int], str], fits: Callable[[list[Tick]], bool]) -> list[Tick]:
    """Return ticks at full days (seconds since the start), of the smallest step whose labels all fit."""
    for step in DAY_STEPS:
        days = range(0, int(end_s // SECONDS_PER_DAY) + 1, step)
        ticks = [Tick(day * SECONDS_PER_DAY, name(day)) for day in days]
        if len(days) <= MOST_MOMENTS and fits(ticks):
            return ticks
    return []
