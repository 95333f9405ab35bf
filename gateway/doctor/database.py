"""Checks of the database: version of SQLite, schema, damage, quarantine."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from gateway.doctor.finding import Context, Finding, ok, problem, warning
from gateway.store.local import engine, inspect_file, latest_schema, open_read_only, schema_of
from gateway.store.protocol import Store

SALVAGED = "start the gateway: it keeps the damaged file aside, salvages what can be read, and goes on"


def opened(context: Context) -> AbstractAsyncContextManager[Store]:
    """Open the store for reading; `StoreUnavailable` if its schema is of another version."""
    return open_read_only(context.data_dir)


def usable(context: Context) -> bool:
    """Return whether `opened` can open the database."""
    return context.database.exists() and schema_of(context.data_dir) == latest_schema()


async def version(_: Context) -> Sequence[Finding]:
    """Check whether SQLite has the WAL-reset bug (sqlite.org/wal.html#walresetbug)."""
    used = engine()
    if not used.wal_reset_bug:
        return [ok(f"{used.version} is without the WAL-reset bug")]
    return [
        ok(
            f"{used.version} has the WAL-reset bug, which needs two connections that write. Here "
            "one connection writes all, so it is safe. Let no other program write to the file (Litestream)"
        )
    ]


async def file(context: Context) -> Sequence[Finding]:
    """Check the schema and the file, in half a second at most."""
    if not context.database.exists():
        return [ok("there is no database yet; the first start makes it")]
    found, latest = await asyncio.to_thread(schema_of, context.data_dir), latest_schema()
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
    damage = await asyncio.to_thread(inspect_file, context.data_dir)
    if damage is not None:
        return [problem(f"{context.database} is damaged: {damage}", SALVAGED)]
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


async def inbox(context: Context) -> Sequence[Finding]:
    """Say how many devices wait for the owner's word."""
    if not usable(context):
        return []
    async with opened(context) as store:
        state = await store.inbox.state()
    if not state.names:
        return [ok("nothing waits")]
    text = f"{state.names} of at most {state.names_max} devices wait, with {state.readings} readings"
    return [warning(text, "`inbox list`, then `inbox accept` or `inbox refuse` each")]


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
        payloads = "1 payload was" if state.items == 1 else f"{state.items:,} payloads were"
        return [warning(f"{payloads} not understood", "look at `hydrometer-gateway quarantine list`")]
    return [ok("empty")]
