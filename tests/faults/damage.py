"""D8: the database file is damaged at the start. D9: it is damaged while the gateway runs."""

import asyncio
import hashlib
import random
import shutil
import time
from pathlib import Path

from gateway.clock import SystemClock
from gateway.domain.payload import Payload
from gateway.services.build import build_services
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from tests.faults.cloud import Upstream
from tests.faults.damages import KINDS, NOTHING_LOST, PENDING, flip_value, wipe_leaf
from tests.faults.devices import post_one
from tests.faults.drain import LOOK_S, quiet
from tests.faults.fixtures import old_database
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import Gateway, prepare
from tests.faults.judge import Verdict, judge
from tests.faults.ledger import Ledger
from tests.faults.readings import body_of, mark_of

LANES = 3
ACCEPTS_S = 10.0
BUSY_ACCEPTS_S = 30.0
"""In small runs, which share the machine with other tests."""

JUDGED_FROM = 100
"""Damages from which on the shorter limit holds."""

MANY, OF_SCHEMA = 18_000, 3
"""Readings of a database that is larger than the page cache of the gateway, made quickly."""

FLIPS = 20
"""Values that are changed under it; what it has in memory it does not notice, nor need it."""

SALVAGED_SHARE = 0.95
"""Of what is pending, with one leaf page wiped."""


async def play_d8(run: Run) -> None:
    """Each time the same gateway, damaged in another way."""
    template = run.sub("template")
    await _make(template)
    await _make_foreign_log(run)
    names = list(KINDS)
    weights = [weight for weight, _ in KINDS.values()]
    kinds = (
        ["value"] * run.n if run.mutated else [*names, *run.random.choices(names, weights, k=run.n)][: run.n]
    )
    run.random.shuffle(kinds)
    queue = iter(list(enumerate(kinds)))

    async def lane() -> None:
        for number, kind in queue:
            await _damaged_start(run, template, number, kind)
            run.step()

    async with asyncio.TaskGroup() as lanes:
        for _ in range(LANES):
            lanes.create_task(lane())


async def _make(data: Path, readings: int = PENDING) -> None:
    """Readings that wait, all in the file, nothing in a log."""
    await prepare(data)
    store = SqliteStore(data)
    services = build_services(store, data, SystemClock())
    await store.open()
    await services.intake.start()
    for number in range(readings):
        body = body_of(mark_of("h0", number), "h0")
        await services.intake.take(Payload(body, time.time(), "http /ingest"))
    await store.close()


async def _make_foreign_log(run: Run) -> None:
    data = run.sub("foreign")
    await prepare(data, ("h0", "m0", "foreign"))
    store = SqliteStore(data)
    await store.open()
    services = build_services(store, data, SystemClock())
    await services.intake.start()
    for number in range(20):
        await services.intake.take(Payload(body_of(mark_of("m0", number), "m0"), time.time(), "http /ingest"))
    shutil.copyfile(data / f"{DATABASE_NAME}-wal", run.folder / "foreign-wal")
    await store.close()


async def _damaged_start(run: Run, template: Path, number: int, kind: str) -> None:
    data, name = run.folder / f"{number}", f"{number} {kind}"
    await asyncio.to_thread(shutil.copytree, template, data)
    database = data / DATABASE_NAME
    KINDS[kind][1](database, random.Random(run.seed * 10_000 + number))  # noqa: S311 - no secrets
    fingerprint = _fingerprint(database)
    ledger, upstream = Ledger(run.ledgers / f"{number}"), Upstream(keeps_ids=number % 2 == 0)
    await upstream.start()
    gateway = Gateway(data, upstream, weak="trusting" if run.mutated else "")
    try:
        began = time.monotonic()
        limit = ACCEPTS_S if run.n >= JUDGED_FROM else BUSY_ACCEPTS_S
        run.expect(await gateway.start(limit), f"{name}: no start: {gateway.lines[-3:]}")
        status, _ = await post_one(gateway.http_port, "h0", mark_of("h0", 900_000), ledger)
        seconds = time.monotonic() - began
        run.highest("accepts_s", round(seconds, 2))
        run.expect(status == 200 and seconds <= limit, f"{name}: {status} after {seconds:.1f} s")
        await _judge(run, gateway, upstream, ledger, kind, name)
        _look_aside(run, data, fingerprint, name)
    finally:
        await gateway.kill()
        await upstream.stop()
        ledger.close()
        await asyncio.to_thread(shutil.rmtree, data)


async def _judge(
    run: Run, gateway: Gateway, upstream: Upstream, ledger: Ledger, kind: str, name: str
) -> None:
    pending = {mark_of("h0", number) for number in range(PENDING)}
    await quiet(gateway, upstream, pending)
    found = judge(pending | ledger.before(), pending | ledger.issued, upstream.kept())
    _nothing_wrong(run, found, name)
    share = 1 - len(set(found.lost) & pending) / PENDING
    _lowest(run, f"{kind}_salvaged", share)
    wanted = 1.0 if kind in NOTHING_LOST else SALVAGED_SHARE if kind in {"leaf", "value"} else 0.0
    run.expect(share >= wanted, f"{name}: {share:.0%} of what was pending is salvaged: {gateway.lines[-3:]}")


def _nothing_wrong(run: Run, found: Verdict, name: str) -> None:
    for wrong in ("twice", "invented", "changed"):
        marks = getattr(found, wrong)
        run.count(wrong, len(marks))
        run.expect(not marks, f"{name}: {wrong}: {marks[:3]}")


def _lowest(run: Run, name: str, share: float) -> None:
    before = run.figures.get(name, share)
    assert not isinstance(before, str)
    run.figure(name, min(before, round(share, 3)))


def _fingerprint(database: Path) -> str | None:
    return hashlib.sha256(database.read_bytes()).hexdigest() if database.is_file() else None


def _look_aside(run: Run, data: Path, fingerprint: str | None, name: str) -> None:
    """What was set aside is what was there, byte for byte."""
    aside = [path for path in data.glob(f"{DATABASE_NAME}.damaged-*") if path.suffix not in {"-wal", "-shm"}]
    run.count("set_aside", bool(aside))
    mains = [path for path in aside if path.is_file() and not path.name.endswith(("-wal", "-shm"))]
    if mains and fingerprint is not None:
        kept = {_fingerprint(path) for path in mains}
        run.expect(fingerprint in kept, f"{name}: what is kept aside is not what was there")


async def play_d9(run: Run) -> None:
    """Wrong values under a gateway that forwards more than it keeps in memory, and a wiped page."""
    template = run.sub("template")
    marks = await asyncio.to_thread(old_database, template / DATABASE_NAME, OF_SCHEMA, MANY)
    gateway = Gateway(template)
    run.expect(await gateway.start(), f"no start: {gateway.lines[-3:]}")
    await gateway.stop()
    for number in range(run.n):
        await _damaged_later(run, template, number, marks)
        run.step()


async def _damaged_later(run: Run, template: Path, number: int, marks: list[str]) -> None:
    data, chance = run.folder / f"{number}", random.Random(run.seed * 100 + number)  # noqa: S311 - no secrets
    await asyncio.to_thread(shutil.copytree, template, data)
    ledger, upstream = Ledger(run.ledgers / f"{number}"), Upstream(keeps_ids=number % 2 == 0, down=True)
    await upstream.start()
    gateway = Gateway(data, upstream, weak="trusting" if run.mutated else "")
    try:
        run.expect(await gateway.start(), f"no start: {gateway.lines[-3:]}")
        for _ in range(FLIPS):
            flip_value(data / DATABASE_NAME, marks, chance)
        if not run.mutated:
            wipe_leaf(data / DATABASE_NAME, chance)
        upstream.down = False
        for life in range(1 if run.mutated else 2):
            await quiet(gateway, upstream, set(marks))
            status = await _accepts(gateway, life, ledger)
            run.expect(status == 200, f"{number}: a reading is answered {status}: {gateway.lines[-2:]}")
            if life == 0:
                await gateway.stop()
                run.expect(await gateway.start(), f"{number}: no second start: {gateway.lines[-3:]}")
        await quiet(gateway, upstream, set(marks))
        found = judge(marks, {*marks, *ledger.issued}, upstream.kept())
        run.count("not_forwarded", len(found.lost))
        share = 1 - len(found.lost) / MANY
        run.expect(share >= SALVAGED_SHARE, f"{number}: {share:.0%} forwarded: {gateway.lines[-3:]}")
        _nothing_wrong(run, found, f"{number}")
    finally:
        await gateway.kill()
        await upstream.stop()
        ledger.close()
        await asyncio.to_thread(shutil.rmtree, data)


async def _accepts(gateway: Gateway, life: int, ledger: Ledger) -> int:
    """The first answer may be the one that finds the damage."""
    began = time.monotonic()
    while True:
        status, _ = await post_one(gateway.http_port, "h0", mark_of("h0", 900_000 + life), ledger)
        if status == 200 or time.monotonic() - began > ACCEPTS_S:
            return status
        await asyncio.sleep(LOOK_S)


SCENARIOS = (
    Scenario(
        "D8",
        "damaged file at start: flipped bits, wiped pages, cut off, garbage, another file",
        unit="damages",
        full=500,
        small=11,
        play=play_d8,
        mutation="checksums ignored",
        mutation_n=2,
    ),
    Scenario(
        "D9",
        "damage while running",
        unit="damages",
        full=50,
        small=1,
        play=play_d9,
        mutation="checksums ignored",
        mutation_n=1,
    ),
)
