"""Group commit: whatever waits goes into one transaction, and everyone resumes after its COMMIT.

An idle writer commits at once, so grouping adds no delay. Readings of devices go in by one multi-row
statement per group, without BEGIN and COMMIT around it: the `sqlite3` module gives up the interpreter lock
in every step and must win it back from a busy event loop afterwards, which costs more than the insert.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from gateway.errors import QuotaFull, StoreUnavailable
from gateway.store.sqlite.engine.codes import in_words
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.quota import FULL
from gateway.store.sqlite.engine.schema import transaction

log = logging.getLogger(__name__)

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], Any]
"""A unit of statements that succeeds or fails as a whole; it runs in the connection's thread."""

Row = Sequence[Any]


class Rows(Protocol):
    """How rows go in, at most `GROUP_ROWS` by one statement, all of them or an exception; and out again."""

    def insert(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        """Put them in."""

    def take_back(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        """Take them out where they are in."""


GROUP_ROWS = 64
"""Rows that go in by one statement, and with no other work waiting in one transaction."""

BUSY_GATHER_S = 0.003
"""Where readings came in during a commit, more are on their way: wait for them. Never when idle."""

WAITING_ROWS = 8192
"""Rows that may wait for a commit; beyond it the store says that it is unavailable."""

UNKNOWN_ROWS = 8192
"""Rows of failed commits that are taken back at most; beyond it the oldest are forgotten."""

TELL_AGAIN_S = 3600.0
"""While the disk takes nothing, one line in the log so often."""

OWN_FAULT = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)
"""Errors of SQLite that concern only whose statement it was; any other one is the file's or the disk's."""

_PRIMARY = 0xFF
"""The part of an extended result code that says what kind of error it is."""


class Writer:
    """Queue in front of the one write connection."""

    def __init__(self, database: Database, rows: Rows) -> None:
        self._database = database
        self._room = database.room
        self._kind = rows
        self._rows: list[tuple[Row, asyncio.Future[None]]] = []
        self._works: list[tuple[Work, asyncio.Future[Any]]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._suspect = False
        self._unknown: list[Row] = []
        self._told_at = float("-inf")
        self.trouble: str | None = None
        """Why the last commit failed, until one succeeds."""
        database.on_damage = self.poke

    def insert(self, row: Row) -> asyncio.Future[None]:
        """Put a row into the next group; the future is done when it is on the medium."""
        self._check_room()
        if len(self._rows) >= WAITING_ROWS:
            raise StoreUnavailable("more readings wait for the disk than the queue holds")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._rows.append((row, future))
        self._wake()
        return future

    async def run(self, work: Callable[[sqlite3.Connection], T], *, grows: bool = False) -> T:
        """Run statements in the next group, in a savepoint of their own; returns after COMMIT.

        What `grows` the database is refused before the disk is full; all else may use what is left.
        """
        if grows:
            self._check_room()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._works.append((work, future))
        self._wake()
        return await future

    def poke(self) -> None:
        """Commit nothing, which repairs or reopens what must be."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._works.append((lambda _: None, future))
        self._wake()

    def _check_room(self) -> None:
        if self._room.is_full:
            raise QuotaFull(FULL)
        refusal = self._room.refusal()
        if refusal is not None:
            raise StoreUnavailable(refusal)

    @property
    def busy(self) -> bool:
        """Whether something waits or is under way."""
        return self._flusher is not None

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
                if self._room.is_full:
                    self._refuse_rows()
                rows, self._rows = self._rows[:GROUP_ROWS], self._rows[GROUP_ROWS:]
                works, self._works = self._works, []
                await self._commit(rows, works)
                if self._rows and len(self._rows) < GROUP_ROWS:
                    await asyncio.sleep(BUSY_GATHER_S)
        finally:
            self._flusher = None

    def _refuse_rows(self) -> None:
        """Answer the rows that wait at once: nobody may wait for commits that must fail."""
        rows, self._rows = self._rows, []
        for _, future in rows:
            _settle(future, QuotaFull(FULL))

    async def _commit(
        self, rows: list[tuple[Row, asyncio.Future[None]]], works: list[tuple[Work, asyncio.Future[Any]]]
    ) -> None:
        tried = False
        try:
            await self._make_ready()
            tried = True
            outcomes = await self._database.writer.run(
                self._transact, [work for work, _ in works], [row for row, _ in rows]
            )
        except Exception as error:  # whatever it is, nobody may be left waiting for an answer
            if tried and _code(error) == sqlite3.SQLITE_FULL and self._room.is_the_limit():
                await self._one_by_one(rows, works)
                return
            reason = self._failed(error, [row for row, _ in rows] if tried else [])
            outcomes = [StoreUnavailable(reason)] * (len(works) + len(rows))
        else:
            self._succeeded()
        for (_, future), outcome in zip([*works, *rows], outcomes, strict=True):
            _settle(future, outcome)

    async def _one_by_one(
        self, rows: list[tuple[Row, asyncio.Future[None]]], works: list[tuple[Work, asyncio.Future[Any]]]
    ) -> None:
        """After a group that is larger than what is left of the quota: commit the rows that still fit.

        No work is run a second time, because it may be a step of something longer.
        """
        is_one = len(rows) + len(works) == 1
        for _, future in works:
            _settle(future, QuotaFull(FULL))
        for row, future in rows:
            if is_one or self._room.is_full:
                _settle(future, QuotaFull(FULL))
            else:
                await self._commit([(row, future)], [])

    async def _make_ready(self) -> None:
        """A connection to be trusted, and nothing in the database of which nobody was told."""
        if self._database.damage is not None:
            await self._database.repair()
        elif self._suspect:
            await self._database.reopen_writer()
        if self._suspect and self._unknown:
            await self._database.writer.run(self._take_back)
        self._suspect = False
        self._unknown.clear()

    def _take_back(self, connection: sqlite3.Connection) -> None:
        """Rows of commits that failed may be there all the same, and their devices send them again."""
        with transaction(connection):
            self._kind.take_back(connection, self._unknown)

    def _failed(self, error: Exception, rows: list[Row]) -> str:
        """What to tell those who waited; whatever the error was, the connection is not used again."""
        self._suspect = True
        self._unknown = [*self._unknown, *rows][-UNKNOWN_ROWS:]
        self._database.met(error)
        why = "" if isinstance(error, StoreUnavailable) else "the disk did not take it: "
        reason = f"{why}{in_words(error)}"
        if _code(error) == sqlite3.SQLITE_FULL and not self._room.release_reserve():
            reason = (
                "the disk or the quota is full: make room, `sessions purge` what is deleted, raise --quota, "
                "or set --keep-days"
            )
        now = time.monotonic()
        if self.trouble is None or now - self._told_at >= TELL_AGAIN_S:
            self._told_at = now
            ours = isinstance(error, sqlite3.Error | StoreUnavailable)
            log.error("store: nothing can be stored: %s", reason, exc_info=None if ours else error)
        self.trouble = reason
        return reason

    def _succeeded(self) -> None:
        if self.trouble is not None:
            log.warning("store: data is stored again")
            self.trouble = None

    def _transact(self, connection: sqlite3.Connection, works: list[Work], rows: list[Row]) -> list[Any]:
        """Results or exceptions of the works, then of the rows, all in one transaction."""
        if not works:
            with suppress(sqlite3.IntegrityError, ValueError, TypeError):  # else find out whose row it is
                self._kind.insert(connection, rows)  # one statement: a transaction by itself
                self._database.measure(connection)
                return [None] * len(rows)
        with transaction(connection):
            outcomes = [_in_savepoint(connection, work) for work in works]
            if rows:
                together = _in_savepoint(connection, lambda c: self._kind.insert(c, rows))
                outcomes += [None] * len(rows)
                if isinstance(together, Exception):  # one bad row must not take its neighbours along
                    outcomes[len(works) :] = [
                        _in_savepoint(connection, partial(self._kind.insert, rows=[row])) for row in rows
                    ]
        self._database.measure(connection)
        return outcomes


def _settle(future: asyncio.Future[Any], outcome: Any) -> None:
    """Give a caller the result, or the exception; a caller that has gone away gets nothing."""
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _code(error: BaseException) -> int:
    """Return the primary result code of an error of SQLite, 0 for another error."""
    return int(getattr(error, "sqlite_errorcode", 0)) & _PRIMARY


def _in_savepoint(connection: sqlite3.Connection, work: Work) -> Any:
    """The work's result, or the exception that concerns only its caller; failures of the disk are raised."""
    connection.execute("SAVEPOINT work")
    try:
        outcome = work(connection)
    except Exception as error:
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, OWN_FAULT):
            raise
        connection.execute("ROLLBACK TO work")
        outcome = error
    connection.execute("RELEASE work")
    return outcome
