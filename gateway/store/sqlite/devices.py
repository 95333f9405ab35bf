"""Devices and the brew session that each is in."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.domain.device import Device, DeviceSettings, DeviceSummary
from gateway.errors import NotFound
from gateway.store.sqlite.checksum import MOVED_SQL
from gateway.store.sqlite.database import Database
from gateway.store.sqlite.rows import moved_sql, next_seq
from gateway.store.sqlite.writer import Writer

COLUMN_NAMES = (
    "id", "key", "family", "stable_id", "name", "first_seen_at", "gravity_unit", "interval_s", "session_id",
    "settings", "inferred", "rereading",
)  # fmt: skip
COLUMNS = ", ".join(f"d.{name}" for name in COLUMN_NAMES)
ALL = f"SELECT {COLUMNS} FROM devices d ORDER BY d.id"
BY_KEY = f"SELECT {COLUMNS} FROM devices d WHERE d.key = ?"
SUMMARIES = f"""
SELECT {COLUMNS}, (SELECT count(*) FROM readings WHERE device_id = d.id),
       r.created_at, coalesce(r.shown_gravity, r.gravity), r.gravity_unit,
       coalesce(r.shown_temp, r.temp), r.temp_unit
FROM devices d LEFT JOIN readings r ON r.seq =
    (SELECT seq FROM readings WHERE device_id = d.id ORDER BY created_at DESC, seq DESC LIMIT 1)
ORDER BY d.id
"""
SAVE = """
INSERT INTO devices (key, family, stable_id, name, first_seen_at, gravity_unit, interval_s, inferred)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET name = excluded.name, gravity_unit = excluded.gravity_unit,
interval_s = excluded.interval_s, inferred = excluded.inferred
"""
CONFIGURE = "UPDATE devices SET settings = ?, gravity_unit = ?, rereading = 1 WHERE id = ?"
REREAD = "UPDATE devices SET rereading = 0 WHERE id = ?"
BY_ID = f"SELECT {COLUMNS} FROM devices d WHERE d.id = ?"
ASSIGN = "UPDATE devices SET session_id = ? WHERE id = ?"
CLAIM = moved_sql(
    "device_id = :device_id AND session_id IS NULL AND created_at >= :since",
    f", session_id = :session_id, crc = {MOVED_SQL}",
)
"""New places in the queue: their old ones may lie below the session's watermark."""


class SqliteDevices:
    """The `Devices` protocol on SQLite."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def all(self) -> list[Device]:
        """Every device, by id."""
        async with self._database.reader() as reader:
            return [_device(row) for row in await reader.run(_all, ALL)]

    async def summaries(self) -> list[DeviceSummary]:
        """Every device with its last reading."""
        async with self._database.reader() as reader:
            rows = await reader.run(_all, SUMMARIES)
        width = len(COLUMN_NAMES)
        return [DeviceSummary(_device(row[:width]), *row[width:]) for row in rows]

    async def save(self, device: Device) -> Device:
        """Insert or update; returns the device as stored, with its id and session."""
        values = (
            device.key,
            device.family,
            device.stable_id,
            device.name,
            device.first_seen_at,
            device.gravity_unit,
            device.interval_s,
            json.dumps(device.inferred, ensure_ascii=False),
        )

        def work(connection: sqlite3.Connection) -> Device:
            connection.execute(SAVE, values)
            return _device(connection.execute(BY_KEY, (device.key,)).fetchone())

        return await self._writer.run(work)

    async def configure(self, device: Device) -> Device:
        """Its settings are those from now on; the device counts as being read again."""
        settings = json.dumps(device.settings.to_dict(), ensure_ascii=False)
        return await self._changed(device.id, CONFIGURE, (settings, device.gravity_unit, device.id))

    async def reread(self, device_id: int) -> Device:
        """Its readings are all understood as its settings say."""
        return await self._changed(device_id, REREAD, (device_id,))

    async def _changed(self, device_id: int, sql: str, parameters: tuple[Any, ...]) -> Device:
        def work(connection: sqlite3.Connection) -> Device:
            if connection.execute(sql, parameters).rowcount == 0:
                raise NotFound(f"no device {device_id}")
            return _device(connection.execute(BY_ID, (device_id,)).fetchone())

        return await self._writer.run(work)

    async def assign(self, device_id: int, session_id: int, claim_since: int | None) -> int:
        """Put the device into the session and claim its unassigned readings since then."""

        def work(connection: sqlite3.Connection) -> int:
            if connection.execute(ASSIGN, (session_id, device_id)).rowcount == 0:
                raise NotFound(f"no device {device_id}")
            if claim_since is None:
                return 0
            which = {"device_id": device_id, "session_id": session_id, "since": claim_since}
            return connection.execute(CLAIM, {**which, "first": next_seq(connection)}).rowcount

        return await self._writer.run(work)

    async def release(self, device_id: int) -> None:
        """Take the device out of its session."""
        await self._writer.run(lambda connection: connection.execute(ASSIGN, (None, device_id)) and None)


def _device(row: Sequence[Any]) -> Device:
    *plain, settings, inferred, rereading = row
    return replace(
        Device(*plain),
        settings=DeviceSettings.from_dict(json.loads(settings)),
        inferred={what: (value, reason) for what, (value, reason) in json.loads(inferred).items()},
        rereading=bool(rereading),
    )


def _all(connection: sqlite3.Connection, sql: str) -> list[Any]:
    return connection.execute(sql).fetchall()
