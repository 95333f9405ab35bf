"""The inbox: payloads that wait for the owner's word. It is no ring: what does not fit is refused."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.domain.audit import AuditEntry, key_actor
from gateway.domain.inbox import (
    REFUSED_MAX,
    REFUSED_S,
    InboxState,
    RefusedName,
    WaitingName,
    WaitingPayload,
    WaitReason,
)
from gateway.domain.key import KEY_PREFIX
from gateway.domain.payload import Payload
from gateway.domain.times import HALF_MS
from gateway.store.records import BootTime
from gateway.store.sqlite.audit import audited, note
from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.retiming import note_payload

INBOX_NAMES = 200
"""Names that may wait at once, of all sources."""

INBOX_NAMES_OF_SOURCE = 20
"""Names that may wait at once, of one source."""

INBOX_READINGS = 5_000
"""Readings that one name may have in the inbox."""

INBOX_BYTES = 256 * 1024 * 1024
"""Bytes of the inbox at most; less where the quota is small."""

INBOX_SHARE = 4
"""The inbox has at most one part of so many of the quota, and one source at most one part of the inbox."""

ROW_BYTES = 200
"""Bytes that a payload takes beside its body and its query, in round figures."""

NAME_COLUMNS = """
device_key, source, reason, family, stable_id, name, readings, bytes, first_at, last_at, accepted, id
"""
NAMES = f"SELECT {NAME_COLUMNS} FROM inbox_names ORDER BY first_at, id"
KEPT = """
SELECT count(*), coalesce(sum(bytes), 0), count(*) FILTER (WHERE source = :source),
       coalesce(sum(bytes) FILTER (WHERE source = :source), 0)
FROM inbox_names
"""
READINGS_OF = """
SELECT readings FROM inbox_names WHERE device_key = :device_key AND source = :source AND reason = :reason
"""
COUNT_IN = """
INSERT INTO inbox_names
    (device_key, source, reason, family, stable_id, name, readings, bytes, first_at, last_at, accepted)
VALUES (:device_key, :source, :reason, :family, :stable_id, :name, :readings, :bytes, :at, :at, :accepted)
ON CONFLICT (device_key, source, reason) DO UPDATE SET name = excluded.name,
    readings = readings + excluded.readings, bytes = bytes + excluded.bytes,
    first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at),
    accepted = excluded.accepted
RETURNING id
"""
PAYLOAD_COLUMNS = (
    "name_id", "received_at", "readings", "channel", "source", "driver", "hint", "label", "query", "token",
    "delivery", "redelivered", "retained", "chosen", "key_name", "body",
)  # fmt: skip
INSERT = f"""
INSERT INTO inbox ({", ".join(PAYLOAD_COLUMNS)}) VALUES ({", ".join("?" * len(PAYLOAD_COLUMNS))})
"""
PAGE = f"""
SELECT id, {", ".join(PAYLOAD_COLUMNS)} FROM inbox
WHERE name_id IN (SELECT value FROM json_each(:names)) AND (received_at, id) > (:at, :id)
ORDER BY received_at, id LIMIT :limit
"""
REMOVE = "DELETE FROM inbox WHERE id = ? RETURNING name_id, readings, length(body) + length(query)"
COUNT_OUT = """
UPDATE inbox_names SET readings = readings - :readings, bytes = bytes - :bytes,
    first_at = coalesce((SELECT min(received_at) FROM inbox WHERE name_id = :id), first_at)
WHERE id = :id
"""
REMOVE_EMPTY = """
DELETE FROM inbox_names WHERE id = :id AND NOT EXISTS (SELECT 1 FROM inbox WHERE name_id = :id)
"""
ACCEPT = "UPDATE inbox_names SET accepted = 1 WHERE id = ?"
NAME = f"SELECT {NAME_COLUMNS} FROM inbox_names WHERE id = ?"
REFUSE = """
INSERT INTO refused_names (device_key, source, reason, name, refused_at)
VALUES (:device_key, :source, :reason, :name, :now)
ON CONFLICT (device_key, source, reason) DO UPDATE SET name = excluded.name, refused_at = excluded.refused_at
"""
DROP = ("DELETE FROM inbox WHERE name_id = ?", "DELETE FROM inbox_names WHERE id = ?")
EXPIRE = "DELETE FROM refused_names WHERE refused_at < ?"
REFUSED_BOUND = f"""
DELETE FROM refused_names WHERE id NOT IN
    (SELECT id FROM refused_names ORDER BY refused_at DESC, id DESC LIMIT {REFUSED_MAX})
"""
REFUSED = "SELECT device_key, source, reason, name, refused_at, id FROM refused_names ORDER BY id"
ALLOW = "DELETE FROM refused_names WHERE id = ? RETURNING device_key"
STATE = "SELECT count(*), coalesce(sum(readings), 0), coalesce(sum(bytes), 0) FROM inbox_names"


class SqliteInbox:
    """The `InboxStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def add(
        self,
        payload: Payload,
        waiting: Sequence[WaitingName],
        arrival_time: BootTime | None = None,
    ) -> list[WaitingName]:
        limit = self._size_max()

        def work(connection: sqlite3.Connection) -> list[WaitingName]:
            left = [name for name in waiting if not _keep(connection, payload, name, limit)]
            if arrival_time is not None and len(left) < len(waiting):
                note_payload(connection, int(payload.received_at * 1000), arrival_time)
            return left

        return await self._writer.run(Apart(work), grows=True)

    async def names(self) -> list[WaitingName]:
        return [_name(row) for row in await self._rows(NAMES)]

    async def page(self, name_ids: Sequence[int], after: tuple[int, int], limit: int) -> list[WaitingPayload]:
        names = json.dumps([*name_ids])
        rows = await self._rows(PAGE, {"names": names, "at": after[0], "id": after[1], "limit": limit})
        return [_payload(row) for row in rows]

    async def remove(self, item_ids: Sequence[int]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for item_id in item_ids:
                for name_id, readings, size in connection.execute(REMOVE, (item_id,)).fetchall():
                    which = {"id": name_id, "readings": readings, "bytes": size + ROW_BYTES}
                    connection.execute(COUNT_OUT, which)
                    connection.execute(REMOVE_EMPTY, which)

        await self._writer.run(work)

    async def accept(self, name_ids: Sequence[int]) -> None:
        def work(connection: sqlite3.Connection) -> list[WaitingName]:
            connection.executemany(ACCEPT, [(name_id,) for name_id in name_ids])
            rows = [connection.execute(NAME, (name_id,)).fetchone() for name_id in name_ids]
            return [_name(row) for row in rows if row is not None]

        await self._writer.run(audited(work, lambda names: _entry("accept", *names)))

    async def refuse(self, name_id: int, now: int) -> WaitingName | None:
        def work(connection: sqlite3.Connection) -> WaitingName | None:
            row = connection.execute(NAME, (name_id,)).fetchone()
            if row is None:
                return None
            name = _name(row)
            which = {
                "device_key": name.device_key,
                # A new device is refused wherever it is; of a device that is there only this sender is.
                "source": "" if name.reason is WaitReason.NEW else name.source,
                "reason": name.reason.value,
                "name": name.name,
                "now": now,
            }
            connection.execute(EXPIRE, (now - REFUSED_S,))
            connection.execute(REFUSE, which)
            connection.execute(REFUSED_BOUND)
            for sql in DROP:
                connection.execute(sql, (name_id,))
            return name

        return await self._writer.run(audited(work, lambda name: _entry("refuse", name) if name else None))

    async def refused(self) -> list[RefusedName]:
        return [
            RefusedName(key, source, WaitReason(reason), *rest)
            for key, source, reason, *rest in await self._rows(REFUSED)
        ]

    async def allow(self, refused_id: int) -> bool:
        def work(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(ALLOW, (refused_id,)).fetchone()
            return None if row is None else str(row[0])

        def entry(key: str | None) -> AuditEntry | None:
            return None if key is None else AuditEntry("take refusal back", f"inbox:{key}")

        return await self._writer.run(audited(work, entry)) is not None

    async def state(self) -> InboxState:
        [(names, readings, size)] = await self._rows(STATE)
        return InboxState(names, readings, size, INBOX_NAMES, self._size_max())

    def _size_max(self) -> int:
        return min(INBOX_BYTES, self._database.room.quota_bytes // INBOX_SHARE)

    async def _rows(self, sql: str, parameters: Any = ()) -> list[Any]:
        async with self._database.reader() as reader:
            return await reader.run(lambda connection: connection.execute(sql, parameters).fetchall())


def _keep(connection: sqlite3.Connection, payload: Payload, name: WaitingName, limit: int) -> bool:
    """Keep a payload for one name, in the transaction that is open; return False if it does not fit."""
    which: dict[str, Any] = {
        "device_key": name.device_key,
        "source": name.source,
        "reason": name.reason.value,
        "family": name.family,
        "stable_id": name.stable_id,
        "name": name.name,
        "readings": name.readings,
        "bytes": len(payload.body) + len(payload.query) + ROW_BYTES,
        "at": int(payload.received_at * 1000),
        # What comes behind readings that are being accepted shares their lot, also after a restart.
        "accepted": name.reason is WaitReason.BEHIND,
    }
    names, size, names_of_source, size_of_source = connection.execute(KEPT, which).fetchone()
    row = connection.execute(READINGS_OF, which).fetchone()
    if row is None and (names >= INBOX_NAMES or names_of_source >= INBOX_NAMES_OF_SOURCE):
        return False
    if name.readings + (row[0] if row else 0) > INBOX_READINGS:
        return False
    if size + which["bytes"] > limit or size_of_source + which["bytes"] > limit // INBOX_SHARE:
        return False
    if row is None and name.reason is WaitReason.OTHER_KEY and payload.key is not None:
        # Once for a name, not for each reading: a device with the wrong key in it reports for months.
        entry = AuditEntry("key of another device", f"key:{payload.key.name}", f"for {name.device_key}")
        note(connection, entry, key_actor(payload.key.name, payload.key.account_id, payload.source))
    [(name_id,)] = connection.execute(COUNT_IN, which).fetchall()
    values = (
        name_id,
        which["at"],
        name.readings,
        payload.channel,
        payload.source,
        payload.driver,
        payload.hint,
        payload.label,
        payload.query,
        # Where a device calls one of our keys its own, the key is left out: keys are never stored.
        "" if payload.token.startswith(KEY_PREFIX) else payload.token,
        payload.delivery,
        payload.redelivered,
        payload.retained,
        payload.chosen,
        payload.key.name if payload.key else "",
        payload.body,
    )
    connection.execute(INSERT, values)
    return True


def _entry(verb: str, *names: WaitingName) -> AuditEntry | None:
    if not names:
        return None
    readings = sum(name.readings for name in names)
    senders = ", ".join(f"{name.reason} from {name.source or 'a broker'}" for name in names)
    return AuditEntry(verb, f"inbox:{names[0].device_key}", f"{readings} readings, {senders}")


def _name(row: Sequence[Any]) -> WaitingName:
    key, source, reason, *rest = row
    name = WaitingName(key, source, WaitReason(reason), *rest)
    return replace(name, accepted=bool(name.accepted))


def _payload(row: Sequence[Any]) -> WaitingPayload:
    item_id, *values = row
    found = dict(zip(PAYLOAD_COLUMNS, values, strict=True))
    chosen = found["chosen"]
    payload = Payload(
        body=found["body"],
        received_at=(found["received_at"] + HALF_MS) / 1000,
        channel=found["channel"],
        driver=found["driver"],
        source=found["source"],
        query=found["query"],
        label=found["label"],
        delivery=found["delivery"],
        redelivered=bool(found["redelivered"]),
        hint=found["hint"],
        token=found["token"],
        retained=bool(found["retained"]),
        chosen=None if chosen is None else bool(chosen),
    )
    return WaitingPayload(payload, found["readings"], found["key_name"], item_id)
