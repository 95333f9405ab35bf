"""D2: SIGKILL at every write-side system call. D12: the same during the upgrade of older databases."""

import asyncio
import collections
import os
import re
import shutil
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.engine.schema import migrations
from tests.faults.cycle import lines_of
from tests.faults.fixtures import make, old_database
from tests.faults.frame import Missing, Run, Scenario, program
from tests.faults.launcher import VARIABLE
from tests.program.program import PROJECT, environment

CALLS = (
    "pwrite64", "fdatasync", "fsync", "ftruncate", "unlink", "rename", "mkdir", "fallocate", "renameat2",
)  # fmt: skip
"""What changes files. Plain `write` is for standard output and for ledgers."""

STRACE = ("strace", "-f", "-qq")
"""Not with `--seccomp-bpf`: strace 6.1 then injects no signals."""

LANES = 3
KILLED = -9
TAKEN = 6
"""Readings of one cycle."""

PROCESS_S = 60.0

HIT = 0.8
"""Share of the calls that come in every cycle; the last of a kind may not."""

UPGRADED = 500
UPGRADED_FULL = 20_000
UPGRADED_FROM = 100
"""Kills from which on the databases are large."""


@dataclass(frozen=True, slots=True)
class Point:
    """A call of a thread of the cycle; `schema` is that of the database it begins with."""

    schema: int
    call: str
    when: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is killed: with `taken` 0 only the opening, and so the upgrade."""

    schemas: Sequence[int]
    readings: int
    taken: int


async def play_d2(run: Run) -> None:
    """The whole cycle, begun with the schema of the first release."""
    await _play(run, Plan((1,), readings=10, taken=TAKEN))


async def play_d12(run: Run) -> None:
    """The upgrade alone, from every older schema."""
    schemas = [number for number, _ in migrations()][:-1]
    readings = UPGRADED_FULL if run.n >= UPGRADED_FROM else UPGRADED
    await _play(run, Plan(schemas, readings=readings, taken=0))


async def _play(run: Run, plan: Plan) -> None:
    folders = {schema: await _fixture(run, plan, schema) for schema in plan.schemas}
    points = [point for schema in plan.schemas async for point in _points(run, plan, folders[schema], schema)]
    run.figure("calls", len(points))
    chosen = points if run.n >= len(points) else run.random.sample(points, run.n)
    queue = iter(list(enumerate(chosen)))
    async with asyncio.TaskGroup() as lanes:
        for _ in range(LANES):
            lanes.create_task(_lane(run, plan, folders, queue))
    killed = run.figures.get("killed", 0)
    assert not isinstance(killed, str)
    run.expect(killed >= HIT * len(chosen), f"only {killed} of {len(chosen)} were killed")


async def _fixture(run: Run, plan: Plan, schema: int) -> Path:
    folder = run.sub(f"schema-{schema}")
    await asyncio.to_thread(old_database, folder / DATABASE_NAME, schema, plan.readings)
    return folder


async def _points(run: Run, plan: Plan, folder: Path, schema: int) -> AsyncIterator[Point]:
    """Run the cycle once and count."""
    data, log = run.folder / f"count-{schema}", run.folder / f"count-{schema}.strace"
    shutil.copytree(folder, data)
    trace = ("-o", str(log), "-e", f"trace={','.join(CALLS)}")
    status = await _cycle(run, data, run.ledgers / data.name, plan, prefix=(*STRACE, *trace))
    if status == 1 and not log.read_text():
        raise Missing("strace is not permitted to trace here")
    if status != 0:
        raise RuntimeError(f"the cycle ends with {status} when nothing is done to it: {run.failures}")
    counts = collections.Counter(re.findall(r"^(\d+) +(\w+)\(", log.read_text("utf-8", "replace"), re.M))
    most: dict[str, int] = {}
    for (_, call), count in counts.items():
        most[call] = max(most.get(call, 0), count)
    for call, count in sorted(most.items()):
        for when in range(1, count + 1):
            yield Point(schema, call, when)


async def _lane(run: Run, plan: Plan, folders: dict[int, Path], queue: Iterator[tuple[int, Point]]) -> None:
    for number, point in queue:
        data, ledger = run.folder / f"point-{number}", run.ledgers / f"point-{number}"
        shutil.copytree(folders[point.schema], data)
        await _kill(run, plan, point, data, ledger)
        shutil.rmtree(data)
        run.step()


async def _kill(run: Run, plan: Plan, point: Point, data: Path, ledger: Path) -> None:
    inject = f"inject={point.call}:signal=SIGKILL:when={point.when}"
    trace = ("-o", "/dev/null", "-e", f"trace={point.call}", "-e", inject)
    weak = plan.taken and run.mutated
    status = await _cycle(run, data, ledger, plan, prefix=(*STRACE, *trace), weak=bool(weak))
    run.expect(status in (0, KILLED), f"{point}: the cycle ended with {status}")
    run.count("killed", status == KILLED)
    if plan.taken == 0:
        run.expect(_is_one_schema(data / DATABASE_NAME, point.schema), f"{point}: half a migration")
        if run.mutated:
            _cut_a_migration_short(data / DATABASE_NAME)
    for attempt in (1, 2):
        status = await _cycle(run, data, ledger, plan, first=1000 * attempt)
        run.expect(status == 0, f"{point}: start {attempt} after the kill ended with {status}")
    _judge(run, plan, point, data, ledger)


async def _cycle(
    run: Run,
    data: Path,
    ledger: Path,
    plan: Plan,
    *,
    first: int = 0,
    prefix: Sequence[str] = (),
    weak: bool = False,
) -> int:
    arguments = (str(data), str(ledger), str(first), str(plan.taken))
    child = await asyncio.create_subprocess_exec(
        *(*prefix, sys.executable, "-m", "tests.faults.cycle", *arguments),
        env=environment({VARIABLE: "early"} if weak else {}),
        cwd=PROJECT,
        start_new_session=True,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PROCESS_S):
            _, said = await child.communicate()
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # not strace alone: it would let go of what it traces
        await child.wait()
        raise
    status = child.returncode
    assert status is not None
    if status not in (0, KILLED):
        run.failures.append(said.decode("utf-8", "replace")[-300:])
    return status


def _judge(run: Run, plan: Plan, point: Point, data: Path, ledger: Path) -> None:
    notes = lines_of(ledger)
    promised = {mark for word, mark in notes if word == "yes"}
    sent = collections.Counter(mark for word, mark in notes if word == "sent")
    with closing(sqlite3.connect(data / DATABASE_NAME)) as connection:
        sound = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        stored = [mark for (mark,) in connection.execute("SELECT comment FROM readings WHERE session_id = 1")]
    before = [mark for mark in stored if mark >= "h0-8"]
    run.expect(sound == "ok", f"{point}: {sound}")
    run.count("acknowledged", len(promised))
    lost = (promised - set(stored)) | (promised - sent.keys())
    run.count("lost", len(lost) + plan.readings - len(before))
    run.expect(not lost and len(before) == plan.readings, f"{point}: lost {sorted(lost)[:3]}, {len(before)}")
    run.expect(len(stored) == len(set(stored)), f"{point}: a reading is stored twice")
    twice = [mark for mark, count in sent.items() if count > 1]
    run.count("twice", len(twice))
    run.expect(not twice, f"{point}: sent twice: {twice[:3]}")


def _is_one_schema(database: Path, oldest: int) -> bool:
    """Whether it is exactly what some version's migrations make, looked at in a copy with its log."""
    copy = database.with_name("copy")
    copy.mkdir()
    for suffix in ("", "-wal"):
        source = database.with_name(database.name + suffix)
        if source.exists():
            shutil.copyfile(source, copy / source.name)
    with closing(sqlite3.connect(copy / database.name)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    shutil.rmtree(copy)
    return version >= oldest and there == _objects_of(version)


def _objects_of(version: int) -> set[str]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        make(connection, version)
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def _cut_a_migration_short(database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("DELETE FROM readings WHERE seq = (SELECT max(seq) FROM readings)")


_STRACE = program("strace")

SCENARIOS = (
    Scenario(
        "D2",
        "kill at every write-side system call of ingest, forward, checkpoint, prune, migrate",
        unit="calls",
        full=1000,
        small=10,
        play=play_d2,
        mutation="a yes before the commit",
        mutation_n=12,
        needs=(_STRACE,),
    ),
    Scenario(
        "D12",
        "upgrade of older databases, killed anywhere",
        unit="calls",
        full=1000,
        small=6,
        play=play_d12,
        mutation="a migration that loses a reading",
        mutation_n=1,
        mutation_small=False,
        needs=(_STRACE,),
    ),
)
