"""What the figures of brews are made of. Queries of whole brews read an index alone."""

import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from gateway.domain.units import PLAUSIBLE_SG
from gateway.store.records import BrewActivity, BrewFacts, Expected, FoundValue, NewSample, StoredSample
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.searching import SEPARATOR

PAGE_ROWS = 2_000
"""Readings in a page of samples: 2 ms."""

STEP_BACK = 10_000
"""Places in the queue that are looked at once more where the last known reading is gone."""

COUNTS = "sg IS NOT NULL AND left_out IS NULL"
"""A reading that counts: it has a gravity, and no flag that speaks against that."""

BY_HAND = "oid IN (SELECT oid FROM brew_events WHERE session_id = :session AND oid IS NOT NULL)"

ENDS = f"""
SELECT (SELECT created_at FROM readings WHERE session_id = :session AND {COUNTS} ORDER BY created_at LIMIT 1),
       (SELECT max(created_at) FROM readings WHERE session_id = :session)
"""
LAST = f"""
SELECT {{value}}, created_at, device_id, {BY_HAND} FROM readings
WHERE session_id = :session AND {{condition}} ORDER BY created_at DESC, oid DESC LIMIT 1
"""
LAST_GRAVITY = LAST.format(value="sg", condition=COUNTS)
LAST_TEMP = LAST.format(value="celsius", condition="celsius IS NOT NULL")
NO_TEST = """(r.left_out IS NULL OR r.flags NOT GLOB '*"test_send"*')"""
BELIEVED = "r.oid NOT IN (SELECT oid FROM suspects)"
SG = f"iif({BELIEVED} AND r.left_out IS NULL, r.sg, NULL)"
CELSIUS = f"iif({BELIEVED} AND {NO_TEST}, r.celsius, NULL)"
"""What counts for the insight. Flags are looked at where a reading is left out: hardly ever."""

SAMPLES = f"""
SELECT r.oid, r.device_id, r.created_at, {SG}, {CELSIUS} FROM readings r
WHERE r.session_id = :session AND (r.created_at, r.oid) > (:at, :oid) AND r.created_at <= :until
AND NOT {BY_HAND.replace("oid IN", "r.oid IN")} {{arrived}}
ORDER BY r.created_at, r.oid LIMIT {PAGE_ROWS}
"""
ALL_SAMPLES = SAMPLES.format(arrived="")
ARRIVED_SAMPLES = SAMPLES.format(arrived="AND r.received_at <= :arrived_by * 1000 + 999")
ARRIVALS = f"""
SELECT r.seq, r.oid, r.session_id, r.device_id, r.created_at, {SG}, {CELSIUS} FROM readings r
WHERE r.seq >= :seq AND NOT EXISTS (
    SELECT 1 FROM brew_events e WHERE r.device_id IS NULL AND e.session_id = r.session_id AND e.oid = r.oid)
ORDER BY r.seq LIMIT {PAGE_ROWS}
"""
NEWEST = "SELECT seq, oid FROM readings ORDER BY seq DESC LIMIT 1"

RECIPE = """
SELECT t.record, json_extract(t.ingredients, '$.yeasts') FROM brewsessions s
JOIN recipe_texts t ON t.recipe_id = s.recipe_id WHERE s.id = ?
"""
FINAL = """
SELECT json_extract(t.record, '$.fg') FROM brewsessions s JOIN recipe_texts t ON t.recipe_id = s.recipe_id
WHERE s.id = :session
"""
ACTIVITY = f"""
SELECT s.id, s.batchcode, s.phase, s.ended_at, EXISTS (SELECT 1 FROM devices WHERE session_id = s.id),
       max(s.updated_at,
           coalesce((SELECT max(created_at) FROM readings WHERE session_id = s.id), 0),
           coalesce((SELECT max(at) FROM brew_events WHERE session_id = s.id), 0)),
       casefold(s.batchcode) || '{SEPARATOR}' || coalesce(r.title_folded, '')
FROM brewsessions s LEFT JOIN recipes r ON r.id = s.recipe_id
WHERE s.account_id = ? AND s.deleted = 0 ORDER BY s.id
"""
SOURCES = """
SELECT d.session_id, k.key FROM devices k
LEFT JOIN devices d ON d.id = coalesce((SELECT id FROM devices WHERE id = k.merged_into), k.id)
WHERE d.session_id IS NOT NULL ORDER BY k.key
"""


class SqliteFigures:
    """The `FigureStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def activity(self, account_id: int) -> list[BrewActivity]:
        async with self._database.reader() as reader:
            rows = await reader.run(lambda c: c.execute(ACTIVITY, (account_id,)).fetchall())
        return [BrewActivity(*row)._replace(has_device=bool(row[4])) for row in rows]

    async def tags(self, session_ids: Sequence[int]) -> dict[int, str]:
        if not self._database.is_writable:
            return {}
        changes = self._writer.changes
        works = changes.works  # before the look at the devices, as in `SqliteReadings.version`
        async with self._database.reader() as reader:
            rows = await reader.run(lambda c: c.execute(SOURCES).fetchall())
        keys = defaultdict(list)
        for session_id, key in rows:
            keys[session_id].append(key)
        return {
            wanted: changes.tag(works, keys[wanted], self._database.repairs, wanted) for wanted in session_ids
        }

    async def facts(self, session_ids: Sequence[int]) -> dict[int, BrewFacts]:
        async with self._database.reader() as reader:
            return await reader.run(
                lambda connection: {wanted: _facts(connection, wanted) for wanted in session_ids}
            )

    async def expected(self, session_id: int) -> Expected:
        async with self._database.reader() as reader:
            found = await reader.run(lambda c: c.execute(RECIPE, (session_id,)).fetchone())
        if found is None:
            return Expected()
        record, yeasts = json.loads(found[0]), json.loads(found[1] or "[]")
        low = [_number(yeast.get("templo")) for yeast in yeasts]
        high = [_number(yeast.get("temphi")) for yeast in yeasts]
        return Expected(
            _plausible(record.get("og")),
            _plausible(record.get("fg")),
            min((value for value in low if value is not None), default=None),
            max((value for value in high if value is not None), default=None),
        )

    async def samples(
        self, session_id: int, place: tuple[int, bytes], until: int, *, arrived_by: int | None = None
    ) -> list[StoredSample]:
        which = {
            "session": session_id, "at": place[0], "oid": place[1], "until": until, "arrived_by": arrived_by,
        }  # fmt: skip
        sql = ALL_SAMPLES if arrived_by is None else ARRIVED_SAMPLES
        async with self._database.reader() as reader:
            rows = await reader.run(lambda c: c.execute(sql, which).fetchall())
        return list(map(StoredSample._make, rows))

    async def arrivals(self, after: tuple[int, bytes]) -> list[NewSample]:
        async with self._database.reader() as reader:
            rows = await reader.run(_arrivals, *after)
        return list(map(NewSample._make, rows))

    async def newest(self) -> tuple[int, bytes]:
        async with self._database.reader() as reader:
            return await reader.run(lambda c: c.execute(NEWEST).fetchone()) or (0, b"")


def _arrivals(connection: sqlite3.Connection, seq: int, oid: bytes) -> list[Any]:
    rows = connection.execute(ARRIVALS, {"seq": seq}).fetchall()
    if seq == 0 or (rows and rows[0][:2] == (seq, oid)):
        return rows[1:] if seq else rows
    # Deleted, or with a new place: then new ones may stand on places below it.
    return connection.execute(ARRIVALS, {"seq": max(seq - STEP_BACK, 0)}).fetchall()


def _facts(connection: sqlite3.Connection, session_id: int) -> BrewFacts:
    which = {"session": session_id}

    def found(sql: str) -> FoundValue | None:
        values = connection.execute(sql, which).fetchone()
        return values and FoundValue(*values)._replace(by_hand=bool(values[3]))

    first_at, last_at = connection.execute(ENDS, which).fetchone()
    final = connection.execute(FINAL, which).fetchone()
    return BrewFacts(
        first_at=first_at,
        last_at=last_at,
        gravity=found(LAST_GRAVITY),
        temp=found(LAST_TEMP),
        final=None if final is None else _plausible(final[0]),
    )


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _plausible(text: str | None) -> float | None:
    """Return the specific gravity of a recipe's text, None if it is none."""
    sg, (low, high) = _number(text), PLAUSIBLE_SG
    return sg if sg is not None and low < sg < high else None
