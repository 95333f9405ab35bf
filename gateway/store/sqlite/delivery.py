"""Delivery states of readings at targets, as SQL and as answers: counts, and states of single readings."""

import json
import sqlite3
from typing import Any

from gateway.domain.target import Delivery, ReadingDelivery
from gateway.domain.times import LAST_S
from gateway.store.records import ReadingRow
from gateway.store.sqlite.engine.database import Database

SAYS_SOMETHING = "(r.gravity <> '' OR r.temp <> '' OR r.comment <> '')"
"""The specification's import refuses an item without any of the three."""

TO_SEND = f"r.mirrored IS NULL AND r.crc IS NOT NULL AND {SAYS_SOMETHING}"
"""Never sent: readings copied from a service, readings known to be damaged, and empty readings."""

UPSTREAM_ID = """
CASE WHEN s.deleted = 0 THEN
    coalesce(f.upstream_id, iif(s.upstream = {url} OR s.upstream IS NULL AND {unnamed}, s.upstream_id, NULL))
END
"""
"""A session's number at a target, of `brewsessions s LEFT JOIN forwardings f`; NULL: not forwarded there."""

OF_TARGET = UPSTREAM_ID.format(url="t.url", unnamed="t.unnamed")

EDITED = "edited here, not there"
"""The state of a reading that a target has as it was before an edit."""

STATE = f"""
CASE WHEN c.seq IS NOT NULL AND (r.mirrored IS NOT NULL OR r.seq <= d.watermark) THEN '{EDITED}'
     WHEN r.session_id IS NULL OR NOT ({TO_SEND}) THEN 'not forwarded'
     WHEN x.seq IS NOT NULL THEN 'refused'
     WHEN r.seq <= d.watermark THEN 'forwarded'
     WHEN {OF_TARGET} IS NOT NULL THEN 'pending'
     ELSE 'not forwarded' END
"""
AT_TARGETS = """
targets t LEFT JOIN deliveries d ON d.target = t.url AND d.session_id = r.session_id
LEFT JOIN forwardings f ON f.target = t.url AND f.session_id = r.session_id
LEFT JOIN refusals x ON x.target = t.url AND x.seq = r.seq
LEFT JOIN corrections c ON c.target = t.url AND c.seq = r.seq
"""
STATES_JSON = f"(SELECT json_group_object(t.name, {STATE}) FROM {AT_TARGETS})"
"""A JSON object, state by target, of a row of `readings r LEFT JOIN brewsessions s`."""

REASON = """
CASE WHEN x.seq IS NOT NULL THEN x.reason
     WHEN c.withheld THEN 'it has another id there; `targets resend ' || t.name || ' --since '
          || strftime('%Y-%m-%d', r.created_at, 'unixepoch') || '` sends it as one more reading'
     WHEN c.seq IS NOT NULL THEN 'the edit is sent under the same id, where the service has that' END
"""
REASONS_JSON = f"""
(SELECT json_group_object(t.name, {REASON}) FROM {AT_TARGETS} WHERE x.seq IS NOT NULL OR c.seq IS NOT NULL)
"""

COUNTS = f"""
SELECT name, session_id, wanted, count(*) FILTER (WHERE state = 'pending'),
       count(*) FILTER (WHERE state = 'forwarded'), count(*) FILTER (WHERE state = 'refused'),
       count(*) FILTER (WHERE state = 'not forwarded'), min(received_at) FILTER (WHERE state = 'pending'),
       count(*) FILTER (WHERE state = '{EDITED}'), min(created_at) FILTER (WHERE state = '{EDITED}')
FROM (
    SELECT t.name, s.id session_id, {OF_TARGET} wanted, r.received_at, r.created_at,
           iif(r.seq, {STATE}, NULL) state
    FROM targets t JOIN brewsessions s LEFT JOIN readings r ON r.session_id = s.id
    LEFT JOIN deliveries d ON d.target = t.url AND d.session_id = s.id
    LEFT JOIN forwardings f ON f.target = t.url AND f.session_id = s.id
    LEFT JOIN refusals x ON x.target = t.url AND x.seq = r.seq
    LEFT JOIN corrections c ON c.target = t.url AND c.seq = r.seq
    WHERE s.deleted = 0 AND (:session_id IS NULL OR s.id = :session_id)
      AND ({OF_TARGET} IS NOT NULL OR d.watermark > 0)
)
GROUP BY name, session_id ORDER BY name, session_id
"""
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


class SqliteDeliveries:
    """The `DeliveryStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def counts(self, session_id: int | None = None) -> list[Delivery]:
        found = await self._fetch(COUNTS, {"session_id": session_id})
        return [Delivery(*row) for row in found]

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
