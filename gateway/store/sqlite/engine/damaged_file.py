"""Damaged files are renamed, never deleted nor written to: an expert may get more out of them."""

import itertools
import os
import time
from pathlib import Path

from gateway.store.sqlite.engine import wal

MARK = ".damaged-"
"""The mark between the database's name and the time (UTC) in the name of a file that was set aside."""

SUFFIXES = ("", "-wal", "-shm")


def free_name(database: Path) -> str:
    """Return the name that the database gets if it is set aside now."""
    base = f"{database.name}{MARK}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    names = itertools.chain([base], (f"{base}-{number}" for number in itertools.count(1)))
    return next(
        name
        for name in names
        if not any(os.path.lexists(database.with_name(f"{name}{suffix}")) for suffix in SUFFIXES)
    )


def set_file_aside(database: Path, name: str, *, only_log: bool = False) -> None:
    """Rename the database with its log and index; with `only_log`, the log and the index alone.

    Blocks. Nobody may have the file open for writing.
    """
    for suffix in SUFFIXES[1:] if only_log else SUFFIXES:
        present = database.with_name(f"{database.name}{suffix}")
        if os.path.lexists(present):
            present.rename(database.with_name(f"{name}{suffix}"))
    sync_directory(database.parent)


def kept_aside(directory: Path, database_name: str) -> list[Path]:
    """List the files that were set aside, by name."""
    return sorted(directory.glob(f"{database_name}{MARK}*"))


def log_is_unusable(database: Path) -> bool:
    """Return whether the log is garbage or another database's, and holds nothing of ours."""
    try:
        content = wal.wal_path(database).read_bytes()
        with database.open("rb") as file:
            header = file.read(wal.HEADER_BYTES)
    except OSError:
        return False
    if len(content) <= wal.HEADER_BYTES or len(header) < wal.HEADER_BYTES:
        return False
    if wal.is_foreign(database):
        return True
    return not wal.header_is_sound(content) and not any(wal.frames(content, wal.page_bytes_of(header)))


def log_is_damaged(database: Path) -> bool:
    """Return whether SQLite would pass over commits in the log because of damage before them."""
    try:
        content = wal.wal_path(database).read_bytes()
    except OSError:
        return False
    if len(content) <= wal.HEADER_BYTES:
        return False
    if not wal.header_is_sound(content):
        return True
    return wal.has_gap(content)


def sync_directory(directory: Path) -> None:
    """Make renames in a directory durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
