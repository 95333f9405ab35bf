"""A check of the database file at the start: it finds most damage, in bounded time for any size."""

import sqlite3
import time
from pathlib import Path

from gateway.store.sqlite.engine import checksum, wal
from gateway.store.sqlite.engine.codes import in_words, is_damage
from gateway.store.sqlite.engine.schema import Damaged, migrate

MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100

ALLOWED_BYTES = (
    (18, {b"\1\1\0", b"\2\2\0"}),  # rollback journal or WAL; nothing reserved
    (21, {b"\x40\x20\x20"}),  # payload fractions
    (44, {b"\0\0\0\4", bytes(4)}),  # schema format; 0 while the schema is still in the log
    (52, {bytes(4)}),  # no vacuuming
    (56, {b"\0\0\0\1", bytes(4)}),  # UTF-8
    (64, {bytes(4)}),
    (72, {bytes(20)}),
)
"""Allowed bytes by their offset in our headers (sqlite.org/fileformat2.html, section 1.3)."""

CHECK_S = 0.5
"""Seconds for `quick_check`, which would take minutes for gigabytes; the scrub checks the rest."""

END_ROWS = 200
"""Rows read at either end of each table."""

STEPS = 10_000
"""Steps of SQLite's machine between looks at the clock: a millisecond."""

INTERRUPTED = 9


def before_opening(path: Path) -> None:
    """Raise `Damaged` if the header cannot be one of ours. Blocks; nobody may have the file open."""
    for beside in (path, wal.wal_path(path), path.with_name(f"{path.name}-shm")):
        if (beside.exists() or beside.is_symlink()) and not beside.is_file():
            raise Damaged(f"{beside.name} is not a file")
    if not path.exists():
        return
    try:
        with path.open("r+b") as file:
            header = file.read(HEADER_BYTES)
    except PermissionError as error:
        raise Damaged("its owner does not let this user read and write it") from error
    if not header:
        return
    if not header.startswith(MAGIC) or len(header) < HEADER_BYTES:
        raise Damaged("the file is no database")
    if any(header[at : at + len(min(allowed))] not in allowed for at, allowed in ALLOWED_BYTES):
        raise Damaged("its header is damaged")
    if path.stat().st_size % wal.page_bytes_of(header) and not wal.wal_path(path).exists():
        raise Damaged("it ends in the middle of a page")


def check(connection: sqlite3.Connection) -> None:
    """Raise `Damaged` if the schema is not ours, a table cannot be read, or `quick_check` finds damage."""
    try:
        _check_schema(connection)
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall():
            _read_ends(connection, table)
        _quick_check(connection)
    except sqlite3.OperationalError as error:
        # Python's own complaint, of text that is UTF-8 no longer, has no code.
        if (
            is_damage(error)
            or getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) == sqlite3.SQLITE_ERROR
        ):
            raise Damaged(in_words(error)) from error
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise Damaged(in_words(error)) from error


def _check_schema(connection: sqlite3.Connection) -> None:
    ours = sqlite3.connect(":memory:", isolation_level=None)
    try:
        checksum.install(ours)
        migrate(ours)
        listed = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
        missing = set(ours.execute(listed)) - set(connection.execute(listed))
    finally:
        ours.close()
    if missing:
        raise Damaged(f"its schema lacks {sorted(name for _, name, _ in missing)[0]}")


def _read_ends(connection: sqlite3.Connection, table: str) -> None:
    """Read the first and the last rows of a table, in the order of its tree."""
    # Without row ids only the first rows, because such a table is small, or has its key in order anyway.
    has_row_ids = (
        "WITHOUT ROWID"
        not in connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,))
        .fetchone()[0]
        .upper()
    )
    connection.text_factory = bytes  # text that is no UTF-8 is the checksums' business
    try:
        for direction in ("ASC", "DESC") if has_row_ids else ("",):
            order = f"ORDER BY rowid {direction}" if direction else ""
            for _ in connection.execute(f'SELECT * FROM "{table}" {order} LIMIT {END_ROWS}'):
                pass
    finally:
        connection.text_factory = str


def _quick_check(connection: sqlite3.Connection) -> None:
    deadline = time.monotonic() + CHECK_S
    connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) != INTERRUPTED:
            raise
        return
    finally:
        connection.set_progress_handler(None, 0)
    if found != "ok":
        raise Damaged(found.splitlines()[-1])
