"""Copies of the database as files: make a copy, read its contents, check it, make it ready for use.

Everything here blocks. Nobody else may write to the files, except to the database of `copy_of`.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from gateway.domain.audit import AuditEntry, current_actor
from gateway.domain.photo import EXTENSIONS
from gateway.errors import InvalidInput, SchemaTooNew, StoreUnavailable
from gateway.store.records import Contents
from gateway.store.sqlite.audit import note
from gateway.store.sqlite.engine.codes import in_words
from gateway.store.sqlite.engine.connections import open_writer
from gateway.store.sqlite.engine.copying import verified_copy
from gateway.store.sqlite.engine.schema import Damaged, migrate, migrations, transaction
from gateway.store.sqlite.rows import next_seq

COUNTED = {
    "readings": "SELECT count(*) FROM readings",
    "brew sessions": "SELECT count(*) FROM brewsessions WHERE deleted = 0",
    "devices": "SELECT count(*) FROM devices",
    "recipes": "SELECT count(*) FROM recipes WHERE deleted = 0",
    "photos": "SELECT count(*) FROM photos",
}
"""Queries for the counts of a copy, by kind; a table that an old schema lacks counts 0."""

NEWEST = "SELECT max(received_at) / 1000 FROM readings"
CHANNELS_WITH_FILES = "SELECT name FROM channels WHERE secret_file IS NOT NULL ORDER BY name"
PHOTOS = "SELECT uuid, mimetype, sha256 FROM photos"

UNSETTLE = (
    "UPDATE deliveries SET attempt_until = max(coalesce(attempt_until, 0), :last) WHERE watermark < :last"
)
UNSETTLE_OTHERS = "UPDATE counters SET value = max(value, :last) WHERE name = 'unsettled_until'"
"""Covers brew sessions that were not forwarded yet when the copy was made."""

LOG_OUT = "DELETE FROM logins"
"""Ends all logins of a copy: somebody may have logged out since it was made."""

NEW_EVENTS = (
    """
    INSERT INTO sqlite_sequence (name, seq) SELECT 'alarm_events', 0
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'alarm_events')
    """,
    """
    UPDATE sqlite_sequence SET seq = max(seq, CAST(strftime('%s', 'now') AS INTEGER))
    WHERE name = 'alarm_events'
    """,
)
"""Lets new alarms have ids that were never given: who has seen an id drops what comes with it again.

Nobody knows the ids that were given since the copy was made, but they are below the seconds of today.
"""

STEPS = 10_000
"""Steps of SQLite's machine between two calls of `tick`: a millisecond."""


def copy_of(database: Path, target: Path, tick: Callable[[], bool]) -> None:
    """Make a consistent, verified copy while others write; `tick` is asked each millisecond whether to stop.

    The connection is read-only and so never checkpoints: only the write connection does.
    """
    connection = sqlite3.connect(_read_only(database), uri=True, isolation_level=None)
    try:
        connection.set_progress_handler(tick, STEPS)
        verified_copy(connection, target)
    finally:
        connection.close()


def contents(database: Path) -> Contents:
    """Return the contents of a database, in one snapshot; `StoreUnavailable` if it cannot be read."""
    with _reading(database) as connection:
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }
        connection.execute("BEGIN")
        return Contents(
            schema=connection.execute("PRAGMA user_version").fetchone()[0],
            # A table that an old schema lacks has nothing in it.
            counts={
                kind: connection.execute(sql).fetchone()[0]
                if sql.partition(" FROM ")[2].split()[0] in tables
                else 0
                for kind, sql in COUNTED.items()
            },
            newest_at=connection.execute(NEWEST).fetchone()[0] if "readings" in tables else None,
            photos={
                f"{uuid}.{EXTENSIONS[mimetype]}": sha256
                for uuid, mimetype, sha256 in (connection.execute(PHOTOS) if "photos" in tables else ())
            },
            channels=tuple(
                str(name)
                for (name,) in (connection.execute(CHANNELS_WITH_FILES) if "channels" in tables else ())
            ),
        )


def check(database: Path, what: str) -> None:
    """Raise `InvalidInput` if the file is no sound database of ours; `what` names it in the message."""
    try:
        connection = sqlite3.connect(_read_only(database), uri=True, isolation_level=None)
        try:
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            ours = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'brewsessions'").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise InvalidInput(f"{what} is damaged: {in_words(error)}") from error
    if found != "ok":
        raise InvalidInput(f"{what} is damaged: {found.splitlines()[-1]}")
    if not version or ours is None:
        raise InvalidInput(f"{what} is a database, but none of this program")
    latest = migrations()[-1][0]
    if version > latest:
        raise SchemaTooNew(f"{what} has schema {version}, this gateway knows {latest}: update it first")


def make_ready(database: Path, entry: AuditEntry) -> None:
    """Bring a copy's schema up to date; readings that it takes for unforwarded are read back first.

    `entry` becomes a row of the copy's audit log. All logins end.

    More may have been forwarded since the copy was made: each target is asked for its readings before
    anything is sent there. `StoreUnavailable` if the copy cannot be made ready.
    """
    try:
        connection = open_writer(database)
        try:
            migrate(connection)
            with transaction(connection):
                last = {"last": next_seq(connection) - 1}
                connection.execute(UNSETTLE, last)
                connection.execute(UNSETTLE_OTHERS, last)
                connection.execute(LOG_OUT)
                for sql in NEW_EVENTS:
                    connection.execute(sql)
                note(connection, entry, current_actor())
        finally:
            connection.close()
    except (sqlite3.Error, Damaged, OSError) as error:
        raise StoreUnavailable(f"the copy cannot be made ready: {in_words(error)}") from error


def take_log_in(database: Path) -> bool:
    """Put the log's content into the database file and remove the log; return False if a reader prevents it.

    `StoreUnavailable` if the database is damaged. Nobody may write meanwhile.
    """
    try:
        connection = open_writer(database)
        try:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreUnavailable(f"cannot read {database}: {in_words(error)}") from error
    return not busy


@contextmanager
def _reading(database: Path) -> Iterator[sqlite3.Connection]:
    connection = None
    try:
        connection = sqlite3.connect(_read_only(database), uri=True, isolation_level=None)
        yield connection
    except sqlite3.Error as error:
        raise StoreUnavailable(f"cannot read {database}: {in_words(error)}") from error
    finally:
        if connection is not None:
            connection.close()


def _read_only(database: Path) -> str:
    return f"file:{quote(str(database))}?mode=ro"
