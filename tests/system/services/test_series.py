"""Series: buckets against a plain reference, plans that read an index alone, and the rest of a chart."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.domain.reading import Reading
from gateway.errors import InvalidInput
from gateway.events import StoredNotices
from gateway.services.alarms import AlarmService
from gateway.services.figures import FigureService
from gateway.services.insight import InsightService
from gateway.services.series import (
    SPARK_POINTS,
    SPARK_S,
    USUAL_S,
    Series,
    SeriesService,
    _buckets_of,
    _line,
    coarser,
)
from gateway.store.queries import SeriesQuery
from gateway.store.records import Bucket
from gateway.store.sqlite import series as sql
from gateway.store.sqlite.engine.connections import open_writer
from gateway.store.sqlite.engine.schema import migrate
from gateway.store.sqlite.store import SqliteStore
from tests.cases import each, examples
from tests.clock import FakeClock
from tests.system.store.conftest import SECOND, arrival, new_session, reading, report
from tests.system.store.conftest import store as store

BERLIN = ZoneInfo("Europe/Berlin")
DAYS = [
    datetime(2026, 3, 29, tzinfo=BERLIN),
    datetime(2026, 10, 25, tzinfo=BERLIN),
    datetime(2026, 7, 1, tzinfo=BERLIN),
]
"""Days of 23, 25 and 24 hours."""

HOUR_S = 3600


class Given(NamedTuple):
    """A reading as the reference sees it."""

    device: int | None
    at: int
    sg: float | None
    temp: float | None
    flag: str | None


def reference(readings: Sequence[Given], start: int, end: int, points: int) -> list[Bucket]:
    """The buckets, made in the plainest way there is."""
    inside = sorted((r for r in readings if start <= r.at <= end), key=lambda r: r.at)
    width = -(-(end - start + 1) // points) if len(inside) > points else 0
    groups: dict[Any, list[Given]] = {}
    for number, each_one in enumerate(inside):
        groups.setdefault((each_one.device, each_one.at // width if width else number), []).append(each_one)
    return [_bucket(device, place, width, group, (start, end)) for (device, place), group in groups.items()]


def _bucket(
    device: int | None, place: int, width: int, group: Sequence[Given], span: tuple[int, int]
) -> Bucket:
    sgs = [r.sg for r in group if r.sg is not None and r.flag != "gravity_spike"]
    temps = [r.temp for r in group if r.temp is not None]
    at = group[0].at if len(group) == 1 else min(max(place * width + width // 2, span[0]), span[1])
    left_out = sum(r.flag == "gravity_spike" and (r.sg is not None or r.temp is None) for r in group)
    return Bucket(device, at, len(group), *_three(sgs), *_three(temps), left_out)


def _three(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    return (min(values), max(values), sum(values) / len(values)) if values else (None, None, None)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    with closing(open_writer(tmp_path_factory.mktemp("series") / "db")) as connection:
        migrate(connection)
        connection.execute("PRAGMA foreign_keys = OFF")
        yield connection


def put_in(connection: sqlite3.Connection, readings: Sequence[Given]) -> None:
    connection.executemany(
        "INSERT INTO readings (oid, session_id, device_id, received_at, created_at, name, gravity,"
        " gravity_unit, temp, temp_unit, comment, beer, interval, source, ip, sg, celsius, flags)"
        " VALUES (randomblob(12), 1, ?, 1, ?, '', '', 'G', '', 'C', '', '', '', '', '', ?, ?, ?)",
        [(r.device, r.at, r.sg, r.temp, r.flag and json.dumps([r.flag])) for r in readings],
    )


@st.composite
def spans(draw: st.DrawFn) -> tuple[list[Given], int, int, int]:
    """Readings around days of any length: regular ones with gaps, of no device, of one or two."""
    first = draw(st.sampled_from(DAYS))
    start = int(first.timestamp())
    end = int((first + timedelta(days=draw(st.integers(1, 3)))).timestamp()) - 1
    step = draw(st.sampled_from([60, 900, HOUR_S]))
    times = st.one_of(
        st.integers(start - HOUR_S, end + HOUR_S), st.integers(0, 60).map(lambda n: start + n * step)
    )
    values = st.builds(
        Given,
        st.sampled_from([None, 1, 2]),
        times,
        st.one_of(st.none(), st.floats(0.98, 1.12)),
        st.one_of(st.none(), st.floats(-2, 40)),
        st.sampled_from([None, None, "gravity_spike", "comment_repeated"]),
    )
    return draw(st.lists(values, max_size=40)), start, end, draw(st.sampled_from([10, 24, 60]))


@settings(max_examples=examples(0.5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spans())
def test_buckets_are_those_of_the_reference(
    database: sqlite3.Connection, span: tuple[list[Given], int, int, int]
) -> None:
    readings, start, end, points = span
    database.execute("BEGIN")
    try:
        put_in(database, readings)
        query = SeriesQuery(start=start, end=end, points=points, session_id=1)
        width, found = sql._buckets(database, query)
        of_one = sql._buckets(database, SeriesQuery(start=start, end=end, points=points, device_id=1))[1]
    finally:
        database.execute("ROLLBACK")
    assert_same(found, reference(readings, start, end, points))
    assert_same(of_one, reference([r for r in readings if r.device == 1], start, end, points))
    assert (width == 0) == (len(found) <= points and all(bucket.n == 1 for bucket in found)) or width > 0


def assert_same(found: Sequence[Bucket], expected: Sequence[Bucket]) -> None:
    """The same buckets; those of a device in the order of time."""

    def order(bucket: Bucket) -> tuple[Any, ...]:
        return (
            bucket.device_id or 0,
            bucket.at,
            bucket.n,
            *(v if v is not None else -99 for v in bucket[3:]),
        )

    for _, line in groupby(sorted(found, key=lambda b: b.device_id or 0), key=lambda b: b.device_id):
        times = [bucket.at for bucket in line]
        assert times == sorted(times)
    assert len(found) == len(expected)
    for one, other in zip(sorted(found, key=order), sorted(expected, key=order), strict=True):
        assert one[:3] == other[:3]
        assert order(one) == pytest.approx(order(other), rel=1e-12)


@settings(max_examples=examples(0.5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spans(), st.integers(1, 30))
def test_a_coarser_series_is_that_of_the_store(
    database: sqlite3.Connection, span: tuple[list[Given], int, int, int], fewer: int
) -> None:
    """Its averages are weighed, which is exact where all readings of a bucket have a gravity or none."""
    readings, start, end, points = span
    readings = [r._replace(sg=r.sg or 1.05, temp=r.temp or 20.0, device=1, flag=None) for r in readings]
    database.execute("BEGIN")
    try:
        put_in(database, readings)
        query = SeriesQuery(start=start, end=end, points=points, session_id=1)
        width, found = sql._buckets(database, query)
    finally:
        database.execute("ROLLBACK")
    line = _line(1, "", found)
    series = Series(start, end, width, USUAL_S, [line], [], [], None, None)
    made = coarser(series, fewer)
    if len(found) <= fewer:
        assert made is series
        return
    assert made.width_s % (width or 1) == 0
    assert made.width_s >= (end - start + 1) / fewer
    expected: dict[int, list[Given]] = {}
    for each_one in sorted(readings, key=lambda r: r.at):
        if start <= each_one.at <= end:
            expected.setdefault(each_one.at // made.width_s, []).append(each_one)
    buckets = [_bucket(1, place, made.width_s, group, (start, end)) for place, group in expected.items()]
    assert_same(_buckets_of(made.lines[0]), buckets)


@each(
    "text, plan",
    [
        (
            sql.BUCKETS_OF_SESSION,
            "COVERING INDEX readings_by_session (session_id=? AND created_at>? AND created_at<?)",
        ),
        (sql.BUCKETS_OF_DEVICE, "INDEX readings_by_device (device_id=? AND created_at>? AND created_at<?)"),
        (
            sql.VITAL_SIGNS,
            "COVERING INDEX readings_by_device (device_id=? AND created_at>? AND created_at<?)",
        ),
        (sql.EACH.replace(sql.WHICH, sql.OF_SESSION), "COVERING INDEX readings_by_session"),
        (sql.FEW.replace(sql.WHICH, sql.OF_SESSION), "COVERING INDEX readings_by_session"),
        (sql.SPAN.replace(sql.WHICH, sql.OF_SESSION), "COVERING INDEX readings_by_session"),
        (sql.SPAN.replace(sql.WHICH, sql.OF_DEVICE), "COVERING INDEX readings_by_device"),
        (sql.LEFT_OUT.replace(sql.WHICH, sql.OF_SESSION), "INDEX readings_by_session"),
    ],
)
def test_every_range_is_one_of_an_index(database: sqlite3.Connection, text: str, plan: str) -> None:
    values = dict.fromkeys(("start", "end", "points", "width", "session_id", "device_id"), 1)
    steps = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    looks = [step for step in steps if "readings" in step and "PRIMARY KEY" not in step]
    assert looks
    assert all(plan in step for step in looks), steps


async def filled(
    store: SqliteStore, count: int, *, device: str = "1", **members: Any
) -> tuple[BrewSession, Device]:
    """A brew with a device that reported `count` times, every 15 minutes."""
    session = await new_session(store)
    known = await store.devices.save(Device.first_seen(report(device, f"S{device}"), SECOND))
    await store.devices.assign(known.id, session.id, None)
    await add(store, known.key, range(count), **members)
    return session, known


def service_on(store: SqliteStore) -> SeriesService:
    clock = FakeClock()
    notices = StoredNotices()
    figures = FigureService(store, InsightService(store, notices, clock), clock)
    return SeriesService(store, figures, AlarmService(store, notices, clock))


async def add(store: SqliteStore, key: str, numbers: Sequence[int], **members: Any) -> None:
    arrivals = [arrival(device=key, at=SECOND + n * USUAL_S) for n in numbers]
    await store.readings.add([a._replace(reading=a.reading._replace(**members)) for a in arrivals])


async def test_a_brew_of_two_devices_with_a_gap(store: SqliteStore) -> None:
    session, first = await filled(store, 40)
    second = await store.devices.save(Device.first_seen(report("2", "S2"), SECOND))
    await store.devices.assign(second.id, session.id, None)
    await add(store, second.key, range(0, 40, 4), sg=None)
    await add(store, first.key, range(200, 240))
    found = await service_on(store).of_session(session, points=60)
    assert (found.start, found.end) == (SECOND, SECOND + 239 * USUAL_S)
    assert [(line.device_id, line.name, sum(line.n)) for line in found.lines] == [
        (1, "S1", 80),
        (2, "S2", 10),
    ]
    one, two = found.lines
    assert len(one.t) == len(one.sg) == len(one.temp) == len(one.left_out) <= 61
    assert max(later - earlier for earlier, later in zip(one.t, one.t[1:], strict=False)) > 150 * USUAL_S
    assert one.sg == pytest.approx([1.041] * len(one.t))
    assert set(two.sg) == {None}
    assert two.temp == pytest.approx([19.2] * len(two.t))
    assert found.width_s == 3586
    assert found.interval_s == 4 * USUAL_S, "of the device that reports more rarely"
    day = await service_on(store).of_session(session, SECOND, SECOND + 9 * USUAL_S, 60)
    assert (day.width_s, day.lines[0].n, day.interval_s) == (0, [1] * 10, 4 * USUAL_S)
    assert day.lines[0].t == [SECOND + n * USUAL_S for n in range(10)]


async def test_a_brew_without_readings_and_with_one(store: SqliteStore) -> None:
    session, device = await filled(store, 0)
    service = service_on(store)
    empty = await service.of_session(session)
    assert (empty.start, empty.end, empty.lines, empty.interval_s) == (SECOND, SECOND, [], USUAL_S)
    assert await service.sparklines([session.id, 99]) == {session.id: [], 99: []}
    assert (await service.of_device(device)).line.t == []
    await add(store, device.key, [3])
    found = await service.of_session(session)
    at = SECOND + 3 * USUAL_S
    assert (found.start, found.end, found.width_s, [line.t for line in found.lines]) == (at, at, 0, [[at]])
    later = await service.of_session(session, at + 1)
    assert (later.start, later.end, later.lines) == (at + 1, at + 1, [])
    with pytest.raises(InvalidInput):
        await service.of_session(session, at + 1, at)


async def test_a_sparkline_has_the_last_two_weeks(store: SqliteStore) -> None:
    session, device = await filled(store, 0)
    await add(store, device.key, range(0, 1600, 4))
    service = service_on(store)
    (line,) = (await service.sparklines([session.id]))[session.id]
    assert SPARK_POINTS - 1 <= len(line.t) <= SPARK_POINTS + 1
    assert line.t[-1] - line.t[0] <= SPARK_S
    assert sum(line.n) == SPARK_S // (4 * USUAL_S) + 1
    (same,) = (await service.sparklines([session.id]))[session.id]
    assert same is line, "nothing has changed"
    await add(store, device.key, [1600])
    (line,) = (await service.sparklines([session.id]))[session.id]
    assert line.t[-1] == SECOND + 1600 * USUAL_S


async def test_what_is_left_out_is_told_on_request(store: SqliteStore) -> None:
    session, device = await filled(store, 3)
    excluded = {"flags": '["excluded"]', "sg": None, "celsius": None, "gravity": "10.0", "gravity_unit": "P"}
    await add(store, device.key, [3], flags='["comment_repeated", "gravity_rate"]', sg=1.1)
    await add(store, device.key, [4], **excluded, temp="68", temp_unit="F")
    await add(store, device.key, [5], flags='["gravity_missing"]', sg=None, gravity="")
    service = service_on(store)
    found = await service.of_session(session, with_left_out=True)
    (line,) = found.lines
    assert (line.sg[3:], line.left_out) == ([None] * 3, [0, 0, 0, 1, 1, 0])
    assert line.temp[3:] == [pytest.approx(19.2), None, pytest.approx(19.2)]
    assert [(left.at, left.sg, left.temp, left.flags) for left in found.left_out] == [
        (SECOND + 3 * USUAL_S, 1.1, pytest.approx(19.17, abs=0.01), ("comment_repeated", "gravity_rate")),
        (SECOND + 4 * USUAL_S, pytest.approx(1.04, abs=0.001), 20.0, ("excluded",)),
    ]
    assert (await service.of_session(session)).left_out == []
    assert len((await service.of_device(device, with_left_out=True)).left_out) == 2


async def test_a_device_tells_its_battery_once_a_bucket(store: SqliteStore) -> None:
    session, device = await filled(store, 0)
    for first in range(0, 120, 40):
        facts = json.dumps({"battery": 4.2 - first / 1000, "rssi": -66, "angle": "steep"})
        await add(store, device.key, range(first, first + 40), facts=facts)
    await store.devices.release(device.id)
    await add(store, device.key, [140])
    found = await service_on(store).of_device(device, points=12)
    assert (sum(found.line.n), len(found.signs)) == (121, len(found.line.t))
    assert list(dict.fromkeys(sign.battery for sign in found.signs)) == [4.2, 4.16, 4.12, None]
    assert {sign[2:] for sign in found.signs} == {(None, -66, None), (None, None, None)}
    inside = await service_on(store).of_device(device, points=12, session_id=session.id)
    assert sum(inside.line.n) == 120


EVENT = (
    "INSERT INTO brew_events (session_id, at, kind, text, oid, author, created_at, updated_at)"
    " VALUES (?, ?, ?, ?, ?, '', 1, 1)"
)


async def test_hand_readings_and_events_stand_beside_the_lines(store: SqliteStore) -> None:
    session, _ = await filled(store, 3)
    await store.readings.import_readings(session, [by_hand(SECOND + 5), by_hand(SECOND + 6)], reset=False)
    oid = bytes.fromhex(by_hand(SECOND + 5).oid)
    rows = [
        (session.id, SECOND + 5, "hand_reading", "", oid),
        (session.id, SECOND + 9, "dry_hop", "Citra", None),
    ]
    await store._writer.run(lambda connection: connection.executemany(EVENT, rows) and None)
    found = await service_on(store).of_session(session)
    assert [(line.device_id, sum(line.n)) for line in found.lines] == [(1, 3), (None, 1)]
    assert [(hand.at, hand.sg, hand.temp) for hand in found.hand] == [(SECOND + 5, 1.024, None)]
    marks = [(mark.at, mark.kind, mark.text) for mark in found.events if mark.kind != "begun"]
    assert marks == [(SECOND + 9, "dry_hop", "Citra")]
    many = await service_on(store).of_session(session, points=2)
    assert [(line.device_id, sum(line.n)) for line in many.lines] == [(1, 3), (None, 1)]


def by_hand(at: int) -> Reading:
    return reading(at=at, oid=f"{at:024x}")._replace(gravity="1.024", sg=1.024, temp="", celsius=None)
