"""The same reads and writes by bare `sqlite3`: plain SQL, the same file and indexes, rows fetched, no JSON.

`python -m tests.benchmarks.api_ceilings reads DATABASE` answers lines `NAME COUNT VALUE` with the seconds of
each; `... writes DATABASE NEW-DATABASE` answers `SESSION BODY-FILE` with the seconds of that import.
"""

import json
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

PAGE = 20
"""Recipes of a search's page."""

OWNER = 1

MATCHING = """
SELECT r.id FROM recipes r WHERE r.account_id = ? AND r.deleted = 0 AND r.snapshot = 0
AND r.id IN ({found}) ORDER BY r.created_at DESC, r.id DESC
"""
INDEXED = MATCHING.format(found="SELECT rowid FROM recipe_trigrams WHERE recipe_trigrams MATCH ?")
SCANNED = MATCHING.format(found="SELECT recipe_id FROM recipe_search WHERE folded GLOB '*' || ? || '*'")
TRIGRAM = 3

RECIPE = """
SELECT r.*, f.name, t.record FROM recipes r JOIN recipe_texts t ON t.recipe_id = r.id
LEFT JOIN folders f ON f.id = r.folder_id WHERE r.id = ?
"""
BREWED = """
SELECT s.id, s.userdate FROM brewsessions s
WHERE s.deleted = 0
AND (s.recipe_id = :recipe OR s.recipe_id IN (SELECT id FROM recipes WHERE parent_id = :recipe))
"""

SESSION = """
SELECT s.*, f.name, json_extract(t.record, '$.title') FROM brewsessions s
LEFT JOIN folders f ON f.id = s.folder_id LEFT JOIN recipe_texts t ON t.recipe_id = s.recipe_id
WHERE s.deleted = 0 AND
"""
ONE_SESSION = f"{SESSION} s.id = ?"
ALL_SESSIONS = f"{SESSION} s.account_id = ? ORDER BY s.created_at DESC, s.id DESC LIMIT 100"
DEVICE = "SELECT id, name FROM devices WHERE session_id = ?"
LAST_READING = """
SELECT name, gravity, gravity_unit, temp, temp_unit, interval, beer, comment, created_at FROM readings
WHERE device_id = ? AND session_id = ? ORDER BY created_at DESC LIMIT 1
"""
MEASURED = (
    "SELECT gravity, gravity_unit, temp, temp_unit, extra, created_at FROM readings WHERE session_id = ? AND "
)
STATISTICS = (
    f"{MEASURED} sg IS NOT NULL ORDER BY created_at, oid LIMIT 1",
    f"{MEASURED} sg IS NOT NULL ORDER BY created_at DESC, oid DESC LIMIT 1",
    f"{MEASURED} celsius IS NOT NULL ORDER BY created_at DESC, oid DESC LIMIT 1",
    f"{MEASURED} json_extract(extra, '$.ph') <> '' ORDER BY created_at DESC, oid DESC LIMIT 1",
)

SHAPE = """
SELECT sql FROM sqlite_master WHERE tbl_name = 'readings' AND type IN ('table', 'index') AND sql IS NOT NULL
ORDER BY type DESC
"""
COLUMNS = (
    *("seq", "oid", "created_at", "received_at", "name", "gravity", "gravity_unit", "temp", "temp_unit"),
    *("comment", "beer", "interval", "source", "ip", "sg", "celsius", "session_id"),
)
INSERT = f"INSERT INTO readings ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
MEMBERS = ("name", "gravity", "gravity_unit", "temp", "temp_unit", "comment", "beer", "interval", "source")


def search(connection: sqlite3.Connection, keyword: str) -> list[int]:
    """All matches, and the first page of them."""
    indexed = len(keyword) >= TRIGRAM
    phrase = f'"{keyword}"' if indexed else keyword
    ids = [row[0] for row in connection.execute(INDEXED if indexed else SCANNED, (OWNER, phrase))]
    for recipe in ids[:PAGE]:
        connection.execute(RECIPE, (recipe,)).fetchone()
        connection.execute(BREWED, {"recipe": recipe}).fetchall()
    return ids


def session(connection: sqlite3.Connection, number: str) -> list[int]:
    """One brew session, its device, its statistics and its recipe."""
    row = connection.execute(ONE_SESSION, (number,)).fetchone()
    _device(connection, int(number))
    for statement in STATISTICS:
        connection.execute(statement, (number,)).fetchone()
    connection.execute(RECIPE, (row[2],)).fetchone()
    connection.execute(BREWED, {"recipe": row[2]}).fetchall()
    return [row[0]]


def sessions(connection: sqlite3.Connection, _: str) -> list[int]:
    """A hundred brew sessions, each with its device."""
    rows = connection.execute(ALL_SESSIONS, (OWNER,)).fetchall()
    for row in rows:
        _device(connection, row[0])
    return [row[0] for row in rows]


def _device(connection: sqlite3.Connection, number: int) -> None:
    for device, _ in connection.execute(DEVICE, (number,)).fetchall():
        connection.execute(LAST_READING, (device, number)).fetchone()


READS: dict[str, Callable[[sqlite3.Connection, str], list[int]]] = {
    "search": search,
    "session": session,
    "sessions": sessions,
}


def reads(database: str) -> None:
    """Answer every line with the seconds of each repetition and the ids that were found."""
    with closing(sqlite3.connect(f"{Path(database).as_uri()}?mode=ro", uri=True)) as connection:
        for line in sys.stdin:
            name, times, value = line.rstrip("\n").split(" ", 2)
            seconds = []
            for _ in range(int(times)):
                started = time.perf_counter()
                found = READS[name](connection, value)
                seconds.append(time.perf_counter() - started)
            print(json.dumps({"seconds": seconds, "found": found}), flush=True)


def writes(database: str, fresh: str) -> None:
    """Import bodies into a table and indexes like the gateway's, WAL and FULL, each in one transaction."""
    with closing(sqlite3.connect(f"{Path(database).as_uri()}?mode=ro", uri=True)) as connection:
        shape = [row[0] for row in connection.execute(SHAPE)]
    with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", *shape):
            connection.execute(statement)
        places = count(1)
        for line in sys.stdin:
            number, path = line.rstrip("\n").split(" ", 1)
            body = Path(path).read_bytes()
            started = time.perf_counter()
            now = int(time.time())
            rows = [
                _row(place, now, int(number), item)
                for place, item in zip(places, json.loads(body), strict=False)
            ]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(INSERT, rows)
            connection.execute("COMMIT")
            print(json.dumps(time.perf_counter() - started), flush=True)


def _row(place: int, now: int, number: int, item: dict[str, str]) -> tuple[Any, ...]:
    at = int(datetime.fromisoformat(item["created_at"]).timestamp())
    plato = float(item["gravity"])
    return (
        *(place, at.to_bytes(4, "big") + place.to_bytes(8, "big"), at, now * 1000),
        *(item[member] for member in MEMBERS),
        *("127.0.0.1", 1 + plato / (258.6 - plato / 258.2 * 227.1), float(item["temp"]), number),
    )


CEILINGS: dict[str, Callable[..., None]] = {"reads": reads, "writes": writes}


if __name__ == "__main__":
    CEILINGS[sys.argv[1]](*sys.argv[2:])
