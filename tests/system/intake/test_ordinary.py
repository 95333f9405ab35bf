"""The ordinary reading in one pass: the same rows as in steps, and nothing lost where the store says no."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.payload import Payload
from gateway.errors import QuotaFull, StoreUnavailable
from gateway.events import StoredNotices
from gateway.intake.intake import Intake
from gateway.intake.ordinary import Taken
from gateway.stats import Stats
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.pure.drivers.messages import ARRIVAL
from tests.pure.drivers.test_cases import FILES, payloads

from .test_intake import SPINDLE, Bench

ROUNDS = 3
"""The first one makes the devices and the second one loads their past; the third one is ordinary."""

INTERVAL_S = 900

MANY = 10_000
"""New devices that the address of all cases may register in an hour."""

ORDINARY_SHARE = 0.7
"""The part of the golden cases that goes in one pass at least."""

CHANGING = {"oid", "crc", "seq", "id", "device_id"}
"""Columns that differ between two runs: an id has a random part, and the devices of one payload are stored
together, in no order."""


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = SqliteStore(tmp_path)
    await store.open()
    bench = Bench(store)
    await bench.intake.start()
    yield bench
    await store.close()


async def known(bench: Bench, **more: Any) -> None:
    """Make the spindle a device whose next reading is ordinary."""
    for angle in (50.0, 50.1):
        await bench.take(SPINDLE | more | {"angle": angle})
        bench.clock.advance(INTERVAL_S)


def take_now(bench: Bench, body: dict[str, Any], **details: Any) -> asyncio.Future[Taken | Exception] | None:
    """Hand a payload to the one pass; return its result to come, None if it is declined."""
    result: asyncio.Future[Taken | Exception] = asyncio.get_running_loop().create_future()
    return result if bench.intake.take_now(bench.payload(body, **details), result.set_result) else None


async def rows_of(directory: Path, *, in_steps: bool) -> tuple[list[str], list[str], Stats, int]:
    """Take every golden case several times; return readings, devices, counters and the ordinary payloads."""
    store = SqliteStore(directory)
    await store.open()
    stats, clock = Stats(), FakeClock(now=ARRIVAL)
    intake = Intake(store, StoredNotices(), stats, clock, names_an_hour=MANY)
    await intake.start()
    ordinary = 0
    for _ in range(ROUNDS):
        for path in FILES:
            for payload in payloads(json.loads(path.read_text("utf-8"))):
                ordinary += await _take(intake, replace(payload, received_at=clock.now()), in_steps=in_steps)
        clock.advance(INTERVAL_S)
    await store.close()
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as database:
        database.row_factory = sqlite3.Row
        readings = database.execute("SELECT d.key, r.* FROM readings r JOIN devices d ON d.id = device_id")
        devices = database.execute("SELECT * FROM devices")
        return _comparable(readings), _comparable(devices), stats, ordinary


def _comparable(rows: Iterable[sqlite3.Row]) -> list[str]:
    """Return the rows without what differs between two runs, in one order."""
    return sorted(
        str({name: row[name] for name in row.keys() if name not in CHANGING})  # noqa: SIM118 (no mapping)
        for row in rows
    )


async def _take(intake: Intake, payload: Payload, *, in_steps: bool) -> bool:
    result: asyncio.Future[Taken | Exception] = asyncio.get_running_loop().create_future()
    if not in_steps and intake.take_now(payload, result.set_result):
        assert isinstance(await result, Taken)
        return True
    await intake.take_in_steps(payload)
    return False


async def test_every_golden_case_gives_the_same_rows_in_one_pass_and_in_steps(tmp_path: Path) -> None:
    readings, devices, stats, ordinary = await rows_of(tmp_path / "pass", in_steps=False)
    in_steps = await rows_of(tmp_path / "steps", in_steps=True)
    assert (readings, devices, stats) == in_steps[:3]
    assert ordinary > ORDINARY_SHARE * len(FILES) > in_steps[3] == 0


async def test_a_yes_comes_after_the_commit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await known(bench)
    committed: list[int] = []
    transact = Writer._transact

    def watched(self: Writer, connection: sqlite3.Connection, works: Any, rows: Any) -> Any:
        outcome = transact(self, connection, works, rows)
        committed.append(len(rows))
        return outcome

    monkeypatch.setattr(Writer, "_transact", watched)
    results = [take_now(bench, SPINDLE | {"angle": angle}) for angle in (51, 52, 53)]
    assert None not in results
    assert committed == []
    for result in results:
        assert result is not None
        await result
        assert sum(committed) == 3
    assert bench.stats.stored == bench.stats.accepted == bench.stats.received == 5


async def test_a_copy_of_a_reading_on_its_way_waits_for_its_commit(bench: Bench) -> None:
    await known(bench)
    first = take_now(bench, SPINDLE)
    assert first is not None
    assert take_now(bench, SPINDLE) is None
    await bench.take(SPINDLE)
    assert first.done()
    assert (bench.stats.stored, bench.stats.duplicates) == (3, 1)


NOT_ORDINARY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an unknown device": ({"ID": 1}, {}),
    "a new name": ({"name": "other"}, {}),
    "a new interval": ({"interval": 60}, {}),
    "another unit": ({"temp_units": "F", "temperature": 70.5}, {}),
    "no measurement": ({"angle": None, "temperature": None, "gravity": None}, {}),
    "retained": ({}, {"retained": True}),
    "redelivered": ({}, {"redelivered": True, "delivery": "1"}),
    "the wrong driver": ({}, {"driver": "plaato"}),
}


async def test_what_is_not_ordinary_is_declined_before_anything_has_changed(bench: Bench) -> None:
    await known(bench)
    before = bench.stats.stored, bench.stats.received, bench.stats.accepted
    (device,) = await bench.store.devices.all()
    for name, (members, details) in NOT_ORDINARY.items():
        assert take_now(bench, SPINDLE | members, **details) is None, name
    assert before == (bench.stats.stored, bench.stats.received, bench.stats.accepted)
    assert await bench.store.devices.all() == [device]
    assert take_now(bench, SPINDLE) is not None


async def test_a_reading_that_the_disk_refuses_is_refused_and_taken_when_it_comes_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await known(bench)

    def fails(*_: Any) -> Any:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as disk:
        disk.setattr(Writer, "_transact", fails)
        result = take_now(bench, SPINDLE)
        assert result is not None
        copy = asyncio.create_task(bench.intake.take(bench.payload(SPINDLE)))
        assert isinstance(await result, StoreUnavailable)
        with pytest.raises(StoreUnavailable):
            await copy
    assert (bench.stats.stored, bench.stats.not_stored) == (2, 2)
    await bench.take(SPINDLE)
    assert len(await bench.lines()) == 3


async def test_where_no_row_may_wait_nothing_is_kept_in_memory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await known(bench)
    with monkeypatch.context() as full:
        full.setattr(bench.store._database.room, "is_full", True)
        assert take_now(bench, SPINDLE) is None
        with pytest.raises(QuotaFull):
            await bench.take(SPINDLE)
    await bench.take(SPINDLE)
    assert len(await bench.lines()) == 3


async def test_a_device_that_is_forgotten_meanwhile_begins_anew(bench: Bench) -> None:
    await known(bench)
    (device,) = await bench.store.devices.all()
    await bench.store.devices.forget(device.id, int(bench.clock.now()), with_readings=False)
    result = take_now(bench, SPINDLE)
    assert result is not None
    taken = await result
    assert isinstance(taken, Taken)
    assert taken.quarantined is None
    (anew,) = await bench.store.devices.all()
    assert anew.key == device.key
    assert bench.stats.accepted == bench.stats.received == bench.stats.stored == 3


async def test_a_row_that_the_store_never_takes_goes_to_quarantine(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await known(bench)

    def refuses(*_: Any, **__: Any) -> Any:
        raise sqlite3.IntegrityError("never")

    with monkeypatch.context() as never:
        never.setattr(bench.store._writer._kind, "insert", refuses)
        result = take_now(bench, SPINDLE)
        assert result is not None
        taken = await result
    assert isinstance(taken, Taken)
    assert taken.quarantined == "it cannot be stored as a reading"
    assert await bench.store.quarantine.count() == 1


async def test_the_outlier_before_is_flagged_before_the_yes(bench: Bench) -> None:
    await known(bench)
    await bench.take(SPINDLE | {"gravity": 24.0})
    bench.clock.advance(INTERVAL_S)
    result = take_now(bench, SPINDLE | {"angle": 51})
    assert result is not None
    await result
    assert [line["flags"] for line in await bench.lines()][-2:] == [["gravity_spike"], []]
