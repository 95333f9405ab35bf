"""Opening the write connection of a database that is believed to be sound."""

import logging
import sqlite3
from pathlib import Path

from gateway.errors import StoreUnavailable, StoreUnusable
from gateway.store.sqlite.engine import inspection
from gateway.store.sqlite.engine.codes import in_words, is_damage
from gateway.store.sqlite.engine.connections import open_writer
from gateway.store.sqlite.engine.copying import copy_before_migration
from gateway.store.sqlite.engine.schema import Damaged, migrate

log = logging.getLogger(__name__)

REMEDY = "start the gateway: it keeps the damaged file aside and salvages what can be read"


def open_as_it_is(path: Path) -> sqlite3.Connection:
    """Open the write connection and migrate the schema; damage is `StoreUnusable` and left alone."""
    try:
        inspection.before_opening(path)
        return open_sound(path, thorough=False)
    except Damaged as error:
        raise StoreUnusable(f"cannot open {path}: {error}; {REMEDY}") from error


def open_sound(path: Path, *, thorough: bool) -> sqlite3.Connection:
    """Open the write connection and migrate the schema; `Damaged` if SQLite or a `thorough` check says so."""
    connection = None
    try:
        connection = open_writer(path)
        migrate(connection, _copy_if_possible)
        if thorough:
            inspection.check(connection)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if is_damage(error) or isinstance(error, UnicodeDecodeError):  # SQLite quoting garbage
            raise Damaged(in_words(error)) from error
        raise
    return connection


def _copy_if_possible(connection: sqlite3.Connection, version: int) -> None:
    try:
        copy_before_migration(connection, version)
    except StoreUnavailable as error:
        if error.__cause__ is not None and is_damage(error.__cause__):
            raise Damaged(str(error.__cause__)) from error
        log.warning("store: migrating without a copy of the database: %s", error)
