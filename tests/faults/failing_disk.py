"""D5: system calls that fail, once and for ever, at each position, under load."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from tests.faults.cloud import Upstream
from tests.faults.devices import Fleet
from tests.faults.drain import drained, until
from tests.faults.frame import Missing, Run, Scenario, program
from tests.faults.gateways import Gateway, prepare, running
from tests.faults.ledger import Ledger

LANES = 2

POSITIONS = {"pwrite64": 36, "fdatasync": 12, "ftruncate": 2}
"""How far each call is counted, by thread, from the moment that the disk begins to fail."""

ERRORS = ("EIO", "ENOSPC")

NOTICED_S = 8.0
"""A position that no thread reaches in so long is passed over: a lone truncation may take a while to come."""

RECOVERS_S = 10.0
ATTACHED_S = 10.0

ONE_READING_S = 0.02
"""Between two readings of a device: strace stops every call of the process."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The n-th call of a thread fails, or that and all that come after it."""

    call: str
    error: str
    position: int
    for_ever: bool

    @property
    def inject(self) -> str:
        """As strace wants it."""
        return f"inject={self.call}:error={self.error}:when={self.position}{'+' if self.for_ever else ''}"


FAILURES = [
    Failure(call, error, position, for_ever)
    for call, positions in POSITIONS.items()
    for error in ERRORS
    for position in range(1, positions + 1)
    for for_ever in (False, True)
    if error == "EIO" or call != "fdatasync"
]


async def play_d5(run: Run) -> None:
    """A gateway that runs all the time; the faults come and go."""
    chosen = FAILURES if run.n >= len(FAILURES) else run.random.sample(FAILURES, run.n)
    async with asyncio.TaskGroup() as lanes:
        for lane in range(LANES):
            lanes.create_task(_lane(run, lane, chosen[lane::LANES]))


async def _lane(run: Run, lane: int, failures: list[Failure]) -> None:
    if not failures:
        return
    upstream = Upstream(keeps_ids=lane % 2 == 0)
    await upstream.start()
    data, ledger = run.sub(f"{lane}"), Ledger(run.ledgers / f"{lane}")
    await prepare(data)
    gateway = Gateway(data, upstream, weak="early" if run.mutated else "")
    try:
        async with running(gateway):
            fleet = Fleet(ledger, gateway.http_port, gateway.mqtt_port, pause_s=ONE_READING_S)
            async with fleet:
                await fleet.more(20)
                for failure in failures:
                    await _fail(run, gateway, fleet, failure)
                    run.step()
            run.expect(fleet.without_wait == 0, f"{fleet.without_wait} refusals without Retry-After")
            await drained(run, gateway, upstream, ledger)
    finally:
        await upstream.stop()
        ledger.close()


async def _fail(run: Run, gateway: Gateway, fleet: Fleet, failure: Failure) -> None:
    no = fleet.ledger.no
    async with _injected(gateway, failure):
        if await until(lambda: fleet.ledger.no > no, NOTICED_S) is None:
            run.count("not_reached")
    yes = fleet.ledger.yes
    seconds = await until(lambda: fleet.ledger.yes >= yes + len(fleet.names), RECOVERS_S)
    if run.expect(
        seconds is not None, f"{failure}: nothing is taken {RECOVERS_S:g} s later: {gateway.lines[-2:]}"
    ):
        run.highest("recovered_s", round(seconds or 0.0, 2))
    run.count("failures")


@asynccontextmanager
async def _injected(gateway: Gateway, failure: Failure) -> AsyncIterator[None]:
    """strace, attached to the running gateway; the calls work again when it has let go."""
    strace = await asyncio.create_subprocess_exec(
        *("strace", "-f", "-o", "/dev/null", "-e", f"trace={failure.call}", "-e", failure.inject),
        *("-p", str(gateway.pid)),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert strace.stderr is not None
        async with asyncio.timeout(ATTACHED_S):
            said = await strace.stderr.readline()
        if b"attached" not in said:
            raise Missing(f"strace cannot attach: {said.decode().strip()}")
        yield
    finally:
        with suppress(ProcessLookupError):
            strace.send_signal(signal.SIGINT)
        await strace.communicate()


SCENARIOS = (
    Scenario(
        "D5",
        "write and fsync errors once and for ever, at each position",
        unit="failures",
        full=len(FAILURES),
        small=10,
        play=play_d5,
        mutation="a yes before the commit",
        mutation_n=4,
        needs=(program("strace"),),
    ),
)
