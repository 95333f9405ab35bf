"""Readings of devices by their raw bytes: find them, write them anew, send them again."""

import json
import sqlite3
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from gateway.domain.audit import AuditEntry
from gateway.domain.reading import Reading
from gateway.store.records import RawReading
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.edits import rewrite_sql, write_under
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.rows import READING_COLUMNS, moved_sql, next_seq

HOLDS = """
SELECT 1 FROM readings WHERE device_id = (SELECT id FROM devices WHERE key = ?)
AND received_at = ? AND raw = ? LIMIT 1
"""
HELD = """
SELECT raw FROM readings WHERE device_id = (SELECT id FROM devices WHERE key = ?)
AND created_at >= ? AND hex(raw) IN (SELECT value FROM json_each(?))
"""
LATEST_AT = "SELECT max(created_at) FROM readings WHERE device_id = (SELECT id FROM devices WHERE key = ?)"
RECENT_GRAVITIES = """
SELECT lower(hex(oid)), created_at, sg FROM readings WHERE device_id = ? AND sg IS NOT NULL
ORDER BY created_at DESC, seq DESC LIMIT ?
"""
LATEST_COMMENT = """
SELECT comment FROM readings WHERE device_id = ? ORDER BY created_at DESC, seq DESC LIMIT 1
"""
ADD_FLAG = """
UPDATE readings SET flags = json_insert(coalesce(flags, '[]'), '$[#]', :flag) WHERE oid = :oid
AND NOT EXISTS (SELECT 1 FROM json_each(coalesce(flags, '[]')) WHERE value = :flag)
"""
PAGE = f"""
SELECT seq, raw, channel, original, {", ".join(READING_COLUMNS)} FROM readings
WHERE device_id = ? AND (created_at, seq) > (?, ?) AND raw IS NOT NULL ORDER BY created_at, seq LIMIT ?
"""
NEWEST = f"""
SELECT seq, raw, channel, original, {", ".join(READING_COLUMNS)} FROM readings
WHERE device_id = ? AND raw IS NOT NULL ORDER BY created_at DESC, seq DESC LIMIT ?
"""
COUNT = "SELECT count(*) FROM readings WHERE device_id = ? AND created_at BETWEEN ? AND ?"
REWRITTEN: tuple[str, ...] = (
    "gravity", "gravity_unit", "temp", "temp_unit", "sg", "celsius", "shown_gravity", "shown_temp",
    "facts", "flags",
)  # fmt: skip
REWRITE = rewrite_sql(REWRITTEN)
ORIGINALS = """
SELECT seq, original FROM readings
WHERE original IS NOT NULL AND seq IN (SELECT value FROM json_each(?))
"""
_PICK_REWRITTEN = attrgetter(*REWRITTEN)
SEND_AGAIN = moved_sql("device_id = :device_id AND session_id IS NOT NULL AND created_at >= :since")


class SqlitePayloads:
    """The `PayloadStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def holds(self, device_key: str, raw: bytes, received_at_ms: int) -> bool:
        async with self._database.reader() as reader:
            return bool(await reader.run(_fetch, HOLDS, (device_key, received_at_ms, raw)))

    async def find_stored(self, device_key: str, since: int, raws: Sequence[bytes]) -> set[bytes]:
        wanted = json.dumps([raw.hex().upper() for raw in raws])
        async with self._database.reader() as reader:
            rows = await reader.run(_fetch, HELD, (device_key, since, wanted))
        return {bytes(row[0]) for row in rows}

    async def latest_at(self, device_key: str) -> int | None:
        async with self._database.reader() as reader:
            ((latest,),) = await reader.run(_fetch, LATEST_AT, (device_key,))
        return None if latest is None else int(latest)

    async def latest_comment(self, device_id: int) -> str:
        async with self._database.reader() as reader:
            rows = await reader.run(_fetch, LATEST_COMMENT, (device_id,))
        return rows[0][0] if rows else ""

    async def recent_gravities(self, device_id: int, limit: int) -> list[tuple[str, int, float]]:
        async with self._database.reader() as reader:
            return (await reader.run(_fetch, RECENT_GRAVITIES, (device_id, limit)))[::-1]

    async def add_flag(self, oid: str, flag: str) -> None:
        values = {"oid": bytes.fromhex(oid), "flag": flag}
        await self._writer.run(lambda connection: connection.execute(ADD_FLAG, values) and None)

    async def page(self, device_id: int, after: tuple[int, int], limit: int) -> list[RawReading]:
        async with self._database.reader() as reader:
            rows = await reader.run(_fetch, PAGE, (device_id, *after, limit))
        return [_sent(*row) for row in rows]

    async def latest(self, device_id: int, limit: int) -> list[RawReading]:
        async with self._database.reader() as reader:
            rows = await reader.run(_fetch, NEWEST, (device_id, limit))
        return [_sent(*row) for row in rows]

    async def count(self, device_id: int, first: int, last: int) -> int:
        async with self._database.reader() as reader:
            ((found,),) = await reader.run(_fetch, COUNT, (device_id, first, last))
        return int(found)

    async def rewrite(self, changes: Sequence[tuple[int, Reading]]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            seqs = json.dumps([seq for seq, _ in changes])
            edited: dict[int, str] = dict(connection.execute(ORIGINALS, (seqs,)))
            rows = []
            for seq, reading in changes:
                columns = dict(zip(REWRITTEN, _PICK_REWRITTEN(reading), strict=True))
                if seq in edited:
                    write_under(connection, seq, columns, edited[seq])
                else:
                    rows.append({"seq": seq, **columns})
            connection.executemany(REWRITE, rows)

        await self._writer.run(work)

    async def send_again(self, device_id: int, since: int) -> int:
        """Give the readings new places in the queue, above every watermark."""

        def work(connection: sqlite3.Connection) -> int:
            which = {"device_id": device_id, "since": since, "first": next_seq(connection)}
            return connection.execute(SEND_AGAIN, which).rowcount

        return await self._writer.run(
            audited(work, lambda count: AuditEntry("resend", f"device:{device_id}", f"{count} readings"))
        )


def _sent(seq: int, raw: bytes, channel: str, original: str | None, oid: bytes, *members: Any) -> RawReading:
    """Return a device's reading without its edits: newly computed values go under the edits."""
    reading = Reading(bytes(oid).hex(), *members)
    if original is not None:
        before = json.loads(original)
        reading = reading._replace(**{name: before[name] for name in REWRITTEN if name in before})
    return RawReading(seq, reading, raw, channel)


def _fetch(connection: sqlite3.Connection, sql: str, parameters: Sequence[Any]) -> list[Any]:
    return connection.execute(sql, parameters).fetchall()
