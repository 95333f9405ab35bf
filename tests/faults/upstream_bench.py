"""What the upstream scenarios share: a forwarder in this process, its clock, and the count in the end."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from unittest.mock import patch

from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.forward.forwarder import ForwardSettings
from gateway.forward.kinds.service import ImportTarget
from gateway.forward.readback import Attempt
from tests.clock import FakeClock
from tests.cloud import ScriptedCloud
from tests.faults.frame import Run
from tests.system.forward.bench import UPSTREAM, Bench, bench

SMALL_BATCH = ForwardSettings(batch_readings=8)

CHUNK = 50
"""Batches that one upstream gets: what is read back grows with what it holds."""

STUCK_S = 1200.0
"""Real seconds without an end after which a scenario has failed."""

QUIET_S = 3.0
"""Real seconds in which nobody sleeps and nothing comes; then nobody is at work either."""


@asynccontextmanager
async def one_of(run: Run, kind: bool, name: str) -> AsyncIterator[Bench]:
    """A gateway in batches of 8 and an upstream of that kind."""
    folder = run.sub(f"{name}-{kind}")
    async with bench(folder, SMALL_BATCH, cloud=ScriptedCloud(keeps_ids=kind)) as made:
        yield made


async def judged(run: Run, made: Bench, numbers: Iterable[int], *, upstream: int = UPSTREAM) -> None:
    """Every reading is there or in quarantine, and none twice."""
    expected = set(numbers)
    there = Counter(made.arrived(upstream))
    refused = {item[2] for item in await made.quarantined()}
    missing = expected - there.keys() - refused
    run.expect(not missing, f"lost: {sorted(missing)[:5]}")
    twice = [number for number, times in there.items() if times > 1]
    run.expect(not twice, f"twice: {twice[:5]}")
    run.expect(not there.keys() - expected, "one that was never issued")
    run.count("readings", len(expected))
    run.count("lost", len(missing))
    run.count("twice", len(twice))


async def steps(made: Bench, number: int = 400) -> None:
    """Step until nothing waits, or for so long."""
    for _ in range(number):
        if not await made.waiting():
            return
        await made.step()


async def let_run(clock: FakeClock, true: Callable[[], bool], until: float, *, rests: bool = True) -> None:
    """Let time pass from one waking to the next until it is so, or that monotonic time.

    Where nobody sleeps for a while, it `rests` until then; else it is at work, however slow the machine is.
    """
    began = quiet_since = time.monotonic()
    while not true() and clock.monotonic() < until:
        now = time.monotonic()
        assert now - began < STUCK_S, "it does not end"
        if clock.naps or (rests and now - quiet_since > QUIET_S):
            left = until - clock.monotonic()
            clock.advance(min(*clock.naps, left) if clock.naps else left)
            quiet_since = now
        await asyncio.sleep(0)


@contextmanager
def believing(run: Run) -> Iterator[None]:
    """The mutation: whatever is answered counts as taken."""

    def judge(_: ImportTarget, __: object, ___: int) -> Outcome:
        return Outcome(DeliveryResult.ACCEPTED)

    async def send(self: ImportTarget, batch: Batch) -> Outcome:
        await original(self, batch)
        return Outcome(DeliveryResult.ACCEPTED)

    original = ImportTarget.send
    if not run.mutated:
        yield
        return
    with patch.object(ImportTarget, "_judge", judge), patch.object(ImportTarget, "send", send):
        yield


@contextmanager
def blind(run: Run) -> Iterator[None]:
    """The mutation: what is read back is not looked at."""
    if not run.mutated:
        yield
        return

    def missing(self: Attempt, _: object) -> list[int]:
        return list(range(len(self._sent)))

    with patch.object(Attempt, "missing", missing):
        yield
