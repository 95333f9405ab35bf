"""Targets that show the latest reading only: the newest reading of each device, and what was passed over."""

import sqlite3
from collections.abc import Iterable
from functools import partial
from typing import Any

from gateway.domain.delivery import Batch
from gateway.errors import StoreUnavailable
from gateway.store.protocols.routes import LatestReading
from gateway.store.sqlite.damaged import quarantine_rows
from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.retiming import FIRST_SUSPECT
from gateway.store.sqlite.routes import BASE, GOES, HIGHEST, OF_NO_DEVICE, PLACES, ROW, ROW_TABLES

NEWEST = f"""
SELECT r.seq, r.received_at, r.session_id FROM readings r
WHERE r.device_id = :lane AND r.created_at > :since AND r.created_at > coalesce((
        SELECT s.created_at FROM latest l JOIN readings s ON s.seq = l.seq
        WHERE l.target = :target AND l.device_id = :lane), 0)
    AND r.flags IS NULL AND r.seq < :suspect AND {GOES}
ORDER BY r.created_at DESC, r.seq DESC LIMIT 1
"""
"""The device's newest reading that the target does not have, and has no newer one than."""

PASSED_OVER = f"""
SELECT EXISTS (SELECT 1 FROM readings r WHERE {{which}} AND r.seq <= :until AND r.seq < :suspect AND {GOES})
"""
NEAR = "+r.device_id = :lane AND r.seq > :watermark"
FAR = "r.device_id = :lane AND +r.seq > :watermark"
FAR_AFTER = 20_000
"""With a watermark further than this from the end of the queue, the device's own index is read."""

SENT = "SELECT sent_at FROM latest WHERE target = :target AND device_id = :lane"
SENT_IN_SESSION = """
SELECT max(l.sent_at) FROM latest l JOIN readings r ON r.seq = l.seq
WHERE l.target = :target AND r.session_id = :session
"""
TITLE = "coalesce(nullif(json_extract({0}.settings, '$.label'), ''), {0}.name)"
READING = f"""
SELECT CASE WHEN EXISTS (
        SELECT 1 FROM devices o WHERE o.id <> d.id AND o.merged_into IS NULL
            AND {TITLE.format("o")} = {TITLE.format("d")})
    THEN json_set({ROW}, '$.name', {TITLE.format("d")} || ' ' || d.stable_id) ELSE {ROW} END
FROM {ROW_TABLES} WHERE r.seq = ?
"""
"""Two devices of one name would be one device for a service that knows them by name."""

MOVE_ON = """
INSERT INTO lanes (target, device_id, watermark) VALUES (:target, :lane, :until)
ON CONFLICT (target, device_id) DO UPDATE SET watermark = max(watermark, excluded.watermark)
"""
NOTE_LATEST = "INSERT OR REPLACE INTO latest (target, device_id, seq, sent_at) VALUES (?, ?, ?, ?)"
NOTE_TAKEN = "INSERT OR IGNORE INTO taken (target, seq) VALUES (?, ?)"


class SqliteLatest:
    """The `LatestStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def look(self, target: str, since: int) -> list[LatestReading]:
        if self._database.salvaging:
            raise StoreUnavailable("readings are still being salvaged; forwarding goes on after that")
        async with self._database.reader() as reader:
            found, passed = await reader.run(_look, target, since)
        if passed:
            await self._writer.run(Apart(lambda connection: _pass_over(connection, target, passed)))
        return found

    async def begin(self, target: str, lane: int, since: int) -> Batch | None:
        while True:
            async with self._database.reader() as reader:
                newest = await reader.run(_newest, target, lane, since)
                if newest is None:
                    return None
                seq = newest[0]
                ((row,),) = await reader.run(_rows, seq)
            if row is not None:
                return Batch(target, lane, 0, (seq,), (row,))
            await self._writer.run(partial(quarantine_rows, seqs=[seq]))

    async def settle(self, batch: Batch, now: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            seq = batch.last_seq
            connection.execute(NOTE_LATEST, (batch.target, batch.session_id, seq, now))
            connection.execute(NOTE_TAKEN, (batch.target, seq))
            _pass_over(connection, batch.target, [(batch.session_id, seq)])

        await self._writer.run(Apart(work))


def _pass_over(connection: sqlite3.Connection, target: str, places: Iterable[tuple[int, int]]) -> None:
    rows = [{"target": target, "lane": lane, "until": until} for lane, until in places]
    connection.executemany(MOVE_ON, rows)


def _rows(connection: sqlite3.Connection, seq: int) -> list[tuple[str | None]]:
    return connection.execute(READING, (seq,)).fetchall()


def _newest(
    connection: sqlite3.Connection, target: str, lane: int, since: int
) -> tuple[int, int, int | None] | None:
    ((suspect,),) = connection.execute(FIRST_SUSPECT)
    values = {"target": target, "lane": lane, "since": since, "suspect": suspect}
    found: tuple[int, int, int | None] | None = connection.execute(NEWEST, values).fetchone()
    return found


def _look(
    connection: sqlite3.Connection, target: str, since: int
) -> tuple[list[LatestReading], list[tuple[int, int]]]:
    """Return the newest readings; and the place up to which each device has readings to pass over."""
    which: dict[str, Any] = {"target": target}
    ((base,),) = connection.execute(BASE, which)
    if base is None:
        return [], []
    ((highest,),) = connection.execute(HIGHEST)
    ((suspect,),) = connection.execute(FIRST_SUSPECT)
    found, passed = [], []
    for lane, watermark in connection.execute(PLACES, {**which, "base": base}).fetchall():
        # Imported readings are history, and no device's latest.
        newest = _newest(connection, target, lane, since) if lane else None
        values = {**which, "lane": lane, "watermark": watermark, "suspect": suspect}
        until = highest
        if newest is not None:
            seq, received_at, session = newest
            until = seq - 1
            sent = connection.execute(SENT, values).fetchone()
            ((in_session,),) = connection.execute(SENT_IN_SESSION, {**which, "session": session})
            found.append(LatestReading(lane, seq, received_at, sent and sent[0], in_session))
        # Readings of a time in doubt stay: they may be the newest once it is known.
        is_far = watermark <= highest - FAR_AFTER
        where = OF_NO_DEVICE if not lane else FAR if is_far else NEAR
        ((waits,),) = connection.execute(PASSED_OVER.format(which=where), {**values, "until": until})
        # Readings of no device have no index: what was looked through once is not looked through again.
        if waits or (not lane and is_far):
            passed.append((lane, min(until, suspect - 1)))
    return found, passed
