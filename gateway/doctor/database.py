"""The database: which SQLite, what schema, whether it is sound, what waits in it."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from gateway.doctor.finding import Context, Finding, ok, problem, warning
from gateway.store.local import engine, inspect_file, latest_schema, open_read_only, schema_of
from gateway.store.protocol import Store

SALVAGED = "start the gateway: it keeps the damaged file aside, salvages what can be read, and goes on"


def opened(case: Context) -> AbstractAsyncContextManager[Store]:
    """Open the store for reading; `StoreUnavailable` if it is not of this version."""
    return open_read_only(case.data_dir)


def usable(case: Context) -> bool:
    """Return whether there is a database that `opened` opens."""
    return case.database.exists() and schema_of(case.data_dir) == latest_schema()


async def version(_: Context) -> Sequence[Finding]:
    """Check whether SQLite has the WAL-reset bug (sqlite.org/wal.html#walresetbug)."""
    used = engine()
    if not used.wal_reset_bug:
        return [ok(f"{used.version} is without the WAL-reset bug")]
    return [
        ok(
            f"{used.version} has the WAL-reset bug, which needs two connections that write: here "
            "one does all writing, so it is safe. Let no other program write to the file (Litestream)"
        )
    ]


async def file(case: Context) -> Sequence[Finding]:
    """Schema, and a look at the file that takes half a second at most."""
    if not case.database.exists():
        return [ok("there is none yet; the first start makes it")]
    found, latest = await asyncio.to_thread(schema_of, case.data_dir), latest_schema()
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
    damage = await asyncio.to_thread(inspect_file, case.data_dir)
    if damage is not None:
        return [problem(f"{case.database} is damaged: {damage}", SALVAGED)]
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
