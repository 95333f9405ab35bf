"""The only door to the store of this machine, which keeps its data in SQLite files in a data directory.

A caller names a data directory and gets a store, or facts about its files. No module above knows the kind of
database.
"""

import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from gateway.store.protocol import Store
from gateway.store.sqlite import snapshot
from gateway.store.sqlite.engine import damaged_file, database, inspection, schema
from gateway.store.sqlite.engine.connections import engine, open_reader
from gateway.store.sqlite.engine.damaged_file import sync_directory
from gateway.store.sqlite.engine.quota import NOT_COUNTED, DiskQuota
from gateway.store.sqlite.store import SqliteStore

__all__ = ["NOT_COUNTED", "DiskQuota", "engine", "snapshot", "sync_directory"]

LocalStore = SqliteStore
"""The store of a data directory, not opened yet."""


@asynccontextmanager
async def open_store(directory: Path) -> AsyncIterator[Store]:
    """Lock a data directory and open its store; `StoreInUse` if another process has the lock."""
    store = LocalStore(directory)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def open_read_only(directory: Path) -> AsyncIterator[Store]:
    """Open a store for reading only, also beside a gateway that runs.

    `StoreUnavailable` if there is no database, or one of an older version; `SchemaTooNew` if it is newer.
    """
    store = LocalStore(directory)
    try:
        await store.open_read_only()
        yield store
    finally:
        await store.close()


def database_path(directory: Path) -> Path:
    """Return the path of the database file, which need not exist."""
    return directory / database.DATABASE_NAME


def database_files(directory: Path) -> list[Path]:
    """List the database file, its log and index, and copies of them."""
    return [*directory.glob(f"{database.DATABASE_NAME}*")]


def kept_aside(directory: Path) -> list[Path]:
    """List the damaged files that were set aside, by name."""
    return damaged_file.kept_aside(directory, database.DATABASE_NAME)


def is_database(path: Path) -> bool:
    """Return whether a file begins as a database does; `OSError` if it cannot be read."""
    with path.open("rb") as file:
        return file.read(len(inspection.MAGIC)) == inspection.MAGIC


def lock_directory(directory: Path) -> int:
    """Lock a data directory; the lock lasts until the returned descriptor is closed.

    `StoreInUse` if another process has the lock.
    """
    return database.lock_directory(directory / database.LOCK_NAME)


def is_locked(directory: Path) -> bool:
    """Return whether a process has the data directory open now; `OSError` if that cannot be found out."""
    lock = directory / database.LOCK_NAME
    if not lock.exists():
        return False
    fd = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def latest_schema() -> int:
    """Return the version of the schema that this gateway writes."""
    return schema.migrations()[-1][0]


def schema_of(directory: Path) -> int | None:
    """Return the version of the database's schema; None if the file cannot be read."""
    try:
        with closing(open_reader(database_path(directory))) as connection:
            version: int = connection.execute("PRAGMA user_version").fetchone()[0]
            return version
    except sqlite3.Error:
        return None


def inspect_file(directory: Path) -> str | None:
    """Return the damage that a check of half a second finds in the database, None if it finds nothing."""
    with closing(open_reader(database_path(directory))) as connection:
        try:
            inspection.check(connection)
        except schema.Damaged as error:
            return str(error)
    return None
