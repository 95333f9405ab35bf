"""Events of brews, and the readings that belong to those which people write.

The reading is the truth: an event with a reading gives out the values of that. Its own copy of them counts
once the reading is gone because of `--keep-days`.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.domain.audit import AuditEntry
from gateway.domain.brew_event import EVENTS_MAX, HAND_READING, BrewEvent
from gateway.domain.brewsession import BrewSession
from gateway.domain.reading import Reading
from gateway.errors import AlreadySent, InvalidInput, NotFound
from gateway.formats.readings.rows import celsius, specific_gravity
from gateway.store.sqlite import edits, imports
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.delivery import TO_SEND
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.imports import MOVE, ImportContent
from gateway.store.sqlite.rows import FORGET, next_seq

WAS_SENT = f"""
EXISTS (SELECT 1 FROM deliveries d WHERE d.session_id = r.session_id
    AND r.seq <= max(d.watermark, coalesce(d.attempt_until, 0)) AND {TO_SEND}
    AND NOT EXISTS (SELECT 1 FROM refusals x WHERE x.target = d.target AND x.seq = r.seq))
"""
"""A target has the reading, or may have it: an attempt is open."""

EVENTS = f"""
SELECT e.id, e.session_id, coalesce(r.created_at, e.at) AS at, e.kind, coalesce(r.comment, e.text), e.author,
       e.created_at, e.updated_at, e.facts, lower(hex(e.oid)), {WAS_SENT},
       r.name, r.gravity, r.gravity_unit, r.temp, r.temp_unit
FROM brew_events e LEFT JOIN readings r ON r.oid = e.oid AND r.session_id = e.session_id
WHERE e.session_id = :session_id
"""
OF_SESSION = f"{EVENTS} ORDER BY at DESC, e.id DESC"
ONE = f"{EVENTS} AND e.id = :id"
COUNT = "SELECT count(*) FROM brew_events WHERE session_id = ?"
INSERT = """
INSERT INTO brew_events (session_id, at, kind, text, facts, oid, author, created_at, updated_at)
VALUES (:session_id, :at, :kind, :text, :facts, :oid, :author, :created_at, :updated_at)
"""
UPDATE = """
UPDATE brew_events SET at = :at, text = :text, facts = :facts, updated_at = :updated_at WHERE id = :id
"""
NOT_LATER = "UPDATE brew_events SET at = min(at, ?) WHERE id = ?"
DELETE = "DELETE FROM brew_events WHERE id = ?"
DELETE_ALL = "DELETE FROM brew_events WHERE session_id = ?"
WITHOUT_READING = """
DELETE FROM brew_events WHERE session_id = ? AND kind = 'hand_reading'
AND oid NOT IN (SELECT oid FROM readings WHERE session_id = brew_events.session_id)
"""
REFUSED = "SELECT 1 FROM refusals WHERE seq = ?"
FORGET_REFUSALS = "DELETE FROM refusals WHERE seq = ?"
WITHHOLD = "UPDATE corrections SET withheld = 1 WHERE seq = ?"

KEPT_IN_CORRECTION = frozenset({"ip", "beer", "source"})
"""Members of a reading that a correction by hand leaves as they are."""

KEPT_BY_WORDS = frozenset({"name", "gravity", "gravity_unit", "temp", "temp_unit"})
"""Further members that stay if the event is words alone, such as a note."""

MEASURED = ("instrument", "gravity", "gravity_unit", "temp", "temp_unit")
"""Facts of a hand reading, in the order of the last columns of `EVENTS`."""


def record(
    connection: sqlite3.Connection,
    session_id: int,
    kind: str,
    at: int,
    now: int,
    facts: Mapping[str, Any] | None = None,
) -> int | None:
    """Insert an event of the gateway, in the transaction that is open; return its id.

    None if the brew has as many events as it may have.
    """
    if connection.execute(COUNT, (session_id,)).fetchone()[0] >= EVENTS_MAX:
        return None
    return _insert(connection, BrewEvent(0, session_id, at, kind, "", "", now, now, facts or {}))


def drop_without_reading(connection: sqlite3.Connection, session_id: int) -> None:
    """Delete the hand readings of a brew whose readings were deleted just now."""
    connection.execute(WITHOUT_READING, (session_id,))


class SqliteEvents:
    """The `EventStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def of_session(self, session_id: int) -> list[BrewEvent]:
        async with self._database.reader() as reader:
            rows = await reader.run(lambda c: c.execute(OF_SESSION, {"session_id": session_id}).fetchall())
        return [_event(row) for row in rows]

    async def get(self, session_id: int, event_id: int) -> BrewEvent | None:
        async with self._database.reader() as reader:
            return await reader.run(_find, session_id, event_id)

    async def add(self, session: BrewSession, event: BrewEvent, reading: Reading | None = None) -> BrewEvent:
        def work(connection: sqlite3.Connection) -> BrewEvent:
            if connection.execute(COUNT, (session.id,)).fetchone()[0] >= EVENTS_MAX:
                raise InvalidInput(f"a brew has {EVENTS_MAX:,} events at most; delete some first")
            if reading is not None:
                imports.import_readings(connection, session, ImportContent([reading], False, {}, ()))
            return _one(connection, session.id, _insert(connection, event))

        return await self._writer.run(work, grows=True)

    async def change(
        self,
        session: BrewSession,
        event: BrewEvent,
        reading: Reading | None = None,
        *,
        send_again: bool | None = None,
    ) -> BrewEvent:
        def work(connection: sqlite3.Connection) -> tuple[BrewEvent, bool]:
            was = _one(connection, session.id, event.id)
            again = reading is not None and _correct(
                connection, session, was, reading, event.updated_at, send_again
            )
            connection.execute(UPDATE, _values(event))
            return _one(connection, session.id, event.id), again

        def entry(done: tuple[BrewEvent, bool]) -> AuditEntry | None:
            return AuditEntry("resend", f"event:{event.id}", f"of session {session.id}") if done[1] else None

        return (await self._writer.run(audited(work, entry)))[0]

    async def remove(self, session_id: int, event_id: int) -> BrewEvent:
        def work(connection: sqlite3.Connection) -> BrewEvent:
            was = _one(connection, session_id, event_id)
            stored = was.oid and edits.find(connection, bytes.fromhex(was.oid))
            if stored and stored.session_id == session_id:
                for sql in FORGET:
                    connection.execute(sql, {"seq": stored.seq, "oid": bytes.fromhex(stored.reading.oid)})
            connection.execute(DELETE, (event_id,))
            return was

        def entry(was: BrewEvent) -> AuditEntry:
            reading = f", reading {was.oid}" if was.oid else ""
            return AuditEntry("delete", f"event:{event_id}", f"{was.kind} of session {session_id}{reading}")

        return await self._writer.run(audited(work, entry))


def _correct(
    connection: sqlite3.Connection,
    session: BrewSession,
    was: BrewEvent,
    reading: Reading,
    now: int,
    send_again: bool | None,
) -> bool:
    """Replace the reading of an event under the same id; return whether it is queued to be sent once more.

    `AlreadySent`, and nothing changes, if it was sent and `send_again` does not say what to do then.
    """
    stored = edits.find(connection, bytes.fromhex(reading.oid))
    if stored is None or stored.session_id != session.id:
        return False
    kept = KEPT_IN_CORRECTION if was.kind == HAND_READING else KEPT_IN_CORRECTION | KEPT_BY_WORDS
    reading = reading._replace(extra=stored.reading.extra)
    changed = edits.changed_columns(stored, reading, kept, whole=True)
    if not changed and not send_again:
        return False
    if was.was_sent and send_again is None:
        raise AlreadySent("it was sent already: say whether it is sent again with `send_again`")
    edits.write(connection, session, stored, changed, now)
    refused = connection.execute(REFUSED, (stored.seq,)).fetchone() is not None
    if refused or (was.was_sent and send_again):
        # A new place in the queue, because its old one lies below the watermark of the target.
        connection.execute(MOVE, (next_seq(connection), stored.seq))
        connection.execute(FORGET_REFUSALS, (stored.seq,))
        return was.was_sent and bool(send_again)
    connection.execute(WITHHOLD, (stored.seq,))
    return False


def _insert(connection: sqlite3.Connection, event: BrewEvent) -> int:
    return int(connection.execute(INSERT, _values(event)).lastrowid or 0)


def _one(connection: sqlite3.Connection, session_id: int, event_id: int) -> BrewEvent:
    found = _find(connection, session_id, event_id)
    if found is None:
        raise NotFound(f"brew session {session_id} has no event {event_id}")
    return found


def _find(connection: sqlite3.Connection, session_id: int, event_id: int) -> BrewEvent | None:
    row = connection.execute(ONE, {"session_id": session_id, "id": event_id}).fetchone()
    return None if row is None else _event(row)


def _values(event: BrewEvent) -> dict[str, Any]:
    return {
        "id": event.id,
        "session_id": event.session_id,
        "at": event.at,
        "kind": event.kind,
        "text": event.text,
        "facts": json.dumps(dict(event.facts), ensure_ascii=False) if event.facts else None,
        "oid": None if event.oid is None else bytes.fromhex(event.oid),
        "author": event.author,
        "created_at": event.created_at,
        "updated_at": event.updated_at,
    }


def _event(row: Sequence[Any]) -> BrewEvent:
    *plain, facts, oid, was_sent = row[: -len(MEASURED)]
    measured = dict(zip(MEASURED, row[-len(MEASURED) :], strict=True))
    event = replace(BrewEvent(*plain), facts=json.loads(facts or "{}"), oid=oid, was_sent=bool(was_sent))
    if event.kind != HAND_READING:
        return event
    if measured["instrument"] is not None:
        event = replace(event, facts={**event.facts, **measured})
    gravity, temp = event.facts.get("gravity"), event.facts.get("temp")
    return replace(
        event,
        sg=specific_gravity(gravity, event.facts["gravity_unit"]) if gravity else None,
        celsius=celsius(temp, event.facts["temp_unit"]) if temp else None,
    )
