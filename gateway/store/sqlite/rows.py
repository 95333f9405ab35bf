"""Rows of readings: how they go into the table and out again, their places in the queue, their checksums."""

import itertools
import sqlite3
from functools import lru_cache
from operator import itemgetter
from typing import Any

from gateway.domain.reading import Reading
from gateway.store.records import Arrival
from gateway.store.sqlite.engine import checksum
from gateway.store.sqlite.engine.writer import GROUP_ROWS, Row

READING_COLUMNS = Reading._fields
_PICK_CHECKED = itemgetter(*map(READING_COLUMNS.index, checksum.MEMBERS))

_COLUMNS = ("seq", *READING_COLUMNS, "raw", "channel", "delivery")
_WIDTH = len(_COLUMNS) + 2
"""Behind the columns: the checksum of the content, and the device's key."""

ISO_CREATED_AT = "strftime('%Y-%m-%dT%H:%M:%S', created_at, 'unixepoch') || '+00:00'"

ADDRESS = "coalesce(json_extract(original, '$.ip'), ip)"
"""SQL for the address that a device's reading came from: an edit may change `ip`, and keeps it as it was."""

READING_JSON = f"""
'{{"_id":{{"$oid":"' || lower(hex(oid)) || '"}},"login_id":' || :login_id
|| ',"api_key":"","brewevent_id":' || :brewevent_id || ',"recipe_id":' || :recipe_id
|| ',"ip":' || json_quote(ip) || ',"name":' || json_quote(name)
|| ',"gravity":"' || coalesce(shown_gravity, gravity) || '","gravity_unit":"' || gravity_unit
|| '","temp":"' || coalesce(shown_temp, temp) || '","temp_unit":"' || temp_unit
|| '","comment":' || json_quote(comment) || ',"beer":' || json_quote(beer)
|| ',"interval":' || json_quote(interval) || ',"created_at":"' || {ISO_CREATED_AT}
|| '","source":' || json_quote(source)
|| CASE WHEN extra IS NULL THEN '}}' ELSE ',' || substr(extra, 2) END
"""
"""The 16 members of the specification, in its order, then the extra members of an import."""

FIND_OID = "SELECT seq, session_id FROM readings WHERE oid = ?"
TAKE_BACK = "DELETE FROM readings WHERE oid = ?"
DELETE_SEQ = "DELETE FROM readings WHERE seq = ?"
FORGET = (
    "DELETE FROM refusals WHERE seq = :seq",
    "DELETE FROM suspects WHERE oid = :oid",
    "DELETE FROM readings WHERE seq = :seq",
)
"""Statements that delete a reading, with what is noted about it."""

NEXT_SEQ = """
SELECT max(coalesce((SELECT max(seq) FROM readings), 0),
           coalesce((SELECT max(max(watermark, coalesce(attempt_until, 0))) FROM deliveries), 0),
           coalesce((SELECT max(watermark) FROM lanes), 0),
           coalesce((SELECT max(after) FROM routes), 0),
           (SELECT value FROM counters WHERE name = 'seq_floor')) + 1
"""
INSERT_IMPORTED = f"""
INSERT INTO readings (seq, {", ".join(READING_COLUMNS)}, session_id, crc)
VALUES ({", ".join("?" * (len(READING_COLUMNS) + 3))})
"""
INSERT_MIRRORED = f"""
INSERT INTO readings (seq, {", ".join(READING_COLUMNS)}, session_id, crc, mirrored)
VALUES ({", ".join("?" * (len(READING_COLUMNS) + 3))}, 1)
"""


def next_seq(connection: sqlite3.Connection) -> int:
    """Return the next free place in the queue: above every reading, every watermark, every route's start."""
    # Not left to SQLite: after a reset it would hand out numbers again that lie below a watermark, and such
    # readings would never be forwarded.
    value: int = connection.execute(NEXT_SEQ).fetchone()[0]
    return value


def moved_sql(chosen: str, more: str = "") -> str:
    """Return SQL that gives the `chosen` readings new places in the queue, from `:first` on, by time."""
    # One statement, because each of many in a savepoint would go through all that the earlier ones noted in
    # memory for its rollback: twenty thousand readings would take twelve seconds.
    return f"""
    UPDATE readings SET seq = m.place{more} FROM (
        SELECT seq AS was, :first - 1 + row_number() OVER (ORDER BY created_at, seq) AS place
        FROM readings WHERE {chosen}) AS m
    WHERE seq = m.was
    """


def insert_rows(connection: sqlite3.Connection, rows: list[Row]) -> None:
    """Insert readings of devices, `GROUP_ROWS` of them by one statement."""
    for first in range(0, len(rows), GROUP_ROWS):
        group = rows[first : first + GROUP_ROWS]
        size = 1 << (len(group) - 1).bit_length()
        numbered = itertools.chain.from_iterable((place, *row) for place, row in enumerate(group))
        blanks = itertools.repeat(None, (size - len(group)) * _WIDTH)
        connection.execute(_insert_sql(size), [*numbered, *blanks])


@lru_cache
def _insert_sql(size: int) -> str:
    """Return the SQL for `size` rows, a power of two, filled with NULL rows: few texts stay prepared."""
    row = f"({','.join('?' * _WIDTH)})"
    picked = ", ".join(f"v.column{place}" for place in range(2, _WIDTH - 1))
    crc = checksum.stored_sql(f"v.column{_WIDTH - 1}", "d.session_id")
    return (
        f"INSERT INTO readings ({', '.join(_COLUMNS)}, crc, device_id, session_id) "
        f"SELECT ({NEXT_SEQ}) + v.column1, {picked}, {crc}, d.id, d.session_id "
        f"FROM (VALUES {','.join([row] * size)}) v LEFT JOIN devices k ON k.key = v.column{_WIDTH} "
        "LEFT JOIN devices d ON d.id = coalesce((SELECT id FROM devices WHERE id = k.merged_into), k.id) "
        "WHERE v.column1 IS NOT NULL"
    )


def imported(place: int, reading: Reading, session_id: int) -> list[Any]:
    """Make a row for `INSERT_IMPORTED`: place, members, brew session, checksum."""
    oid = bytes.fromhex(reading.oid)
    crc = checksum.stored_crc(checksum.content_crc(oid, _PICK_CHECKED(reading), None), session_id)
    return [place, oid, *reading[1:], session_id, crc]


def row_of(arrival: Arrival) -> Row:
    """Make a row for `insert_rows`: members, provenance, checksum of the content, device key."""
    oid, raw = bytes.fromhex(arrival.reading.oid), arrival.raw
    crc = checksum.content_crc(oid, _PICK_CHECKED(arrival.reading), raw)
    return (oid, *arrival.reading[1:], raw, arrival.channel, arrival.delivery, crc, arrival.device_key)
