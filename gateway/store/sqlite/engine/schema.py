"""The schema: migrations, one transaction each, and the refusal of a schema that is not ours."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources

from gateway.errors import SchemaTooNew, StoreUnusable

RECORDED_SINCE = 4
"""The first schema whose counter `schema` repeats `user_version`."""

Before = Callable[[sqlite3.Connection, int], None]
"""Called with the version of a database before the database is migrated."""


class Damaged(Exception):
    """The database file is not as it was written; the message names the damage."""


@cache
def migrations() -> list[tuple[int, str]]:
    """Return number and text of every migration, in order: `0001_initial.sql` is 1."""
    folder = resources.files("gateway.store.sqlite") / "migrations"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text("utf-8")) for name in files]


def migrate(connection: sqlite3.Connection, before: Before | None = None) -> None:
    """Bring the schema up to date; call `before` first if there is something to lose."""
    version = schema_version(connection)
    known = migrations()
    if version > known[-1][0]:
        raise _too_new(version, known[-1][0])
    if before is not None and 0 < version < known[-1][0]:
        before(connection, version)
    if version == 0:
        with transaction(connection):  # one commit: a new file has nothing that is to be kept in between
            for number, text in known:
                _step(connection, number, text)
        return
    for number, text in known:
        if number > version:
            with transaction(connection):
                _step(connection, number, text)


def _step(connection: sqlite3.Connection, number: int, text: str) -> None:
    """Run one migration in the transaction that is open."""
    for statement in statements(text):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {number}")
    if number > RECORDED_SINCE:
        connection.execute("UPDATE counters SET value = ? WHERE name = 'schema'", (number,))


def schema_version(connection: sqlite3.Connection) -> int:
    """Return `user_version`; `Damaged` if it is one flipped bit away from the counter `schema`."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    has_counters = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'counters'"
    if connection.execute(has_counters).fetchone() is not None:
        row = connection.execute("SELECT value FROM counters WHERE name = 'schema'").fetchone()
        if row is not None and (version ^ int(row[0])).bit_count() == 1:
            raise Damaged(f"it says that its schema is {version}, which is {row[0]}")
    return version


def check_schema(connection: sqlite3.Connection) -> None:
    """Refuse a schema that is not exactly ours: a reader cannot migrate."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    latest = migrations()[-1][0]
    if version > latest:
        raise _too_new(version, latest)
    if version < latest:
        raise StoreUnusable("the database is of an older version; start the gateway once to update it")


def _too_new(version: int, latest: int) -> SchemaTooNew:
    return SchemaTooNew(
        f"the database has schema {version}, this gateway knows {latest}: update it, or use a data "
        "directory of its own; nothing was changed"
    )


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script singly, because `executescript` would commit behind our back."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the body between BEGIN IMMEDIATE and COMMIT; ROLLBACK on any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
