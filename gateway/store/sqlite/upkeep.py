"""Upkeep of the database: salvage, scrub, reserve, quota, retention; and its condition."""

import json
import sqlite3
import time
from typing import Any

from gateway.store.records import Damage, Engine, Finished, StoreCondition
from gateway.store.sqlite.damaged import quarantine_rows
from gateway.store.sqlite.delivery import OF_TARGET, TO_SEND
from gateway.store.sqlite.engine import checksum
from gateway.store.sqlite.engine import damaged_file as aside
from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.connections import engine
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.quota import FULL
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.lanes import HAS_NUMBERS, ROUTED
from gateway.store.sqlite.repair import FileRepair

SCRUB_ROWS = 200
"""Readings that one step verifies: about 2 ms of a reader's connection."""

SCRUBBED = f"SELECT seq, {checksum.intact_sql()} FROM readings WHERE seq > ? ORDER BY seq LIMIT {SCRUB_ROWS}"
COUNTERS = "SELECT name, value FROM counters"
SET_COUNTER = "UPDATE counters SET value = ? WHERE name = ?"
DAMAGES = (
    "SELECT found_at, reason, aside, salvaged, quarantined, bad_pages, finished_at FROM damages ORDER BY id"
)
FINISHED = f"""
SELECT s.id, min(coalesce(d.watermark, 0)) settled
FROM brewsessions s JOIN targets t ON t.kind = 'service'
LEFT JOIN forwardings f ON f.target = t.url AND f.session_id = s.id
LEFT JOIN deliveries d ON d.target = t.url AND d.session_id = s.id
WHERE {OF_TARGET} IS NOT NULL
AND EXISTS (SELECT 1 FROM readings r WHERE r.session_id = s.id)
AND NOT EXISTS (SELECT 1 FROM readings r WHERE r.session_id = s.id AND r.created_at >= :before)
AND NOT EXISTS (SELECT 1 FROM devices v WHERE v.session_id = s.id)
GROUP BY s.id HAVING max(d.attempt_until) IS NULL AND settled > 0
"""
PRUNE = f"""
DELETE FROM readings WHERE seq IN (
    SELECT r.seq FROM readings r
    WHERE r.session_id = :session_id AND r.created_at < :before AND r.seq <= :settled AND {TO_SEND}
      AND NOT EXISTS (SELECT 1 FROM refusals x WHERE x.seq = r.seq)
      AND NOT EXISTS (SELECT 1 FROM corrections c WHERE c.seq = r.seq)
      AND NOT EXISTS (
          SELECT 1 FROM targets t
          LEFT JOIN lanes l ON l.target = t.url AND l.device_id = coalesce(r.device_id, 0)
          WHERE t.kind <> 'service' AND r.seq > coalesce(l.watermark, 0)
            AND {HAS_NUMBERS} AND {ROUTED.format(url="t.url")})
    ORDER BY r.created_at LIMIT :limit)
RETURNING seq
"""
"""Keeps refused readings, readings that are never sent or wait for another kind of target, and edits that a
target does not have."""
FORGET_TAKEN = "DELETE FROM taken WHERE seq IN (SELECT value FROM json_each(?))"
COUNT_PRUNED = "UPDATE counters SET value = value + ? WHERE name = 'pruned'"


class SqliteUpkeep:
    """The `UpkeepStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer, repair: FileRepair | None) -> None:
        self._database = database
        self._writer = writer
        self._repair = repair

    @property
    def busy(self) -> bool:
        return self._writer.busy

    def engine(self) -> Engine:
        return engine()

    async def condition(self) -> StoreCondition:
        path = self._database.path
        async with self._database.reader() as reader:
            counters = dict(await reader.run(_all, COUNTERS))
            damages = [Damage(*row) for row in await reader.run(_all, DAMAGES)]
        return StoreCondition(
            trouble=self._database.damage or self._writer.trouble or self._refusal(),
            salvaging=self._database.salvaging,
            damages=damages,
            aside=[path.name for path in aside.kept_aside(path.parent, path.name)],
            damaged=counters["damaged"],
            pruned=counters["pruned"],
            scrubbed_until=counters["scrub_seq"],
            scrubbed_at=counters["scrub_at"],
            repairs=self._database.repairs,
            quota_bytes=self._database.room.quota_bytes,
            quota_full=self._database.room.is_full,
            free_bytes=self._database.room.free_bytes(),
        )

    def _refusal(self) -> str | None:
        room = self._database.room
        return FULL if room.is_full else room.refusal()

    async def tend(self) -> None:
        """Fill the reserve again, limit the file to the quota; reopen or repair the file after a failure."""
        if self._writer.trouble is not None or self._database.damage is not None:
            await self._writer.run(lambda _: None)
        if self._database.room.refusal() is None:
            self._database.room.fill_reserve()
        await self._writer.run(Apart(self._database.limit))

    async def salvage(self) -> bool:
        if self._repair is None or not self._repair.salvaging:
            return False
        try:
            return await self._writer.run(self._repair.step)
        except BaseException:
            await self._writer.run(self._repair.start_over)
            raise

    async def scrub(self, after: int) -> int | None:
        async with self._database.reader() as reader:
            rows = await reader.run(_all, SCRUBBED, (after,))
        damaged = [seq for seq, intact in rows if not intact]
        if damaged:
            marks = ", ".join("?" * len(damaged))
            sql = f"SELECT seq FROM readings WHERE seq IN ({marks}) AND NOT {checksum.intact_sql()}"
            # Checked again in the transaction: they may have been replaced since they were read.
            await self._writer.run(
                lambda connection: quarantine_rows(
                    connection, [seq for (seq,) in connection.execute(sql, damaged)]
                )
            )
        return rows[-1][0] if len(rows) == SCRUB_ROWS else None

    async def note_scrub(self, until: int, finished_at: int | None) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(SET_COUNTER, (until, "scrub_seq"))
            if finished_at is not None:
                connection.execute(SET_COUNTER, (finished_at, "scrub_at"))

        await self._writer.run(Apart(work))

    async def finished(self, before: int) -> list[Finished]:
        async with self._database.reader() as reader:
            rows = await reader.run(_all, FINISHED, {"before": before})
        return [Finished(*row) for row in rows]

    async def prune(self, session: Finished, before: int, limit: int) -> tuple[int, float]:
        def work(connection: sqlite3.Connection) -> tuple[int, float]:
            began = time.monotonic()
            values = {
                "session_id": session.session_id,
                "before": before,
                "settled": session.settled_until,
                "limit": limit,
            }
            gone = [seq for (seq,) in connection.execute(PRUNE, values)]
            connection.execute(FORGET_TAKEN, (json.dumps(gone),))
            connection.execute(COUNT_PRUNED, (len(gone),))
            return len(gone), time.monotonic() - began

        return await self._writer.run(work)


def _all(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> list[Any]:
    return connection.execute(sql, parameters).fetchall()
