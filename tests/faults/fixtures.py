"""Databases of older schemas, made by running the migrations of that time and filling what they made."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from gateway.domain.objectid import new_object_id
from gateway.store.sqlite.engine import checksum
from gateway.store.sqlite.engine.connections import PAGE_BYTES
from gateway.store.sqlite.engine.schema import RECORDED_SINCE, migrations, statements
from gateway.store.sqlite.keys import OWNER_NAME
from tests.faults.cloud import UPSTREAM_ID
from tests.faults.readings import body_of, mark_of, texts_of

TARGET = "http://cloud"
"""What the second brew session has been forwarded to."""

OLD_READINGS = 20
"""Of the second brew session: long ago, forwarded, and in the way of nobody who prunes."""

LONG_AGO = 1_600_000_000

READING = """
INSERT INTO readings (seq, oid, device_id, session_id, received_at, created_at, name, gravity, gravity_unit,
    temp, temp_unit, comment, beer, interval, source, ip, sg, celsius, channel, raw)
VALUES (?, ?, 1, ?, ?, ?, 'h0', ?, 'P', ?, 'C', ?, '', '900', 'iSpindel', '', 1.05, 20.0, 'http /ingest', ?)
"""


def old_database(path: Path, schema: int, readings: int, per_s: float = 1.0) -> list[str]:
    """Make one, with device h0 in brew session 1 and so many readings; their marks. Blocks.

    `per_s` says how close together they came, up to now.
    """
    marks = [mark_of("h0", 8_000_000 + number) for number in range(readings)]
    first = time.time() - readings / per_s
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        make(connection, schema)
        _fill(connection)
        connection.executemany(
            READING,
            (
                _row(OLD_READINGS + place, 1, mark, int(first + place / per_s))
                for place, mark in enumerate(marks, start=1)
            ),
        )
        connection.execute(f"PRAGMA user_version = {schema}")
        connection.execute("COMMIT")
    path.chmod(0o600)
    return marks


def make(connection: sqlite3.Connection, schema: int) -> None:
    """The tables of a version."""
    checksum.install(connection)
    for number, text in migrations():
        if number <= schema:
            for statement in statements(text):
                connection.execute(statement)
    if schema > RECORDED_SINCE:
        connection.execute("UPDATE counters SET value = ? WHERE name = 'schema'", (schema,))


def _fill(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO accounts (id, name, created_at) VALUES (1, ?, 0)", (OWNER_NAME,))
    for session in (1, 2):
        connection.execute(
            "INSERT INTO brewsessions (id, account_id, batchcode, phase, upstream_id, created_at, "
            "updated_at) VALUES (?, 1, 'FAULTS', 'Primary Fermentation', ?, 0, 0)",
            (session, UPSTREAM_ID + session - 1),
        )
    connection.execute(
        "INSERT INTO devices (id, key, family, stable_id, name, gravity_unit, interval_s, session_id, "
        "first_seen_at) VALUES (1, 'ispindel:h0', 'ispindel', 'h0', 'h0', 'P', 900, 1, 0)"
    )
    marks = [mark_of("old", number) for number in range(OLD_READINGS)]
    rows = (_row(place, 2, mark, LONG_AGO + place) for place, mark in enumerate(marks, start=1))
    connection.executemany(READING, rows)
    connection.execute(
        "INSERT INTO deliveries (target, session_id, watermark) VALUES (?, 2, ?)", (TARGET, OLD_READINGS)
    )


def _row(seq: int, session: int, mark: str, at: int) -> tuple[object, ...]:
    oid = bytes.fromhex(new_object_id(at))
    return seq, oid, session, at * 1000, at, *texts_of(mark), mark, body_of(mark, "h0")
