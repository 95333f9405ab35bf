"""D3: power cuts on real ext4. D6: the device turns read-only."""

import asyncio
import time

from gateway.store.sqlite.engine.database import DATABASE_NAME
from tests.faults.cloud import Upstream
from tests.faults.devices import Fleet, post_one
from tests.faults.drain import drained, until
from tests.faults.frame import Run, Scenario, program, root
from tests.faults.gateways import Gateway, prepare
from tests.faults.integrity import integrity_of
from tests.faults.ledger import Ledger
from tests.faults.readings import mark_of
from tests.faults.volumes import PowerVolume

LANES = 2
SEGMENT = 25
"""Cuts of one volume: every one is a journal recovery of ext4 and one of SQLite."""

YES_EACH = 250
"""Yeses between two cuts, on average: 200 cuts are 50,000."""

TURNING_S = 0.1

REFUSED_S = 5.0
HEALTH_S = 30.0
"""Until the health page says that nothing is stored any more."""

LOG_LINES = 40
"""While nothing can be stored, whatever the devices do."""

REFUSALS = 60
"""Readings that are refused before the number of log lines is looked at."""


async def play_d3(run: Run) -> None:
    """Lanes of segments; only what was acknowledged before a cut began has to be there after it."""
    async with asyncio.TaskGroup() as lanes:
        for lane, share in enumerate(run.shares(LANES)):
            lanes.create_task(_cuts(run, lane, share))


async def _cuts(run: Run, lane: int, cuts: int) -> None:
    for number, first in enumerate(range(0, cuts, SEGMENT)):
        await _segment(run, f"{lane}-{number}", min(SEGMENT, cuts - first))


async def _segment(run: Run, name: str, cuts: int) -> None:
    upstream = Upstream(keeps_ids=run.random.random() < 0.5)
    volume, ledger = PowerVolume(run.folder, name), Ledger(run.ledgers / name)
    gateway = Gateway(
        volume.directory / "data",
        upstream,
        weak="normal" if run.mutated else "",
        key_file=run.folder / f"{name}.key",
    )
    await upstream.start()
    try:
        volume.mount()
        await prepare(gateway.data)
        doubtful: set[str] = set()
        async with Fleet(ledger, gateway.http_port, gateway.mqtt_port) as fleet:
            for _ in range(cuts):
                if not run.expect(await gateway.start(), f"{name}: no start: {gateway.lines[-3:]}"):
                    return
                await fleet.more(run.random.randint(1, 2 * YES_EACH))
                doubtful |= await _cut(volume, gateway, ledger)
                found = integrity_of(gateway.data / DATABASE_NAME, run.folder)
                run.expect(found == "ok", f"{name}: {found}")
                run.step()
        if run.expect(await gateway.start(), f"{name}: no start: {gateway.lines[-3:]}"):
            await _judge(run, gateway, upstream, ledger, doubtful, name)
        run.highest("ready_s", round(max(gateway.starts), 2))
    finally:
        await gateway.kill()
        volume.close()
        await upstream.stop()
        ledger.close()


async def _cut(volume: PowerVolume, gateway: Gateway, ledger: Ledger) -> set[str]:
    """Cut, and bring power back; the marks that were acknowledged while the cut was under way."""
    before = time.monotonic_ns()
    await asyncio.to_thread(volume.cut)
    await gateway.kill()
    late = ledger.before() - ledger.before(before)
    await asyncio.to_thread(volume.unmount)
    await asyncio.to_thread(volume.mount)
    return late


async def _judge(
    run: Run, gateway: Gateway, upstream: Upstream, ledger: Ledger, doubtful: set[str], name: str
) -> None:
    run.count("during_cuts", len(doubtful))
    await drained(run, gateway, upstream, ledger, where=f"{name}: ", doubtful=doubtful)


async def play_d6(run: Run) -> None:
    """It says no, goes on answering, logs little; after a repair it takes readings again."""
    async with asyncio.TaskGroup() as lanes:
        for lane, share in enumerate(run.shares(LANES)):
            lanes.create_task(_deaths(run, lane, share))


async def _deaths(run: Run, lane: int, deaths: int) -> None:
    for number in range(deaths):
        await _death(run, f"{lane}-{number}")
        run.step()


async def _death(run: Run, name: str) -> None:
    upstream = Upstream(keeps_ids=run.random.random() < 0.5)
    volume, ledger = PowerVolume(run.folder, name), Ledger(run.ledgers / name)
    gateway = Gateway(
        volume.directory / "data",
        upstream,
        weak="early" if run.mutated else "",
        key_file=run.folder / f"{name}.key",
    )
    await upstream.start()
    try:
        volume.mount()
        key = await prepare(gateway.data)
        if not run.expect(await gateway.start(), f"no start: {gateway.lines}"):
            return
        async with Fleet(ledger, gateway.http_port, gateway.mqtt_port) as fleet:
            await fleet.more(run.random.randint(20, 100))
            doubtful = await _turn_read_only(volume, ledger)
            await until(lambda: ledger.no > 0, REFUSED_S)
        await _while_read_only(run, gateway, ledger, key)
        await gateway.kill()
        await asyncio.to_thread(volume.unmount)
        volume.mount()
        run.expect(await gateway.start(), f"no start after the repair: {gateway.lines}")
        run.count("while_it_turned", len(doubtful))
        await drained(run, gateway, upstream, ledger, doubtful=doubtful)
    finally:
        await gateway.kill()
        volume.close()
        await upstream.stop()
        ledger.close()


async def _turn_read_only(volume: PowerVolume, ledger: Ledger) -> set[str]:
    """What was acknowledged while the kernel was at it: ext4 lets an fsync in that moment pass for done."""
    before = time.monotonic_ns()
    await asyncio.to_thread(volume.read_only)
    await asyncio.sleep(TURNING_S)
    return ledger.before() - ledger.before(before)


async def _while_read_only(run: Run, gateway: Gateway, ledger: Ledger, key: str) -> None:
    lines = gateway.log_lines
    for number in range(REFUSALS):
        answer, wait = await post_one(gateway.http_port, "h0", mark_of("h0", 500_000 + number), ledger)
        run.expect(answer == 503, f"read-only: answered {answer} to a device")
        run.expect(wait is not None, "read-only: no Retry-After")
    more = gateway.log_lines - lines
    run.highest("log_lines", more)
    run.expect(more <= LOG_LINES, f"read-only: {more} log lines for {REFUSALS} refusals")
    status, _ = await gateway.get("/v1/fermentation/1", key)
    run.expect(status == 200, f"read-only: reading answers {status}")
    began = time.monotonic()
    while time.monotonic() - began < HEALTH_S:
        status, page = await gateway.get("/healthz")
        if status == 503 or not page["parts"].get("store", "ok").startswith("ok"):
            run.highest("told_after_s", round(time.monotonic() - began, 2))
            return
        await asyncio.sleep(0.2)
    run.expect(False, f"read-only: the health page says {page}")


SCENARIOS = (
    Scenario(
        "D3",
        "power cut on real ext4 under load",
        unit="cuts",
        full=200,
        small=6,
        play=play_d3,
        mutation="synchronous=NORMAL",
        mutation_n=2,
        needs=(root, program("mkfs.ext4", "e2fsprogs"), program("losetup", "mount")),
    ),
    Scenario(
        "D6",
        "the device turns read-only",
        unit="devices",
        full=100,
        small=2,
        play=play_d6,
        mutation="a yes 0.1 s before the commit",
        mutation_n=1,
        needs=(root, program("mkfs.ext4", "e2fsprogs"), program("losetup", "mount")),
    ),
)
