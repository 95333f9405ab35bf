"""C1: jumps of the wall clock. C2: a boot in 1970. C3: reboots before network time. C4: summer time ends.

The wall clock is libfaketime's (0.9.10), with the monotonic clock left real. Its file is read once in each
real second and not at each call: two threads that read it at once share a buffer there (mended after 0.9.10),
and one call in some hundreds then said the real time.
"""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.store.sqlite.store import SqliteStore
from tests.faults.clock_launcher import BOOT_VARIABLE, CREDULOUS
from tests.faults.cloud import Upstream
from tests.faults.devices import Fleet
from tests.faults.drain import drained, until
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import Gateway, prepare, running
from tests.faults.ledger import Ledger

LIBRARIES = tuple(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))

SHARED = Path("/dev/shm")  # noqa: S108 - names there are libfaketime's

HOUR_S, YEAR_S = 3_600, 31_557_600
JUMPS_S = (HOUR_S, -2 * HOUR_S, 10 * YEAR_S, -10 * YEAR_S)

ERROR_S = 2.0
"""A time that was put right may be off by this much."""

ESTIMATE_S = 60.0
"""Of boots that follow one another at once: what starting and stopping take here."""

BOOT_S = 2.0
"""From power off to power on, which takes a machine longer: the clocks begin up to a second early here."""

WEAK_NOTICED_S = 3.0
"""What is made wrong never says it."""

TIMERS_S = 1.0

NOTICED_S = 40.0
"""Until the state says so; a look every second, on a busy machine."""

YES_EACH = 12
FLAGGED_EACH = YES_EACH - 4
"""Each device may have had one reading under way when the clock was set."""

PAUSE_S = 0.05
"""Between two readings of a device."""

SUMMER_ENDS = datetime(2027, 10, 31, 1, tzinfo=UTC).timestamp()
"""In Central Europe: the hour from two to three comes twice."""


@dataclass
class ClockedGateway(Gateway):
    """A gateway whose wall clock, and which boot of its machine this is, are in the scenario's hand."""

    number: int = 0
    _files: Path = field(init=False)

    def __post_init__(self) -> None:
        self._files = self.data.with_name(f"{self.data.name}.clock")
        self._files.mkdir()
        self.env |= {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_CACHE_DURATION": "0",
            "NO_FAKE_STAT": "1",
            "FAKETIME_TIMESTAMP_FILE": str(self._files / "offset"),
            BOOT_VARIABLE: str(self._files / "boot_id"),
        }
        self.shift(0)
        self.next_boot()

    def shift(self, seconds: float) -> None:
        """The wall clock is that much ahead of the real one at the next start."""
        new = self._files / "new"
        new.write_text(f"{seconds:+.3f}\n")
        new.replace(self._files / "offset")

    async def set_clock(self, ahead_s: float) -> None:
        """The same while it runs; it has read it when this returns."""
        self.shift(ahead_s)
        await asyncio.sleep(1.05 - time.time() % 1)

    def next_boot(self) -> None:
        """What starts next starts on a machine that has just booted."""
        self.number += 1
        (self._files / "boot_id").write_text(f"{self.data} {self.number}\n")

    def command(self) -> list[str]:
        """What is run."""
        replaced = {"tests.faults.launcher": "tests.faults.clock_launcher"}
        return [replaced.get(word, word) for word in super().command()]

    async def ended(self, patience_s: float) -> int | None:
        """As of any gateway; what libfaketime keeps in shared memory outlives a process that is killed."""
        assert self.process is not None
        pids = [self.process.pid]
        with suppress(IndexError, OSError):  # it has ended already
            pids.append(self.pid)
        status = await super().ended(patience_s)
        for pid in pids:
            for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
                (SHARED / name).unlink(missing_ok=True)
        return status

    async def part(self, name: str) -> str:
        """What the health page says of it; empty where it says nothing."""
        _, page = await self.get("/healthz")
        return "" if page is None else str(page["parts"].get(name, ""))

    async def says(self, words: str) -> bool:
        """Wait until the target's state begins with these words."""
        assert self.upstream is not None
        deadline = time.monotonic() + (WEAK_NOTICED_S if self.weak else NOTICED_S)
        while not (await self.part(f"upstream {self.upstream.url}")).startswith(words):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.1)
        return True


WAITS = "waits for the clock"


@dataclass
class Table:
    """Everything of one gateway in a scenario."""

    run: Run
    name: str
    gateway: ClockedGateway
    upstream: Upstream
    ledger: Ledger
    ledger_path: Path
    numbers: int = 0

    def fleet(self) -> Fleet:
        """Devices whose readings go on where those of the last fleet ended."""
        self.numbers += 100_000
        ports = self.gateway.http_port, self.gateway.mqtt_port
        return Fleet(self.ledger, *ports, pause_s=PAUSE_S, number_from=self.numbers)

    def judge_times(self, *, ahead_s: float = 0.0, error_s: float = ERROR_S) -> None:
        """Every reading upstream says a time between its sending and the yes, in whole seconds."""
        now_s = time.time() - time.monotonic() + ahead_s
        lines = (line.split() for line in self.ledger_path.read_text("ascii").splitlines())
        told = {mark: now_s + int(at) / 1e9 for at, mark in lines}
        sent = _sent(told, self.ledger.waits_s)
        wrong = []
        for row in self.upstream.kept():
            if (mark := row["comment"]) not in told:
                continue
            said = datetime.fromisoformat(row["created_at"]).timestamp()
            error = max(0.0, sent[mark] - 1 - said, said - told[mark])
            self.run.highest("error_s", round(error, 1))
            if error > error_s:
                wrong.append(f"{mark}: {row['created_at']}")
        self.run.expect(not wrong, f"{self.name}: {len(wrong)} with a wrong time: {', '.join(wrong[:3])}")

    async def drain(self) -> None:
        """P1 to P5 and P7."""
        await drained(self.run, self.gateway, self.upstream, self.ledger, where=f"{self.name}: ")

    async def suspects(self) -> int:
        """How many readings are flagged, as the store is on the disk."""
        store = SqliteStore(self.gateway.data)
        await store.open_read_only()
        try:
            lines = store.readings.json_lines(last=10_000, device_id=None, session_id=None)
            return len([line async for line in lines if '"clock_suspect"' in line])
        finally:
            await store.close()


def _sent(told: dict[str, float], waits_s: list[float]) -> dict[str, float]:
    """When each may have been sent first: after the device's last yes, in an attempt that timed out."""
    sent: dict[str, float] = {}
    before: dict[str, float] = {}
    for (mark, at), wait in zip(told.items(), waits_s, strict=True):
        device = mark.rpartition("-")[0]
        sent[mark] = min(at - wait, before.get(device, at))
        before[device] = at
    return sent


@asynccontextmanager
async def table(run: Run, name: str, **details: Any) -> AsyncIterator[Table]:
    """A prepared data directory, an upstream, and a gateway that is not started yet."""
    upstream, path = Upstream(keeps_ids=run.seed % 2 == 0), run.ledgers / name
    await upstream.start()
    data, ledger = run.sub(name), Ledger(path)
    await prepare(data)
    gateway = ClockedGateway(data, upstream, weak=CREDULOUS if run.mutated else "", **details)
    try:
        yield Table(run, name, gateway, upstream, ledger, path)
    finally:
        await gateway.kill()
        await upstream.stop()
        ledger.close()


async def play_c1(run: Run) -> None:
    """Under load: jump, report, jump back."""
    async with table(run, "c1") as at, running(at.gateway):
        async with at.fleet() as fleet:
            for number in range(run.n):
                await fleet.more(YES_EACH)
                await _jump(at, fleet, JUMPS_S[number % len(JUMPS_S)])
                run.step()
        await at.drain()
        at.judge_times()


async def _jump(at: Table, fleet: Fleet, seconds: float) -> None:
    run, where = at.run, f"{seconds:+,.0f} s: "
    before, began = await _uptime(at.gateway), time.monotonic()
    await at.gateway.set_clock(seconds)
    await fleet.more(YES_EACH)
    run.expect(await at.gateway.says(WAITS), f"{where}the target does not say that it waits for the clock")
    run.expect(await at.suspects() >= FLAGGED_EACH, f"{where}readings are not flagged")
    off = abs((await _uptime(at.gateway) - before) - (time.monotonic() - began))
    run.expect(off < TIMERS_S + 1, f"{where}timers are off by {off:.1f} s")  # both are whole seconds
    await at.gateway.set_clock(0)
    run.expect(await at.gateway.says("ok"), f"{where}forwarding does not go on after the jump back")


async def _uptime(gateway: Gateway) -> int:
    _, page = await gateway.get("/healthz")
    return int(page["uptime_s"])


async def play_c2(run: Run) -> None:
    """Half of them learn the time, the others never do."""
    async with asyncio.TaskGroup() as boots:
        for number in range(run.n):
            boots.create_task(_boot_in_1970(run, number, learns=number % 2 == 0))
            if number % 2:
                await asyncio.sleep(0)


async def _boot_in_1970(run: Run, number: int, *, learns: bool) -> None:
    async with table(run, f"c2-{number}") as at:
        at.gateway.shift(5 - time.time())
        async with running(at.gateway), at.fleet() as fleet:
            await fleet.more(YES_EACH)
            run.expect(await at.gateway.says(WAITS), f"{at.name}: the target does not say that it waits")
            run.expect(await at.suspects() >= FLAGGED_EACH, f"{at.name}: readings are not flagged")
        async with running(at.gateway):  # killed, on the same boot
            async with at.fleet() as fleet:
                await fleet.more(YES_EACH)
                run.expect(not at.upstream.deliveries, f"{at.name}: readings of 1970 were forwarded")
                if learns:
                    await at.gateway.set_clock(0)
                    await fleet.more(YES_EACH)
            if learns:
                await at.drain()
                at.judge_times()
            else:
                run.expect(not at.upstream.deliveries, f"{at.name}: readings of 1970 were forwarded")
                run.count("never_known", at.ledger.yes)
        run.step()


async def play_c3(run: Run) -> None:
    """Two boots that never learn the time, and one that does."""
    async with table(run, "c3") as at:
        for round_ in range(run.n):
            for boot in range(3):
                await _boot(at, learns=boot == 2)
            at.judge_times(error_s=ESTIMATE_S)
            _in_order(run, at.upstream, f"round {round_}: ")
            run.step()


async def _boot(at: Table, *, learns: bool) -> None:
    """Monotonic time begins anew; from 1970 on, until the clock is set where it is."""
    await asyncio.sleep(BOOT_S)
    at.gateway.next_boot()
    at.gateway.prefix = ("unshare", "--fork", "--time", *_from_zero())
    at.gateway.shift(5 - time.time())
    async with running(at.gateway):
        async with at.fleet() as fleet:
            await fleet.more(YES_EACH)
        at.run.expect(await at.gateway.says(WAITS), "the target does not say that it waits")
        if learns:
            await at.gateway.set_clock(0)
            await at.drain()


def _from_zero() -> tuple[str, str]:
    return (
        f"--monotonic=-{int(time.monotonic())}",
        f"--boottime=-{int(time.clock_gettime(time.CLOCK_BOOTTIME))}",
    )


def _in_order(run: Run, upstream: Upstream, where: str) -> None:
    """Each device's readings by their times are in the order that it sent them in."""
    rows = sorted(upstream.kept(), key=lambda row: str(row["created_at"]))
    devices: dict[str, list[int]] = {}
    for row in rows:
        device, _, number = str(row["comment"]).rpartition("-")
        if int(number) < 9_000_000:  # what `fresh_passes` sends has numbers of its own
            devices.setdefault(device, []).append(int(number))
    for device, numbers in devices.items():
        run.expect(numbers == sorted(numbers), f"{where}readings of {device} have swapped")


async def play_c4(run: Run) -> None:
    """Readings on both sides of the hour that comes twice."""
    for number in range(run.n):
        async with table(run, f"c4-{number}") as at:
            await _hour_that_comes_twice(at)
        run.step()


async def _hour_that_comes_twice(at: Table) -> None:
    ahead_s = SUMMER_ENDS - 4 - time.time()
    at.gateway.shift(ahead_s)
    at.gateway.env["TZ"] = "Europe/Berlin"
    async with running(at.gateway):
        async with at.fleet() as fleet:
            await until(lambda: time.time() + ahead_s > SUMMER_ENDS + 2, 60)
            await fleet.more(YES_EACH)
        at.run.expect(not await at.suspects(), "the end of summer time is taken for a jump")
        await at.drain()
        at.judge_times(ahead_s=ahead_s)
        _in_order(at.run, at.upstream, "")


def faketime() -> str | None:
    """The need for libfaketime."""
    return None if LIBRARIES else "libfaketime is not installed: apt-get install libfaketime"


def time_namespaces() -> str | None:
    """The need for a monotonic clock that begins anew."""
    if shutil.which("unshare") is None:
        return "unshare is not installed: apt-get install util-linux"
    if os.geteuid() != 0 or not Path("/proc/self/ns/time").exists():
        return "only root may make time namespaces, on Linux 5.6 or newer; run it as root"
    return None


WEAK = "a gateway that believes any clock"

SCENARIOS = (
    Scenario(
        "C1",
        "the wall clock jumps by +1 h, -2 h, +10 y, -10 y and back, under load",
        unit="jumps",
        full=40,
        small=4,
        play=play_c1,
        mutation=WEAK,
        mutation_n=1,
        needs=(faketime,),
    ),
    Scenario(
        "C2",
        "boot in 1970; network time comes, or never does; killed in between",
        unit="boots",
        full=8,
        small=2,
        play=play_c2,
        mutation=WEAK,
        mutation_n=1,
        mutation_small=False,
        needs=(faketime,),
    ),
    Scenario(
        "C3",
        "two boots that never learn the time before one that does",
        unit="rounds",
        full=10,
        small=1,
        play=play_c3,
        mutation=WEAK,
        mutation_n=1,
        mutation_small=False,
        needs=(faketime, time_namespaces),
    ),
    Scenario(
        "C4",
        "the hour that comes twice at the end of summer time",
        unit="hours",
        full=3,
        small=1,
        play=play_c4,
        needs=(faketime,),
    ),
)
