"""Readings over time in buckets, as charts need them."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise

from gateway.domain import units
from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.errors import InvalidInput
from gateway.services.figures import FigureService, Original, median
from gateway.store.protocol import Store
from gateway.store.queries import SeriesQuery
from gateway.store.records import Bucket, LeftOutReading, VitalSigns

POINTS = 600
"""Points of a line, unless the caller wants another number."""

FEWEST_POINTS, MOST_POINTS = 10, 2_000

SPARK_S, SPARK_POINTS = 14 * units.SECONDS_PER_DAY, 60
"""Seconds and points of a sparkline."""

MOST_MARKS = 500
"""Events, hand readings and readings left out that a series has at most, of each kind."""

USUAL_S = 900
"""Seconds between two readings where nothing tells them: what most hydrometers are set to."""


@dataclass(frozen=True, slots=True)
class Line:
    """The readings of one device in columns of equal length; None where a bucket has no such value.

    `t` is the middle of a bucket, or the time of its only reading (Unix seconds); `n` counts its readings.
    Gravities are SG; minimum, maximum and average are of the readings that count. `left_out` counts the
    others. Temperatures are °C, and of all readings: a wrong gravity says nothing about them. `device_id` is
    None for readings of no device.
    """

    device_id: int | None
    name: str
    t: list[int]
    n: list[int]
    sg_min: list[float | None]
    sg_max: list[float | None]
    sg: list[float | None]
    temp_min: list[float | None]
    temp_max: list[float | None]
    temp: list[float | None]
    left_out: list[int]


@dataclass(frozen=True, slots=True)
class HandPoint:
    """A reading that a person took: SG and °C, None if it was not measured."""

    event_id: int
    at: int
    sg: float | None
    temp: float | None


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened in the brew, as the chart shows it."""

    event_id: int
    at: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A reading that is left out of the lines, with its flags; SG and °C as far as its text has them."""

    device_id: int | None
    at: int
    sg: float | None
    temp: float | None
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """What a chart shows of a brew, from `start` to `end` (Unix seconds).

    `width_s` is the width of a bucket; 0 if each reading is a point of its own. `interval_s` is the usual
    time between two readings. `final` is the final gravity (SG) that the recipe expects. `left_out` has the
    readings left out, if they were asked for.
    """

    start: int
    end: int
    width_s: int
    interval_s: int
    lines: list[Line]
    hand: list[HandPoint]
    events: list[Mark]
    original: Original | None
    final: float | None
    left_out: list[LeftOut] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DeviceSeries:
    """The readings of a device from `start` to `end` (Unix seconds), and what it tells about itself.

    `signs` has battery, signal and tilt of one reading of each bucket.
    """

    start: int
    end: int
    width_s: int
    interval_s: int
    line: Line
    signs: list[VitalSigns]
    left_out: list[LeftOut] = field(default_factory=list)


class SeriesService:
    """A maker of series. A span that is not given is that of all readings."""

    def __init__(self, store: Store, figures: FigureService) -> None:
        self._store = store
        self._figures = figures

    async def of_session(
        self,
        session: BrewSession,
        start: int | None = None,
        end: int | None = None,
        points: int = POINTS,
        *,
        with_left_out: bool = False,
    ) -> Series:
        """Return the series of a brew: a line for each device that reported into it."""
        around = await self._store.series.span(session_id=session.id)
        start, end = _span(start, end, around or (session.created_at, session.created_at))
        query = SeriesQuery(start=start, end=end, points=points, session_id=session.id)
        width, buckets = await self._store.series.buckets(query)
        lines = await self._lines(buckets)
        beside = replace(query, points=MOST_MARKS)
        figures = await self._figures.of(session)
        return Series(
            start=start,
            end=end,
            width_s=width,
            interval_s=interval_of(lines),
            lines=lines,
            hand=[HandPoint(*found) for found in await self._store.series.by_hand(beside)],
            events=[Mark(*found) for found in await self._store.series.marks(beside)],
            original=figures.original,
            final=figures.final,
            left_out=await self._left_out(beside) if with_left_out else [],
        )

    async def of_device(
        self,
        device: Device,
        start: int | None = None,
        end: int | None = None,
        points: int = POINTS,
        *,
        session_id: int | None = None,
        with_left_out: bool = False,
    ) -> DeviceSeries:
        """Return the series of a device, in whatever brews it was, or only in the one of that id."""
        around = await self._store.series.span(session_id=session_id, device_id=device.id)
        start, end = _span(start, end, around or (device.first_seen_at, device.first_seen_at))
        query = SeriesQuery(start=start, end=end, points=points, session_id=session_id, device_id=device.id)
        width, buckets = await self._store.series.buckets(query)
        line = _line(device.id, device.title, buckets)
        beside = replace(query, points=MOST_MARKS)
        return DeviceSeries(
            start=start,
            end=end,
            width_s=width,
            interval_s=interval_of([line]),
            line=line,
            signs=await self._store.series.vital_signs(query),
            left_out=await self._left_out(beside) if with_left_out else [],
        )

    async def signs(self, device: Device, start: int, end: int, points: int) -> list[VitalSigns]:
        """Return battery, signal and tilt of a device, of one reading of each bucket."""
        query = SeriesQuery(start=start, end=end, points=points, device_id=device.id)
        return await self._store.series.vital_signs(query)

    async def sparkline(self, session_id: int) -> list[Line]:
        """Return the lines of the last 14 days of a brew, up to its last reading."""
        around = await self._store.series.span(session_id=session_id)
        if around is None:
            return []
        start = max(around[0], around[1] - SPARK_S)
        query = SeriesQuery(start=start, end=around[1], points=SPARK_POINTS, session_id=session_id)
        return await self._lines((await self._store.series.buckets(query))[1])

    async def _lines(self, buckets: Sequence[Bucket]) -> list[Line]:
        by_device: dict[int | None, list[Bucket]] = {}
        for bucket in buckets:
            by_device.setdefault(bucket.device_id, []).append(bucket)
        names = {device.id: device.title for device in await self._store.devices.all()}
        order = sorted(by_device, key=lambda device_id: (device_id is None, device_id or 0))
        return [_line(device_id, names.get(device_id or 0, ""), by_device[device_id]) for device_id in order]

    async def _left_out(self, query: SeriesQuery) -> list[LeftOut]:
        return [_readable(found) for found in await self._store.series.left_out(query)]


def interval_of(lines: Sequence[Line]) -> int:
    """Return the usual seconds between two readings of a device; of several devices, the longest."""
    usual = [
        median(
            [(later - earlier) / n for (earlier, later), n in zip(pairwise(line.t), line.n[:-1], strict=True)]
        )
        for line in lines
        if len(line.t) > 1
    ]
    return round(max(usual)) if usual else USUAL_S


def _span(start: int | None, end: int | None, around: tuple[int, int]) -> tuple[int, int]:
    if start is None:
        start = around[0] if end is None else min(around[0], end)
    if end is None:
        end = max(around[1], start)
    if start > end:
        raise InvalidInput("the span ends before it begins")
    return max(0, start), max(0, end)


def _line(device_id: int | None, name: str, buckets: Sequence[Bucket]) -> Line:
    columns = [list(column) for column in zip(*buckets, strict=True)] or [[] for _ in Bucket._fields]
    return Line(device_id, name, *columns[1:])


def _readable(found: LeftOutReading) -> LeftOut:
    """Return the reading with numbers: an excluded one has them in its text alone."""
    sg, temp = found.sg, None
    with suppress(ValueError):
        sg = units.to_sg(float(found.gravity), found.gravity_unit) if sg is None else sg
    with suppress(ValueError):
        temp = units.to_celsius(float(found.temp), found.temp_unit)
    return LeftOut(found.device_id, found.at, sg, temp, tuple(json.loads(found.flags)))
