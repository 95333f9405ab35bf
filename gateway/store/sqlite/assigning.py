"""Devices go into brews and out of them, in the transaction that is open, each with its events."""

import sqlite3
from typing import NamedTuple

from gateway.domain.audit import AuditEntry
from gateway.errors import NotFound
from gateway.store.sqlite import events
from gateway.store.sqlite.engine.checksum import MOVED_SQL
from gateway.store.sqlite.rows import moved_sql, next_seq

DEVICE = "SELECT session_id, coalesce(json_extract(settings, '$.label'), name) FROM devices WHERE id = ?"
INSIDE = "SELECT id FROM devices WHERE session_id = ? ORDER BY id"
ASSIGN = "UPDATE devices SET session_id = ? WHERE id = ?"
FREE = "device_id = :device_id AND session_id IS NULL AND created_at >= :since"
FREE_OR_BEFORE = """
device_id = :device_id AND (session_id IS NULL OR session_id = :before) AND created_at >= :since
"""
INTO_SESSION = f", session_id = :session_id, crc = {MOVED_SQL}"
CLAIM, CLAIM_ALSO = moved_sql(FREE, INTO_SESSION), moved_sql(FREE_OR_BEFORE, INTO_SESSION)
"""Gives the readings new places in the queue: their old ones may lie below the brew's watermark."""

FIRST = f"SELECT min(created_at) FROM readings WHERE {FREE}"
FIRST_ALSO = f"SELECT min(created_at) FROM readings WHERE {FREE_OR_BEFORE}"


class Moved(NamedTuple):
    """A count of readings that came along with a device, and the time of the first one (Unix seconds)."""

    readings: int
    first_at: int | None


def move_in(
    connection: sqlite3.Connection,
    device_id: int,
    session_id: int,
    since: int | None,
    now: int,
    *,
    from_before: bool = False,
) -> Moved:
    """Put a device into a brew, with its readings since `since` (Unix seconds) that are in no brew.

    With `from_before`, readings since then in the brew that the device leaves come along, too.
    """
    before, name = _device(connection, device_id)
    moved = Moved(0, None)
    if since is not None:
        which = {"device_id": device_id, "session_id": session_id, "since": since, "before": before}
        ((first_at,),) = connection.execute(FIRST_ALSO if from_before else FIRST, which)
        place = {"first": next_seq(connection)}
        claim = connection.execute(CLAIM_ALSO if from_before else CLAIM, {**which, **place})
        moved = Moved(claim.rowcount, first_at)
    connection.execute(ASSIGN, (session_id, device_id))
    if before != session_id:
        at = now if moved.first_at is None else min(now, moved.first_at)
        facts = {"device_id": device_id, "name": name}
        if before is not None:
            events.record(connection, before, "device_out", at if from_before else now, now, facts)
        events.record(connection, session_id, "device_in", at, now, {**facts, "readings": moved.readings})
    return moved


def move_out(connection: sqlite3.Connection, device_id: int, now: int) -> int | None:
    """Take a device out of its brew, if it is in one; its readings stay. Return the id of the event."""
    before, name = _device(connection, device_id)
    if before is None:
        return None
    connection.execute(ASSIGN, (None, device_id))
    return events.record(connection, before, "device_out", now, now, {"device_id": device_id, "name": name})


def put_back(connection: sqlite3.Connection, device_id: int, session_id: int, since: int) -> None:
    """Put a device back into its brew with its readings since then, as if it had never left: no event."""
    which = {"device_id": device_id, "session_id": session_id, "since": since}
    connection.execute(CLAIM, {**which, "first": next_seq(connection)})
    connection.execute(ASSIGN, (session_id, device_id))


def inside(connection: sqlite3.Connection, session_id: int) -> list[int]:
    """Return the ids of the devices in a brew."""
    return [device_id for (device_id,) in connection.execute(INSIDE, (session_id,))]


def assigned_entry(device_id: int, session_id: int, claimed: int) -> AuditEntry:
    """Return the row of the audit log for a device that was put into a brew."""
    return AuditEntry("assign", f"device:{device_id}", f"to session {session_id}, with {claimed} readings")


def _device(connection: sqlite3.Connection, device_id: int) -> tuple[int | None, str]:
    """Return the brew that a device is in, and its title; `NotFound` if there is no such device."""
    found: tuple[int | None, str] | None = connection.execute(DEVICE, (device_id,)).fetchone()
    if found is None:
        raise NotFound(f"no device {device_id}")
    return found
