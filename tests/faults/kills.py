"""D1: SIGKILL at random moments under load."""

import asyncio
import random

from tests.faults.cloud import Upstream
from tests.faults.devices import Fleet
from tests.faults.drain import drained
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import Gateway, prepare
from tests.faults.ledger import Ledger

LANES = 3
"""Gateways side by side: a start is mostly computing, the rest mostly waiting."""

SEGMENT = 50
"""Kills of one data directory, so that a read-back stays as long as a brew session's would be."""

YES_EACH = 200
"""Yeses between two kills, on average: 1,000 kills are 200,000."""

READY_P99_S = 3.0

P99_OF = 100
"""Fewer starts have no 99th percentile."""


async def play_d1(run: Run) -> None:
    """Lanes of segments, kinds of upstream in turn."""
    starts: list[float] = []
    async with asyncio.TaskGroup() as lanes:
        for lane, share in enumerate(run.shares(LANES)):
            lanes.create_task(_lane(run, lane, share, starts))
    if not starts:
        return
    starts.sort()
    p99 = starts[min(len(starts) - 1, len(starts) * 99 // 100)]
    run.figure("ready_p50_s", round(starts[len(starts) // 2], 2))
    run.figure("ready_p99_s", round(p99, 2))
    if run.n >= P99_OF:
        run.expect(p99 <= READY_P99_S, f"ready after {p99:.2f} s (p99)")


async def _lane(run: Run, lane: int, kills: int, starts: list[float]) -> None:
    for number, first in enumerate(range(0, kills, SEGMENT)):
        chance = random.Random(run.seed * 1000 + lane * 100 + number)  # noqa: S311 - no secrets
        await _segment(run, f"{lane}-{number}", min(SEGMENT, kills - first), chance, starts)


async def _segment(run: Run, name: str, kills: int, chance: random.Random, starts: list[float]) -> None:
    upstream = Upstream(keeps_ids=chance.random() < 0.5)
    await upstream.start()
    data, ledger = run.sub(name), Ledger(run.ledgers / name)
    await prepare(data)
    gateway = Gateway(data, upstream, weak="early" if run.mutated else "")
    try:
        async with Fleet(ledger, gateway.http_port, gateway.mqtt_port) as fleet:
            for _ in range(kills):
                if not run.expect(await gateway.start(), f"{name}: no start: {gateway.lines[-3:]}"):
                    return
                await fleet.more(chance.randint(1, 2 * YES_EACH))
                await gateway.kill()
                run.step()
        if run.expect(await gateway.start(), f"{name}: no start: {gateway.lines[-3:]}"):
            await drained(run, gateway, upstream, ledger, where=f"{name}: ")
        starts += gateway.starts
    finally:
        await gateway.kill()
        await upstream.stop()
        ledger.close()


SCENARIOS = (
    Scenario(
        "D1",
        "kill -9 at random moments under load",
        unit="kills",
        full=1000,
        small=8,
        play=play_d1,
        mutation="a yes 0.1 s before the commit",
        mutation_n=3,
    ),
)
