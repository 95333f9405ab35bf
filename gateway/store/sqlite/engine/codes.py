"""What SQLite's errors mean (sqlite.org/rescode.html)."""

import sqlite3

CORRUPT, NOT_A_DATABASE = 11, 26
_PRIMARY = 0xFF
"""Extended result codes (sqlite.org/rescode.html) have the primary one in their lowest byte."""

_BROKEN_READS = frozenset({266, 522, 8_202, 8_458})
"""SQLITE_IOERR_READ, _SHORT_READ, _DATA and _CORRUPTFS: the medium gives back no or other bytes."""


def is_damage(error: BaseException) -> bool:
    """Whether SQLite says that the file is not what it wrote, or the medium cannot read it."""
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(error, sqlite3.Error) or code is None:
        return False
    return code & _PRIMARY in {CORRUPT, NOT_A_DATABASE} or code in _BROKEN_READS
