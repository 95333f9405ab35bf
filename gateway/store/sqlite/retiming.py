"""Arrivals while the clock was in doubt: notes beside the readings, and the correction of both."""

import sqlite3
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from gateway.domain.reading import Reading
from gateway.store.records import Boot, BootTime, PendingRetime, RawReading
from gateway.store.sqlite.edits import rewrite_sql, write_under
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.payloads import REWRITTEN
from gateway.store.sqlite.rows import READING_COLUMNS

NEWEST_OF = 50
"""Latest arrivals among which the newest is searched: earlier ones may be of a clock that was ahead."""

NEWEST = f"""
SELECT max(received_at) FROM (
    SELECT r.received_at FROM readings r WHERE r.raw IS NOT NULL AND r.oid NOT IN (SELECT oid FROM suspects)
    ORDER BY r.seq DESC LIMIT {NEWEST_OF})
"""
NOTE_BOOT = "INSERT OR IGNORE INTO boots (name) VALUES (?)"
BOOT = "SELECT id, offset_ms FROM boots WHERE name = ?"
BOOTS = """
SELECT id, max(offset_ms), max(last_ms) FROM (
    SELECT id, offset_ms, NULL AS last_ms FROM boots
    UNION ALL SELECT s.boot, NULL, max(s.monotonic_ms) FROM suspects s JOIN readings r ON r.oid = s.oid
              GROUP BY s.boot
    UNION ALL SELECT boot, NULL, max(monotonic_ms) FROM suspect_payloads GROUP BY boot
) GROUP BY id ORDER BY id DESC
"""
BELIEVE = "UPDATE boots SET offset_ms = ? WHERE id = ?"
FORGET_BOOTS = """
DELETE FROM boots WHERE id < ? AND id NOT IN (SELECT boot FROM suspects)
AND id NOT IN (SELECT boot FROM suspect_payloads)
"""
NOTE = "INSERT OR REPLACE INTO suspects (boot, monotonic_ms, oid, place) VALUES (?, ?, ?, ?)"
FORGET = "DELETE FROM suspects WHERE oid = ?"
NOTE_PAYLOAD = """
INSERT OR REPLACE INTO suspect_payloads (boot, monotonic_ms, received_at) VALUES (?, ?, ?)
"""
PAGE = f"""
SELECT s.monotonic_ms, s.place, r.device_id, r.seq, r.raw, r.channel,
       {", ".join(f"r.{name}" for name in READING_COLUMNS)}
FROM suspects s JOIN readings r ON r.oid = s.oid
WHERE s.boot = ? ORDER BY s.monotonic_ms, r.seq LIMIT ?
"""
SEEN = """
SELECT d.key, r.raw, s.monotonic_ms
FROM suspects s JOIN readings r ON r.oid = s.oid JOIN devices d ON d.id = r.device_id
WHERE s.boot = ? AND s.monotonic_ms >= ? ORDER BY s.monotonic_ms
"""
RETIMED = (*REWRITTEN, "created_at", "received_at", "interval")
SEQ_OF = "SELECT seq, original FROM readings WHERE oid = ?"
RETIME = rewrite_sql(("oid", *RETIMED))
FIRST_SEEN = "UPDATE devices SET first_seen_at = ? WHERE id = ? AND first_seen_at = ?"
SETTLED = "DELETE FROM suspects WHERE boot = ? AND monotonic_ms = ? AND oid = ?"
RETIME_PAYLOADS = """
UPDATE quarantine SET received_at = :offset_ms + s.monotonic_ms
FROM suspect_payloads s WHERE s.boot = :boot AND s.received_at = quarantine.received_at
"""
RETIME_INBOX = RETIME_PAYLOADS.replace("quarantine", "inbox")
PAYLOADS_SETTLED = "DELETE FROM suspect_payloads WHERE boot = :boot"
WAITS = """
SELECT EXISTS (SELECT 1 FROM suspects s JOIN readings r ON r.oid = s.oid)
    OR EXISTS (SELECT 1 FROM suspect_payloads)
"""
PAYLOAD_WAITS = "SELECT EXISTS (SELECT 1 FROM suspect_payloads WHERE received_at = ?)"
FIRST_SUSPECT = f"SELECT coalesce(min(r.seq), {2**62}) FROM suspects s JOIN readings r ON r.oid = s.oid"
"""The place in the queue from which on nothing is forwarded; above all places if nothing waits."""

_PICK_RETIMED = attrgetter(*RETIMED)


class SqliteRetiming:
    """The `RetimingStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def boot(self, name: str) -> Boot:
        def work(connection: sqlite3.Connection) -> Boot:
            connection.execute(NOTE_BOOT, (name,))
            return Boot(*connection.execute(BOOT, (name,)).fetchone())

        return await self._writer.run(work, grows=True)

    async def boots(self) -> list[Boot]:
        return [Boot(*row) for row in await self._fetch(BOOTS)]

    async def newest_arrival(self) -> int | None:
        ((newest,),) = await self._fetch(NEWEST)
        return None if newest is None else int(newest)

    async def trust(self, boot_id: int, offset_ms: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(BELIEVE, (offset_ms, boot_id))
            connection.execute(FORGET_BOOTS, (boot_id,))

        await self._writer.run(work, grows=True)

    async def seen_since(self, boot_id: int, monotonic_ms: int) -> list[tuple[str, bytes, int]]:
        return await self._fetch(SEEN, (boot_id, monotonic_ms))

    async def page(self, boot_id: int, limit: int) -> list[PendingRetime]:
        found = []
        for ms, place, device_id, seq, raw, channel, oid, *members in await self._fetch(
            PAGE, (boot_id, limit)
        ):
            stored = RawReading(seq, Reading(bytes(oid).hex(), *members), raw, channel)
            found.append(PendingRetime(BootTime(boot_id, ms, place), device_id, stored))
        return found

    async def retime(self, changes: Sequence[tuple[PendingRetime, Reading]]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for pending, reading in changes:
                _retime(connection, pending, reading)

        await self._writer.run(work)

    async def retime_payloads(self, boot_id: int, offset_ms: int) -> None:
        values = {"boot": boot_id, "offset_ms": offset_ms}

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(RETIME_PAYLOADS, values)
            connection.execute(RETIME_INBOX, values)
            connection.execute(PAYLOADS_SETTLED, values)

        await self._writer.run(work)

    async def waits(self) -> bool:
        ((waits,),) = await self._fetch(WAITS)
        return bool(waits)

    async def payload_waits(self, received_at_ms: int) -> bool:
        ((waits,),) = await self._fetch(PAYLOAD_WAITS, (received_at_ms,))
        return bool(waits)

    async def _fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        async with self._database.reader() as reader:
            return await reader.run(lambda connection: connection.execute(sql, values).fetchall())


def note(connection: sqlite3.Connection, oid: bytes, arrival_time: BootTime) -> None:
    """Note that the reading with this id waits for its right time, in the transaction that is open."""
    connection.execute(NOTE, (arrival_time.boot, arrival_time.monotonic_ms, oid, arrival_time.place))


def note_payload(connection: sqlite3.Connection, received_at_ms: int, arrival_time: BootTime) -> None:
    """Note that the quarantined payload waits for its right time, in the transaction that is open."""
    connection.execute(NOTE_PAYLOAD, (arrival_time.boot, arrival_time.monotonic_ms, received_at_ms))


def _retime(connection: sqlite3.Connection, pending: PendingRetime, reading: Reading) -> None:
    old, moment = pending.stored.reading, pending.arrival_time
    old_oid = bytes.fromhex(old.oid)
    columns = {"oid": bytes.fromhex(reading.oid), **dict(zip(RETIMED, _PICK_RETIMED(reading), strict=True))}
    found = connection.execute(SEQ_OF, (old_oid,)).fetchone()
    if found is not None and found[1] is not None:
        write_under(connection, found[0], columns, found[1])
    elif found is not None:
        connection.execute(RETIME, {**columns, "seq": found[0]})
    seen = reading.received_at // 1000, pending.device_id, old.received_at // 1000
    connection.execute(FIRST_SEEN, seen)
    connection.execute(SETTLED, (moment.boot, moment.monotonic_ms, old_oid))
