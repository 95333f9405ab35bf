"""The database file of a data directory: its lock, the write connection and the read-only ones."""

import asyncio
import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from gateway.config import NO_DATABASE, no_right
from gateway.errors import StoreInUse, StoreUnavailable, StoreUnusable
from gateway.processes import lock_words
from gateway.store.sqlite.engine import wal
from gateway.store.sqlite.engine.codes import in_words, is_damage
from gateway.store.sqlite.engine.connections import Connection, connect, open_reader, open_writer
from gateway.store.sqlite.engine.files import DATABASE_NAME as DATABASE_NAME
from gateway.store.sqlite.engine.files import LOCK_NAME as LOCK_NAME
from gateway.store.sqlite.engine.opening import open_as_it_is
from gateway.store.sqlite.engine.quota import DiskQuota
from gateway.store.sqlite.engine.schema import check_schema

log = logging.getLogger(__name__)


READERS = 3
"""The most read-only connections; further readers wait."""

READERS_CLOSE_S = 1.0
"""Seconds that closing waits for readers that are still in use."""

READER_WAIT_S = 10.0
"""Seconds that a reader waits for a connection before the store counts as unavailable."""

REPAIR_PAUSE_S = 30.0
"""Seconds between two repairs while running: a disk that damages every file must not keep us copying."""


class Repairs(Protocol):
    """Opens the database file, be it sound or damaged."""

    @property
    def salvaging(self) -> bool:
        """True while readings are being brought over from a damaged file."""

    def open(self, path: Path, damage: str | None = None) -> sqlite3.Connection:
        """Open the write connection; `damage` was found while running. Blocks for seconds if there is any."""


class Database:
    """The database file of a data directory: one writer, a few readers.

    With `Repairs`, a damaged file is set aside and salvaged; without, it is `StoreUnavailable`. `damage`
    describes damage that was found while running, None once it is repaired.
    """

    def __init__(self, directory: Path, room: DiskQuota | None = None, repair: Repairs | None = None) -> None:
        self.path = directory / DATABASE_NAME
        self.room = room or DiskQuota(directory)
        self.damage: str | None = None
        self.repairs = 0
        self.on_damage: Callable[[], None] | None = None
        self._repair = repair
        self._repaired_at = float("-inf")
        self._lock_path = directory / LOCK_NAME
        self._lock_fd: int | None = None
        self._writer: Connection | None = None
        self._idle_readers: list[Connection] = []
        self._reader_slots = asyncio.Semaphore(READERS)
        self._closed = False

    @property
    def is_writable(self) -> bool:
        """True if this process has the lock, so that no other one writes."""
        return self._lock_fd is not None

    @property
    def salvaging(self) -> bool:
        """True while readings of a damaged file are being brought over."""
        return self._repair is not None and self._repair.salvaging

    async def open(self) -> None:
        """Lock the directory, open the file, migrate it; `StoreInUse` if another process has the lock."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_fd = lock_directory(self._lock_path)
        except PermissionError as error:
            raise StoreUnusable(no_right(self.path.parent)) from error
        except OSError as error:
            raise StoreUnavailable(f"cannot use {self.path.parent} for data: {in_words(error)}") from error
        try:
            await self._open_files(None)
        except BaseException:
            await self.close()
            raise

    async def open_read_only(self) -> None:
        """Open for reading only, without lock and writer.

        `SchemaTooNew` if the schema is newer, `StoreUnavailable` if it is older or there is no database.
        """
        if not self.path.exists():
            raise StoreUnusable(NO_DATABASE.format(self.path.parent))
        async with self.reader() as reader:
            await reader.run(check_schema)

    async def _open_files(self, damage: str | None) -> None:
        """Open the writer, and a reader that stays: a writer closed alone checkpoints the log away."""
        repair = self._repair
        try:
            self._writer = await connect(
                lambda: open_as_it_is(self.path) if repair is None else repair.open(self.path, damage)
            )
            await self._writer.run(self.limit)
            self._idle_readers.append(await self._connect_reader())
        except (OSError, sqlite3.Error) as error:
            raise self._refusal(error)(f"cannot open {self.path}: {in_words(error)}") from error

    def _refusal(self, error: BaseException) -> type[StoreUnavailable]:
        """Return the kind of error to raise: a damaged file that nobody here repairs stays as it is."""
        return StoreUnusable if self._repair is None and is_damage(error) else StoreUnavailable

    def limit(self, connection: sqlite3.Connection) -> None:
        """Limit the file to its part of the quota, which photos and copies share."""
        page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {self.room.max_pages(page_bytes, self.path)}")
        self.measure(connection)

    def measure(self, connection: sqlite3.Connection) -> None:
        """Look how much of its part of the quota the file uses; pages that are free in it do not count."""
        ((count,),) = connection.execute("PRAGMA page_count")
        ((free,),) = connection.execute("PRAGMA freelist_count")
        self.room.note_pages(count - free)

    async def _connect_reader(self) -> Connection:
        """Open a reader; if the caller is cancelled meanwhile, close the reader again."""
        # Not left to itself after a cancel, because its thread would keep the process alive.
        opening = asyncio.ensure_future(self._open_reader())
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            with suppress(Exception):
                await (await opening).close()
            raise

    async def _open_reader(self) -> Connection:
        reader = await connect(lambda: open_reader(self.path))
        try:
            await reader.run(_touch)
        except BaseException:
            await reader.close()
            raise
        return reader

    @property
    def writer(self) -> Connection:
        """The one connection that writes."""
        if self._writer is None:
            raise StoreUnavailable("the database is not open")
        return self._writer

    async def reopen_writer(self) -> None:
        """Open a fresh write connection: after an I/O error the old handle must not be trusted.

        A retried fsync may report success for pages that the kernel has already dropped, so the log is
        written anew.
        """
        await self._close_writer()
        try:
            with suppress(FileNotFoundError):
                await asyncio.to_thread(wal.rewrite, self.path)
            self._writer = await connect(lambda: open_writer(self.path))
            await self._writer.run(_touch)
            await self._writer.run(self.limit)
        except (OSError, sqlite3.Error) as error:
            raise StoreUnavailable(f"the database cannot be opened again: {in_words(error)}") from error

    async def repair(self) -> None:
        """Set the damaged file aside, and go on with a new file and the data salvaged from the old one."""
        pause = REPAIR_PAUSE_S - (time.monotonic() - self._repaired_at)
        if self._repair is None or pause > 0:
            raise StoreUnavailable(f"the database is damaged: {self.damage}")
        self._repaired_at = time.monotonic()
        await self._close_writer()  # while readers are open: alone it would write to the damaged file
        self.repairs += 1
        idle, self._idle_readers = self._idle_readers, []
        for connection in idle:
            await connection.close()
        await self._open_files(self.damage)
        self.damage = None

    async def _close_writer(self) -> None:
        if self._writer is not None:
            old, self._writer = self._writer, None
            with suppress(sqlite3.Error):  # it is being thrown away because it fails
                await old.close()

    def met(self, error: BaseException) -> None:
        """Take note of an error of SQLite; if it means damage, the next write repairs the file."""
        if self.damage is None and is_damage(error):
            self.damage = in_words(error)
            log.error("store: %s is damaged: %s", self.path.name, error)
            if self.on_damage is not None:
                self.on_damage()

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[Connection]:
        """Lend a read-only connection for the length of one query."""
        if self.damage is not None and self._repair is not None:
            raise StoreUnavailable(f"the database is damaged and about to be repaired: {self.damage}")
        try:
            async with asyncio.timeout(READER_WAIT_S):
                await self._reader_slots.acquire()
        except TimeoutError as error:
            raise StoreUnavailable("too many long reads at once") from error
        try:
            opened_after = self.repairs
            connection = self._idle_readers.pop() if self._idle_readers else await self._connect_reader()
            try:
                yield connection
            finally:
                if self._closed or opened_after != self.repairs:
                    await connection.close()
                else:
                    self._idle_readers.append(connection)
        except sqlite3.Error as error:
            self.met(error)
            raise self._refusal(error)(f"cannot read: {in_words(error)}") from error
        finally:
            self._reader_slots.release()

    async def close(self) -> None:
        """Close the readers, then the writer, then unlock the directory.

        Wait up to `READERS_CLOSE_S` for readers in use; a reader that is given back later is closed then.
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
    """Take the exclusive lock on a data directory; the returned descriptor holds it. Blocks briefly."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        holder = lock_words(path)
        by = f" ({holder})" if holder else ""
        raise StoreInUse(f"another process has {path.parent} open{by}") from error
    return fd


def _touch(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
