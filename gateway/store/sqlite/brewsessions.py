"""Brew sessions, their entries in lists, and the readings for their statistics."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.domain.audit import Actor, AuditEntry, current_actor
from gateway.domain.brewsession import (
    BrewSession,
    DeletedSession,
    DeviceReading,
    Measured,
    Milestones,
    SessionEntry,
)
from gateway.domain.recipe import Recipe
from gateway.errors import NameTaken, NotFound
from gateway.store.queries import Search
from gateway.store.sqlite import assigning, events, recipes
from gateway.store.sqlite.audit import audited, note
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.rows import FORGET
from gateway.store.sqlite.searching import SEPARATOR, conditions, folded, order_by

COLUMN_NAMES = (
    "id",
    "account_id",
    "batchcode",
    "phase",
    "recipe_id",
    "upstream_id",
    "created_at",
    "updated_at",
    "upstream",
    "folder_id",
    "group_id",
    "userdate",
    "notes",
    "og",
    "og_unit",
    "ended_at",
    "not_yet_at",
    "send_notes",
    "lead_device",
    "details",
)
COLUMNS = ", ".join(f"r.{name}" for name in COLUMN_NAMES)
ALL = f"SELECT {COLUMNS} FROM brewsessions r WHERE r.deleted = 0 ORDER BY r.id"
ONE = f"SELECT {COLUMNS} FROM brewsessions r WHERE r.deleted = 0 AND r.id = ?"
INSERT = f"""
INSERT INTO brewsessions ({", ".join(COLUMN_NAMES)}) VALUES ({", ".join("?" * len(COLUMN_NAMES))})
"""
UPSTREAM_ID = "SELECT upstream_id FROM brewsessions WHERE id = ?"
UPDATE = f"""
UPDATE brewsessions SET {", ".join(f"{name} = ?" for name in COLUMN_NAMES[1:])} WHERE id = ?
"""
DELETE = "UPDATE brewsessions SET deleted = 1, updated_at = ? WHERE id = ?"
DELETED = f"""
SELECT {COLUMNS}, (SELECT count(*) FROM readings WHERE session_id = r.id)
FROM brewsessions r WHERE r.deleted AND NOT r.purged ORDER BY r.id
"""
UNDELETE = "UPDATE brewsessions SET deleted = 0, updated_at = ? WHERE id = ? AND deleted AND NOT purged"
IS_DELETED = "SELECT 1 FROM brewsessions WHERE id = ? AND deleted AND NOT purged"
TO_PURGE = "SELECT seq, oid FROM readings WHERE session_id = ? LIMIT ?"
PHASE = "SELECT phase FROM brewsessions WHERE id = ?"
ENDED = """
SELECT id, at, facts FROM brew_events WHERE session_id = ? AND kind = 'ended' ORDER BY id DESC LIMIT 1
"""
IS_FREE = "SELECT 1 FROM devices WHERE id = ? AND session_id IS NULL AND forgotten_at IS NULL"
PURGED = "UPDATE brewsessions SET purged = 1 WHERE id = ?"

ENTRIES = f"""
SELECT {COLUMNS}, f.name, json_extract(t.record, '$.title')
FROM json_each(?) wanted JOIN brewsessions r ON r.id = wanted.value
LEFT JOIN folders f ON f.id = r.folder_id LEFT JOIN recipe_texts t ON t.recipe_id = r.recipe_id
WHERE r.deleted = 0 ORDER BY wanted.key
"""
DEVICES = """
SELECT d.session_id, d.id, d.name, m.name, coalesce(m.shown_gravity, m.gravity), m.gravity_unit,
       coalesce(m.shown_temp, m.temp), m.temp_unit, m.interval, m.beer, m.comment, m.created_at
FROM json_each(?) wanted JOIN devices d ON d.session_id = wanted.value
LEFT JOIN readings m ON m.seq = (
    SELECT seq FROM readings WHERE device_id = d.id AND session_id = d.session_id
    ORDER BY created_at DESC LIMIT 1)
ORDER BY m.created_at, d.id DESC
"""
"""Devices in sessions, each with its last reading there; the one that reported last comes last."""

MILESTONE = """
SELECT coalesce(shown_gravity, gravity), gravity_unit, sg, coalesce(shown_temp, temp), temp_unit,
       coalesce(json_extract(extra, '$.ph'), ''), created_at
FROM readings WHERE session_id = ? AND {condition} ORDER BY created_at {direction}, oid {direction} LIMIT 1
"""
"""Each milestone is found by the index on the columns of its condition."""

MILESTONES = (
    MILESTONE.format(condition="sg IS NOT NULL", direction="ASC"),
    MILESTONE.format(condition="sg IS NOT NULL", direction="DESC"),
    MILESTONE.format(condition="celsius IS NOT NULL", direction="DESC"),
    MILESTONE.format(condition="json_extract(extra, '$.ph') <> ''", direction="DESC"),
)
SORTED_BY = {
    "created_at": "r.created_at",
    "updated_at": "r.updated_at",
    "batchcode": "casefold(r.batchcode)",
}
KEYWORD = f"instr(casefold(r.batchcode || '{SEPARATOR}' || r.phase), :keyword)"


class SqliteBrewSessions:
    """The `BrewSessionStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def add(
        self,
        session: BrewSession,
        snapshot: Recipe | None = None,
        *,
        device_id: int | None = None,
        since: int | None = None,
    ) -> BrewSession:
        devices = [] if device_id is None else [device_id]
        actor = current_actor()
        return await self._writer.run(lambda c: _begin(c, session, snapshot, devices, since, actor))

    async def follow(
        self, old: BrewSession, new: BrewSession, snapshot: Recipe | None, since: int | None, now: int
    ) -> tuple[BrewSession, list[int]]:
        actor = current_actor()

        def work(connection: sqlite3.Connection) -> tuple[BrewSession, list[int]]:
            devices = assigning.inside(connection, old.id)
            begun = _begin(connection, new, snapshot, devices, since, actor)
            _end(connection, old, now, actor)
            return begun, devices

        return await self._writer.run(work)

    async def end(self, session: BrewSession, now: int) -> None:
        actor = current_actor()
        await self._writer.run(lambda connection: _end(connection, session, now, actor))

    async def reopen(self, session: BrewSession, now: int) -> None:
        actor = current_actor()

        def work(connection: sqlite3.Connection) -> None:
            _write(connection, session, actor)
            row = connection.execute(ENDED, (session.id,)).fetchone()
            if row is None:
                return
            event_id, at, facts = row
            connection.execute(events.DELETE, (event_id,))
            for device_id, left_by in json.loads(facts or "{}").get("devices", ()):
                if connection.execute(IS_FREE, (device_id,)).fetchone():
                    connection.execute(events.DELETE, (left_by,))
                    assigning.put_back(connection, device_id, session.id, at)

        entry = AuditEntry("reopen", f"session:{session.id}", "its free devices are back in it")
        await self._writer.run(audited(work, entry))

    async def update(self, session: BrewSession) -> None:
        actor = current_actor()
        await self._writer.run(lambda connection: _write(connection, session, actor))

    async def delete(self, session_id: int, now: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(DELETE, (now, session_id))
            for device_id in assigning.inside(connection, session_id):
                assigning.move_out(connection, device_id, now)

        await self._writer.run(audited(work, AuditEntry("delete", f"session:{session_id}")))

    async def deleted(self) -> list[DeletedSession]:
        async with self._database.reader() as reader:
            rows = await reader.run(lambda c: c.execute(DELETED).fetchall())
        return [DeletedSession(_session(row[:-1]), row[-1]) for row in rows]

    async def undelete(self, session_id: int, now: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(UNDELETE, (now, session_id)).rowcount == 0:
                raise _not_deleted(session_id)

        await self._writer.run(audited(work, AuditEntry("undelete", f"session:{session_id}")))

    async def purge(self, session_id: int, limit: int) -> int:
        def work(connection: sqlite3.Connection) -> int:
            if connection.execute(IS_DELETED, (session_id,)).fetchone() is None:
                raise _not_deleted(session_id)
            found = connection.execute(TO_PURGE, (session_id, limit)).fetchall()
            rows = [{"seq": seq, "oid": oid} for seq, oid in found]
            for sql in FORGET:
                connection.executemany(sql, rows)
            if len(rows) < limit:
                connection.execute(PURGED, (session_id,))
                connection.execute(events.DELETE_ALL, (session_id,))
            return len(rows)

        # A row for each transaction, because a purge may be cut short between two of them.
        return await self._writer.run(
            audited(
                work, lambda count: AuditEntry("purge", f"session:{session_id}", f"{count} readings for good")
            )
        )

    async def get(self, session_id: int) -> BrewSession | None:
        async with self._database.reader() as reader:
            row = await reader.run(lambda c: c.execute(ONE, (session_id,)).fetchone())
        return row and _session(row)

    async def all(self) -> list[BrewSession]:
        async with self._database.reader() as reader:
            return [_session(row) for row in await reader.run(lambda c: c.execute(ALL).fetchall())]

    async def entry(self, session_id: int) -> SessionEntry | None:
        async with self._database.reader() as reader:
            found = await reader.run(_entries, [session_id])
        return found[0] if found else None

    async def entries(self, session_ids: Sequence[int]) -> list[SessionEntry]:
        async with self._database.reader() as reader:
            return await reader.run(_entries, session_ids)

    async def search(self, search: Search) -> tuple[int, list[SessionEntry]]:
        terms, values = conditions(search)
        if search.keyword:
            terms.append(KEYWORD)
            values["keyword"] = folded(search.keyword)
        order = order_by(search.order, SORTED_BY)
        sql = f"SELECT r.id FROM brewsessions r WHERE {' AND '.join(terms)} {order}"

        def page(connection: sqlite3.Connection) -> tuple[int, list[SessionEntry]]:
            ids = [row[0] for row in connection.execute(sql, values).fetchall()]
            return len(ids), _entries(connection, ids[search.offset : search.offset + search.limit])

        async with self._database.reader() as reader:
            return await reader.run(page)

    async def milestones(self, session_id: int) -> Milestones:
        async with self._database.reader() as reader:
            rows = await reader.run(
                lambda c: [c.execute(sql, (session_id,)).fetchone() for sql in MILESTONES]
            )
        found: list[Measured | None] = []
        for row in rows:
            if row is None:
                found.append(None)
                continue
            gravity, gravity_unit, sg, temp, temp_unit, ph, created_at = row
            ph_text = str(ph).removesuffix(".0") if isinstance(ph, float) else str(ph)
            found.append(Measured(gravity, gravity_unit, sg, temp, temp_unit, ph_text, created_at))
        return Milestones(*found)


def _begin(
    connection: sqlite3.Connection,
    session: BrewSession,
    snapshot: Recipe | None,
    devices: Sequence[int],
    since: int | None,
    actor: Actor,
) -> BrewSession:
    """Insert a brew session with its recipe and devices, and write its first events."""
    if snapshot is not None:
        session = replace(session, recipe_id=recipes.insert(connection, snapshot).id)
    try:
        cursor = connection.execute(INSERT, (session.id or None, *_values(session)))
    except sqlite3.IntegrityError as error:
        raise NameTaken(f"there is a brew session {session.id} already, or no such folder") from error
    begun, now = _session(connection.execute(ONE, (cursor.lastrowid,)).fetchone()), session.created_at
    event_id = events.record(connection, begun.id, "begun", now, now)
    for device_id in devices:
        moved = assigning.move_in(connection, device_id, begun.id, since, now, from_before=True)
        note(connection, assigning.assigned_entry(device_id, begun.id, moved.readings), actor)
        if moved.first_at is not None:
            connection.execute(events.NOT_LATER, (moved.first_at, event_id))
    return begun


def _end(connection: sqlite3.Connection, session: BrewSession, now: int, actor: Actor) -> None:
    """Write a session that is done. Its devices are free, and the event keeps what `reopen` needs."""
    phase = connection.execute(PHASE, (session.id,)).fetchone()
    _write(connection, session, actor)
    devices = [
        (device_id, assigning.move_out(connection, device_id, now))
        for device_id in assigning.inside(connection, session.id)
    ]
    facts = {"before": phase and phase[0], "phase": session.phase, "devices": devices}
    at = now if session.ended_at is None else session.ended_at
    events.record(connection, session.id, "ended", at, now, facts)
    named = ", ".join(str(device_id) for device_id, _ in devices) or "none"
    note(connection, AuditEntry("end", f"session:{session.id}", f"devices that left it: {named}"), actor)


def _write(connection: sqlite3.Connection, session: BrewSession, actor: Actor) -> None:
    """Write all members of a session over the stored ones."""
    was = connection.execute(UPSTREAM_ID, (session.id,)).fetchone()
    try:
        connection.execute(UPDATE, (*_values(session), session.id))
    except sqlite3.IntegrityError as error:
        raise NotFound(f"there is no folder {session.folder_id}") from error
    if was is not None and was[0] != session.upstream_id:
        # Only for its number upstream, because that decides to whom readings go; the rest is daily work.
        entry = AuditEntry("map", f"session:{session.id}", f"to {session.upstream_id or 'none'} upstream")
        note(connection, entry, actor)


def _not_deleted(session_id: int) -> NotFound:
    return NotFound(f"no deleted brew session {session_id}; `sessions list --deleted` shows them")


def _entries(connection: sqlite3.Connection, ids: Sequence[int]) -> list[SessionEntry]:
    """Return sessions by their ids, in that order; two queries for any number of sessions."""
    if not ids:
        return []
    wanted = json.dumps(ids)
    # A device without a reading keeps the defaults of `DeviceReading`.
    devices = {
        row[0]: DeviceReading(*(row[1:] if row[-1] is not None else row[1:3]))
        for row in connection.execute(DEVICES, (wanted,))
    }
    width = len(COLUMN_NAMES)
    return [
        SessionEntry(_session(row[:width]), row[width], row[width + 1] or "", devices.get(row[0]))
        for row in connection.execute(ENTRIES, (wanted,)).fetchall()
    ]


def _session(row: Sequence[Any]) -> BrewSession:
    members = dict(zip(COLUMN_NAMES, row, strict=True))
    changed = {"send_notes": bool(members["send_notes"]), "details": json.loads(members["details"])}
    return BrewSession(**members | changed)


def _values(session: BrewSession) -> tuple[Any, ...]:
    """Return the columns of a session, without its id."""
    plain = [getattr(session, name) for name in COLUMN_NAMES[1:-1]]
    return (*plain, json.dumps(dict(session.details), ensure_ascii=False, separators=(",", ":")))
