"""A consistent, verified copy of the database, also while it is written to (D13)."""

import logging
import os
import shutil
import sqlite3
import time
from pathlib import Path

from gateway.errors import StoreUnavailable
from gateway.store.sqlite.engine.codes import in_words
from gateway.store.sqlite.engine.damaged_file import sync_directory

log = logging.getLogger(__name__)

BEFORE = ".before-schema-"
"""The mark between database name and schema version in the name of a copy made before a migration."""

KEPT = 2
"""The number of copies from before migrations that are kept."""


def verified_copy(connection: sqlite3.Connection, target: Path) -> None:
    """Copy the database with `VACUUM INTO`, check the whole copy, fsync it, name it `target`; blocks.

    `StoreUnavailable` if the copy cannot be made or is not sound: then no file is left of it. The
    connection must not be in a transaction; it may be read-only.
    """
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection.execute("VACUUM INTO ?", (str(part),))
        _check(part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
        sync_directory(target.parent)
    except (OSError, sqlite3.Error) as error:
        part.unlink(missing_ok=True)
        raise StoreUnavailable(f"cannot make a sound copy of the database: {in_words(error)}") from error


def _check(path: Path) -> None:
    copy = sqlite3.connect(path, isolation_level=None)
    try:
        found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
    finally:
        copy.close()
    if found != "ok":
        raise sqlite3.DatabaseError(found)


def copy_before_migration(connection: sqlite3.Connection, version: int) -> None:
    """Keep a copy of the database beside it, and the last two such copies; without room, only warn."""
    path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target = path.with_name(f"{path.name}{BEFORE}{version}-{stamp}")
    size = path.stat().st_size
    # No error, because readings have to be taken; and the migration is one transaction.
    if shutil.disk_usage(path.parent).free < 2 * size:
        log.warning("store: the disk has no room for a copy of the database before it is migrated")
        return
    verified_copy(connection, target)
    log.info("store: the database of schema %d is kept as %s", version, target.name)
    older = sorted(path.parent.glob(f"{path.name}{BEFORE}*"), key=lambda copy: copy.stat().st_mtime)
    for copy in older[:-KEPT]:
        copy.unlink()
