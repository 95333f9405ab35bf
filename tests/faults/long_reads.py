"""E3: a slow reader. E4: five years of data."""

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import aiohttp

from gateway.store.records import Finished
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from tests.faults.cloud import Upstream
from tests.faults.devices import Fleet
from tests.faults.drain import drained, until
from tests.faults.fixtures import TARGET, old_database
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import Gateway, running
from tests.faults.launcher import ANSWER_VARIABLE
from tests.faults.ledger import Ledger

KIB = 1024
DAY = 86_400

FORWARDED_S = 60.0
"""For what the slow reader asks for, to be forwarded first."""

READER_WAL_BYTES = 32 * KIB * KIB
CUT_S = 60.0
CUT_SLACK_S = 6.0
LONG_ANSWER = 20_000
"""Readings in what the slow reader asks for: more than sockets hold by themselves."""

READER_BYTES = 256
READER_PAUSE_S = 0.2


async def play_e3(run: Run) -> None:
    """`n` seconds is what the gateway allows a reader: 60 at full size, made shorter for the test suite."""
    upstream, ledger = Upstream(), Ledger(run.ledgers / "ledger")
    await upstream.start()
    data = run.sub("data")
    marks = await asyncio.to_thread(old_database, data / DATABASE_NAME, 3, LONG_ANSWER)
    env = {} if run.mutated or run.n >= CUT_S else {ANSWER_VARIABLE: str(run.n)}
    gateway = Gateway(data, upstream, env=env, forward_readings=LONG_ANSWER // 4)
    try:
        async with running(gateway):
            key = (data / "first-key").read_text("ascii").strip()
            async with Fleet(ledger, gateway.http_port, gateway.mqtt_port, 1, 0, pause_s=0.01) as fleet:
                await until(lambda: upstream.deliveries.total() >= len(marks), FORWARDED_S)
                await fleet.more(10)
                seconds, most = await _read_slowly(gateway, key, run.n + CUT_SLACK_S)
                run.step(run.n)
            run.figure("cut_after_s", round(seconds, 1))
            run.figure("wal_MiB", round(most / KIB / KIB, 1))
            run.expect(seconds < run.n + CUT_SLACK_S, f"a slow reader is still there after {seconds:.0f} s")
            run.expect(most <= READER_WAL_BYTES, f"the log has grown to {most} bytes")
            await drained(run, gateway, upstream, ledger, issued=marks)
    finally:
        await upstream.stop()
        ledger.close()


async def _read_slowly(gateway: Gateway, key: str, patience_s: float) -> tuple[float, int]:
    """Ask, and read next to nothing: seconds until the gateway gives up, and the largest log meanwhile."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port, limit=READER_BYTES)
    began, most = time.monotonic(), 0
    try:
        writer.write(
            f"GET /v1/fermentation/1 HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: {key}\r\n\r\n".encode()
        )
        while (seconds := time.monotonic() - began) < patience_s:
            if any("cut short" in line for line in gateway.lines):
                break
            await reader.read(1)
            most = max(most, gateway.wal_bytes())
            await asyncio.sleep(READER_PAUSE_S)
    finally:
        writer.close()
    return seconds, most


START_S = 5.0
SERIES_P95_S = 0.3
SLICE_S = 0.05
SLICES = 100
PRUNED_AT_ONCE = 100
QUERIES = 40
MONTH = 30 * DAY
FIVE_YEARS = 5 * 365 * DAY
JUDGED_FROM = 500_000
"""Readings from which on the times are judged."""


async def play_e4(run: Run) -> None:
    """Start, a month of a brew session again and again, and pruning."""
    data = run.sub("data")
    per_s = run.n / FIVE_YEARS
    await asyncio.to_thread(old_database, data / DATABASE_NAME, 3, run.n, per_s)
    gateway = Gateway(data)
    run.expect(await gateway.start(600), f"no start: {gateway.lines[-3:]}")  # migrates
    key = (data / "first-key").read_text("ascii").strip()
    run.figure("migration_s", round(gateway.starts[0], 1))
    await gateway.stop()
    run.step(run.n // 2)
    async with running(gateway):
        run.figure("start_s", round(gateway.starts[-1], 2))
        times = sorted([await _month(run, gateway, key) for _ in range(QUERIES)])
        run.figure("series_p95_s", round(times[int(len(times) * 0.95)], 3))
        await gateway.stop()
    slowest = await _prune(data)
    run.figure("prune_slice_ms", round(slowest * 1000, 1))
    if run.n >= JUDGED_FROM or run.mutated:
        run.expect(gateway.starts[-1] <= START_S, f"starting took {gateway.starts[-1]:.1f} s")
        run.expect(times[int(len(times) * 0.95)] <= SERIES_P95_S, "a month takes more than 300 ms")
        run.expect(slowest <= SLICE_S, f"a slice of pruning took {slowest * 1000:.0f} ms")
    run.step(run.n - run.n // 2)


async def _month(run: Run, gateway: Gateway, key: str) -> float:
    first = time.time() - run.random.uniform(MONTH, FIVE_YEARS)
    days = [time.strftime("%Y-%m-%d", time.gmtime(first + after)) for after in (0, MONTH)]
    url = f"{gateway.url}/v1/fermentation/1?from={days[0]}&to={days[1]}"
    began = time.monotonic()
    async with aiohttp.ClientSession() as client, client.get(url, headers={"X-API-KEY": key}) as response:
        await response.read()  # and no more: understanding 28,800 readings would take us as long again
    run.expect(response.status in (200, 404), f"a month of readings: {response.status}")
    return time.monotonic() - began


async def _prune(data: Path) -> float:
    """The longest slice: the 95th of a hundred, as the disk has slow moments of its own."""
    with closing(sqlite3.connect(data / DATABASE_NAME, isolation_level=None)) as connection:
        highest = connection.execute("SELECT max(seq) FROM readings").fetchone()[0]
        connection.execute("UPDATE devices SET session_id = NULL")
        sql = "INSERT INTO deliveries (target, session_id, watermark) VALUES (?, 1, ?)"
        connection.execute(sql, (TARGET, highest))
    store = SqliteStore(data)
    await store.open()
    try:
        slices = []
        for _ in range(SLICES):
            gone, seconds = await store.upkeep.prune(Finished(1, highest), int(time.time()), PRUNED_AT_ONCE)
            slices.append(seconds)
            if not gone:
                break
    finally:
        await store.close()
    return sorted(slices)[int(len(slices) * 0.95)]


SCENARIOS = (
    Scenario(
        "E3",
        "a slow reader holds a snapshot",
        unit="seconds that a reader has",
        full=60,
        small=4,
        play=play_e3,
        mutation="a reader that is cut much later",
        mutation_n=2,
    ),
    Scenario(
        "E4",
        "five years of ten devices: start, series, pruning",
        unit="readings",
        full=1_750_000,
        small=30_000,
        play=play_e4,
    ),
)
