"""Ingest while figures and alarms of a hundred open brews follow, and their memory.

The ceiling is a gateway with the same brews and readings that makes no figures and looks for no alarms.
Devices in no brew are no ceiling: to store a reading in a brew costs more than in none, figures or not.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from gateway.clock import SystemClock
from gateway.domain.device import Device
from gateway.domain.key import ALL_SCOPES
from gateway.domain.report import Report
from gateway.services.brewsessions import SessionChange
from gateway.services.build import build_services
from gateway.store.sqlite.store import SqliteStore
from tests.benchmarks.page_data import EVERY_S, TOGETHER, arrivals_of
from tests.benchmarks.payloads import device_id, device_name
from tests.benchmarks.plan import BenchmarkError, Plan, alternate, next_payload
from tests.benchmarks.processes import cpu_s, memory_bytes
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import Server, load, serving

INGEST_GOAL = Goal("ratio", "<=", 1.2)
MEMORY_GOAL = Goal("measured", "<=", 4)

BREWS = 100
DAYS = 14

RATE, CONNECTIONS = 200, 8
"""Readings per second, two of each brew, and on how many connections: a thousand times what brews send."""

LONGER = 5
"""Times as long as for other p99s: alarms rest for 5 to 20 s, and each round must see their looks."""

RESTS_S, RESTS_CPU_S, LOADING_S = 3.0, 0.05, 120.0
"""A gateway that rests takes less of the processor in so many seconds; and the most seconds to wait."""

MEGABYTE = 1_000_000


def measure(plan: Plan) -> list[Figure]:
    """Measure ingest and memory against a gateway that does not follow its brews."""
    count = max(4, min(plan.readings // 25, DAYS * 86_400 // EVERY_S))
    brews = BREWS if count > 100 else 4
    with (
        _serving(count, brews) as (full, key),
        _serving(count, brews, program="tests.benchmarks.unfollowed") as (bare, _),
    ):
        began = time.monotonic()
        for server in (full, bare):
            _rest(server)
        loading = time.monotonic() - began
        # A few brews, of a small plan, weigh less than two starts of the same program differ.
        more = max(memory_bytes(full.child.pid) - memory_bytes(bare.child.pid), 0)
        for number in range(1, brews + 1):
            found = json.loads(full.call("GET", f"/manage/brewsessions/{number}/insight", key))
            if found["last_at"] is None:
                raise BenchmarkError(f"brew {number} has no figures")
        options = ("--connections", CONNECTIONS, "--rate", RATE, "--devices", brews)
        times = ("--seconds", LONGER * plan.latency_s, "--warm-up", plan.warm_up_s)

        def p99(server: Server) -> float:
            return float(load(server.port, next_payload(), *options, *times)["p99_ms"])

        pairs = alternate(plan.rounds, lambda: p99(full), lambda: p99(bare))
    ingest = Figure.of_rounds(
        f"ingest p99 at {RATE}/s with {brews} open brews", "ms", INGEST_GOAL, pairs,
        f"{brews} brews of {count} readings were there after {loading:.1f} s",
    )  # fmt: skip
    what = f"resident memory of figures and alarms of {brews} open brews"
    return [ingest, Figure(what, "MB", MEMORY_GOAL, more / MEGABYTE)]


def _rest(server: Server) -> None:
    """Wait until the brews are read: the process takes no time any more."""
    before, deadline = -1.0, time.monotonic() + LOADING_S
    while (now := cpu_s(server.child.pid)) - before > RESTS_CPU_S:
        if time.monotonic() > deadline:
            raise BenchmarkError(f"the gateway does not rest within {LOADING_S:g} s")
        before = now
        time.sleep(RESTS_S)


@contextmanager
def _serving(count: int, brews: int, program: str = "gateway") -> Iterator[tuple[Server, str]]:
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory:
        key = asyncio.run(_fill(Path(directory), count, brews))
        with serving(Path(directory), "--no-mqtt", program=program) as server:
            yield server, key


async def _fill(directory: Path, count: int, brews: int) -> str:
    """Devices with readings of two weeks up to now, each in a brew of its own; an owner's key."""
    store = SqliteStore(directory)
    await store.open()
    try:
        services = build_services(store, directory, SystemClock())
        await services.access.start()
        first_at = int(time.time()) - count * EVERY_S
        for number in range(brews):
            report = Report(
                family="ispindel",
                stable_id=str(device_id(number)),
                name=device_name(number),
                interval_s=EVERY_S,
            )
            device = await store.devices.save(Device.first_seen(report, first_at))
            session = await services.brewsessions.add_session(1, SessionChange(batchcode=f"B{number:03}"))
            await store.devices.assign(device.id, session.id, None)
            arrivals = arrivals_of(device, count, first_at)
            while some := list(islice(arrivals, TOGETHER)):
                await store.readings.add(some)
        return await services.access.add("benchmarks", ALL_SCOPES)
    finally:
        await store.close()
