"""Targets, and which number a brew session has at them."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, fields, replace
from typing import Any

from gateway.domain.target import Target
from gateway.errors import NameTaken
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
    """The `TargetStore` protocol on SQLite; see there what its methods do."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def all(self) -> list[Target]:
        async with self._database.reader() as reader:
            rows = await reader.run(lambda connection: connection.execute(ALL).fetchall())
        return [_target(row) for row in rows]

    async def add(self, target: Target) -> None:
        def work(connection: sqlite3.Connection) -> None:
            try:
                connection.execute(INSERT, astuple(target))
            except sqlite3.IntegrityError as error:
                raise NameTaken(
                    f"there is a target {target.name} or one for {target.url} already; "
                    "`targets list` shows them"
                ) from error

        await self._writer.run(work)

    async def put(self, target: Target) -> None:
        await self._run(PUT, astuple(target))

    async def take_options(self, options: Sequence[Target]) -> None:
        if _are_as_told(await self.all(), options):
            return  # nothing to write: a disk that takes nothing must not keep the gateway from starting
        names = json.dumps({target.name: target.url for target in options})

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(FORGET_OPTIONS, (names,))
            connection.execute(NOBODY_UNNAMED)
            for target in options:
                connection.execute(TAKE_OPTION, astuple(target))

        await self._writer.run(work)

    async def pause(self, name: str, *, paused: bool) -> None:
        await self._run(PAUSE, (paused, name))

    async def remove(self, name: str) -> None:
        await self._run(REMOVE, (name,))

    async def map(self, session_id: int, url: str, upstream_id: int | None) -> None:
        if upstream_id is None:
            await self._run(UNMAP, (session_id, url))
        else:
            await self._run(MAP, (session_id, url, upstream_id))

    async def sessions(self, target: Target) -> dict[int, int]:
        values = {"target": target.url, "unnamed": target.unnamed}
        async with self._database.reader() as reader:
            return dict(await reader.run(lambda connection: connection.execute(SESSIONS, values).fetchall()))

    async def _run(self, sql: str, values: tuple[Any, ...]) -> None:
        await self._writer.run(lambda connection: connection.execute(sql, values) and None)


def _target(row: Sequence[Any]) -> Target:
    members = dict(zip(COLUMN_NAMES, row, strict=True))
    return Target(**members | {name: bool(members[name]) for name in MARKS})


def _are_as_told(known: Sequence[Target], options: Sequence[Target]) -> bool:
    by_url = {target.url: target for target in options}
    if not by_url.keys() <= {target.url for target in known}:
        return False
    return all(_is_as_told(target, by_url.get(target.url)) for target in known)


def _is_as_told(known: Target, options: Target | None) -> bool:
    if options is None:
        return not (known.from_options or known.unnamed)
    if not known.from_options:
        return known.unnamed == options.unnamed
    return replace(known, per_minute=0, paused=False, resumed=0) == replace(options, per_minute=0)
