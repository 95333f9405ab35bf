"""Forwarding progress: a watermark per target and brew session, and the attempt that is open."""

import sqlite3
from typing import Any

from gateway.domain.delivery import Backlog, Batch
from gateway.store.sqlite.database import Database
from gateway.store.sqlite.readings import READING_JSON
from gateway.store.sqlite.writer import Writer

FORWARDED_SESSIONS = """
brewsessions s LEFT JOIN deliveries d ON d.target = :target AND d.session_id = s.id
"""
IS_FORWARDED = """
s.upstream_id IS NOT NULL AND s.deleted = 0 AND (s.upstream = :target OR s.upstream IS NULL AND :unnamed)
"""
TO_SEND = "r.mirrored IS NULL"
"""What came from the service itself is not sent there."""

BACKLOGS = f"""
SELECT s.id, s.upstream_id, count(*), min(r.received_at), coalesce(d.attempt_until, 0) > 0
FROM {FORWARDED_SESSIONS} JOIN readings r ON r.session_id = s.id AND r.seq > coalesce(d.watermark, 0)
WHERE {IS_FORWARDED} AND r.seq > :lowest AND {TO_SEND}
GROUP BY s.id ORDER BY min(r.seq)
"""
SPAN = f"""
SELECT (SELECT coalesce(min(coalesce(d.watermark, 0)), 0) FROM {FORWARDED_SESSIONS} WHERE {IS_FORWARDED}),
       (SELECT coalesce(max(seq), 0) FROM readings)
"""
CAUGHT_UP = f"""
INSERT INTO deliveries (target, session_id, watermark)
SELECT :target, s.id, :highest FROM {FORWARDED_SESSIONS}
WHERE {IS_FORWARDED} AND d.attempt_until IS NULL AND NOT EXISTS (
    SELECT 1 FROM readings r
    WHERE r.session_id = s.id AND r.seq > coalesce(d.watermark, 0) AND r.seq <= :highest AND {TO_SEND})
ON CONFLICT (target, session_id) DO UPDATE SET watermark = max(watermark, excluded.watermark)
"""
PLACE = """
SELECT s.upstream_id, s.account_id, s.recipe_id, coalesce(d.watermark, 0), d.attempt_until
FROM brewsessions s LEFT JOIN deliveries d ON d.target = ? AND d.session_id = s.id
WHERE s.id = ? AND s.upstream_id IS NOT NULL AND s.deleted = 0
"""
WAITING = f"""
SELECT seq, {READING_JSON} FROM readings r
WHERE {TO_SEND} AND session_id = :brewevent_id AND seq > :watermark AND seq <= :until
ORDER BY seq LIMIT :limit
"""
OPEN_ATTEMPT = """
INSERT INTO deliveries (target, session_id, attempt_until) VALUES (?, ?, ?)
ON CONFLICT (target, session_id) DO UPDATE SET attempt_until = excluded.attempt_until
"""
SETTLE = """
UPDATE deliveries SET watermark = max(watermark, ?), attempt_until = NULL WHERE target = ? AND session_id = ?
"""
RELEASE = "UPDATE deliveries SET attempt_until = NULL WHERE target = ? AND session_id = ?"
FORWARDED = f"""
SELECT d.session_id,
       (SELECT count(*) FROM readings r
        WHERE r.session_id = d.session_id AND r.seq <= d.watermark AND {TO_SEND})
FROM deliveries d WHERE d.target = ?
"""

NO_LIMIT = 2**62

CAUGHT_UP_AFTER = 20_000
"""Places in the queue between the lowest watermark and the end before watermarks are moved up."""


class SqliteOutbox:
    """The `Outbox` protocol on SQLite."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def backlogs(self, target: str, *, unnamed: bool = True) -> list[Backlog]:
        """What waits for this target, the longest waiting brew session first."""
        which = {"target": target, "unnamed": unnamed}
        async with self._database.reader() as reader:
            ((lowest, highest),) = await reader.run(_all, SPAN, which)
            rows = await reader.run(_all, BACKLOGS, {**which, "lowest": lowest})
        if highest - lowest > CAUGHT_UP_AFTER and len(rows) == 0:
            await self._catch_up({**which, "highest": highest})
        return [
            Backlog(session, upstream, waiting, oldest, bool(unsettled))
            for session, upstream, waiting, oldest, unsettled in rows
        ]

    async def _catch_up(self, parameters: dict[str, Any]) -> None:
        """Let the watermarks of finished brew sessions follow, or each look would begin at the oldest one.

        Safe at any time: what is stored meanwhile lies above `highest`.
        """
        await self._writer.run(lambda connection: connection.execute(CAUGHT_UP, parameters) and None)

    async def begin(self, target: str, session_id: int, limit: int) -> Batch | None:
        """The oldest readings above the watermark; an attempt that is still open comes again as it was."""

        def work(connection: sqlite3.Connection) -> Batch | None:
            place = connection.execute(PLACE, (target, session_id)).fetchone()
            if place is None:
                return None
            upstream_id, account_id, recipe_id, watermark, attempt_until = place
            rows = connection.execute(
                WAITING,
                {
                    "login_id": account_id,
                    "brewevent_id": session_id,
                    "recipe_id": recipe_id,
                    "watermark": watermark,
                    "until": attempt_until or NO_LIMIT,
                    "limit": -1 if attempt_until else limit,
                },
            ).fetchall()
            if not rows:
                connection.execute(RELEASE, (target, session_id))
                return None
            batch = Batch(
                target,
                session_id,
                upstream_id,
                seqs=tuple(row[0] for row in rows),
                rows=tuple(row[1] for row in rows),
                unsettled=attempt_until is not None,
            )
            connection.execute(OPEN_ATTEMPT, (target, session_id, batch.last_seq))
            return batch

        return await self._writer.run(work)

    async def settle(self, batch: Batch) -> None:
        """Move the watermark past the batch and close the attempt."""
        parameters = (batch.last_seq, batch.target, batch.session_id)
        await self._writer.run(lambda connection: connection.execute(SETTLE, parameters) and None)

    async def release(self, batch: Batch) -> None:
        """Close the attempt, watermark unmoved."""
        parameters = (batch.target, batch.session_id)
        await self._writer.run(lambda connection: connection.execute(RELEASE, parameters) and None)

    async def forwarded(self, target: str) -> dict[int, int]:
        """Readings at or below the watermark, by brew session id."""
        async with self._database.reader() as reader:
            return dict(await reader.run(_all, FORWARDED, (target,)))


def _all(connection: sqlite3.Connection, sql: str, parameters: Any) -> list[Any]:
    return connection.execute(sql, parameters).fetchall()
