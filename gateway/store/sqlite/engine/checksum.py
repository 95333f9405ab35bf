"""Checksums of readings: SQLite does not notice a bit that has flipped inside a value.

CRC-32 (zlib) over the identity, everything of a reading that is given out, and the bytes it came in. The brew
session is added afterwards, so that SQL alone can put a reading into another one.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any
from zlib import crc32

MEMBERS = (
    "created_at", "received_at", "name", "gravity", "gravity_unit", "temp", "temp_unit", "comment", "beer",
    "interval", "source", "ip", "extra", "shown_gravity", "shown_temp",
)  # fmt: skip
"""The columns that the checksum covers between `oid` and `raw`, in this order."""

_JOINED = "\0".join(["%s"] * len(MEMBERS))

FUNCTION = "reading_crc"
"""The SQL function for the checksum of a reading's content, on connections that went through `install`."""

_SESSIONS = 4_294_967_291
"""The largest prime below 2**32: any flipped bit of a session's id changes the remainder."""

_SPREAD = 1_481_765_933
"""Odd and below 2**31: different remainders give different sums, and no product exceeds 63 bits."""

_MASK = 0xFFFF_FFFF
_HALF = 0x8000_0000
"""Subtracted, so that checksums have a sign: else half of them would take six bytes instead of four."""


def content_crc(oid: bytes, members: tuple[Any, ...], raw: bytes | None) -> int:
    """Return the content's checksum, from values as in the columns, `members` in the order of `MEMBERS`."""
    text = _JOINED % members
    return crc32(raw or b"", crc32(text.encode("utf-8", "replace"), crc32(oid)))


def stored_crc(content: int, session_id: int | None) -> int:
    """Return the column `crc` of a reading with this content's checksum in this brew session."""
    return ((content + (session_id or 0) % _SESSIONS * _SPREAD) & _MASK) - _HALF


def stored_sql(content: str, session_id: str) -> str:
    """Return SQL for `stored_crc`, from SQL expressions for its two arguments."""
    return f"(((({content}) + coalesce({session_id}, 0) % {_SESSIONS} * {_SPREAD}) & {_MASK}) - {_HALF})"


def content_sql(alias: str = "", replaced: Sequence[str] = ()) -> str:
    """Return SQL for the content's checksum; parameters of the same name stand for `replaced` columns."""
    names = [f":{name}" if name in replaced else f"{alias}{name}" for name in ("oid", *MEMBERS, "raw")]
    return f"{FUNCTION}({', '.join(f'CAST({name} AS BLOB)' for name in names)})"


def intact_sql(alias: str = "") -> str:
    """Return an SQL condition that is true if a reading is as it was written."""
    return f"({alias}crc IS {stored_sql(content_sql(alias), f'{alias}session_id')})"


MOVED_SQL = stored_sql(f"crc + {_HALF} - coalesce(session_id, 0) % {_SESSIONS} * {_SPREAD}", ":session_id")
"""SQL for the checksum of a row that moves to brew session `:session_id`; a wrong checksum stays wrong."""


def install(connection: sqlite3.Connection) -> None:
    """Make `FUNCTION` known to a connection."""
    connection.create_function(FUNCTION, len(MEMBERS) + 2, _of_blobs, deterministic=True)


def _of_blobs(oid: bytes | None, *rest: bytes | None) -> int:
    """Return the content's checksum. Arguments are blobs: a flipped bit makes text that Python refuses."""
    text = b"\0".join(b"None" if value is None else value for value in rest[:-1])
    return crc32(rest[-1] or b"", crc32(text, crc32(oid or b"")))
