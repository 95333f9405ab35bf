"""Group commit: whatever waits goes into one transaction, and everyone resumes after its COMMIT.

An idle writer commits at once, so grouping adds no delay. Readings of devices go in by one multi-row
statement per group, without BEGIN and COMMIT around it: the `sqlite3` module gives up the interpreter lock
in every step and must win it back from a busy event loop afterwards, which costs more than the insert.

While readings wait and nothing else does, the connection's thread takes group after group by itself: the way
through the event loop between two groups would cost as much as a commit.
"""

import asyncio
import logging
import select
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from gateway.errors import QuotaFull, StoreUnavailable
from gateway.events import finish
from gateway.store.records import Settle
from gateway.store.sqlite.engine.changes import Changes
from gateway.store.sqlite.engine.codes import in_words
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.quota import FULL
from gateway.store.sqlite.engine.schema import transaction

log = logging.getLogger(__name__)

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], Any]
"""A unit of statements that succeeds or fails as a whole; it runs in the connection's thread."""

Row = Sequence[Any]

Waiting = tuple[Row, Settle]
WaitingWork = tuple[Work, asyncio.Future[Any]]

Post = Callable[..., object]
"""Calls a function with arguments in the event loop, from another thread."""


class Rows(Protocol):
    """How rows go in, at most `GROUP_ROWS` by one statement, all of them or an exception; and out again."""

    def insert(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        """Put them in."""

    def take_back(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        """Take them out where they are in."""


GROUP_ROWS = 64
"""Rows that go in by one statement, and with no other work waiting in one transaction."""

GROUPS_IN_TURN = 256
"""Groups that the connection's thread takes by itself at most: others wait for the connection, too."""

GATHER_STEP_S, GATHER_STEPS = 0.001, 4
"""Where readings came in during a commit, more are on their way: wait while each step, in seconds, brings
some. Larger groups write fewer bytes for each reading. Never when idle."""

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
        self._rows: deque[Waiting] = deque()
        self._works: list[WaitingWork] = []
        self._flusher: asyncio.Task[None] | None = None
        self._suspect = False
        self._unknown: list[Row] = []
        self._told_at = float("-inf")
        self.changes = Changes()
        self.trouble: str | None = None
        """Why the last commit failed, until one succeeds."""
        database.on_damage = self.poke

    def insert(self, row: Row, settle: Settle) -> None:
        """Put a row into the next group; `StoreUnavailable` if it cannot wait there."""
        self._check_room()
        if len(self._rows) >= WAITING_ROWS:
            raise StoreUnavailable("more readings wait for the disk than the queue holds")
        self._rows.append((row, settle))
        if self._flusher is None:
            self._wake()

    def store(self, row: Row) -> asyncio.Future[None]:
        """Put a row into the next group; the future is done when it is on the medium."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.insert(row, partial(finish, future))
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
                works, self._works = self._works, []
                await self._commit(self._next_group(), works)
        finally:
            self._flusher = None

    def _next_group(self) -> list[Waiting]:
        """Take the rows of the next group out of the queue. Runs in both threads, one at a time."""
        rows = self._rows
        return [rows.popleft() for _ in range(min(len(rows), GROUP_ROWS))]

    def _refuse_rows(self) -> None:
        """Answer the rows that wait at once: nobody may wait for commits that must fail."""
        rows = list(self._rows)
        self._rows.clear()
        _settle_rows(rows, [QuotaFull(FULL)] * len(rows))

    async def _commit(self, rows: list[Waiting], works: list[WaitingWork]) -> None:
        """Commit a group and, if it has no works, the groups that come after it."""
        tried = False
        result: list[Any] | Exception
        try:
            await self._make_ready()
            tried = True
            post = asyncio.get_running_loop().call_soon_threadsafe
            works, rows, result = await self._database.writer.run(self._take_turn, works, rows, post)
        except Exception as error:  # whatever it is, nobody may be left waiting for an answer
            result = error
        if not isinstance(result, Exception):
            self._answer(works, rows, result)
            return
        self.changes.count(works, rows)  # a commit that failed may be there all the same
        if tried and _code(result) == sqlite3.SQLITE_FULL and self._room.is_the_limit():
            await self._one_by_one(rows, works)
            return
        refusal = StoreUnavailable(self._failed(result, [row for row, _ in rows] if tried else []))
        _settle_works(works, [refusal] * len(works))
        _settle_rows(rows, [refusal] * len(rows))

    def _take_turn(
        self, connection: sqlite3.Connection, works: list[WaitingWork], rows: list[Waiting], post: Post
    ) -> tuple[list[WaitingWork], list[Waiting], list[Any] | Exception]:
        """Commit a group, and the groups behind it, in the connection's thread.

        `post` calls a function in the event loop. Return the last group with its outcomes, or with the error
        if it failed: the end of the turn wakes the event loop anyway.
        """
        left = GROUPS_IN_TURN
        while True:
            left -= 1
            try:
                outcomes = self._transact(connection, [work for work, _ in works], [row for row, _ in rows])
            except Exception as error:
                return works, rows, error
            if self._works or not self._rows or self._room.is_full or not left:
                return works, rows, outcomes
            post(self._answer, works, rows, outcomes)
            self._gather()
            works, rows = [], self._next_group()

    def _gather(self) -> None:
        """Wait in the connection's thread while rows come: in a large group each row is cheaper."""
        waiting = 0
        for _ in range(GATHER_STEPS):
            if waiting == len(self._rows) or len(self._rows) >= GROUP_ROWS:
                return
            waiting = len(self._rows)
            # Not `time.sleep`, which waits until a time: under libfaketime it fails, or never ends, after the
            # clock was set. An error must not pass for one of a commit: the groups before are answered.
            with suppress(OSError):
                select.select((), (), (), GATHER_STEP_S)

    def _answer(self, works: list[WaitingWork], rows: list[Waiting], outcomes: list[Any]) -> None:
        """Give all of a group that is on the medium their outcomes."""
        if self.trouble is not None:
            log.warning("store: data is stored again")
            self.trouble = None
        self.changes.count(works, rows)
        _settle_works(works, outcomes[: len(works)])
        _settle_rows(rows, outcomes[len(works) :])

    async def _one_by_one(self, rows: list[Waiting], works: list[WaitingWork]) -> None:
        """After a group that is larger than what is left of the quota: commit the rows that still fit.

        No work is run a second time, because it may be a step of something longer.
        """
        is_one = len(rows) + len(works) == 1
        _settle_works(works, [QuotaFull(FULL)] * len(works))
        for row, settle in rows:
            if is_one or self._room.is_full:
                _settle_rows([(row, settle)], [QuotaFull(FULL)])
            else:
                await self._commit([(row, settle)], [])

    async def _make_ready(self) -> None:
        """A connection to be trusted, and nothing in the database of which nobody was told."""
        if self._database.damage is not None:
            await self._database.repair()
        elif self._suspect:
            await self._database.reopen_writer()
        if self._suspect and self._unknown:
            await self._database.writer.run(self._take_back)
            self.changes.works += 1
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


def _settle_rows(rows: Iterable[Waiting], outcomes: Iterable[Exception | None]) -> None:
    """Give each row its outcome, whatever one of those who wait makes of it."""
    for (_, settle), outcome in zip(rows, outcomes, strict=True):
        try:
            settle(outcome)
        except Exception:  # a mistake of ours; the others must get their answers all the same
            log.exception("store: what waited for a reading failed")


def _settle_works(works: Iterable[WaitingWork], outcomes: Iterable[Any]) -> None:
    for (_, future), outcome in zip(works, outcomes, strict=True):
        finish(future, outcome)


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
