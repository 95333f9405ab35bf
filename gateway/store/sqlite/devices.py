"""Devices and the brew session that each is in."""

import sqlite3
from typing import Any

from gateway.domain.device import Device, DeviceSummary
from gateway.errors import NotFound
from gateway.store.sqlite.database import Database
from gateway.store.sqlite.readings import next_seq
from gateway.store.sqlite.writer import Writer

COLUMNS = (
    "d.id, d.key, d.family, d.stable_id, d.name, d.first_seen_at, d.gravity_unit, d.interval_s, d.session_id"
)
ALL = f"SELECT {COLUMNS} FROM devices d ORDER BY d.id"
BY_KEY = f"SELECT {COLUMNS} FROM devices d WHERE d.key = ?"
SUMMARIES = f"""
SELECT {COLUMNS}, (SELECT count(*) FROM readings WHERE device_id = d.id),
       r.created_at, r.gravity, r.gravity_unit, r.temp, r.temp_unit
FROM devices d LEFT JOIN readings r ON r.seq =
    (SELECT seq FROM readings WHERE device_id = d.id ORDER BY created_at DESC, seq DESC LIMIT 1)
ORDER BY d.id
"""
SAVE = """
INSERT INTO devices (key, family, stable_id, name, first_seen_at, gravity_unit, interval_s)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE
SET name = excluded.name, gravity_unit = excluded.gravity_unit, interval_s = excluded.interval_s
"""
ASSIGN = "UPDATE devices SET session_id = ? WHERE id = ?"
CLAIMABLE = """
SELECT seq FROM readings WHERE device_id = ? AND session_id IS NULL AND created_at >= ?
ORDER BY created_at, seq
"""
CLAIM = "UPDATE readings SET seq = ?, session_id = ? WHERE seq = ?"


class SqliteDevices:
    """The `Devices` protocol on SQLite."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def all(self) -> list[Device]:
        """Every device, by id."""
        async with self._database.reader() as reader:
            return [Device(*row) for row in await reader.run(_all, ALL)]

    async def summaries(self) -> list[DeviceSummary]:
        """Every device with its last reading."""
        async with self._database.reader() as reader:
            rows = await reader.run(_all, SUMMARIES)
        return [DeviceSummary(Device(*row[:9]), *row[9:]) for row in rows]

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
        )

        def work(connection: sqlite3.Connection) -> Device:
            connection.execute(SAVE, values)
            return Device(*connection.execute(BY_KEY, (device.key,)).fetchone())

        return await self._writer.run(work)

    async def assign(self, device_id: int, session_id: int, claim_since: int | None) -> int:
        """Put the device into the session and claim its unassigned readings since then."""

        def work(connection: sqlite3.Connection) -> int:
            if connection.execute(ASSIGN, (session_id, device_id)).rowcount == 0:
                raise NotFound(f"no device {device_id}")
            if claim_since is None:
                return 0
            claimed = connection.execute(CLAIMABLE, (device_id, claim_since)).fetchall()
            # New places in the queue: their old ones may lie below the session's watermark.
            first_seq = next_seq(connection)
            connection.executemany(
                CLAIM, [(first_seq + place, session_id, seq) for place, (seq,) in enumerate(claimed)]
            )
            return len(claimed)

        return await self._writer.run(work)

    async def release(self, device_id: int) -> None:
        """Take the device out of its session."""
        await self._writer.run(lambda connection: connection.execute(ASSIGN, (None, device_id)) and None)


def _all(connection: sqlite3.Connection, sql: str) -> list[Any]:
    return connection.execute(sql).fetchall()
