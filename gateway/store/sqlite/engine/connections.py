"""The two kinds of connections: one that writes and checkpoints, and several that only read.

Every SQLite before 3.51.3 can lose pages when two connections write or checkpoint in the same instant
(sqlite.org/wal.html, "The WAL Reset Bug"). So one connection of one process does every write and every
checkpoint.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

import aiosqlite

from gateway.errors import StoreUnavailable
from gateway.store.records import Engine
from gateway.store.sqlite.engine import checksum

PAGE_BYTES = 1024
"""Small pages: a lone reading dirties a leaf of the table and of each index, and all go to the WAL whole."""

WAL_PAGES = 1024
"""Checkpoint after this many pages in the WAL: 1 MiB. While the file still grows, every commit also journals
its new size, which costs as much as the reading."""

WAL_BYTES_KEPT = 4 * 1024 * 1024
"""The WAL file is cut back to this after a checkpoint."""

CACHE_KIBIBYTES = 4096
"""Page cache of the write connection."""

READER_CACHE_KIBIBYTES = 256
"""Page cache of each read-only connection. Every commit empties it, so that a larger cache was no faster; and
its memory stays with the connection's thread."""

STATEMENTS_CACHED = 64

FIXED_VERSIONS = ((3, 44, 6), (3, 50, 7), (3, 51, 3))
"""The first release of each line without the WAL-reset bug, which began with 3.7.0."""

FIRST_WITH_WAL = (3, 7, 0)

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
        """Stop as aiosqlite does, but keep the future: aiosqlite drops it if opening failed."""
        self.stopped = super().stop()
        return self.stopped


async def connect(opener: Callable[[], sqlite3.Connection]) -> Connection:
    """Open a connection whose thread calls `opener`; after an error the thread has ended."""
    connection = Connection(opener, iter_chunk_size=64)
    try:
        await connection
    except Exception:
        if connection.stopped is not None:
            await connection.stopped  # or its thread would report to a loop that may have ended
        raise
    return connection


def open_writer(path: Path) -> sqlite3.Connection:
    """Open the connection for writes and checkpoints: WAL and FULL, both read back."""
    is_new = not path.exists() or path.stat().st_size == 0
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=STATEMENTS_CACHED)
    with _closed_on_error(connection):
        checksum.install(connection)
        if is_new:
            path.chmod(0o600)
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.execute("PRAGMA auto_vacuum = NONE")
            connection.execute(f"PRAGMA application_id = {int.from_bytes(os.urandom(4), 'big', signed=True)}")
        journal = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        connection.execute("PRAGMA synchronous = FULL")
        synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
        if (journal, synchronous) != ("wal", 2):
            raise StoreUnavailable(
                f"journal mode {journal}, synchronous {synchronous}: not safe to say yes on"
            )
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")  # a disk without inodes has no room for files
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}")
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a connection that can neither write nor checkpoint."""
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=ro",
        uri=True,
        isolation_level=None,
        cached_statements=STATEMENTS_CACHED,
    )
    with _closed_on_error(connection):
        # Not strict: a flipped bit in one reading must not make its whole brew session unreadable.
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        checksum.install(connection)
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


def has_wal_reset_bug(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Return whether this SQLite can lose pages when two connections write or checkpoint at once."""
    line = next((fixed for fixed in FIXED_VERSIONS if fixed[:2] == version[:2]), FIXED_VERSIONS[-1])
    return FIRST_WITH_WAL <= version < line


def engine() -> Engine:
    """Describe the SQLite in use."""
    bug = has_wal_reset_bug()
    harmless = "has the WAL-reset bug, which does no harm here: one connection does all writing"
    return Engine(sqlite3.sqlite_version, bug, harmless if bug else "ok")
