"""Checks of the database: version of SQLite, schema, damage, quarantine."""

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
async def opened(context: Context) -> AsyncIterator[Store]:
    """Open the store for reading; `StoreUnavailable` if its schema is of another version."""
    store = SqliteStore(context.data_dir)
    try:
        await store.open_read_only()
        yield store
    finally:
        await store.close()


def usable(context: Context) -> bool:
    """Return whether `opened` can open the database."""
    return context.database.exists() and schema_of(context.database) == migrations()[-1][0]


def schema_of(database: Path) -> int | None:
    """Return the schema's version; None if it cannot be read."""
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
    """Check whether SQLite has the WAL-reset bug (sqlite.org/wal.html#walresetbug)."""
    if not has_wal_reset_bug():
        return [ok(f"{sqlite3.sqlite_version} is without the WAL-reset bug")]
    return [
        ok(
            f"{sqlite3.sqlite_version} has the WAL-reset bug, which needs two connections that write. Here "
            "one connection writes all, so it is safe. Let no other program write to the file (Litestream)"
        )
    ]


async def file(context: Context) -> Sequence[Finding]:
    """Check the schema and the file, in half a second at most."""
    if not context.database.exists():
        return [ok("there is no database yet; the first start makes it")]
    found, latest = await asyncio.to_thread(schema_of, context.database), migrations()[-1][0]
    if found is None:
        return [problem(f"{context.database} cannot be read", SALVAGED)]
    if found > latest:
        return [
            problem(f"its schema is {found}, this gateway knows {latest}", "install the newer version again")
        ]
    if found < latest:
        return [
            ok(f"its schema is {found}; the next start makes it {latest}, and keeps a copy of the old file")
        ]
    try:
        await asyncio.to_thread(_inspect, context.database)
    except Damaged as error:
        return [problem(f"{context.database} is damaged: {error}", SALVAGED)]
    async with opened(context) as store:
        condition, readings = await store.upkeep.condition(), await store.readings.count()
    text = f"schema {found}, {readings:,} readings"
    if condition.salvaging:
        return [
            warning(
                f"{text}; others are still being salvaged from a damaged file", "wait: forwarding waits too"
            )
        ]
    verified = "not all rows are verified yet; that takes a day"
    if condition.scrubbed_at:
        hours = max(0, int(context.clock.now() - condition.scrubbed_at)) // 3600
        verified = f"all rows verified {hours} hours ago"
    return [ok(f"{text}; {verified}")]


def _inspect(database: Path) -> None:
    connection = open_reader(database)
    try:
        inspection.check(connection)
    finally:
        connection.close()


async def quarantine(context: Context) -> Sequence[Finding]:
    """Check for payloads in quarantine."""
    if not usable(context):
        return []
    async with opened(context) as store:
        state = await store.quarantine.state()
    if state.pushed_out:
        text = f"{state.items} payloads, and {state.pushed_out} older ones were pushed out"
        return [
            warning(
                text,
                "look at `quarantine list`, then `quarantine replay` or clear payloads that you do not need",
            )
        ]
    if state.items:
        return [
            warning(
                f"{state.items} payloads were not understood", "look at `hydrometer-gateway quarantine list`"
            )
        ]
    return [ok("empty")]
