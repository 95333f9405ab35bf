"""Logs of real brews: csv files with columns for time, gravity and temperature."""

import csv
import dataclasses
import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from gateway.insight.records import Facts
from tests.backtest import figures
from tests.backtest.beer import Course
from tests.backtest.broken import BROKEN
from tests.backtest.outcome import END_POINTS, PITCHED_AT, Outcome, Truth, look
from tests.backtest.sensor import DRIFT_POINTS, Reading

LEAST_FALL_POINTS = 20.0
"""Fall of a log that is looked at."""

STILL_H = 72
"""Hours at the end of a log in which gravity stays, so that the end is known."""

NAMES = {
    "time": ("time", "hours", "hours_from_pitch", "timepoint", "date"),
    "gravity": ("gravity", "sg", "specific_gravity"),
    "temp": ("temp", "temperature", "fluid_temp", "temp (°c)"),
}
"""Names of columns, in small letters."""

NOISES = ("as it is", "with noise")


def rows(folder: Path, broken: str | None) -> list[figures.Row]:
    """Return the figures of all logs in a folder; as they are, and with a hydrometer's noise."""
    if broken:
        BROKEN[broken].breaks()
    found = []
    for noise in NOISES:
        outcomes = list(_outcomes(folder, noise))
        ended = [outcome for outcome in outcomes if outcome.ending == "ends"]
        title = f"{noise}: "
        found += [
            figures.Row(f"{title}logs, of which end", len(outcomes), f"{len(ended)}"),
            figures.Row(f"{title}done, false", sum(o.false_done > 0 for o in outcomes)),
            figures.Row(f"{title}done, missed", sum(not o.is_done for o in ended), f"of {len(ended)}"),
            figures.Row(
                f"{title}done, delay",
                figures.quantile([o.done_after_h or 0.0 for o in ended if o.is_done], 0.5),
                "h",
            ),
            figures.Row(f"{title}stuck, fires", sum(o.is_stuck for o in outcomes)),
            figures.Row(
                f"{title}resumed",
                sum(o.falls_told for o in outcomes),
                f"of {sum(o.falls_later for o in outcomes)}",
            ),
        ]
        found += [
            dataclasses.replace(row, what=f"{title}{row.what}", limit=None)
            for row in figures.rows(ended)
            if row.what.startswith("finish")
        ]
    return found


def _outcomes(folder: Path, noise: str) -> Iterator[Outcome]:
    for path in sorted(folder.rglob("*.csv")):
        readings = read(path)
        if not readings:
            print(f"{path.name}: no columns for time and gravity")
            continue
        course = _course(readings)
        low = min(course.points)
        og = max(course.points[: len(course.points) // 4])
        if og - low < LEAST_FALL_POINTS:
            print(f"{path.name}: falls by {og - low:.0f} points only")
            continue
        last = course.points[-1]
        ended = course.hours[-1] - course.first_below(last + END_POINTS) >= STILL_H
        truth = Truth(path.name, "ends" if ended else "hop creep", course, og, last)
        dice = random.Random(path.name)  # noqa: S311
        if noise == NOISES[1]:
            readings = _with_noise(readings, dice)
        outcome = look(truth, readings, Facts(pitched_at=PITCHED_AT))
        if outcome.false_done or outcome.is_stuck or (ended and not outcome.is_done):
            found = f"false done {outcome.false_done}, done {outcome.is_done}, stuck {outcome.is_stuck}"
            print(f"{noise}: {path.name}: {found}")
        yield outcome


def read(path: Path) -> list[Reading]:
    """Return the readings of a log, from its first one on; none where columns are missing.

    The time is in hours, Unix seconds or ISO 8601; gravity is SG; temperature °C.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    columns = {name.strip().lower(): name for name in (table[0] if table else {})}
    picked = {use: next((columns[n] for n in names if n in columns), None) for use, names in NAMES.items()}
    time, gravity, temp = picked["time"], picked["gravity"], picked["temp"]
    if time is None or gravity is None:
        return []
    readings = []
    for row in table:
        if row[time] and row[gravity]:
            celsius = float(row[temp]) if temp and row[temp] else 20.0
            readings.append(Reading(_seconds(row[time], time), float(row[gravity]), celsius))
    readings.sort()
    return [reading._replace(at=reading.at - readings[0].at) for reading in readings]


def _seconds(text: str, column: str) -> int:
    if "hours" in column.lower():
        return round(float(text) * 3600)
    try:
        return round(float(text))
    except ValueError:
        return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def _course(readings: list[Reading]) -> Course:
    """Return the log as the truth, smoothed by a median of five."""
    course = Course()
    points = [reading.sg * 1000 - 1000 for reading in readings]
    for number, reading in enumerate(readings):
        near = sorted(points[max(number - 2, 0) : number + 3])
        course.hours.append(reading.at / 3600)
        course.points.append(near[len(near) // 2])
        course.celsius.append(reading.celsius)
    return course


def _with_noise(readings: list[Reading], dice: random.Random) -> list[Reading]:
    """Lay the noise and the drift of a hydrometer over a log."""
    noise, walk, drift = dice.uniform(0.2, 0.7), dice.uniform(*DRIFT_POINTS), 0.0
    noisy = []
    for before, reading in itertools.pairwise([readings[0], *readings]):
        drift += dice.gauss(0.0, walk) * ((reading.at - before.at) / 86400) ** 0.5
        sg = reading.sg + (drift + dice.gauss(0.0, noise)) / 1000
        noisy.append(reading._replace(sg=round(sg, 4)))
    return noisy
