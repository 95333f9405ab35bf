"""Group commit: whatever waits goes into one transaction, and everyone resumes after its COMMIT.

An idle writer commits at once, so grouping adds no delay. Readings of devices go in by one multi-row
statement per group, without BEGIN and COMMIT around it: the `sqlite3` module gives up the interpreter lock
in every step and must win it back from a busy event loop afterwards, which costs more than the insert.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from gateway.errors import StoreUnavailable
from gateway.store.sqlite.database import Database, transaction

log = logging.getLogger(__name__)

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], Any]
"""A unit of statements that succeeds or fails as a whole; it runs in the connection's thread."""

Row = Sequence[Any]


class InsertRows(Protocol):
    """Puts at most `GROUP_ROWS` rows in by one statement; all of them or an exception."""

    def __call__(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        """Insert."""


GROUP_ROWS = 64
"""Rows that go in by one statement, and with no other work waiting in one transaction."""

BUSY_GATHER_S = 0.003
"""Where readings came in during a commit, more are on their way: wait for them. Never when idle."""

WAITING_ROWS = 8192
"""Rows that may wait for a commit; beyond it the store says that it is unavailable."""


class Writer:
    """Queue in front of the one write connection."""

    def __init__(self, database: Database, insert_rows: InsertRows) -> None:
        self._database = database
        self._insert_rows = insert_rows
        self._rows: list[tuple[Row, asyncio.Future[None]]] = []
        self._works: list[tuple[Work, asyncio.Future[Any]]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._suspect = False

    def insert(self, row: Row) -> asyncio.Future[None]:
        """Put a row into the next group; the future is done when it is on the medium."""
        if len(self._rows) >= WAITING_ROWS:
            raise StoreUnavailable("more readings wait for the disk than the queue holds")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._rows.append((row, future))
        self._wake()
        return future

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run statements in the next group, in a savepoint of their own; returns after COMMIT."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._works.append((work, future))
        self._wake()
        return await future

    async def drain(self) -> None:
        """Wait until nothing is queued or under way."""
        while self._flusher is not None:
            await asyncio.shield(self._flusher)

    def _wake(self) -> None:
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush(), name="store-writer")

    async def _flush(self) -> None:
        try:
            while self._rows or self._works:
                rows, self._rows = self._rows[:GROUP_ROWS], self._rows[GROUP_ROWS:]
                works, self._works = self._works, []
                await self._commit(rows, works)
                if self._rows and len(self._rows) < GROUP_ROWS:
                    await asyncio.sleep(BUSY_GATHER_S)
        finally:
            self._flusher = None

    async def _commit(
        self, rows: list[tuple[Row, asyncio.Future[None]]], works: list[tuple[Work, asyncio.Future[Any]]]
    ) -> None:
        try:
            if self._suspect:
                await self._database.reopen_writer()
                self._suspect = False
            outcomes = await self._database.writer.run(
                self._transact, [work for work, _ in works], [row for row, _ in rows]
            )
        except Exception as error:  # whatever it is, nobody may be left waiting for an answer
            self._suspect = True
            log.exception("store: a commit failed, nobody in it was told yes")
            outcomes = [StoreUnavailable(f"the disk did not take it: {error}")] * (len(works) + len(rows))
        for (_, future), outcome in zip([*works, *rows], outcomes, strict=True):
            if future.done():
                continue  # its caller has gone away
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    def _transact(self, connection: sqlite3.Connection, works: list[Work], rows: list[Row]) -> list[Any]:
        """Results or exceptions of the works, then of the rows, all in one transaction."""
        if not works:
            with suppress(sqlite3.IntegrityError, ValueError, TypeError):  # else find out whose row it is
                self._insert_rows(connection, rows)  # one statement: a transaction by itself
                return [None] * len(rows)
        with transaction(connection):
            outcomes = [_in_savepoint(connection, work) for work in works]
            if rows:
                together = _in_savepoint(connection, lambda c: self._insert_rows(c, rows))
                outcomes += [None] * len(rows)
                if isinstance(together, Exception):  # one bad row must not take its neighbours along
                    outcomes[len(works) :] = [
                        _in_savepoint(connection, partial(self._insert_rows, rows=[row])) for row in rows
                    ]
        return outcomes


def _in_savepoint(connection: sqlite3.Connection, work: Work) -> Any:
    """The work's result, or the exception that concerns only its caller; failures of the disk are raised."""
    connection.execute("SAVEPOINT work")
    try:
        outcome = work(connection)
    except sqlite3.OperationalError:
        raise
    except Exception as error:
        connection.execute("ROLLBACK TO work")
        outcome = error
    connection.execute("RELEASE work")
    return outcome
