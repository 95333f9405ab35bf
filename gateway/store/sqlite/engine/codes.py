"""Meanings of SQLite's error codes (sqlite.org/rescode.html)."""

import sqlite3

from gateway import errors

PRIMARY = 0xFF
"""The bits of an extended result code that are the primary one."""

REASONS = {
    sqlite3.SQLITE_BUSY: "another program holds it",
    sqlite3.SQLITE_LOCKED: "another program holds it",
    sqlite3.SQLITE_READONLY: "it can only be read",
    sqlite3.SQLITE_IOERR: "the disk fails",
    sqlite3.SQLITE_CORRUPT: "its pages do not fit together",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_NOTADB: "the file is no database",
}
"""Reasons in the user's words, by primary code."""

_BROKEN_READS = frozenset({266, 522, 8_202, 8_458})
"""SQLITE_IOERR_READ, _SHORT_READ, _DATA and _CORRUPTFS: the medium gives back no or other bytes."""


def is_damage(error: BaseException) -> bool:
    """Return whether the file is not as SQLite wrote it, or the medium cannot read it."""
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(error, sqlite3.Error) or code is None:
        return False
    return code & PRIMARY in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or code in _BROKEN_READS


def in_words(error: BaseException) -> str:
    """Return why the database, a file or the network failed, in the user's words."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) & PRIMARY  # an error that Python made itself has none
        return REASONS.get(code, str(error))
    return errors.in_words(error)
