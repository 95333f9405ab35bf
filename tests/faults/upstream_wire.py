"""U5 to U7 and U10: what goes wrong on the wire, and what one dead target does to others."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import aiohttp

from gateway.domain.delivery import Batch, DeliveryResult
from gateway.forward.forwarder import Forwarder, Wait
from gateway.forward.kinds.service import ANSWER_BYTES, ImportTarget
from tests.clock import FakeClock
from tests.cloud import KEY, ScriptedCloud, hang, html_200, redirect, running, status
from tests.faults.frame import Run, Scenario
from tests.faults.upstream_bench import CHUNK, believing, judged, one_of, steps
from tests.system.forward.bench import row_of
from tests.system.forward.several import Several, forwarding, several
from tests.system.sample_devices.servers import Heard, serving

DEADLINE_S = 0.3
NOISE_S = 1.0
"""Of a machine with other work; a target that is waited for takes 30 s."""
LATE_S = 1.0
"""More than the deadline, on a machine with other work."""

BATCH = Batch("t", 1, 77, seqs=(1, 2), rows=(json.dumps(row_of(1)), json.dumps(row_of(2))))

Serve = Callable[[Heard, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def drip(before: bytes, after: bytes) -> Serve:
    """The first part at once, the other a byte at a time, for ever."""

    async def serve(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard.add(await reader.readuntil(b"]"))
        writer.write(before)
        while True:
            for byte in after:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(DEADLINE_S / 10)

    return serve


def cut_after(sent: bytes) -> Serve:
    """An answer that ends there."""

    async def serve(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard.add(await reader.readuntil(b"]"))
        writer.write(sent)
        await writer.drain()
        assert writer.transport is not None
        writer.transport.abort()

    return serve


async def silent(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes everything, says nothing: a half-open connection."""
    await heard.add(await reader.readuntil(b"]"))
    await reader.read()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 70\r\nContent-Type: application/json\r\n\r\n"
SLOW: tuple[tuple[str, Serve], ...] = (
    ("a byte at a time in the head", drip(b"HTTP/1.1 200 OK\r\n", b"X-Slow: yes\r\n")),
    ("a byte at a time in the body", drip(HEAD.replace(b"70", b"999999"), b" ")),
    ("half-open", silent),
    ("reset in the head", cut_after(b"HTTP/1.1 20")),
    ("reset in the body", cut_after(HEAD + b'{"message":')),
    ("reset at once", cut_after(b"")),
)


async def slow_and_broken(run: Run) -> None:
    """U5; the deadline of 30 s is one of 0.3 s here."""
    async with aiohttp.ClientSession() as client:
        deadline_s = 60.0 if run.mutated else DEADLINE_S
        for number in range(run.n):
            name, serve = SLOW[number % len(SLOW)]
            async with serving(serve) as heard:
                target = ImportTarget(client, heard.url, KEY, FakeClock(), deadline_s=deadline_s)
                began = time.monotonic()
                try:
                    async with asyncio.timeout(DEADLINE_S + LATE_S):
                        outcome = await target.send(BATCH)
                except TimeoutError:
                    run.failures.append(f"{name}: the deadline does not hold")
                    continue
                run.highest("answer_s", round(time.monotonic() - began, 2))
                run.expect(outcome.verdict is DeliveryResult.AMBIGUOUS, f"{name}: {outcome}")
            run.step()
        for url in ("http://nowhere.invalid", "https://127.0.0.1:1", "http://127.0.0.1:1"):
            outcome = await ImportTarget(client, url, KEY, FakeClock(), deadline_s=deadline_s).send(BATCH)
            run.expect(outcome.verdict is DeliveryResult.KEPT, f"{url}: {outcome}")
    await _healed(run)


async def _healed(run: Run) -> None:
    """What waited passes after the fault."""
    for kind in (True, False):
        async with one_of(run, kind, "healed") as made:
            session = await made.session()
            made.cloud.script.extend([hang, hang])
            await made.arrive(session, range(5))
            made.restart()
            await steps(made)
            await judged(run, made, range(5))


GIBIBYTE = 1024**3


async def gibibyte(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A body without end; `heard` gets a byte for each mebibyte that was taken."""
    await heard.add(await reader.readuntil(b"]"))
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % GIBIBYTE)
    for _ in range(1024):
        writer.write(b" " * ANSWER_BYTES)
        await writer.drain()
        await heard.add(b"+")


async def garbage(run: Run) -> None:
    """U6: a 200 that is no receipt is no success, and nothing large is read."""
    bodies = (
        html_200(), html_200(keep=True), status(200, body='{"message":"succ'),
        status(200, body=b"\x1f\x8b\x08" * 99),
        status(200, body="[" * 200_000), status(200, body=b"x", headers={"Content-Encoding": "gzip"}),
        status(200, body="{}", headers={"Content-Type": "image/png"}), status(204, body=""),
    )  # fmt: skip
    for kind in (True, False):
        for first in range(0, run.n, CHUNK):
            async with one_of(run, kind, f"garbage-{first}") as made:
                number = min(CHUNK, run.n - first)
                session = await made.session()
                with believing(run):
                    for place in range(number):
                        made.cloud.script.append(bodies[(first + place) % len(bodies)])
                        await made.arrive(session, range(place * 3, place * 3 + 3))
                        made.restart()
                        await steps(made)
                        run.step(kind)
                await judged(run, made, range(number * 3))
    async with aiohttp.ClientSession() as client, serving(gibibyte) as heard:
        outcome = await ImportTarget(client, heard.url, KEY, FakeClock(), deadline_s=10).send(BATCH)
        run.expect(outcome.verdict is DeliveryResult.AMBIGUOUS or run.mutated, f"a gibibyte: {outcome}")
        taken = heard.items.count(b"+")
        run.expect(taken <= 8, f"{taken} MiB of an answer were taken")
        run.figure("mebibytes_taken", taken)


async def redirects(run: Run) -> None:
    """U7: none is followed, and the key goes to no other host."""
    codes = (301, 302, 303, 307, 308)
    async with running(ScriptedCloud()) as there, running(ScriptedCloud()) as elsewhere:
        places = (f"{elsewhere.url}/x", f"{there.url}/v1/fermentation/77/import", "/login", "http://[", "")
        async with aiohttp.ClientSession() as client:
            target = ImportTarget(client, there.url, KEY, FakeClock(), deadline_s=5)
            request = aiohttp.ClientSession.request

            def follow(*arguments: Any, **more: Any) -> Any:
                return request(*arguments, **{**more, "allow_redirects": True})

            with patch.object(aiohttp.ClientSession, "request", follow if run.mutated else request):
                for number in range(run.n):
                    code, place = codes[number % 5], places[number // 5 % 5]
                    there.script.append(redirect(place, code))
                    outcome = await target.send(BATCH)
                    run.expect(outcome.verdict is DeliveryResult.PAUSED, f"{code} to {place!r}: {outcome}")
                    run.expect("redirects to" in outcome.reason, f"{code}: not clear: {outcome.reason}")
                    run.step()
        run.expect(not elsewhere.requests, "it was followed")
        run.figure("keys_given_away", sum(KEY in str(seen.headers) for seen in elsewhere.requests))


async def one_of_three_dead(run: Run) -> None:
    """U10: the delay of two healthy targets, real time, with the third well and with it dead."""
    delays: dict[str, list[float]] = {}
    for state in ("well", "gone", "hangs", "refuses the key"):
        folder = run.sub(state.replace(" ", "-"))
        async with several(folder) as made:
            await _die(made, state)
            with _in_one_line(run):
                async with forwarding(made.services):
                    delays[state] = await _delays(run, made)
    for state, found in delays.items():
        run.figure(f"p99_s_{state.replace(' ', '_')}", round(sorted(found)[len(found) * 99 // 100], 2))
        worst, usual = max(found), max(delays["well"])
        run.expect(worst <= usual * 1.1 + NOISE_S, f"{state}: {worst:.1f} s instead of {usual:.1f} s")


async def _die(made: Several, state: str) -> None:
    cloud = made.clouds["b"]
    if state == "gone":
        await cloud.stop()
    elif state == "hangs":
        cloud.script.extend([hang] * 9)
    elif state == "refuses the key":
        cloud.key = "another"


async def _delays(run: Run, made: Several) -> list[float]:
    found = []
    for number in range(run.n):
        began = time.monotonic()
        await made.arrive(number)
        for name in ("a", "c"):
            await made.until(name, list(range(number + 1)))
        found.append(time.monotonic() - began)
        run.step()
    return found


@contextmanager
def _in_one_line(run: Run) -> Iterator[None]:
    """The mutation: targets wait for each other."""
    lock, step = asyncio.Lock(), Forwarder.step

    async def alone(self: Forwarder) -> Wait:
        async with lock:
            return await step(self)

    with patch.object(Forwarder, "step", alone if run.mutated else step):
        yield


WIRE_SCENARIOS = (
    Scenario(
        "U5", "slow, half-open, reset, no name, no TLS", "connections", 200, 6, slow_and_broken,
        mutation="no deadline", mutation_n=2,
    ),
    Scenario(
        "U6", "garbage with a 200", "answers", 800, 8, garbage,
        mutation="every answer taken for a yes", mutation_n=8,
    ),
    Scenario("U7", "redirects", "redirects", 500, 25, redirects, mutation="followed", mutation_n=5),
    Scenario(
        "U10", "one of three targets dead", "readings", 200, 6, one_of_three_dead,
        mutation="targets wait for each other", mutation_n=3,
    ),
)  # fmt: skip
"""What goes wrong on the wire, and at one of several targets."""
