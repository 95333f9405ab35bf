"""What the figures of brews are made of. Every query reads an index alone, and no reading."""

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from gateway.domain.units import PLAUSIBLE_SG
from gateway.store.records import BrewActivity, BrewFacts, FoundValue, MeanGravity
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.searching import SEPARATOR

HOUR_S = 3600

BEGINNING_S = 12 * HOUR_S
"""Seconds of the beginning of a brew, in which its original gravity is measured."""

RECENT_S = 6 * HOUR_S
"""Seconds of the last hours, and of each average."""

DAY_S = 24 * HOUR_S

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
LAST_OF_DEVICE = f"""
SELECT created_at, device_id FROM readings
WHERE session_id = :session AND {COUNTS} AND NOT {BY_HAND} ORDER BY created_at DESC, oid DESC LIMIT 1
"""
BEGINNING = f"""
SELECT sg FROM readings
WHERE session_id = :session AND created_at >= :since AND created_at < :since + {BEGINNING_S} AND {COUNTS}
"""
OF_DEVICE = f"""
session_id = :session AND created_at > :until - {RECENT_S} AND created_at <= :until
AND device_id IS :device AND {COUNTS}
"""
GRAVITIES = f"SELECT sg FROM readings WHERE {OF_DEVICE} AND NOT {BY_HAND}"
MEAN = f"SELECT avg(sg) FROM readings WHERE {OF_DEVICE} AND NOT {BY_HAND}"

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

    async def facts(self, session_ids: Sequence[int], means: int) -> dict[int, BrewFacts]:
        async with self._database.reader() as reader:
            return await reader.run(
                lambda connection: {wanted: _facts(connection, wanted, means) for wanted in session_ids}
            )

    async def means(self, session_id: int, number: int) -> list[MeanGravity]:
        async with self._database.reader() as reader:
            return await reader.run(_means, session_id, number)


def _facts(connection: sqlite3.Connection, session_id: int, means: int) -> BrewFacts:
    which: dict[str, Any] = {"session": session_id}

    def column(sql: str, **more: Any) -> tuple[float, ...]:
        return tuple(value for (value,) in connection.execute(sql, which | more))

    def found(sql: str) -> FoundValue | None:
        values = connection.execute(sql, which).fetchone()
        return values and FoundValue(*values)._replace(by_hand=bool(values[3]))

    first_at, last_at = connection.execute(ENDS, which).fetchone()
    recent: tuple[float, ...] = ()
    before: tuple[float, ...] = ()
    latest = connection.execute(LAST_OF_DEVICE, which).fetchone()
    if latest is not None:
        until, device = latest
        recent = column(GRAVITIES, until=until, device=device)
        before = column(GRAVITIES, until=until - DAY_S, device=device)
    final = connection.execute(FINAL, which).fetchone()
    return BrewFacts(
        first_at=first_at,
        last_at=last_at,
        gravity=found(LAST_GRAVITY),
        temp=found(LAST_TEMP),
        first_hours=() if first_at is None else column(BEGINNING, since=first_at),
        recent=recent,
        day_before=before,
        means=tuple(_means(connection, session_id, means)),
        final=None if final is None else _plausible(final[0]),
    )


def _means(connection: sqlite3.Connection, session_id: int, number: int) -> list[MeanGravity]:
    which: dict[str, Any] = {"session": session_id}
    latest = connection.execute(LAST_OF_DEVICE, which).fetchone()
    if latest is None:
        return []
    newest, which["device"] = latest
    return [
        MeanGravity(until - RECENT_S, *connection.execute(MEAN, which | {"until": until}).fetchone())
        for until in range(newest, newest - number * RECENT_S, -RECENT_S)
    ]


def _plausible(text: str | None) -> float | None:
    """Return the specific gravity of a recipe's text, None if it is none."""
    try:
        sg = float(text or "")
    except ValueError:
        return None
    low, high = PLAUSIBLE_SG
    return sg if low < sg < high else None
