"""Delivery states of readings at targets: counts, and states of single readings."""

import json
import sqlite3
from typing import Any

from gateway.domain.target import Delivery, ReadingDelivery
from gateway.domain.times import LAST_S
from gateway.store.records import ReadingRow
from gateway.store.sqlite.delivery import REASONS_JSON, STATES_JSON, TO_SEND, routed_counts
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.totals import AtTarget, at_targets

EDITED_THERE = f"""
SELECT c.target, r.session_id, count(*), min(r.created_at), count(*) FILTER (WHERE r.mirrored IS NOT NULL),
       count(*) FILTER (WHERE r.mirrored IS NULL AND NOT ({TO_SEND})),
       count(*) FILTER (WHERE {TO_SEND} AND x.seq IS NOT NULL)
FROM corrections c CROSS JOIN readings r ON r.seq = c.seq
LEFT JOIN deliveries d ON d.target = c.target AND d.session_id = r.session_id
LEFT JOIN refusals x ON x.target = c.target AND x.seq = c.seq
WHERE (r.mirrored IS NOT NULL OR r.seq <= d.watermark) AND (:session_id IS NULL OR r.session_id = :session_id)
GROUP BY c.target, r.session_id
"""
"""Readings that a target has as they were: how many, since when, and what else they would count as."""

PAGE = f"""
SELECT lower(hex(r.oid)), r.created_at, {STATES_JSON}, {REASONS_JSON}
FROM readings r JOIN brewsessions s ON s.id = r.session_id
WHERE r.session_id = :session_id
  AND (:state IS NULL OR EXISTS (SELECT 1 FROM json_each({STATES_JSON}) e WHERE e.value = :state))
ORDER BY r.created_at, r.oid LIMIT :limit OFFSET :skip
"""

BETWEEN = "session_id = :session AND created_at >= :start AND created_at <= :end"
COUNT = f"SELECT count(*) FROM readings WHERE {BETWEEN}"
NEWEST = f"""
SELECT r.created_at, coalesce(json_extract(d.settings, '$.label'), d.name, r.name), r.device_id,
       coalesce(r.shown_gravity, r.gravity), r.gravity_unit, r.sg,
       coalesce(r.shown_temp, r.temp), r.temp_unit, r.celsius,
       r.comment, r.flags, r.left_out, r.original IS NOT NULL, {STATES_JSON}, {REASONS_JSON}
FROM (SELECT seq AS place FROM readings WHERE {BETWEEN}
      ORDER BY created_at DESC, oid DESC LIMIT :limit OFFSET :skip) wanted
JOIN readings r ON r.seq = wanted.place JOIN brewsessions s ON s.id = r.session_id
LEFT JOIN devices d ON d.id = r.device_id
ORDER BY r.created_at DESC, r.oid DESC
"""
"""The page is found in the index alone: to skip a year of readings costs milliseconds."""

NOT_EDITED = (0, None, 0, 0, 0)


class SqliteDeliveries:
    """The `DeliveryStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def counts(self, session_id: int | None = None) -> list[Delivery]:
        async with self._database.reader() as reader:
            return await reader.run(_counts, session_id)

    async def newest(
        self, session_id: int, start: int | None, end: int | None, *, limit: int, skip: int
    ) -> tuple[int, list[ReadingRow]]:
        between = {"session": session_id, "start": start or 0, "end": LAST_S if end is None else end}
        count = await self._fetch(COUNT, between)
        rows = await self._fetch(NEWEST, {**between, "limit": limit, "skip": skip})
        return count[0][0], [
            ReadingRow(*row)._replace(
                flags=tuple(json.loads(row[10] or "[]")),
                left_out=bool(row[11]),
                is_edited=bool(row[12]),
                states=json.loads(row[13]),
                reasons=json.loads(row[14]),
            )
            for row in rows
        ]

    async def of_readings(
        self, session_id: int, *, state: str | None, limit: int, skip: int
    ) -> list[ReadingDelivery]:
        values = {"session_id": session_id, "state": state, "limit": limit, "skip": skip}
        return [
            ReadingDelivery(oid, created_at, json.loads(states), json.loads(reasons))
            for oid, created_at, states, reasons in await self._fetch(PAGE, values)
        ]

    async def _fetch(self, sql: str, values: dict[str, Any]) -> list[Any]:
        def work(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(sql, values).fetchall()

        async with self._database.reader() as reader:
            return await reader.run(work)


def _counts(connection: sqlite3.Connection, session_id: int | None) -> list[Delivery]:
    which = {"session_id": session_id}
    connection.execute("BEGIN")  # one snapshot of the database: the counts must add up
    try:
        edited = {(url, session): rest for url, session, *rest in connection.execute(EDITED_THERE, which)}
        return [
            *(
                _of_place(place, *edited.get((place.url, place.session_id), NOT_EDITED))
                for place in at_targets(connection, session_id)
            ),
            *(
                Delivery(name, session, 0, pending, forwarded, refused, left, oldest_at, superseded=passed)
                for name, session, pending, forwarded, refused, left, oldest_at, passed, _ in routed_counts(
                    connection, session_id
                )
            ),
        ]
    finally:
        connection.execute("COMMIT")


def _of_place(
    place: AtTarget, edited: int, since: int | None, mirrored: int, never: int, refused: int
) -> Delivery:
    """Return the counts of a brew session at a target. A reading that was edited counts as that alone.

    The last five are the columns of `EDITED_THERE`.
    """
    passed = place.own - place.not_sent - place.refused - place.above
    waits = place.upstream_id is not None
    return Delivery(
        target=place.name,
        session_id=place.session_id,
        upstream_id=place.upstream_id,
        pending=place.above if waits else 0,
        forwarded=passed - (edited - mirrored - never - refused),
        refused=place.refused - refused,
        not_forwarded=place.not_sent - never + place.mirrored - mirrored + (0 if waits else place.above),
        oldest_at=place.oldest_at if waits else None,
        edited=edited,
        edited_since=since,
    )
