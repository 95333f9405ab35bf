"""The audit log: rows that are written in the transaction of the change that they tell of.

A method that changes something hands its work to the writer as `audited(work, entry)`: both or neither.
"""

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from gateway.domain.audit import (
    DETAIL_CHARACTERS,
    WRONG_KEY,
    Actor,
    AuditEntry,
    AuditRow,
    current_actor,
)
from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer

ROWS = 10_000
"""Rows of the audit log at most, without wrong keys; the oldest go first."""

WRONG_KEY_ROWS = 1_000
"""Rows of wrong keys at most; the oldest go first."""

KEPT_DAYS = 400
"""Days that a row is kept."""

DAY_S, HOUR_S = 86_400, 3_600

ADD = """
INSERT INTO audit (id, at, actor, source, verb, object, detail, times)
SELECT max(:id, coalesce(max(id), 0) + 1), :at, :actor, :source, :verb, :object, :detail, :times
FROM audit
"""
COUNT_AGAIN = """
UPDATE audit SET times = times + :times
WHERE (verb = 'wrong key') = 1 AND source = :source AND at >= :at - :at % 3600
"""
PUSH_OUT = """
DELETE FROM audit WHERE id IN (
    SELECT id FROM audit WHERE (verb = 'wrong key') = ? ORDER BY id DESC LIMIT -1 OFFSET ?)
"""
PRUNE = "DELETE FROM audit WHERE at < ?"
PAGE = """
SELECT at, actor, source, verb, object, detail, times FROM audit
WHERE at >= :since AND (:about IN ('', object) OR substr(object, 1, length(:about) + 1) = :about || ':')
ORDER BY id DESC LIMIT :limit
"""
OPTIONS = "SELECT name, value FROM options"
KEEP_OPTION = "INSERT OR REPLACE INTO options (name, value) VALUES (?, ?)"
FORGET_OPTIONS = "DELETE FROM options"

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], T]
Entry = AuditEntry | Callable[[T], AuditEntry | None]
"""A row, or how to make it of the work's result; None if nothing changed."""


def audited(work: Work[T], entry: Entry[T]) -> Work[T]:
    """Return the work with its row in the audit log, in one transaction. The actor is the caller's."""
    # Asked for here, not in the work, because that runs in the writer's thread, which has no request.
    actor = current_actor()

    def both(connection: sqlite3.Connection) -> T:
        result = work(connection)
        made = entry(result) if callable(entry) else entry
        if made is not None:
            note(connection, made, actor)
        return result

    return both


def note(
    connection: sqlite3.Connection, entry: AuditEntry, actor: Actor, at: int | None = None, times: int = 1
) -> None:
    """Insert a row, in the transaction that is open, and push out the oldest beyond the bound."""
    # To the millisecond: rows of a damaged file keep their ids, and one of the same second would be left out.
    now_ms = time.time_ns() // 1_000_000 if at is None else at * 1000
    values = {
        "id": now_ms,
        "at": now_ms // 1000,
        "actor": actor.name,
        "source": actor.source,
        "verb": entry.verb,
        "object": entry.object,
        "detail": entry.detail[:DETAIL_CHARACTERS],
        "times": times,
    }
    connection.execute(ADD, values)
    is_noise = entry.verb == WRONG_KEY
    connection.execute(PUSH_OUT, (is_noise, WRONG_KEY_ROWS if is_noise else ROWS))


class SqliteAudit:
    """The `AuditStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def add(self, entry: AuditEntry) -> None:
        await self._writer.run(Apart(audited(lambda _: None, entry)))

    async def page(self, *, since: int = 0, about: str = "", limit: int) -> list[AuditRow]:
        which = {"since": since, "about": about, "limit": limit}
        async with self._database.reader() as reader:
            rows = await reader.run(lambda c: c.execute(PAGE, which).fetchall())
        return [AuditRow(*row) for row in reversed(rows)]

    async def count_wrong_keys(self, counts: Sequence[tuple[str, int, int]]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for source, at, times in counts:
                which = {"source": source, "at": at, "times": times}
                if connection.execute(COUNT_AGAIN, which).rowcount == 0:
                    note(connection, AuditEntry(WRONG_KEY, "key"), Actor("stranger", source), at, times)

        await self._writer.run(Apart(work))

    async def note_options(self, options: Mapping[str, str]) -> None:
        async with self._database.reader() as reader:
            before = dict(await reader.run(lambda c: c.execute(OPTIONS).fetchall()))
        # Nothing to write, and nothing is written: a full disk must not keep the gateway from starting.
        if before == options:
            return

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(FORGET_OPTIONS)
            connection.executemany(KEEP_OPTION, options.items())

        changes = [
            f"{name.replace('_', '-')}: {before.get(name, 'default')} -> {options.get(name, 'default')}"
            for name in sorted({*before, *options})
            if before.get(name) != options.get(name)
        ]
        entry = AuditEntry("start with other options", "options", "; ".join(changes))
        await self._writer.run(audited(work, lambda _: entry if before else None))

    async def prune(self, now: int) -> None:
        before = now - KEPT_DAYS * DAY_S
        await self._writer.run(Apart(lambda c: c.execute(PRUNE, (before,)) and None))
