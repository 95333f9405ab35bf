"""The readable rows of a damaged file go into a fresh one: small tables first, readings last and in slices.

A reading whose checksum is wrong goes into quarantine. Readings that wait to be forwarded count as unsettled:
they are read back before anything is sent again. Every step may be repeated, so the process may end any time.
"""

import logging
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.store.sqlite.damaged import quarantine_row
from gateway.store.sqlite.engine import checksum
from gateway.store.sqlite.engine.pages import Pages, Row
from gateway.store.sqlite.keys import OWNER_NAME
from gateway.store.sqlite.rows import next_seq

log = logging.getLogger(__name__)

FIRST = ("accounts", "keys", "folders", "brewsessions", "devices", "deliveries")
"""Small tables that everything else needs; tables of later schemas follow them."""

LATER = ("recipes", "recipe_texts", "recipe_search", "photos", "mirrored", "audit", "quarantine")

READINGS = "readings"
OWN = frozenset({"counters", READINGS})
"""Tables that are not copied as they are."""

DERIVED = ("sqlite_", "recipe_trigrams")
"""Prefixes of tables that are derived from other tables."""

KEPT_COUNTERS = ("seq_floor", "unsettled_until", "damaged", "pruned", "quarantine_pushed_out")

PLACES_SPARED = 2**20
"""Places in the queue left free above all places seen: unreadable pages may hold later ones."""

BYTES_PER_READING = 32
"""The least size of a reading: with the file's size it bounds the number of readings."""

SLICE_S = 0.03
"""Seconds that one step may take of the writer."""

SLICE_ROWS = 1000

PLACEHOLDERS: Mapping[str, str] = {
    "accounts": f"""
        INSERT OR IGNORE INTO accounts (id, name, created_at)
        VALUES (:id, CASE :id WHEN 1 THEN '{OWNER_NAME}' ELSE 'salvaged ' || :id END, :now)""",
    "brewsessions": """
        INSERT OR IGNORE INTO brewsessions (id, account_id, batchcode, phase, created_at, updated_at)
        VALUES (:id, 1, 'salvaged ' || :id, '', :now, :now)""",
    "devices": """
        INSERT OR IGNORE INTO devices (id, key, family, stable_id, name, first_seen_at)
        VALUES (:id, 'salvaged:' || :id, 'ispindel', 'salvaged ' || :id, 'salvaged ' || :id, :now)""",
}
"""Rows in place of lost records that other records refer to."""

RESERVE = "UPDATE counters SET value = max(value, ?) WHERE name IN ('seq_floor', 'unsettled_until')"
UNSETTLE = """
UPDATE deliveries SET watermark = CASE WHEN watermark BETWEEN 0 AND :floor THEN watermark ELSE 0 END,
    attempt_until = :floor
"""
UNSETTLE_LANES = """
UPDATE lanes SET watermark = CASE WHEN watermark BETWEEN 0 AND :floor THEN watermark ELSE 0 END
"""
RESTART_ROUTES = "UPDATE routes SET after = :floor WHERE after NOT BETWEEN 0 AND :floor"
"""A start that cannot be: from now on, because nothing goes anywhere unasked."""

KEEP_COUNTER = "UPDATE counters SET value = max(value, ?) WHERE name = ?"
PROGRESS = """
UPDATE damages SET salvaged = :salvaged, quarantined = :quarantined, bad_pages = :bad_pages,
    finished_at = :finished_at WHERE id = :id
"""


class Recovery:
    """A damaged file on its way into the database; the methods run in a transaction of the caller."""

    def __init__(
        self, connection: sqlite3.Connection, aside: Path, damage_id: int, *, with_wal: bool = True
    ) -> None:
        listed = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        tables = [name for (name,) in listed if not name.startswith(DERIVED)]
        self._columns = {table: _columns(connection, table) for table in tables}
        self._pages = Pages(aside, with_wal=with_wal)
        self._roots = self._pages.roots(self._columns.keys())
        self._damage_id = damage_id
        self._size = aside.stat().st_size
        self._salvaged = 0
        self._quarantined = 0

    def begin(self, connection: sqlite3.Connection) -> None:
        """Copy everything that the gateway needs to take readings again."""
        connection.execute(PLACEHOLDERS["accounts"], {"id": 1, "now": int(time.time())})
        others = [table for table in self._columns if table not in {*FIRST, *LATER, *OWN}]
        for table in (*FIRST, *others):
            for row in self._rows(table):
                self._insert(connection, table, row)
        for row in self._rows("counters"):
            if len(row[1]) == 2 and row[1][0] in KEPT_COUNTERS and isinstance(row[1][1], int):
                connection.execute(KEEP_COUNTER, (row[1][1], row[1][0]))
        # A place in the queue above every reading that may come out of the file.
        root = self._roots.get(READINGS)
        seen = max(next_seq(connection), self._pages.highest(root) if root else 0)
        floor = min(seen, 2**60) + self._size // BYTES_PER_READING + PLACES_SPARED
        connection.execute(RESERVE, (floor,))
        connection.execute(UNSETTLE, {"floor": floor})
        connection.execute(UNSETTLE_LANES, {"floor": floor})
        connection.execute(RESTART_ROUTES, {"floor": floor})

    def steps(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Copy the rest, a slice at each step; the caller commits in between."""
        until, rows = time.monotonic() + SLICE_S, 0
        for table, row in self._rest():
            if table == READINGS:
                self._reading(connection, row)
            else:
                self._insert(connection, table, row)
            rows += 1
            if rows >= SLICE_ROWS or time.monotonic() > until:
                self._note(connection, None)
                yield
                until, rows = time.monotonic() + SLICE_S, 0
        self._note(connection, int(time.time()))

    def close(self) -> None:
        """Close the damaged file; it stays where it is."""
        self._pages.close()

    def _rest(self) -> Iterator[tuple[str, Row]]:
        for table in LATER:
            for row in self._rows(table):
                yield table, row
        before = self._pages.bad
        for row in self._rows(READINGS):
            yield READINGS, row
        if self._pages.bad > before or READINGS not in self._roots:
            for row in self._pages.orphans(_is_reading):
                yield READINGS, row

    def _rows(self, table: str) -> Iterator[Row]:
        root = self._roots.get(table)
        return iter(()) if root is None else self._pages.rows(root)

    def _reading(self, connection: sqlite3.Connection, row: Row) -> None:
        names = self._columns[READINGS]
        seq, values = row[0], row[1][: len(names)]
        crc_at = names.index("crc")
        shown = dict(zip(names, values, strict=False))
        is_sound = _is_reading(values)
        if is_sound and len(values) > crc_at:
            try:
                is_sound = bool(shown["crc"] == _crc(shown))
            except (TypeError, ValueError):
                is_sound = False
        if not is_sound:
            evidence = {
                name: value
                if value is None or isinstance(value, bytes)
                else str(value).encode("utf-8", "surrogateescape")
                for name, value in shown.items()
            }
            self._quarantined += quarantine_row(connection, seq, evidence)
            return
        if len(values) <= crc_at:  # of a schema without checksums
            values = [*values, *[None] * (crc_at - len(values)), _crc(shown)]
        if not self._insert(connection, READINGS, (seq, values)):
            oid = (values[1],)
            if connection.execute("SELECT 1 FROM readings WHERE oid = ?", oid).fetchone() is None:
                self._insert(connection, READINGS, (next_seq(connection), values))
        self._salvaged += 1

    def _insert(self, connection: sqlite3.Connection, table: str, row: Row) -> bool:
        """Insert a row and return whether it is new; a row that the table does not take is left out."""
        names = self._columns[table]
        # Text without the bytes that are not UTF-8.
        values = [
            value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            if type(value) is str
            else value
            for value in row[1][: len(names)]
        ]
        if row[0] and values and values[0] is None:
            values[0] = row[0]
        columns = ", ".join(names[: len(values)])
        sql = f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({', '.join('?' * len(values))})"
        for parents_made in (False, True):
            try:
                return connection.execute(sql, values).rowcount > 0
            except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError):
                if parents_made:
                    break
                members = dict(zip(names, values, strict=False))
                for key in connection.execute(f"PRAGMA foreign_key_list({table})").fetchall():
                    parent, value = key[2], members.get(key[3])
                    if parent in PLACEHOLDERS and isinstance(value, int) and value > 0:
                        connection.execute(PLACEHOLDERS[parent], {"id": value, "now": int(time.time())})
        return False

    def _note(self, connection: sqlite3.Connection, finished_at: int | None) -> None:
        values = {
            "id": self._damage_id,
            "salvaged": self._salvaged,
            "quarantined": self._quarantined,
            "bad_pages": self._pages.bad,
            "finished_at": finished_at,
        }
        connection.execute(PROGRESS, values)
        if finished_at is not None:
            log.warning(
                "store: %d readings salvaged, %d damaged ones in quarantine, %d pages or rows unreadable",
                self._salvaged, self._quarantined, self._pages.bad,
            )  # fmt: skip


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})").fetchall()]


def _is_reading(values: Sequence[Any]) -> bool:
    """Return whether a row looks like a reading: 24 columns or more, an id of 12 bytes, an arrival."""
    return (
        len(values) >= 24
        and values[0] is None
        and isinstance(values[1], bytes)
        and len(values[1]) == 12
        and isinstance(values[4], int)
    )


def _crc(shown: Mapping[str, Any]) -> int:
    members = [shown.get(name) for name in checksum.MEMBERS]
    content = checksum.content_crc(shown["oid"], tuple(members), shown.get("raw"))
    return checksum.stored_crc(content, shown.get("session_id"))
