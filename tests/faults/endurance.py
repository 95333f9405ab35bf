"""E1: soak. E2: a memory limit with much pending."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.store.sqlite.engine.database import DATABASE_NAME
from tests.faults.cloud import Upstream
from tests.faults.devices import Fleet
from tests.faults.drain import drained, until
from tests.faults.fixtures import old_database
from tests.faults.frame import Run, Scenario, root
from tests.faults.gateways import Gateway, prepare, running
from tests.faults.judge import judge
from tests.faults.ledger import Ledger

KIB = 1024
DAY = 86_400
"""Readings of the soak: one a second for a day, sent at 100 a second."""

DEVICES = 4
PAUSE_S = DEVICES / 100
SLOPE_KB = 1024
PEAK_KB = 120 * KIB
WAL_BYTES = 8 * KIB * KIB
LOG_LINES = 100
INGEST_P99_S = 0.25
WARM_UP_S = 900.0
"""For the first fifth of the readings, after which memory is compared."""

LOOKS = 100
"""At memory and log, evenly over the run."""

LONG_FROM = DAY // 4
"""Readings from which on a slope can be told from noise, and times are judged."""


async def play_e1(run: Run) -> None:
    """100 readings a second; memory, descriptors, threads and log stay where they are."""
    async with _bench(run, "early" if run.mutated else "") as (gateway, upstream, ledger):
        ports = gateway.http_port, gateway.mqtt_port
        looks: list[tuple[int, int]] = []
        async with Fleet(ledger, *ports, pause_s=PAUSE_S) as fleet:
            await fleet.more(run.n // 5, patience_s=WARM_UP_S)
            before = gateway.descriptors(), gateway.threads()
            for _ in range(LOOKS):
                await fleet.more(max(1, run.n * 4 // 5 // LOOKS), patience_s=600)
                looks.append((ledger.yes, gateway.memory_kb()))
                run.highest("wal_bytes", gateway.wal_bytes())
                run.step(run.n // LOOKS)
            after = gateway.descriptors(), gateway.threads()
        run.figure("more_descriptors", after[0] - before[0])
        run.figure("more_threads", after[1] - before[1])
        run.expect(after[0] <= before[0] + DEVICES, f"descriptors {before[0]}, then {after[0]}")
        run.expect(after[1] <= before[1] + 1, f"threads {before[1]}, then {after[1]}")
        _judge_figures(run, gateway, ledger, _slope(looks) * DAY)
        if run.mutated:
            await gateway.kill()
            run.expect(await gateway.start(), "no start")
        await drained(run, gateway, upstream, ledger)


def _judge_figures(run: Run, gateway: Gateway, ledger: Ledger, slope: float) -> None:
    p99 = ledger.wait_s(0.99, run.n // 5)
    run.figure("slope_kB_a_day", round(slope))
    run.figure("peak_MB", round(gateway.memory_kb("VmHWM") / KIB, 1))
    run.figure("ingest_p99_s", round(p99, 3))
    run.figure("log_lines", gateway.log_lines)
    run.expect(gateway.memory_kb("VmHWM") <= PEAK_KB, "more memory than 120 MB")
    run.expect(gateway.wal_bytes() <= WAL_BYTES, "the log is larger than 8 MiB")
    run.expect(gateway.log_lines <= LOG_LINES, f"{gateway.log_lines} lines in the log")
    if run.n >= LONG_FROM:
        run.expect(slope <= SLOPE_KB, f"memory grows by {slope:.0f} kB a day")
        run.expect(p99 <= INGEST_P99_S, "ingest p99 above 250 ms")


def _slope(looks: list[tuple[int, int]]) -> float:
    """Kilobytes for each reading, by least squares."""
    count = len(looks)
    middle, level = sum(x for x, _ in looks) / count, sum(y for _, y in looks) / count
    spread = sum((x - middle) ** 2 for x, _ in looks)
    return sum((x - middle) * (y - level) for x, y in looks) / spread if spread else 0.0


class _bench:
    """A prepared gateway with its upstream and ledger, running."""

    def __init__(self, run: Run, weak: str) -> None:
        self._run, self._weak = run, weak

    async def __aenter__(self) -> tuple[Gateway, Upstream, Ledger]:
        run = self._run
        self.upstream, self.ledger = Upstream(), Ledger(run.ledgers / "ledger")
        await self.upstream.start()
        data = run.sub("data")
        await prepare(data)
        self.gateway = Gateway(data, self.upstream, weak=self._weak)
        run.expect(await self.gateway.start(), f"no start: {self.gateway.lines[-3:]}")
        return self.gateway, self.upstream, self.ledger

    async def __aexit__(self, *_: object) -> None:
        await self.gateway.kill()
        await self.upstream.stop()
        self.ledger.close()


CGROUP = Path("/sys/fs/cgroup/memory")
LIMIT_BYTES = 128 * KIB * KIB
TIGHT_BYTES = 24 * KIB * KIB
"""With the mutation: less than Python itself needs."""

DRAIN_S = 600.0


async def play_e2(run: Run) -> None:
    """Much is pending; under the limit it goes through, and devices go on reporting."""
    upstream, ledger = Upstream(down=True), Ledger(run.ledgers / "ledger")
    await upstream.start()
    data = run.sub("data")
    marks = await asyncio.to_thread(old_database, data / DATABASE_NAME, 3, run.n)
    try:
        with cgroup(TIGHT_BYTES if run.mutated else LIMIT_BYTES) as group:
            join = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
            gateway = Gateway(data, upstream, prefix=join, forward_readings=500)
            async with running(gateway):
                async with Fleet(
                    ledger, gateway.http_port, gateway.mqtt_port, 1, 0, pause_s=PAUSE_S
                ) as fleet:
                    await fleet.more(20)
                    upstream.down = False
                    await until(lambda: upstream.deliveries.total() >= run.n, DRAIN_S)
                    await fleet.more(20)
                run.step(run.n)
                await drained(run, gateway, upstream, ledger, issued=marks)
                run.figure("peak_MB", round(gateway.memory_kb("VmHWM") / KIB, 1))
            used = int((group / "memory.max_usage_in_bytes").read_text("ascii"))
            run.figure("cgroup_peak_MB", round(used / KIB / KIB, 1))
            judge(marks, {*marks, *ledger.issued}, upstream.kept()).tell(run, "pending: ")
    finally:
        await upstream.stop()
        ledger.close()


def has_cgroup() -> str | None:
    return None if os.access(CGROUP / "cgroup.procs", os.W_OK) else "no writable cgroup (v1) for memory here"


@contextmanager
def cgroup(limit: int) -> Iterator[Path]:
    """Make a group of processes that may have so many bytes of memory together."""
    group = CGROUP / f"gateway-faults-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit))
        yield group
    finally:
        with suppress(OSError):
            group.rmdir()


SCENARIOS = (
    Scenario(
        "E1",
        "soak at 100 readings/s",
        unit="readings",
        full=DAY,
        small=800,
        play=play_e1,
        mutation="a yes before the commit, and a kill",
        mutation_n=300,
    ),
    Scenario(
        "E2",
        "128 MiB of memory (cgroup) with much pending",
        unit="pending readings",
        full=100_000,
        small=3000,
        play=play_e2,
        mutation="24 MiB",
        mutation_n=100,
        needs=(root, has_cgroup),
    ),
)
