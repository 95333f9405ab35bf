"""Readings in buckets of time, for charts: one range of an index for each line and bucket.

Buckets begin at multiples of their width, so that a chart that is drawn again every minute does not flicker.
Grouping all rows instead would sort them, and looking into the table for flags would cost more than both.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from gateway.store.queries import SeriesQuery
from gateway.store.records import Bucket, EventMark, HandReading, LeftOutReading, VitalSigns
from gateway.store.sqlite.engine.database import Database

OF_SESSION = "session_id = :session_id"
OF_DEVICE = "device_id = :device_id AND (:session_id IS NULL OR session_id = :session_id)"
WHICH = "/*which*/"
"""The place of one of these conditions in a statement."""

NOT_BY_HAND = """(device_id IS NOT NULL OR oid NOT IN (
    SELECT oid FROM brew_events WHERE session_id = :session_id AND oid IS NOT NULL))"""
"""A hand reading is a ring in the chart, and no part of a line; a note that was sent on has no values."""

COUNTS_NOT = "iif(left_out AND (sg OR celsius IS NULL), 1, NULL)"
"""1 for a gravity that does not count: a device that never has a gravity leaves nothing out."""

SPAN = f"""
SELECT (SELECT created_at FROM readings WHERE {WHICH} ORDER BY created_at LIMIT 1),
       (SELECT created_at FROM readings WHERE {WHICH} ORDER BY created_at DESC LIMIT 1)
"""
FEW = f"""
SELECT count(*) FROM (
    SELECT 1 FROM readings WHERE {WHICH} AND created_at BETWEEN :start AND :end LIMIT :points + 1)
"""
EACH = f"""
SELECT device_id, created_at, iif(left_out, NULL, sg), celsius, coalesce({COUNTS_NOT}, 0)
FROM readings WHERE {WHICH} AND created_at BETWEEN :start AND :end AND {NOT_BY_HAND} ORDER BY created_at, seq
"""
VALUES = f"""
json_array(count(*), min(created_at), min(iif(left_out, NULL, sg)), max(iif(left_out, NULL, sg)),
           avg(iif(left_out, NULL, sg)), min(celsius), max(celsius), avg(celsius), count({COUNTS_NOT}))
"""
STARTS = """
RECURSIVE starts (start) AS (
    SELECT :start - :start % :width UNION ALL SELECT start + :width FROM starts WHERE start + :width <= :end)
"""
WITHIN = "created_at >= max(b.start, :start) AND created_at < min(b.start + :width, :end + 1)"

BUCKETS_OF_SESSION = f"""
WITH {STARTS},
lines (device_id) AS MATERIALIZED (
    SELECT DISTINCT device_id FROM readings
    WHERE session_id = :session_id AND created_at BETWEEN :start AND :end)
SELECT l.device_id, b.start, (
    SELECT {VALUES} FROM readings
    WHERE session_id = :session_id AND {WITHIN} AND device_id IS l.device_id AND {NOT_BY_HAND})
FROM lines l CROSS JOIN starts b
"""
BUCKETS_OF_DEVICE = f"""
WITH {STARTS}
SELECT :device_id, b.start, (SELECT {VALUES} FROM readings WHERE {OF_DEVICE} AND {WITHIN})
FROM starts b
"""
VITAL_SIGNS = f"""
WITH {STARTS}
SELECT r.created_at, json_extract(r.facts, '$.battery'), json_extract(r.facts, '$.battery_percent'),
       json_extract(r.facts, '$.rssi'), json_extract(r.facts, '$.angle')
FROM starts b CROSS JOIN readings r ON r.seq = (
    SELECT seq FROM readings WHERE {OF_DEVICE} AND {WITHIN} ORDER BY created_at LIMIT 1)
ORDER BY b.start
"""
"""One reading of each bucket: a battery needs no average."""

LEFT_OUT = f"""
SELECT device_id, created_at, sg, coalesce(shown_gravity, gravity), gravity_unit,
       coalesce(shown_temp, temp), temp_unit, coalesce(flags, '[]')
FROM readings WHERE {WHICH} AND created_at BETWEEN :start AND :end AND {COUNTS_NOT}
ORDER BY created_at, seq LIMIT :points
"""
BY_HAND = """
SELECT e.id, e.at, r.sg, r.celsius FROM brew_events e LEFT JOIN readings r ON r.oid = e.oid
WHERE e.session_id = :session_id AND e.kind = 'hand_reading' AND e.at BETWEEN :start AND :end
ORDER BY e.at, e.id LIMIT :points
"""
MARKS = """
SELECT id, at, kind, text FROM brew_events
WHERE session_id = :session_id AND kind <> 'hand_reading' AND at BETWEEN :start AND :end
ORDER BY at, id LIMIT :points
"""


class SqliteSeries:
    """The `SeriesStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def span(
        self, *, session_id: int | None = None, device_id: int | None = None
    ) -> tuple[int, int] | None:
        query = SeriesQuery(start=0, end=0, points=0, session_id=session_id, device_id=device_id)
        ((first, last),) = await self._rows(SPAN, query)
        return None if first is None else (first, last)

    async def buckets(self, query: SeriesQuery) -> tuple[int, list[Bucket]]:
        def work(connection: sqlite3.Connection) -> tuple[int, list[Bucket]]:
            connection.execute("BEGIN")  # one snapshot: a bucket that is still growing is counted once
            try:
                return _buckets(connection, query)
            finally:
                connection.execute("COMMIT")

        async with self._database.reader() as reader:
            return await reader.run(work)

    async def latest(self, session_ids: Sequence[int], seconds: int, points: int) -> dict[int, list[Bucket]]:
        def work(connection: sqlite3.Connection) -> dict[int, list[Bucket]]:
            found = {}
            for session_id in session_ids:
                query = SeriesQuery(start=0, end=0, points=points, session_id=session_id)
                ((first, last),) = connection.execute(_of(SPAN, query), _values(query))
                if first is not None:
                    query = replace(query, start=max(first, last - seconds), end=last)
                    found[session_id] = _buckets(connection, query)[1]
            return found

        async with self._database.reader() as reader:
            return await reader.run(work)

    async def vital_signs(self, query: SeriesQuery) -> list[VitalSigns]:
        return [VitalSigns(*map(_number, row)) for row in await self._rows(VITAL_SIGNS, query)]  # type: ignore[arg-type]

    async def left_out(self, query: SeriesQuery) -> list[LeftOutReading]:
        return [LeftOutReading(*row) for row in await self._rows(LEFT_OUT, query)]

    async def by_hand(self, query: SeriesQuery) -> list[HandReading]:
        return [HandReading(*row) for row in await self._rows(BY_HAND, query)]

    async def marks(self, query: SeriesQuery) -> list[EventMark]:
        return [EventMark(*row) for row in await self._rows(MARKS, query)]

    async def _rows(self, sql: str, query: SeriesQuery) -> list[Any]:
        def work(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(_of(sql, query), _values(query)).fetchall()

        async with self._database.reader() as reader:
            return await reader.run(work)


def _buckets(connection: sqlite3.Connection, query: SeriesQuery) -> tuple[int, list[Bucket]]:
    values = _values(query)
    ((count,),) = connection.execute(_of(FEW, query), values)
    if count <= query.points:
        return 0, [
            Bucket(device_id, at, 1, sg, sg, sg, temp, temp, temp, left_out)
            for device_id, at, sg, temp, left_out in connection.execute(_of(EACH, query), values)
        ]
    width = values["width"]
    found = []
    of_many = BUCKETS_OF_SESSION if query.device_id is None else BUCKETS_OF_DEVICE
    for device_id, start, text in connection.execute(of_many, values):
        n, first, *numbers = json.loads(text)
        if n:
            # A bucket at an end of the span may be cut there, and its middle must not lie outside.
            middle = min(max(start + width // 2, query.start), query.end)
            found.append(Bucket(device_id, first if n == 1 else middle, n, *numbers))
    return width, found


def _of(sql: str, query: SeriesQuery) -> str:
    return sql.replace(WHICH, OF_SESSION if query.device_id is None else OF_DEVICE)


def _values(query: SeriesQuery) -> dict[str, Any]:
    width = max(1, -(-(query.end - query.start + 1) // max(1, query.points)))
    return {**asdict(query), "width": width}


def _number(value: Any) -> float | None:
    """Return a number of a report's facts; None for what is none."""
    return value if isinstance(value, int | float) else None
