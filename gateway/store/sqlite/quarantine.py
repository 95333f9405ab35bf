"""Quarantine: payloads that no driver understood or a target refused; bounded, the oldest go first."""

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any

from gateway.domain.quarantined import Quarantined, QuarantineState
from gateway.store.records import BootTime
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.retiming import note_payload
from gateway.store.sqlite.rows import moved_sql, next_seq

QUARANTINE_ROWS = 10_000
"""Payloads kept at most."""

QUARANTINE_BYTES = 64 * 1024 * 1024
"""Bytes of payloads kept at most."""

COLUMNS = ", ".join(field.name for field in fields(Quarantined)[:-1])
INSERT = f"INSERT INTO quarantine ({COLUMNS}) VALUES ({', '.join('?' * (len(fields(Quarantined)) - 1))})"
KEPT = (
    "SELECT (SELECT count(*) FROM quarantine), (SELECT value FROM counters WHERE name = 'quarantine_bytes')"
)
REMOVE_OLDEST = "DELETE FROM quarantine WHERE id = (SELECT min(id) FROM quarantine)"
COUNT_PUSHED_OUT = "UPDATE counters SET value = value + 1 WHERE name = 'quarantine_pushed_out'"
STATE = f"{KEPT}, (SELECT value FROM counters WHERE name = 'quarantine_pushed_out')"
NEWEST = f"SELECT {COLUMNS}, id FROM (SELECT * FROM quarantine ORDER BY id DESC LIMIT ?) ORDER BY id"
SOME = f"SELECT {COLUMNS}, id FROM quarantine WHERE id > ? ORDER BY id LIMIT ?"
ONE = f"SELECT {COLUMNS}, id FROM quarantine WHERE id = ?"
REMOVE = "DELETE FROM quarantine WHERE id = ?"
SEND_AGAIN = moved_sql("oid = :oid AND session_id IS NOT NULL")


class SqliteQuarantine:
    """The `QuarantineStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def add(self, item: Quarantined, arrival_time: BootTime | None = None) -> None:
        def work(connection: sqlite3.Connection) -> None:
            if arrival_time is not None:
                note_payload(connection, item.received_at, arrival_time)
            keep(connection, item)

        await self._writer.run(work, grows=True)

    async def count(self) -> int:
        return (await self.state()).items

    async def state(self) -> QuarantineState:
        [(items, size, pushed_out)] = await self._rows(STATE, ())
        return QuarantineState(items, size, pushed_out, QUARANTINE_ROWS, QUARANTINE_BYTES)

    async def newest(self, limit: int) -> list[Quarantined]:
        return [Quarantined(*row) for row in await self._rows(NEWEST, (limit,))]

    async def after(self, item_id: int, limit: int) -> list[Quarantined]:
        return [Quarantined(*row) for row in await self._rows(SOME, (item_id, limit))]

    async def get(self, item_id: int) -> Quarantined | None:
        rows = await self._rows(ONE, (item_id,))
        return Quarantined(*rows[0]) if rows else None

    async def remove(self, item_ids: Sequence[int]) -> None:
        rows = [(item_id,) for item_id in item_ids]
        await self._writer.run(lambda connection: connection.executemany(REMOVE, rows) and None)

    async def send_again(self, item_id: int, oid: str) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            which = {"oid": bytes.fromhex(oid), "first": next_seq(connection)}
            found = connection.execute(SEND_AGAIN, which).rowcount > 0
            if found:
                connection.execute(REMOVE, (item_id,))
            return found

        return await self._writer.run(work)

    async def _rows(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        async with self._database.reader() as reader:
            return await reader.run(lambda connection: connection.execute(sql, parameters).fetchall())


def keep(connection: sqlite3.Connection, item: Quarantined) -> None:
    """Insert a payload, in the transaction that is open; beyond the bounds the oldest payloads go."""
    connection.execute(INSERT, astuple(item)[:-1])
    while True:
        rows, size = connection.execute(KEPT).fetchone()
        if rows <= QUARANTINE_ROWS and (size <= QUARANTINE_BYTES or rows == 1):
            return
        connection.execute(REMOVE_OLDEST)
        connection.execute(COUNT_PUSHED_OUT)
