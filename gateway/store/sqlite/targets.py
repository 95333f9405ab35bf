"""Targets, and the number of each brew session there."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, fields, replace
from typing import Any

from gateway.domain.audit import AuditEntry
from gateway.domain.target import Target
from gateway.domain.texts import shown_url
from gateway.errors import NameTaken
from gateway.store.sqlite import lanes
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.delivery import UPSTREAM_ID
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer

COLUMN_NAMES = tuple(field.name for field in fields(Target))
COLUMNS = ", ".join(COLUMN_NAMES)
MARKS = ("from_options", "unnamed", "paused")
ALL = f"SELECT {COLUMNS} FROM targets ORDER BY unnamed DESC, from_options DESC, name"
INSERT = f"INSERT INTO targets ({COLUMNS}) VALUES ({', '.join('?' * len(COLUMN_NAMES))})"
PUT = f"""
{INSERT} ON CONFLICT (name) DO UPDATE SET url = excluded.url, key_file = excluded.key_file,
    resumed = resumed + 1
"""
FORGET_OPTIONS = """
DELETE FROM targets WHERE from_options AND NOT EXISTS (
    SELECT 1 FROM json_each(?) WHERE key = targets.name AND value = targets.url)
"""
NOBODY_UNNAMED = "UPDATE targets SET unnamed = 0"
TAKE_OPTION = f"""
{INSERT} ON CONFLICT (url) DO UPDATE SET unnamed = excluded.unnamed,
    key_file = CASE WHEN from_options THEN excluded.key_file ELSE key_file END
"""
PAUSE = "UPDATE targets SET paused = ?, resumed = resumed + 1 WHERE name = ?"
REMOVE = "DELETE FROM targets WHERE name = ?"
MAP = """
INSERT INTO forwardings (session_id, target, upstream_id) VALUES (?, ?, ?)
ON CONFLICT (session_id, target) DO UPDATE SET upstream_id = excluded.upstream_id
"""
UPSTREAM = UPSTREAM_ID.format(url=":target", unnamed=":unnamed")
SESSIONS = f"""
SELECT s.id, {UPSTREAM} FROM brewsessions s
LEFT JOIN forwardings f ON f.target = :target AND f.session_id = s.id WHERE {UPSTREAM} IS NOT NULL
"""
UNMAP = "DELETE FROM forwardings WHERE session_id = ? AND target = ?"


class SqliteTargets:
    """The `TargetStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def all(self) -> list[Target]:
        async with self._database.reader() as reader:
            rows = await reader.run(lambda connection: connection.execute(ALL).fetchall())
        members = (dict(zip(COLUMN_NAMES, row, strict=True)) for row in rows)
        return [Target(**found | {name: bool(found[name]) for name in MARKS}) for found in members]

    async def add(self, target: Target) -> None:
        def work(connection: sqlite3.Connection) -> None:
            try:
                connection.execute(INSERT, astuple(target))
            except sqlite3.IntegrityError as error:
                raise NameTaken(
                    f"there is a target {target.name} or one for {shown_url(target.url)} already; "
                    "`targets list` shows them"
                ) from error

        await self._writer.run(
            audited(work, AuditEntry("add", f"target:{target.name}", shown_url(target.url)))
        )

    async def put(self, target: Target) -> None:
        entry = AuditEntry("log in", f"target:{target.name}", shown_url(target.url))
        await self._run(PUT, astuple(target), entry)

    async def take_options(self, options: Sequence[Target]) -> None:
        stored, by_url = await self.all(), {target.url: target for target in options}
        # Nothing to write, and nothing is written: a full disk must not keep the gateway from starting.
        if by_url.keys() <= {target.url for target in stored} and all(
            _is_as_in_options(target, by_url.get(target.url)) for target in stored
        ):
            return
        names = json.dumps({target.name: target.url for target in options})

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(FORGET_OPTIONS, (names,))
            connection.execute(NOBODY_UNNAMED)
            for target in options:
                connection.execute(TAKE_OPTION, astuple(target))

        await self._writer.run(work)

    async def pause(self, name: str, *, paused: bool) -> None:
        await self._run(PAUSE, (paused, name), AuditEntry("pause" if paused else "resume", f"target:{name}"))

    async def remove(self, name: str) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for sql in (*lanes.FORGET, REMOVE):
                connection.execute(sql, (name,))

        await self._writer.run(audited(work, AuditEntry("remove", f"target:{name}")))

    async def map(self, session_id: int, url: str, upstream_id: int | None) -> None:
        entry = AuditEntry("map", f"session:{session_id}", f"to {upstream_id or 'none'} at {shown_url(url)}")
        if upstream_id is None:
            await self._run(UNMAP, (session_id, url), entry)
        else:
            await self._run(MAP, (session_id, url, upstream_id), entry)

    async def sessions(self, target: Target) -> dict[int, int]:
        values = {"target": target.url, "unnamed": target.unnamed}
        async with self._database.reader() as reader:
            return dict(await reader.run(lambda connection: connection.execute(SESSIONS, values).fetchall()))

    async def _run(self, sql: str, values: tuple[Any, ...], entry: AuditEntry) -> None:
        await self._writer.run(audited(lambda c: c.execute(sql, values) and None, entry))


def _is_as_in_options(stored: Target, option: Target | None) -> bool:
    if option is None:
        return not (stored.from_options or stored.unnamed)
    if not stored.from_options:
        return stored.unnamed == option.unnamed
    return replace(stored, per_minute=0, paused=False, resumed=0) == replace(option, per_minute=0)
