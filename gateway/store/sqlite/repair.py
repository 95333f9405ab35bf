"""Opening the database, sound or damaged: a damaged file is set aside and salvaged into a fresh one.

The fresh file is made under a name of its own, and takes the place of the damaged file when it has everything
but readings: wherever the process ends, one of the two is there, and the next start goes on.
"""

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gateway.domain.audit import SYSTEM, AuditEntry
from gateway.store.sqlite.audit import note
from gateway.store.sqlite.engine import damaged_file as aside
from gateway.store.sqlite.engine import inspection, wal
from gateway.store.sqlite.engine.connections import open_writer
from gateway.store.sqlite.engine.opening import open_sound
from gateway.store.sqlite.engine.quota import DiskQuota
from gateway.store.sqlite.engine.schema import Damaged, migrate, transaction
from gateway.store.sqlite.recovery import Recovery

log = logging.getLogger(__name__)

FRESH = ".salvaged"
"""The suffix of the database's name while the fresh file is being made."""

FOREGROUND_S = 2.0
"""Seconds of salvaging readings before the gateway starts; the rest follows while it runs."""

NOTE = "INSERT INTO damages (id, found_at, reason, aside, finished_at) VALUES (?, ?, ?, ?, ?)"
"""The id is the time in milliseconds: rows that are salvaged from the damaged file keep their ids."""
OPEN = "SELECT id, aside FROM damages WHERE finished_at IS NULL ORDER BY id LIMIT 1"
CLOSE = "UPDATE damages SET finished_at = ? WHERE id = ?"


class FileRepair:
    """Opens the file of a gateway, and brings readings over from a damaged one step by step."""

    def __init__(self, room: DiskQuota) -> None:
        self._room = room
        self._salvage: Recovery | None = None
        self._steps: Iterator[None] | None = None

    @property
    def salvaging(self) -> bool:
        """True while readings are being brought over from a damaged file."""
        return self._salvage is not None

    def open(self, path: Path, damage: str | None = None) -> sqlite3.Connection:
        """Open the write connection; `damage` was found while running. Blocks for seconds if there is any."""
        self._drop()
        _finish_swap(path)
        connection = None
        if damage is None:
            try:
                connection = self._open_unless_damaged(path)
            except Damaged as error:
                damage = str(error)
        if connection is None:
            log.error("store: %s is damaged: %s", path.name, damage)
            connection = self._start_anew(path, damage or "")
        self.start_over(connection)
        self._salvage_for(connection, FOREGROUND_S)
        return connection

    def step(self, connection: sqlite3.Connection) -> bool:
        """Bring some more readings over, in the transaction that is open; return whether any are left."""
        if self._salvage is None:
            return False
        if self._steps is None:
            self._steps = self._salvage.steps(connection)
        try:
            next(self._steps)
        except StopIteration:
            self.start_over(connection)
        return self.salvaging

    def start_over(self, connection: sqlite3.Connection) -> None:
        """Begin the unfinished file anew, after a step that was not committed; or begin the next."""
        self._drop()
        path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
        while (row := connection.execute(OPEN).fetchone()) is not None:
            damage_id, name = row
            self._salvage = _salvage_of(connection, path.with_name(name), damage_id)
            if self._salvage is not None:
                return
            connection.execute(CLOSE, (_now(), damage_id))

    def _open_unless_damaged(self, path: Path) -> sqlite3.Connection:
        lost_log = self._look_at_files(path)
        connection = self._open(path)
        if lost_log is not None:
            reason = "its log was garbage or another database's"
            with transaction(connection):
                connection.execute(NOTE, (time.time_ns() // 10**6, _now(), reason, lost_log, _now()))
                note(connection, AuditEntry("set aside", "database", f"{lost_log}-wal: {reason}"), SYSTEM)
        return connection

    def _look_at_files(self, path: Path) -> str | None:
        """Rename a useless log and return its new name, else None; `Damaged` if files cannot be opened."""
        inspection.before_opening(path)
        is_new = not path.exists()
        has_log = wal.wal_path(path).exists() and wal.wal_path(path).stat().st_size > 0
        if not is_new and path.stat().st_size == 0 and (has_log or self._room.has_ballast()):
            raise Damaged("it is empty")
        if (is_new and has_log) or aside.log_is_unusable(path):
            name = aside.free_name(path)
            aside.set_file_aside(path, name, only_log=True)
            log.warning("store: the log of %s is not its own and kept as %s-wal", path.name, name)
            return name
        if aside.log_is_damaged(path):
            raise Damaged("its log is damaged")
        return None

    def _open(self, path: Path) -> sqlite3.Connection:
        try:
            return open_sound(path, thorough=True)
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", None) not in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN}:
                raise
            if not self._room.release_reserve():
                raise
        return open_sound(path, thorough=True)

    def _start_anew(self, path: Path, reason: str) -> sqlite3.Connection:
        fresh, name = path.with_name(f"{path.name}{FRESH}"), aside.free_name(path)
        for suffix in aside.SUFFIXES:
            fresh.with_name(f"{fresh.name}{suffix}").unlink(missing_ok=True)
        connection = open_writer(fresh)
        try:
            migrate(connection)
            with transaction(connection):
                damage_id = time.time_ns() // 10**6
                connection.execute(NOTE, (damage_id, _now(), reason, name, None))
                note(connection, AuditEntry("set aside", "database", f"{name}: {reason}"), SYSTEM)
                salvage = _salvage_of(connection, path, damage_id)
                if salvage is not None:
                    salvage.begin(connection)
                    salvage.close()
        finally:
            connection.close()
        aside.set_file_aside(path, name)
        log.warning("store: the damaged file is kept as %s", name)
        _finish_swap(path)
        return open_sound(path, thorough=False)

    def _salvage_for(self, connection: sqlite3.Connection, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        more = self.salvaging
        while more and time.monotonic() < deadline:
            with transaction(connection):
                more = self.step(connection)
        if more:
            log.warning("store: readings are being salvaged while the gateway runs; forwarding waits for it")

    def _drop(self) -> None:
        if self._salvage is not None:
            self._salvage.close()
        self._salvage = self._steps = None


def _salvage_of(connection: sqlite3.Connection, path: Path, damage_id: int) -> Recovery | None:
    """Return the recovery of a damaged file; None if there is nothing to read."""
    if not path.is_file():
        return None
    with suppress(OSError):
        return Recovery(connection, path, damage_id, with_wal=not wal.is_foreign(path))
    return None


def _finish_swap(path: Path) -> None:
    """Put the fresh file in the place of the one set aside; also if the last process ended before that."""
    fresh = path.with_name(f"{path.name}{FRESH}")
    if fresh.exists() and not path.exists() and not wal.wal_path(fresh).exists():
        fresh.rename(path)
        aside.sync_directory(path.parent)


def _now() -> int:
    return int(time.time())
