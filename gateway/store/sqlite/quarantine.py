"""Quarantine: payloads that no driver understood or a target refused; bounded, with a share for each source.

The rule keeps one promise: a payload that a driver could read, and that was answered with a yes, is a reading
or is still here. So a readable payload never gives way, and a payload that would need its place gets no yes.

1. Quarantine has `QUARANTINE_ROWS` and `QUARANTINE_BYTES`. One source may hold a quarter of each.
2. Beyond its quarter a source gives up its own oldest unreadable payloads. If it has none: `ShareUsedUp`.
3. If quarantine is full, the oldest unreadable payload of the source that holds most goes, if that source
   holds more than the newcomer's. Else the newcomer's source gives up its own, as in 2. Else: `ShareUsedUp`.
4. Payloads of our own (readings that a target refused, damaged readings) belong to no source: their share
   is NULL, and no stranger pushes them out. They always fit: unreadable payloads of the source that holds
   most go first, then the oldest refused reading, a copy of a stored one, then the oldest of our own.
5. A payload is unreadable only if all drivers say so. Where a driver failed by a mistake of ours, or the
   store refused the reading, the payload counts as readable.

`ShareUsedUp` is raised inside the transaction: nothing has gone then.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any

from gateway.domain.quarantined import Quarantined, QuarantineState
from gateway.errors import ShareUsedUp
from gateway.network import source_of
from gateway.store.records import BootTime
from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.retiming import note_payload
from gateway.store.sqlite.rows import moved_sql, next_seq

QUARANTINE_ROWS = 10_000
"""Payloads kept at most."""

QUARANTINE_BYTES = 64 * 1024 * 1024
"""Bytes of payloads kept at most."""

SHARE = 4
"""One source may hold this part of both: a quarter."""

COLUMNS = ", ".join(field.name for field in fields(Quarantined)[:-1])
INSERT = f"INSERT INTO quarantine ({COLUMNS}, share) VALUES ({', '.join('?' * len(fields(Quarantined)))})"
KEPT = (
    "SELECT (SELECT count(*) FROM quarantine), (SELECT value FROM counters WHERE name = 'quarantine_bytes')"
)
HELD = "SELECT count(*), coalesce(sum(size), 0) FROM quarantine WHERE share = ?"
GREEDIEST = """
SELECT share FROM quarantine WHERE share IS NOT NULL
GROUP BY share HAVING {amount} > ? AND min(readable) = 0 ORDER BY {amount} DESC LIMIT 1
"""
BY_ROWS, BY_BYTES = GREEDIEST.format(amount="count(*)"), GREEDIEST.format(amount="sum(size)")
UNREADABLE = "SELECT id, size FROM quarantine WHERE share = ? AND readable = 0 ORDER BY id LIMIT 1"
OWN = """
SELECT id, size FROM quarantine WHERE share IS NULL ORDER BY channel NOT LIKE 'forward %', id LIMIT 1
"""
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

        await self._writer.run(Apart(work), grows=True)

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
    """Insert a payload of a source, in the transaction that is open; `ShareUsedUp` if it has no room."""
    source, size = source_of(item.source), len(item.body)
    rows, held = connection.execute(HELD, (source,)).fetchone()
    while rows + 1 > QUARANTINE_ROWS // SHARE or held + size > QUARANTINE_BYTES // SHARE:
        gone = _push_out(connection, UNREADABLE, source)
        if gone is None:
            raise ShareUsedUp(f"{source or 'the sender'} has used up its share of quarantine")
        rows, held = rows - 1, held - gone
    while (greediest := _beyond(connection, size)) is not None:
        found = connection.execute(greediest, (rows if greediest is BY_ROWS else held,)).fetchone()
        loser = source if found is None else found[0]
        gone = _push_out(connection, UNREADABLE, loser)
        if gone is None:
            raise ShareUsedUp("quarantine is full of payloads that can be read")
        if loser == source:
            rows, held = rows - 1, held - gone
    connection.execute(INSERT, (*astuple(item)[:-1], source))


def keep_own(connection: sqlite3.Connection, item: Quarantined) -> None:
    """Insert a payload that is kept for a reason of our own, in the transaction that is open."""
    while (greediest := _beyond(connection, len(item.body))) is not None:
        found = connection.execute(greediest, (0,)).fetchone()
        gone = _push_out(connection, OWN) if found is None else _push_out(connection, UNREADABLE, found[0])
        if gone is None:
            break  # all others can be read: one too many does less harm than one too few
    connection.execute(INSERT, (*astuple(item)[:-1], None))


def _beyond(connection: sqlite3.Connection, size: int) -> str | None:
    """Return how to find the source that holds most of the bound that `size` more bytes exceed, or None."""
    rows, held = connection.execute(KEPT).fetchone()
    if rows + 1 > QUARANTINE_ROWS:
        return BY_ROWS
    return BY_BYTES if rows and held + size > QUARANTINE_BYTES else None


def _push_out(connection: sqlite3.Connection, chosen: str, *parameters: str) -> int | None:
    """Remove the payload that a statement chooses, and count it. Return its bytes; None if there is none."""
    found = connection.execute(chosen, parameters).fetchone()
    if found is None:
        return None
    connection.execute(REMOVE, (found[0],))
    connection.execute(COUNT_PUSHED_OUT)
    return int(found[1])
