"""Devices and the brew session that each is in."""

import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from gateway.domain.audit import AuditEntry
from gateway.domain.device import Alias, Device, DeviceSettings, DeviceSummary
from gateway.errors import NotFound
from gateway.store.glance import ALONE
from gateway.store.records import DeviceSource, ImportPart
from gateway.store.sqlite import assigning, forgetting, lanes
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.rows import ADDRESS

COLUMN_NAMES = (
    "id", "key", "family", "stable_id", "name", "first_seen_at", "gravity_unit", "interval_s", "session_id",
    "settings", "inferred", "rereading",
)  # fmt: skip
ALIASES = """(
    SELECT json_group_array(json_array(m.key, m.family, m.stable_id)) FROM devices m
    WHERE m.merged_into = d.id)
"""
COLUMNS = ", ".join([*(f"d.{name}" for name in COLUMN_NAMES), ALIASES])
WIDTH = len(COLUMN_NAMES) + 1
ALL = f"SELECT {COLUMNS} FROM devices d WHERE {ALONE} ORDER BY d.id"
BY_KEY = f"""
SELECT {COLUMNS} FROM devices k JOIN devices d
ON d.id = coalesce((SELECT o.id FROM devices o WHERE o.id = k.merged_into), k.id) WHERE k.key = ?
"""
SUMMARIES = f"""
SELECT {COLUMNS}, (SELECT count(*) FROM readings WHERE device_id = d.id),
       r.created_at, coalesce(r.shown_gravity, r.gravity), r.gravity_unit,
       coalesce(r.shown_temp, r.temp), r.temp_unit, r.sg, r.celsius, r.facts, r.flags
FROM devices d LEFT JOIN readings r ON r.seq =
    (SELECT seq FROM readings WHERE device_id = d.id ORDER BY created_at DESC, seq DESC LIMIT 1)
WHERE {ALONE} ORDER BY d.id
"""
SAVE = """
INSERT INTO devices (key, family, stable_id, name, first_seen_at, gravity_unit, interval_s, inferred)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET name = excluded.name, gravity_unit = excluded.gravity_unit,
interval_s = excluded.interval_s, inferred = excluded.inferred
"""
CONFIGURE = "UPDATE devices SET settings = ?, gravity_unit = ?, rereading = 1 WHERE id = ?"
REPROCESSED = "UPDATE devices SET rereading = 0 WHERE id = ?"
RENAME = """
UPDATE devices SET key = :key, stable_id = :stable_id WHERE id = :id AND key = :before
AND NOT EXISTS (SELECT 1 FROM devices WHERE key = :key)
"""
KEEP_KEY = """
INSERT INTO devices (key, family, stable_id, name, first_seen_at, merged_into) VALUES (?, ?, ?, ?, ?, ?)
"""
PARTS = """
SELECT session_id, count(*), min(created_at), max(created_at), count(sg) FROM readings
WHERE device_id = ? GROUP BY session_id ORDER BY session_id IS NULL, session_id
"""
SOURCES_SHOWN = 50
"""Addresses of a device's readings that are listed at most."""

SOURCES_OF = 5_000
"""Readings of a device whose addresses are looked at, the newest ones: 50 days of one each 15 minutes."""

SOURCES = f"""
SELECT {ADDRESS} AS address, count(*), min(received_at) / 1000, max(received_at) / 1000 FROM readings
WHERE raw IS NOT NULL
  AND seq IN (SELECT seq FROM readings WHERE device_id = :device ORDER BY created_at DESC LIMIT :most)
GROUP BY address ORDER BY count(*) DESC LIMIT {SOURCES_SHOWN}
"""
FIRST_SOURCES = f"""
SELECT d.id, (SELECT {ADDRESS} FROM readings WHERE device_id = d.id ORDER BY created_at, seq LIMIT 1)
FROM devices d WHERE {ALONE}
"""
OVERLAP = """
SELECT count(*) FROM readings r WHERE r.device_id = :other AND EXISTS (
    SELECT 1 FROM readings o WHERE o.device_id = :into
    AND o.created_at BETWEEN r.created_at - :seconds AND r.created_at + :seconds)
"""
MERGE = (
    "UPDATE readings SET device_id = :into WHERE device_id = :other",
    """
    UPDATE devices SET settings = :settings, rereading = max(devices.rereading, o.rereading, :rereading),
        session_id = coalesce(devices.session_id, o.session_id),
        first_seen_at = min(devices.first_seen_at, o.first_seen_at),
        gravity_unit = coalesce(devices.gravity_unit, o.gravity_unit),
        interval_s = coalesce(devices.interval_s, o.interval_s),
        inferred = json_patch(o.inferred, devices.inferred)
    FROM (SELECT * FROM devices WHERE id = :other) o WHERE devices.id = :into
    """,
    "UPDATE devices SET merged_into = :into WHERE merged_into = :other",
    "UPDATE devices SET merged_into = :into, session_id = NULL, rereading = 0 WHERE id = :other",
)
"""Readings keep their places in the queue and their brew sessions, and so their checksums."""

BY_ID = f"SELECT {COLUMNS} FROM devices d WHERE d.id = ?"


class SqliteDevices:
    """The `DeviceStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def all(self) -> list[Device]:
        async with self._database.reader() as reader:
            return [_device(row) for row in await reader.run(_all, ALL)]

    async def summaries(self) -> list[DeviceSummary]:
        async with self._database.reader() as reader:
            rows = await reader.run(_all, SUMMARIES)
        return [_summary(*row) for row in rows]

    async def save(self, device: Device) -> Device:
        return await self._writer.run(lambda connection: save(connection, device))

    async def configure(self, device: Device) -> Device:
        settings = json.dumps(device.settings.to_dict(), ensure_ascii=False)

        def work(connection: sqlite3.Connection) -> tuple[Device, Device]:
            before = _one(connection, device.id)
            connection.execute(CONFIGURE, (settings, device.gravity_unit, device.id))
            return before, _one(connection, device.id)

        return (await self._writer.run(audited(work, lambda pair: _settings_entry(*pair))))[1]

    async def mark_reprocessed(self, device_id: int) -> Device:
        def work(connection: sqlite3.Connection) -> Device:
            connection.execute(REPROCESSED, (device_id,))
            return _one(connection, device_id)

        return await self._writer.run(work)

    async def rename(self, device: Device, key: str, stable_id: str, *, keep: bool = False) -> Device | None:
        kept = device.key, device.family, device.stable_id, device.name, device.first_seen_at, device.id
        which = {"id": device.id, "before": device.key, "key": key, "stable_id": stable_id}

        def work(connection: sqlite3.Connection) -> Device | None:
            if connection.execute(RENAME, which).rowcount == 0:
                return None
            if keep:
                connection.execute(KEEP_KEY, kept)
            return _device(connection.execute(BY_ID, (device.id,)).fetchone())

        return await self._writer.run(work)

    async def parts(self, device_id: int) -> list[ImportPart]:
        async with self._database.reader() as reader:
            return [ImportPart(*row) for row in await reader.run(_all, PARTS, (device_id,))]

    async def sources(self, device_id: int) -> list[DeviceSource]:
        async with self._database.reader() as reader:
            which = {"device": device_id, "most": SOURCES_OF}
            found = [DeviceSource(*row) for row in await reader.run(_all, SOURCES, which)]
        return sorted(found, key=lambda source: source.first_at)

    async def first_sources(self) -> dict[int, str]:
        async with self._database.reader() as reader:
            return {device: address or "" for device, address in await reader.run(_all, FIRST_SOURCES)}

    async def overlap(self, into: int, other: int, seconds: int) -> int:
        which = {"into": into, "other": other, "seconds": seconds}
        async with self._database.reader() as reader:
            return int((await reader.run(_all, OVERLAP, which))[0][0])

    async def merge(self, into: Device, other: Device) -> Device:
        settings = json.dumps(into.settings.to_dict(), ensure_ascii=False)
        which = {"into": into.id, "other": other.id, "settings": settings, "rereading": into.reprocessing}

        def work(connection: sqlite3.Connection) -> Device:
            left = _one(connection, other.id).session_id
            # Else the brew keeps the device, under its other key.
            if left is not None and _one(connection, into.id).session_id not in {None, left}:
                assigning.move_out(connection, other.id, int(time.time()))
            for statement in (*lanes.MERGED, *MERGE):
                connection.execute(statement, which)
            return _one(connection, into.id)

        entry = AuditEntry("merge", f"device:{into.id}", f"device {other.id} ({other.key}) is a part of it")
        return await self._writer.run(audited(work, entry))

    async def assign(
        self, device_id: int, session_id: int, claim_since: int | None, now: int | None = None
    ) -> int:
        at = int(time.time()) if now is None else now

        def work(connection: sqlite3.Connection) -> int:
            return assigning.move_in(connection, device_id, session_id, claim_since, at).readings

        entry = partial(assigning.assigned_entry, device_id, session_id)
        return await self._writer.run(audited(work, entry))

    async def get(self, device_id: int) -> Device | None:
        async with self._database.reader() as reader:
            rows = await reader.run(_all, BY_ID, (device_id,))
        return _device(rows[0]) if rows else None

    async def forget(
        self, device_id: int, now: int, *, with_readings: bool, unless_since: int | None = None
    ) -> tuple[int, int]:
        def work(connection: sqlite3.Connection) -> tuple[int, int, str]:
            return forgetting.forget(
                connection, device_id, now, with_readings=with_readings, unless_since=unless_since
            )

        entry = partial(forgetting.forgotten_entry, device_id, with_readings=with_readings)
        readings, unassigned, _ = await self._writer.run(audited(work, entry))
        return readings, unassigned

    async def forgotten_with_readings(self) -> list[int]:
        async with self._database.reader() as reader:
            return [device_id for (device_id,) in await reader.run(_all, forgetting.GOING)]

    async def delete_readings(self, device_id: int, limit: int) -> int:
        return await self._writer.run(partial(forgetting.delete_readings, device_id=device_id, limit=limit))

    async def release(self, device_id: int, now: int | None = None) -> None:
        at = int(time.time()) if now is None else now

        def work(connection: sqlite3.Connection) -> None:
            with suppress(NotFound):
                assigning.move_out(connection, device_id, at)

        await self._writer.run(audited(work, AuditEntry("release", f"device:{device_id}")))


def save(connection: sqlite3.Connection, device: Device) -> Device:
    """Insert or update a device, in the transaction that is open; return it as stored."""
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
    connection.execute(SAVE, values)
    return _device(connection.execute(BY_KEY, (device.key,)).fetchone())


def _one(connection: sqlite3.Connection, device_id: int) -> Device:
    row = connection.execute(BY_ID, (device_id,)).fetchone()
    if row is None:
        raise NotFound(f"no device {device_id}")
    return _device(row)


def _settings_entry(before: Device, after: Device) -> AuditEntry | None:
    """Return the row for new settings: the verb follows from what differs; None if nothing does."""
    old, new = before.settings.to_dict(), after.settings.to_dict()
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if not changed:
        return None
    verb = "set"
    if "excluded" in changed:
        verb = "exclude" if len(new.get("excluded", ())) >= len(old.get("excluded", ())) else "include"
    elif "calibration" in changed:
        verb = "calibrate"
    elif changed == ["source"]:
        verb = "bind" if new.get("source") else "unbind"
    detail = "; ".join(f"{name}: {_shown(old.get(name))} -> {_shown(new.get(name))}" for name in changed)
    return AuditEntry(verb, f"device:{after.id}", detail)


def _shown(value: Any) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _device(row: Sequence[Any]) -> Device:
    *plain, settings, inferred, rereading, aliases = row
    return replace(
        Device(*plain),
        settings=DeviceSettings.from_dict(json.loads(settings)),
        inferred={what: (value, reason) for what, (value, reason) in json.loads(inferred).items()},
        reprocessing=bool(rereading),
        aliases=tuple(Alias(*alias) for alias in json.loads(aliases)),
    )


def _summary(*row: Any) -> DeviceSummary:
    readings, at, gravity, gravity_unit, temp, temp_unit, sg, celsius, facts, flags = row[WIDTH:]
    return DeviceSummary(
        _device(row[:WIDTH]), readings, at, gravity, gravity_unit, temp, temp_unit, sg, celsius,
        json.loads(facts or "{}"), tuple(json.loads(flags or "[]")),
    )  # fmt: skip


def _all(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> list[Any]:
    return connection.execute(sql, parameters).fetchall()
