"""Forget devices: their rows go, or stay unseen while readings refer to them."""

import sqlite3
from typing import Any

from gateway.domain.audit import AuditEntry
from gateway.errors import NameTaken, NotFound
from gateway.store.sqlite import assigning, lanes
from gateway.store.sqlite.rows import FORGET

IS_THERE = "SELECT key, first_seen_at FROM devices WHERE id = ? AND forgotten_at IS NULL"
LAST_SEEN = "SELECT max(created_at) FROM readings WHERE device_id = ?"
COUNTS = "SELECT count(*), count(*) FILTER (WHERE session_id IS NULL) FROM readings WHERE device_id = ?"
FORGET_DEVICE = (
    lanes.FORGET_DEVICE,
    "DELETE FROM devices WHERE merged_into = :id",
    # Another device may get its id one day.
    "DELETE FROM alarm_settings WHERE scope = 'device' AND subject = CAST(:id AS TEXT)",
    # The readings keep their device, and with it their bytes, their places in the queue and their checksums.
    """
    UPDATE devices SET key = 'forgotten:' || id, forgotten_at = :now, readings_go = :readings_go,
        settings = '{}', inferred = '{}', session_id = NULL, gravity_unit = NULL, rereading = 0 WHERE id = :id
    """,
    """
    DELETE FROM devices WHERE forgotten_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM readings WHERE device_id = devices.id)
    """,
    *lanes.TIDY,
)
TO_DELETE = "SELECT seq, oid FROM readings WHERE device_id = ? LIMIT ?"
GOING = "SELECT id FROM devices WHERE readings_go ORDER BY id"
IS_GOING = "SELECT 1 FROM devices WHERE id = ? AND readings_go"
DELETE_DEVICE = "DELETE FROM devices WHERE id = ?"


def forget(
    connection: sqlite3.Connection, device_id: int, now: int, *, with_readings: bool, unless_since: int | None
) -> tuple[int, int, str]:
    """Forget a device, in the transaction that is open; see `DeviceStore.forget`. Return its key as well."""
    row = connection.execute(IS_THERE, (device_id,)).fetchone()
    if row is None:
        raise NotFound(f"no device {device_id}")
    key, first_seen_at = row
    if unless_since is not None:
        ((last_seen_at,),) = connection.execute(LAST_SEEN, (device_id,))
        if max(first_seen_at, last_seen_at or 0) >= unless_since:
            raise NameTaken(f"device {device_id} has reported since")
    readings, unassigned = connection.execute(COUNTS, (device_id,)).fetchone()
    assigning.move_out(connection, device_id, now)
    which: dict[str, Any] = {"id": device_id, "now": now, "readings_go": with_readings}
    for sql in FORGET_DEVICE:
        connection.execute(sql, which)
    return readings, unassigned, key


def forgotten_entry(device_id: int, found: tuple[int, int, str], *, with_readings: bool) -> AuditEntry:
    """Return the row of the audit log for a forgotten device."""
    readings, _, key = found
    become = "are deleted" if with_readings else "stay"
    return AuditEntry("forget", f"device:{device_id}", f"{key}; {readings} readings {become}")


def delete_readings(connection: sqlite3.Connection, device_id: int, limit: int) -> int:
    """Delete readings of a forgotten device, in the transaction that is open; at the end the device, too."""
    if connection.execute(IS_GOING, (device_id,)).fetchone() is None:
        return 0
    rows = [
        {"seq": seq, "oid": oid} for seq, oid in connection.execute(TO_DELETE, (device_id, limit)).fetchall()
    ]
    for sql in FORGET:
        connection.executemany(sql, rows)
    if len(rows) < limit:
        connection.execute(DELETE_DEVICE, (device_id,))
        for sql in lanes.TIDY:
            connection.execute(sql)
    return len(rows)
