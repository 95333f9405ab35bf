"""Opening the database file: lock, pragmas, migrations, the write connection and the read-only ones.

Every SQLite before 3.51.3 can lose pages when two connections write or checkpoint in the same instant
(sqlite.org/wal.html, "The WAL Reset Bug"). So one connection of one process does every write and every
checkpoint: an exclusive lock on the data directory keeps other processes out, readers are read-only.
"""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

import aiosqlite

from gateway.errors import SchemaTooNew, StoreInUse, StoreUnavailable

DATABASE_NAME = "gateway.sqlite3"
LOCK_NAME = "gateway.lock"

PAGE_BYTES = 1024
"""Small pages: a lone reading dirties a leaf of the table and of each index, and all go to the WAL whole."""

WAL_PAGES = 1024
"""Checkpoint after this many pages in the WAL: 1 MiB. While the file still grows, every commit also journals
its new size, which costs as much as the reading."""

WAL_BYTES_KEPT = 4 * 1024 * 1024
"""The WAL file is cut back to this after a checkpoint."""

CACHE_KIBIBYTES = 4096
"""Page cache of the write connection."""

READER_CACHE_KIBIBYTES = 1024
"""Page cache of each read-only connection."""

READERS = 3
"""Read-only connections at most; further readers wait."""

READERS_CLOSE_S = 1.0
"""How long closing waits for readers that are still in use."""

READER_WAIT_S = 10.0
"""A reader waits this long for a connection before the store counts as unavailable."""

STATEMENTS_CACHED = 64

P = ParamSpec("P")
T = TypeVar("T")


class Connection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole function of `sqlite3` calls in one visit to its thread."""

    async def run(
        self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call `work(connection, ...)` in the connection's thread."""
        result: T = await self._execute(work, self._conn, *args, **kwargs)  # type: ignore[no-untyped-call]
        return result

    stopped: asyncio.Future[Any] | None = None

    def stop(self) -> asyncio.Future[Any] | None:
        """As aiosqlite's; the future is kept, because aiosqlite drops it where opening failed."""
        self.stopped = super().stop()
        return self.stopped


class Database:
    """The database file of a data directory: one writer, a few readers."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / DATABASE_NAME
        self._lock_path = directory / LOCK_NAME
        self._lock_fd: int | None = None
        self._writer: Connection | None = None
        self._idle_readers: list[Connection] = []
        self._reader_slots = asyncio.Semaphore(READERS)
        self._closed = False

    async def open(self) -> None:
        """Lock the directory, open the file, migrate it; `StoreInUse` where another process has it."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_fd = lock_directory(self._lock_path)
        except OSError as error:
            raise StoreUnavailable(f"cannot use {self.path.parent} for data: {error.strerror}") from error
        try:
            self._writer = await self._connect(open_writer)
            await self._writer.run(migrate)
        except sqlite3.Error as error:
            await self.close()
            raise StoreUnavailable(f"cannot open {self.path}: {error}") from error
        except BaseException:
            await self.close()
            raise

    async def open_read_only(self) -> None:
        """For a process that only looks: no lock, no writer; `SchemaTooNew` or older is refused."""
        if not self.path.exists():
            raise StoreUnavailable(f"there is no database in {self.path.parent} yet")
        async with self.reader() as reader:
            await reader.run(check_schema)

    async def _connect(self, opener: Callable[[Path], sqlite3.Connection]) -> Connection:
        connection = Connection(lambda: opener(self.path), iter_chunk_size=64)
        try:
            await connection
        except Exception:
            if connection.stopped is not None:
                await connection.stopped  # or its thread would report to a loop that may have ended
            raise
        return connection

    @property
    def writer(self) -> Connection:
        """The one connection that writes."""
        if self._writer is None:
            raise StoreUnavailable("the database is not open")
        return self._writer

    async def reopen_writer(self) -> None:
        """A fresh write connection: after an I/O error the old handle must not be trusted.

        A retried fsync may report success for pages that the kernel has already dropped.
        """
        if self._writer is not None:
            old, self._writer = self._writer, None
            with suppress(sqlite3.Error):  # it is being thrown away because it fails
                await old.close()
        try:
            self._writer = await self._connect(open_writer)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the database cannot be opened again: {error}") from error

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[Connection]:
        """A read-only connection for the length of one query."""
        try:
            async with asyncio.timeout(READER_WAIT_S):
                await self._reader_slots.acquire()
        except TimeoutError as error:
            raise StoreUnavailable("too many long reads at once") from error
        try:
            connection = self._idle_readers.pop() if self._idle_readers else await self._connect(open_reader)
            try:
                yield connection
            finally:
                if self._closed:
                    await connection.close()
                else:
                    self._idle_readers.append(connection)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"cannot read: {error}") from error
        finally:
            self._reader_slots.release()

    async def close(self) -> None:
        """Close the readers, then the writer, then let go of the directory.

        A reader that is still in use is closed when it is given back, which is waited for.
        """
        self._closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(READERS_CLOSE_S):
                for _ in range(READERS):
                    await self._reader_slots.acquire()
        for connection in self._idle_readers:
            await connection.close()
        self._idle_readers.clear()
        if self._writer is not None:
            await self._writer.close()
            self._writer = None
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None


def lock_directory(path: Path) -> int:
    """Take the exclusive lock on a data directory; the descriptor holds it. Blocks for a moment only."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise StoreInUse(f"another process has {path.parent} open") from error
    return fd


def open_writer(path: Path) -> sqlite3.Connection:
    """The connection for writes and checkpoints: WAL and FULL, both read back."""
    existed = path.exists()
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=STATEMENTS_CACHED)
    with _closed_on_error(connection):
        if not existed:
            path.chmod(0o600)
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        journal = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        connection.execute("PRAGMA synchronous = FULL")
        synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
        if (journal, synchronous) != ("wal", 2):
            raise StoreUnavailable(
                f"journal mode {journal}, synchronous {synchronous}: not safe to say yes on"
            )
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}")
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that can neither write nor checkpoint."""
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=ro",
        uri=True,
        isolation_level=None,
        cached_statements=STATEMENTS_CACHED,
    )
    with _closed_on_error(connection):
        connection.execute("PRAGMA query_only = ON")
        connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIBIBYTES}")
        connection.create_function("casefold", 1, str.casefold, deterministic=True)
    return connection


@contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def migrations() -> list[tuple[int, str]]:
    """Number and text of every migration, in order: `0001_initial.sql` is 1."""
    folder = resources.files("gateway.store.sqlite") / "migrations"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text("utf-8")) for name in files]


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date, one transaction per migration; `user_version` says how far it is."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    known = migrations()
    if version > known[-1][0]:
        raise SchemaTooNew(f"the database has schema {version}, this gateway knows {known[-1][0]}: update it")
    for number, text in known:
        if number > version:
            with transaction(connection):
                for statement in statements(text):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")


def check_schema(connection: sqlite3.Connection) -> None:
    """Refuse a schema that is not exactly ours: a reader cannot migrate."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    latest = migrations()[-1][0]
    if version > latest:
        raise SchemaTooNew(f"the database has schema {version}, this gateway knows {latest}: update it")
    if version < latest:
        raise StoreUnavailable("the database is of an older version; start the gateway once to update it")


def statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: `executescript` would commit behind our back."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """BEGIN IMMEDIATE to COMMIT, ROLLBACK on any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
