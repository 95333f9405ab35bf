"""The database: which SQLite, what schema, whether it is sound, what waits in it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.doctor.finding import Context, Finding, ok, problem, warning
from gateway.store.protocol import Store
from gateway.store.sqlite.engine import inspection
from gateway.store.sqlite.engine.connections import has_wal_reset_bug, open_reader
from gateway.store.sqlite.engine.schema import Damaged, migrations
from gateway.store.sqlite.store import SqliteStore

SALVAGED = "start the gateway: it keeps the damaged file aside, salvages what can be read, and goes on"


@asynccontextmanager
async def opened(case: Context) -> AsyncIterator[Store]:
    """The store, for looking; `StoreUnavailable` where it is not of this version."""
    store = SqliteStore(case.data_dir)
    try:
        await store.open_read_only()
        yield store
    finally:
        await store.close()


def usable(case: Context) -> bool:
    """Whether there is a database that `opened` opens."""
    return case.database.exists() and schema_of(case.database) == migrations()[-1][0]


def schema_of(database: Path) -> int | None:
    """The schema's version; None where it cannot be read."""
    try:
        connection = open_reader(database)
        try:
            version: int = connection.execute("PRAGMA user_version").fetchone()[0]
            return version
        finally:
            connection.close()
    except sqlite3.Error:
        return None


async def version(_: Context) -> Sequence[Finding]:
    """Whether SQLite has the WAL-reset bug (sqlite.org/wal.html#walresetbug)."""
    if not has_wal_reset_bug():
        return [ok(f"{sqlite3.sqlite_version} is without the WAL-reset bug")]
    return [
        ok(
            f"{sqlite3.sqlite_version} has the WAL-reset bug, which needs two connections that write: here "
            "one does all writing, so it is safe. Let no other program write to the file (Litestream)"
        )
    ]


async def file(case: Context) -> Sequence[Finding]:
    """Schema, and a look at the file that takes half a second at most."""
    if not case.database.exists():
        return [ok("there is none yet; the first start makes it")]
    found, latest = await asyncio.to_thread(schema_of, case.database), migrations()[-1][0]
    if found is None:
        return [problem(f"{case.database} cannot be read", SALVAGED)]
    if found > latest:
        return [
            problem(f"its schema is {found}, this gateway knows {latest}", "install the newer version again")
        ]
    if found < latest:
        return [
            ok(f"its schema is {found}; the next start makes it {latest}, and keeps a copy of what there is")
        ]
    try:
        await asyncio.to_thread(_look, case.database)
    except Damaged as error:
        return [problem(f"{case.database} is damaged: {error}", SALVAGED)]
    async with opened(case) as store:
        condition, readings = await store.upkeep.condition(), await store.readings.count()
    text = f"schema {found}, {readings:,} readings"
    if condition.salvaging:
        return [
            warning(
                f"{text}; others are still being salvaged from a damaged file", "wait: forwarding waits too"
            )
        ]
    return [ok(f"{text}; all verified {_when(condition.scrubbed_at, case.clock.now())}")]


def _look(database: Path) -> None:
    connection = open_reader(database)
    try:
        inspection.check(connection)
    finally:
        connection.close()


def _when(scrubbed_at: int, now: float) -> str:
    return (
        f"{max(0, int(now - scrubbed_at)) // 3600} hours ago"
        if scrubbed_at
        else "never so far; that takes a day"
    )


async def quarantine(case: Context) -> Sequence[Finding]:
    """What nobody understood."""
    if not usable(case):
        return []
    async with opened(case) as store:
        state = await store.quarantine.state()
    if state.pushed_out:
        text = f"{state.items} payloads, and {state.pushed_out} older ones were pushed out"
        return [
            warning(text, "look at `quarantine list`, then `quarantine replay` or clear what you do not need")
        ]
    if state.items:
        return [
            warning(
                f"{state.items} payloads were not understood", "look at `hydrometer-gateway quarantine list`"
            )
        ]
    return [ok("empty")]
