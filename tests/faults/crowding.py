"""H14, H14b and Q1: neighbours who invent devices, send garbage, or fill the quota.

P7b: every reading that got a yes is stored or in quarantine, looked for one by one and not as a sum.
"""

import asyncio
import json
import sqlite3
import sys
import time
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field

from gateway.store.sqlite.engine.database import DATABASE_NAME
from tests.faults.drain import balanced
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import Gateway, running
from tests.faults.launcher import ROWS_VARIABLE
from tests.faults.readings import body_of, mark_of
from tests.program.program import environment

LOOPBACK = "127.0.0.1"
NEIGHBOURS = tuple(f"127.0.0.{host}" for host in range(2, 8))
BRIDGE = "127.0.0.9"
"""An honest neighbour with more devices than it may register in an hour."""

BRIDGED = 25
BURST = 55
"""Posts of one neighbour at once: below the rate that every source has."""

LANES = 8
ANSWER_S = 10.0
SMALL_ROWS = 400
"""Payloads that quarantine holds in a small run: a share is 100."""

SMALL_BELOW = 10_000
MIB = 1024 * 1024
BIG = 60_000
"""Characters of a reading that shall fill a quota."""

HONEST_EVERY_S = 0.1
HONEST_S, HONEST_SMALL_S = 1.0, 5.0
"""Seconds in which an honest device has its answer; more in a small run, which shares its machine."""

LOG_LINES = 4


@dataclass
class Answers:
    """What was answered to whom: statuses, and the marks that got a yes."""

    statuses: Counter[int] = field(default_factory=Counter)
    yes: set[str] = field(default_factory=set)


@dataclass
class Door:
    """One keep-alive connection from an address."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def post(self, body: bytes) -> tuple[int, bytes]:
        """Send a payload; return the status and the head of the answer."""
        self.writer.write(b"POST /ingest HTTP/1.1\r\nHost: gateway\r\nContent-Length: %d\r\n\r\n" % len(body))
        self.writer.write(body)
        async with asyncio.timeout(ANSWER_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            await self.reader.readexactly(int(length or 0))
        return int(head.split(b" ", 2)[1]), head


@asynccontextmanager
async def door(gateway: Gateway, source: str) -> AsyncIterator[Door]:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", gateway.http_port, local_addr=(source, 0), limit=2**20
    )
    try:
        yield Door(reader, writer)
    finally:
        writer.close()


async def flood(
    gateway: Gateway, source: str, payloads: Iterable[tuple[str, bytes]], answers: Answers, lanes: int = LANES
) -> None:
    """Send marked payloads from one address, several at a time."""
    waiting = iter(payloads)

    async def lane() -> None:
        async with door(gateway, source) as at:
            for mark, body in waiting:
                status, _ = await at.post(body)
                answers.statuses[status] += 1
                if status == 200:
                    answers.yes.add(mark)

    async with asyncio.TaskGroup() as lanes_under_way:
        for _ in range(lanes):
            lanes_under_way.create_task(lane())


def invented(source: str, number: int, prefix: str = "x") -> Iterable[tuple[str, bytes]]:
    """Readings of so many devices that there are not."""
    for place in range(number):
        mark = mark_of(f"{prefix}{source.rpartition('.')[2]}", place)
        yield mark, body_of(mark, f"{mark}")


def garbage(number: int) -> Iterable[tuple[str, bytes]]:
    """Payloads that no driver reads."""
    for place in range(number):
        yield f"garbage-{place}", b"\xffgarbage %d" % place


async def play_names(run: Run) -> None:
    """Invented names from loopback and six neighbours, and an honest bridge behind them."""
    async with _crowded(run) as (gateway, answers):
        async with asyncio.TaskGroup() as floods:
            floods.create_task(flood(gateway, LOOPBACK, invented(LOOPBACK, run.n), answers))
            for source in NEIGHBOURS:
                floods.create_task(flood(gateway, source, invented(source, BURST), answers, 1))
            floods.create_task(flood(gateway, BRIDGE, invented(BRIDGE, BRIDGED, "h"), answers, 1))
        honest = [mark for mark, _ in invented(BRIDGE, BRIDGED, "h") if mark not in answers.yes]
        run.expect(not honest, f"the honest bridge was refused: {honest[:5]}")


async def play_garbage(run: Run) -> None:
    """Garbage from loopback and six neighbours, behind readings that wait in quarantine."""
    async with _crowded(run) as (gateway, answers):
        await flood(gateway, BRIDGE, invented(BRIDGE, BRIDGED, "h"), answers, 1)
        await flood(gateway, LOOPBACK, invented(LOOPBACK, BRIDGED, "h"), answers, 1)
        run.expect(len(answers.yes) == 2 * BRIDGED, f"readings before the garbage: {answers.statuses}")
        rubbish = Answers()
        async with asyncio.TaskGroup() as floods:
            floods.create_task(flood(gateway, LOOPBACK, garbage(run.n), rubbish))
            for source in NEIGHBOURS:
                floods.create_task(flood(gateway, source, garbage(BURST), rubbish, 1))
        run.figure("garbage_yes", rubbish.statuses[200])


@asynccontextmanager
async def _crowded(run: Run) -> AsyncIterator[tuple[Gateway, Answers]]:
    """A gateway to crowd; afterwards every yes is looked for, one by one."""
    env = {ROWS_VARIABLE: str(SMALL_ROWS)} if run.n < SMALL_BELOW else {}
    options = ("--names-an-hour", "20")
    gateway = Gateway(run.sub("data"), options=options, env=env, weak="pushing" if run.mutated else "")
    answers = Answers()
    began = time.monotonic()
    async with running(gateway):
        yield gateway, answers
        seconds = time.monotonic() - began
        status, _ = await gateway.get("/healthz")
        run.expect(status == 200, f"/healthz answers {status}")
        await balanced(run, gateway, may_push_out=True)
    kept = kept_in(gateway)
    lost = sorted(answers.yes - kept)
    run.expect(not lost, f"P7b: {len(lost)} readings got a yes and are nowhere: {lost[:5]}")
    run.figure("yes", len(answers.yes))
    run.figure("lost", len(lost))
    run.figure("refused", answers.statuses[503])
    run.figure("seconds", round(seconds, 1))
    run.step(run.n)


def kept_in(gateway: Gateway) -> set[str]:
    """The marks of all readings that are stored or in quarantine."""
    with closing(sqlite3.connect(f"file:{gateway.data / DATABASE_NAME}?mode=ro", uri=True)) as connection:
        kept = {comment for (comment,) in connection.execute("SELECT comment FROM readings")}
        for (body,) in connection.execute("SELECT body FROM quarantine"):
            with suppress(ValueError):
                kept.add(json.loads(body)["comment"])
    return kept


async def play_quota(run: Run) -> None:
    """Fill a quota of `n` MiB from many neighbours; an honest device reports all the while."""
    quota = run.n * MIB
    gateway = Gateway(run.sub("data"), options=("--quota", str(quota)))
    answers, honest = Answers(), Answers()
    async with running(gateway):
        lines = len(gateway.lines)
        done = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_report(run, gateway, honest, done.is_set))
            began = time.monotonic()
            hosts = iter(f"127.0.{net}.{host}" for net in range(1, 9) for host in range(1, 250))
            while not answers.statuses[503] and time.monotonic() - began < 300:
                async with asyncio.TaskGroup() as floods:
                    for source in [next(hosts) for _ in range(4)]:
                        floods.create_task(flood(gateway, source, _big(source, quota), answers, 1))
            run.figure("full_after_s", round(time.monotonic() - began, 1))
            run.expect(answers.statuses[503], f"the quota was not filled: {answers.statuses}")
            await asyncio.sleep(2)
            done.set()
        run.expect(honest.statuses[503], f"the honest device: {honest.statuses}")
        async with door(gateway, LOOPBACK) as at:
            status, head = await at.post(body_of("last-1", "honest"))
        run.expect(status == 503 and b"retry-after: 60\r\n" in head.lower(), f"full: {head!r}")
        said = [line for line in gateway.lines[lines:] if "first reading of" not in line]
        run.figure("log_lines", len(said))
        run.expect(len(said) <= LOG_LINES, f"{len(said)} log lines: {said[:6]}")
        own = sum(path.stat().st_blocks * 512 for path in gateway.data.rglob("*") if path.is_file())
        run.figure("over_quota_MiB", round((own - quota) / MIB, 2))
        await balanced(run, gateway)
        command = [sys.executable, "-m", "gateway", "doctor", "--data-dir", str(gateway.data)]
        doctor = await asyncio.create_subprocess_exec(*command, stdout=PIPE, env=environment())
        text = (await doctor.communicate())[0].decode()
        run.expect(f"of the quota of {run.n}.0 MiB in use" in text, f"doctor does not know the quota: {text}")
    lost = (answers.yes | honest.yes) - kept_in(gateway)
    run.expect(not lost, f"{len(lost)} readings got a yes and are nowhere")
    run.step(run.n)


def _big(source: str, quota: int) -> Iterable[tuple[str, bytes]]:
    device = f"b{source[6:]}"
    for place in range(min(BURST, quota // 6 // BIG)):
        mark = mark_of(device, place)
        yield mark, body_of(mark, device, BIG)


async def _report(run: Run, gateway: Gateway, answers: Answers, done: Callable[[], bool]) -> None:
    place = 0
    async with door(gateway, LOOPBACK) as at:
        while not done():
            place += 1
            mark = mark_of("honest", place)
            began = time.monotonic()
            status, _ = await at.post(body_of(mark, "honest"))
            run.highest("honest_s", round(time.monotonic() - began, 2))
            answers.statuses[status] += 1
            if status == 200:
                answers.yes.add(mark)
            await asyncio.sleep(HONEST_EVERY_S)
    limit = HONEST_S if run.n >= 64 else HONEST_SMALL_S
    waited = run.figures["honest_s"]
    run.expect(isinstance(waited, float) and waited <= limit, f"an honest device waited {waited} s")


SCENARIOS = (
    Scenario(
        "H14",
        "invented device names from this machine and six neighbours, P7b",
        unit="names",
        full=10_000,
        small=600,
        play=play_names,
        mutation="the oldest in quarantine goes, whoever sent it",
        mutation_n=600,
    ),
    Scenario(
        "H14b",
        "garbage from this machine and six neighbours behind readings in quarantine, P7b",
        unit="payloads",
        full=100_000,
        small=800,
        play=play_garbage,
        mutation="the oldest in quarantine goes, whoever sent it",
        mutation_n=800,
    ),
    Scenario(
        "Q1",
        "a quota filled by many neighbours: every answer at once",
        unit="MiB",
        full=64,
        small=16,
        play=play_quota,
    ),
)
