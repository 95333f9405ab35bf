"""Readings over time in buckets, as charts need them."""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from gateway.domain import units
from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.errors import InvalidInput
from gateway.insight.series import median
from gateway.services.alarm_subjects import fired_in
from gateway.services.alarms import AlarmService
from gateway.services.figures import FigureService, Original
from gateway.store.protocol import Store
from gateway.store.queries import SeriesQuery
from gateway.store.records import Bucket, LeftOutReading, VitalSigns

POINTS = 600
"""Points of a line, unless the caller wants another number."""

FEWEST_POINTS, MOST_POINTS = 10, 2_000

SPARK_S, SPARK_POINTS = 14 * units.SECONDS_PER_DAY, 60
"""Seconds and points of a sparkline."""

KEPT = 32
"""Brews whose sparklines are kept in memory, 15 kB each."""

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
class AlarmMark:
    """An alarm that fired in the brew: the id of its event, its rule, and what it said."""

    event_id: int
    at: int
    rule: str
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
    alarms: list[AlarmMark] = field(default_factory=list)


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

    def __init__(self, store: Store, figures: FigureService, alarms: AlarmService) -> None:
        self._store = store
        self._figures = figures
        self._alarms = alarms
        self._sparks: OrderedDict[int, tuple[str, list[Line]]] = OrderedDict()

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
            alarms=[mark for mark in await self.alarms_of(session) if start <= mark.at <= end],
        )

    async def alarms_of(self, session: BrewSession) -> list[AlarmMark]:
        """Return when alarms about a brew, or a device in it, fired, oldest first."""
        fired = await fired_in(self._alarms, self._store, session, MOST_MARKS)
        return [AlarmMark(event.id, event.at, alarm.rule, event.text) for alarm, event in reversed(fired)]

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

    async def sparklines(self, session_ids: Sequence[int]) -> Mapping[int, list[Line]]:
        """Return the lines of the last 14 days of brews, up to the last reading of each.

        They have no names. What the store told is kept until it changes.
        """
        tags = await self._store.figures.tags(session_ids)
        found = {}
        for session_id in session_ids:
            tag, lines = self._sparks.get(session_id, ("", []))
            if tag and tag == tags.get(session_id):
                found[session_id] = lines
        missing = [session_id for session_id in session_ids if session_id not in found]
        latest = await self._store.series.latest(missing, SPARK_S, SPARK_POINTS) if missing else {}
        for session_id in missing:
            found[session_id] = _lines_of(latest.get(session_id, []), {})
            if session_id in tags:
                self._sparks[session_id] = tags[session_id], found[session_id]
                self._sparks.move_to_end(session_id)
        while len(self._sparks) > KEPT:
            self._sparks.popitem(last=False)
        return found

    async def _lines(self, buckets: Sequence[Bucket]) -> list[Line]:
        names = {device.id: device.title for device in await self._store.devices.all()}
        return _lines_of(buckets, names)

    async def _left_out(self, query: SeriesQuery) -> list[LeftOut]:
        return [_readable(found) for found in await self._store.series.left_out(query)]


def coarser(series: Series, points: int) -> Series:
    """Return the series with about so many points, without asking the store once more.

    An average of averages is weighed by the readings that count.
    """
    if sum(len(line.t) for line in series.lines) <= points:
        return series
    width = -(-(series.end - series.start + 1) // points)
    if series.width_s:
        width = -(-width // series.width_s) * series.width_s
    lines = [
        _line(
            line.device_id,
            line.name,
            [
                _merged(series, place * width, width, list(buckets))
                for place, buckets in groupby(_buckets_of(line), key=lambda bucket: bucket.at // width)
            ],
        )
        for line in series.lines
    ]
    return replace(series, width_s=width, lines=lines)


def _buckets_of(line: Line) -> list[Bucket]:
    columns = (line.t, line.n, line.sg_min, line.sg_max, line.sg, line.temp_min, line.temp_max, line.temp)
    return [Bucket(line.device_id, *row) for row in zip(*columns, line.left_out, strict=True)]


def _merged(series: Series, start: int, width: int, buckets: Sequence[Bucket]) -> Bucket:
    n = sum(bucket.n for bucket in buckets)
    middle = min(max(start + width // 2, series.start), series.end)
    gravities = [bucket for bucket in buckets if bucket.sg is not None]
    temps = [bucket for bucket in buckets if bucket.temp is not None]
    return Bucket(
        buckets[0].device_id,
        buckets[0].at if n == 1 else middle,
        n,
        min((b.sg_min for b in gravities if b.sg_min is not None), default=None),
        max((b.sg_max for b in gravities if b.sg_max is not None), default=None),
        _weighed([(b.sg or 0.0, max(1, b.n - b.left_out)) for b in gravities]),
        min((b.temp_min for b in temps if b.temp_min is not None), default=None),
        max((b.temp_max for b in temps if b.temp_max is not None), default=None),
        _weighed([(b.temp or 0.0, b.n) for b in temps]),
        sum(bucket.left_out for bucket in buckets),
    )


def _weighed(values: Sequence[tuple[float, int]]) -> float | None:
    return sum(value * n for value, n in values) / sum(n for _, n in values) if values else None


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


def _lines_of(buckets: Sequence[Bucket], names: Mapping[int, str]) -> list[Line]:
    """Return a line for each device, by ids; readings of no device come last."""
    by_device: dict[int | None, list[Bucket]] = {}
    for bucket in buckets:
        by_device.setdefault(bucket.device_id, []).append(bucket)
    order = sorted(by_device, key=lambda device_id: (device_id is None, device_id or 0))
    return [_line(device_id, names.get(device_id or 0, ""), by_device[device_id]) for device_id in order]


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
