"""Readings: insert in groups, replace on import, and give them out as JSON that SQLite itself builds.

Building the JSON text in SQL keeps 35,000 readings out of Python objects: each row costs one string, and
the interpreter lock is free while SQLite works.
"""

import sqlite3
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from gateway.domain.account import OWNER_ID
from gateway.domain.audit import AuditEntry
from gateway.domain.brewsession import BrewSession
from gateway.domain.reading import Reading
from gateway.errors import NotFound
from gateway.store.queries import ReadingsQuery
from gateway.store.records import NOTHING, Arrival, StoredMatch
from gateway.store.sqlite import copies, events, imports
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.delivery import STATES_JSON
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.rows import (
    ADDRESS,
    ISO_CREATED_AT,
    READING_JSON,
    row_of,
)
from gateway.store.sqlite.searching import midnight

CHUNK_ROWS = 256
"""Readings in one piece of a streamed answer."""

SEEN_ROWS = 10_000
"""Recent arrivals that are read after a restart, to recognise deliveries that come again."""

LATEST_DELIVERIES, LATEST_OF_VALUES = 4_096, 512
"""A device's latest readings that a redelivery is compared with; fewer if it was made of single values.

A broker sends every message again that was not acknowledged, at any later time: a thousand messages, perhaps
all of one device.
"""

SEEN = """
SELECT d.key, r.raw, r.received_at
FROM (SELECT * FROM readings ORDER BY seq DESC LIMIT ?) r JOIN devices d ON d.id = r.device_id
WHERE r.received_at >= ? AND r.raw IS NOT NULL ORDER BY r.seq
"""
SOURCE_ROWS, SOURCE_PAGES = 2_000, 100
"""Readings of one look back at sources, and the most looks: 2 a second of one source in a day."""

BYTES_BY_SOURCE = f"""
WITH page AS MATERIALIZED (
    SELECT seq, ip, original, received_at, length(raw) AS sent
    FROM readings WHERE seq < :before ORDER BY seq DESC LIMIT {SOURCE_ROWS})
SELECT {ADDRESS} AS address, received_at / 3600000 * 3600000 AS hour, count(*), sum(sent),
       (SELECT min(seq) FROM page)
FROM page WHERE sent IS NOT NULL AND received_at >= :since GROUP BY address, hour
"""
LATEST = """
SELECT r.raw, r.delivery FROM readings r
WHERE r.device_id = (SELECT id FROM devices WHERE key = ?)
ORDER BY r.created_at DESC, r.seq DESC LIMIT ?
"""
HOLDS_DELIVERY = """
SELECT 1 FROM (
    SELECT r.seq FROM readings r
    WHERE r.device_id = (SELECT id FROM devices WHERE key = ?)
    ORDER BY r.created_at DESC, r.session_id DESC, r.seq DESC LIMIT ?
) latest CROSS JOIN readings r ON r.seq = latest.seq
WHERE r.delivery = ? AND r.raw = ? LIMIT 1
"""
"""In the order of the index alone: a broker sends a thousand messages again, and each is looked for."""

WHERE = "/*where*/"
"""The place of the conditions in a statement."""

IN_SESSION = f"""
SELECT {READING_JSON} FROM readings
WHERE /*where*/ ORDER BY created_at, oid LIMIT :limit OFFSET :skip
"""
NEWEST_IN_SESSION = IN_SESSION.replace("created_at, oid", "created_at DESC, oid DESC")

SOURCES_OF = """
SELECT k.key FROM devices k
LEFT JOIN devices d ON d.id = coalesce((SELECT id FROM devices WHERE id = k.merged_into), k.id)
WHERE d.session_id = ? ORDER BY k.key
"""
"""Keys of devices whose readings go into a brew session, as `insert_rows` finds the session of a reading."""

LINE_JSON = f"""
SELECT json_patch(json_object(
    '_id', json_object('$oid', lower(hex(r.oid))), 'login_id', coalesce(s.account_id, :owner),
    'api_key', '', 'brewevent_id', r.session_id, 'recipe_id', coalesce(s.recipe_id, 0),
    'ip', r.ip, 'name', r.name, 'gravity', r.gravity, 'gravity_unit', r.gravity_unit,
    'temp', r.temp, 'temp_unit', r.temp_unit, 'comment', r.comment, 'beer', r.beer, 'interval', r.interval,
    'created_at', {ISO_CREATED_AT.replace("created_at", "r.created_at")}, 'source', r.source,
    'device_id', d.stable_id, 'received_from', CASE WHEN r.raw IS NOT NULL THEN {ADDRESS} END,
    'flags', json(coalesce(r.flags, '[]')),
    'calibrated_gravity', r.shown_gravity, 'calibrated_temp', r.shown_temp, 'original', json(r.original),
    'delivery', json({STATES_JSON})),
    coalesce(r.facts, '{{}}'))
FROM (SELECT * FROM readings WHERE /*where*/ ORDER BY created_at DESC, seq DESC LIMIT :last) r
LEFT JOIN devices d ON d.id = r.device_id LEFT JOIN brewsessions s ON s.id = r.session_id
ORDER BY r.created_at, r.seq
"""

OF_ACCOUNT = """(session_id IN (SELECT id FROM brewsessions WHERE account_id = :account_id)
    OR session_id IS NULL AND :account_id = :owner)"""
"""A reading in no brew session is the owner's."""


class SqliteReadings:
    """The `ReadingStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def add(self, arrivals: Sequence[Arrival]) -> None:
        futures = [self._writer.store(row_of(arrival)) for arrival in arrivals]
        for future in futures[1:]:
            # An earlier failure may be raised instead; asyncio would log this one with a traceback.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            for future in futures:
                await future
        except sqlite3.IntegrityError as error:
            raise NotFound("a reading of a device that is not registered") from error

    async def seen_since(self, received_at_ms: int) -> list[tuple[str, bytes, int]]:
        async with self._database.reader() as reader:
            return await reader.run(_fetch, SEEN, (SEEN_ROWS, received_at_ms))

    async def bytes_by_source(self, since_ms: int) -> list[tuple[str, int, int, int]]:
        found: list[tuple[str, int, int, int]] = []
        before = 2**62
        async with self._database.reader() as reader:
            for _ in range(SOURCE_PAGES):
                rows = await reader.run(_fetch, BYTES_BY_SOURCE, {"before": before, "since": since_ms})
                if not rows:
                    break
                found += [row[:4] for row in rows]
                before = rows[0][4]
        return found

    async def latest_deliveries(self, device_key: str) -> list[tuple[bytes, str]]:
        async with self._database.reader() as reader:
            rows = await reader.run(_fetch, LATEST, (device_key, LATEST_OF_VALUES))
        return [(raw, delivery) for raw, delivery in rows if delivery is not None]

    async def holds_delivery(self, device_key: str, raw: bytes, delivery: str) -> bool:
        async with self._database.reader() as reader:
            which = (device_key, LATEST_DELIVERIES, delivery, raw)
            return bool(await reader.run(_fetch, HOLDS_DELIVERY, which))

    async def import_readings(
        self,
        session: BrewSession,
        readings: Sequence[Reading],
        *,
        reset: bool,
        unsaid: Mapping[str, frozenset[str]] = NOTHING,
        later: Sequence[str] = (),
    ) -> None:
        body = imports.ImportContent(readings, reset, unsaid, later)
        entry = AuditEntry("import with reset", f"session:{session.id}", f"{len(readings)} readings")

        def work(connection: sqlite3.Connection) -> None:
            imports.import_readings(connection, session, body)
            if reset:
                events.drop_without_reading(connection, session.id)

        await self._writer.run(audited(work, lambda _: entry if reset else None), grows=True)

    async def take_back(self, session: BrewSession, ids: Sequence[str], now: int) -> int:
        def entry(count: int) -> AuditEntry | None:
            return AuditEntry("take back", f"session:{session.id}", f"{count} edits") if count else None

        return await self._writer.run(
            audited(lambda connection: imports.take_back_edits(connection, session, ids, now), entry)
        )

    async def add_mirrored(self, session: BrewSession, readings: Sequence[Reading]) -> None:
        await self._writer.run(lambda connection: copies.add(connection, session, readings), grows=True)

    async def find_matches(
        self, session: BrewSession, like: Sequence[Reading], upstream: str
    ) -> list[StoredMatch]:
        async with self._database.reader() as reader:
            return await reader.run(copies.find_matches, session, like, upstream)

    async def differing(self, pairs: Sequence[tuple[str, Reading]]) -> list[tuple[str, Reading]]:
        async with self._database.reader() as reader:
            return await reader.run(copies.differing, pairs)

    async def correct(
        self, session: BrewSession, pairs: Sequence[tuple[str, Reading]], upstream: str, now: int
    ) -> tuple[int, int]:
        return await self._writer.run(
            lambda connection: copies.correct(connection, session, pairs, upstream, now), grows=True
        )

    async def version(self, session: BrewSession) -> str | None:
        if not self._database.is_writable:
            return None
        changes = self._writer.changes
        # Before the look at the devices: a work in between may assign another one.
        works = changes.works
        async with self._database.reader() as reader:
            keys = await reader.run(_fetch, SOURCES_OF, (session.id,))
        facts = self._database.repairs, session.id, session.account_id, session.recipe_id
        return changes.tag(works, [key for (key,) in keys], *facts)

    async def json_chunks(self, query: ReadingsQuery) -> AsyncGenerator[bytes, None]:
        """Yield the readings as JSON objects joined by commas, at most `CHUNK_ROWS` a piece."""
        where, parameters = _range(query)
        sql = (NEWEST_IN_SESSION if query.newest_first else IN_SESSION).replace(WHERE, where)
        session = query.session
        parameters |= {
            "login_id": session.account_id,
            "brewevent_id": session.id,
            "recipe_id": session.recipe_id,
            "limit": -1 if query.limit is None else query.limit,
            "skip": query.skip,
        }
        separator = ""
        async with aclosing(self._stream(sql, parameters)) as stream:
            async for rows in stream:
                yield (separator + ",".join(row[0] for row in rows)).encode()
                separator = ","

    async def json_lines(
        self, *, last: int, device_id: int | None, session_id: int | None, account_id: int | None = None
    ) -> AsyncGenerator[str, None]:
        conditions = ["TRUE"]
        if account_id is not None:
            conditions.append(OF_ACCOUNT)
        if device_id is not None:
            conditions.append("device_id = :device_id")
        if session_id is not None:
            conditions.append("session_id = :session_id")
        sql = LINE_JSON.replace(WHERE, " AND ".join(conditions))
        parameters = {
            "last": last,
            "device_id": device_id,
            "session_id": session_id,
            "account_id": account_id,
            "owner": OWNER_ID,
        }
        async with aclosing(self._stream(sql, parameters)) as stream:
            async for rows in stream:
                for row in rows:
                    yield row[0]

    async def count(self) -> int:
        async with self._database.reader() as reader:
            rows = await reader.run(_fetch, "SELECT count(*) FROM readings", ())
        return int(rows[0][0])

    async def _stream(
        self, sql: str, parameters: dict[str, Any]
    ) -> AsyncGenerator[list[tuple[Any, ...]], None]:
        async with self._database.reader() as reader:
            cursor = await reader.run(sqlite3.Connection.execute, sql, parameters)
            try:
                while rows := await reader.run(lambda _: cursor.fetchmany(CHUNK_ROWS)):
                    yield rows
            finally:
                await reader.run(lambda _: cursor.close())


def _range(query: ReadingsQuery) -> tuple[str, dict[str, Any]]:
    conditions, parameters = ["session_id = :brewevent_id"], {}
    if query.first_day is not None:
        conditions.append("created_at >= :first")
        parameters["first"] = midnight(query.first_day)
    if query.last_day is not None:
        conditions.append("created_at < :end")
        parameters["end"] = midnight(query.last_day) + 86_400
    return " AND ".join(conditions), parameters


def _fetch(connection: sqlite3.Connection, sql: str, parameters: Sequence[Any] | dict[str, int]) -> list[Any]:
    return connection.execute(sql, parameters).fetchall()
