"""D11: SIGTERM while the upstream hangs and devices report. D14: two daemons on one data directory."""

import asyncio
import hashlib
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cloud import accept_then_hang
from tests.faults.cloud import Upstream
from tests.faults.devices import Fleet
from tests.faults.drain import drained, until
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import Gateway, prepare, running
from tests.faults.ledger import Ledger

LANES = 2
STOP_S = 5.0
AT_ONCE_S = 1.0
"""For the second signal, on a busy machine."""

LOAD_YES = 60
"""Before the signal; some more or less each time."""

OTHER_ENDS_S = 30.0
"""The second daemon waits for the first for 3 s, in case that one is just stopping."""

AT_REST_S = 1.0
"""Without a change in the data directory after which the first daemon has nothing left to write."""


async def play_d11(run: Run) -> None:
    """Half of the stops get a second signal."""
    async with asyncio.TaskGroup() as lanes:
        for lane, share in enumerate(run.shares(LANES)):
            lanes.create_task(_stops(run, lane, share))


async def _stops(run: Run, lane: int, stops: int) -> None:
    upstream = Upstream(keeps_ids=lane % 2 == 0)
    await upstream.start()
    data, ledger = run.sub(f"{lane}"), Ledger(run.ledgers / f"{lane}")
    await prepare(data)
    gateway = Gateway(data, upstream, weak="deaf" if run.mutated else "")
    try:
        async with Fleet(ledger, gateway.http_port, gateway.mqtt_port) as fleet:
            for number in range(stops):
                upstream.script.append(accept_then_hang)
                run.expect(await gateway.start(), f"no start: {gateway.lines[-3:]}")
                await fleet.more(run.random.randint(1, 2 * LOAD_YES))
                await until(lambda: not upstream.script, STOP_S)
                await _stop(run, gateway, twice=number % 2 == 1)
                upstream.script.clear()
                run.step()
        run.expect(await gateway.start(), f"no start: {gateway.lines[-3:]}")
        await drained(run, gateway, upstream, ledger, where=f"{lane}: ")
    finally:
        await gateway.kill()
        await upstream.stop()
        ledger.close()


async def _stop(run: Run, gateway: Gateway, *, twice: bool) -> None:
    async with _half_sent(gateway.http_port) as reader:
        if twice:
            os.kill(gateway.pid, signal.SIGTERM)
            await until(lambda: any("stopping" in line for line in gateway.lines), STOP_S)
        status, seconds = await gateway.stop()
        limit = AT_ONCE_S if twice else STOP_S
        run.highest("second_signal_s" if twice else "stop_s", round(seconds, 2))
        run.expect(status == 0, f"exit code {status} after {seconds:.1f} s")
        run.expect(seconds <= limit, f"stopping took {seconds:.1f} s, {limit:g} s are allowed")
        answer = await reader.read()
        whole = not answer or b"\r\n\r\n" in answer
        run.expect(whole, f"a response was cut off: {answer[:100]!r}")


@asynccontextmanager
async def _half_sent(port: int) -> AsyncIterator[asyncio.StreamReader]:
    """A device in the middle of its request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"POST /ingest HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        yield reader
    finally:
        writer.close()


async def play_d14(run: Run) -> None:
    """The second daemon says why it does not start, and changes nothing; the first goes on."""
    upstream = Upstream()
    await upstream.start()
    data, ledger = run.sub("data"), Ledger(run.ledgers / "ledger")
    await prepare(data)
    gateway = Gateway(data, upstream, forward_seconds=0.2)
    try:
        async with running(gateway):
            async with Fleet(ledger, gateway.http_port, gateway.mqtt_port) as fleet:
                await fleet.more(LOAD_YES)
            await until(lambda: all(upstream.holds(mark) for mark in ledger.before()), STOP_S)
            for _ in range(run.n):
                await _second(run, gateway, upstream)
                run.step()
            async with Fleet(ledger, gateway.http_port, gateway.mqtt_port, number_from=10_000) as fleet:
                await fleet.more(LOAD_YES)
            await drained(run, gateway, upstream, ledger)
    finally:
        await upstream.stop()
        ledger.close()


async def _second(run: Run, gateway: Gateway, upstream: Upstream) -> None:
    before = await _at_rest(gateway.data)
    os.kill(gateway.pid, signal.SIGSTOP)  # what it writes by itself must not be taken for the other's
    began = time.monotonic()
    other = Gateway(
        gateway.data,
        upstream,
        weak="unlocked" if run.mutated else "",
        key_file=gateway.data.with_name("other.key"),
    )
    try:
        started = await other.start(OTHER_ENDS_S)
        if not run.expect(not started, "two daemons run on one data directory"):
            return
        status = await other.ended(OTHER_ENDS_S)
    finally:
        await other.kill()
        after = _fingerprints(gateway.data)
        os.kill(gateway.pid, signal.SIGCONT)
    run.highest("refused_after_s", round(time.monotonic() - began, 2))
    said = other.lines[-1] if other.lines else ""
    run.expect(status not in (0, None), f"exit code {status}")
    run.expect(len(other.lines) == 1 and str(gateway.data) in said, f"it said {other.lines}")
    run.expect(after == before, "the second daemon wrote something")


async def _at_rest(folder: Path) -> dict[str, str]:
    before = _fingerprints(folder)
    while True:
        await asyncio.sleep(AT_REST_S)
        now = _fingerprints(folder)
        if now == before:
            return now
        before = now


def _fingerprints(folder: Path) -> dict[str, str]:
    """Of every file but the shared memory of SQLite, in which readers note where they are."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.endswith("-shm")
    }


SCENARIOS = (
    Scenario(
        "D11",
        "SIGTERM under load with an upstream that hangs; a second SIGTERM",
        unit="stops",
        full=100,
        small=4,
        play=play_d11,
        mutation="SIGTERM unheard",
        mutation_n=1,
    ),
    Scenario(
        "D14",
        "two daemons on one data directory",
        unit="attempts",
        full=50,
        small=1,
        play=play_d14,
        mutation="no lock",
        mutation_n=1,
    ),
)
