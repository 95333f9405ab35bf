"""Shares of sources: new devices, readings of a day; and where each reading came from."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.config import NAMES_AN_HOUR
from gateway.domain.progress import no_progress
from gateway.domain.report import Report
from gateway.errors import ShareUsedUp, StoreUnavailable
from gateway.intake import devices, intake
from gateway.intake.intake import Intake
from gateway.intake.replay import Replay
from gateway.intake.shares import DAY_HOURS, HOUR_S, READING_BYTES, ReadingShares
from gateway.store.records import Settle
from gateway.store.sqlite import quarantine
from gateway.store.sqlite.store import SqliteStore

from .test_intake import SPINDLE, Bench

MIB = 1024 * 1024


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = SqliteStore(tmp_path, quota_bytes=16 * MIB)
    await store.open()
    bench = Bench(store)
    await bench.intake.start()
    yield bench
    await store.close()


async def register(bench: Bench, host: int, first: int, number: int) -> int:
    """Report as new devices from one neighbour; return how many became devices."""
    before = len(await bench.store.devices.all())
    for device in range(first, first + number):
        await bench.take(SPINDLE | {"ID": device, "angle": device / 100}, source=f"192.168.1.{host}")
    return len(await bench.store.devices.all()) - before


async def again(bench: Bench, names_an_hour: int = NAMES_AN_HOUR) -> None:
    """Start once more on the same data."""
    bench.intake = Intake(bench.store, bench.notices, bench.stats, bench.clock, names_an_hour=names_an_hour)
    await bench.intake.start()


async def test_a_source_registers_so_many_devices_an_hour_and_the_rest_waits_in_quarantine(
    bench: Bench,
) -> None:
    assert await register(bench, 1, 100, 25) == NAMES_AN_HOUR
    held = await bench.store.quarantine.newest(9)
    assert len(held) == 5
    assert all(item.readable and "192.168.1.1 may register in an hour" in item.reason for item in held)
    assert await register(bench, 2, 200, 3) == 3, "another source has its own share"
    assert await register(bench, 1, 100, 1) == 0
    assert len(await bench.store.quarantine.newest(9)) == 5, "a device that is known goes on"
    bench.clock.advance(devices.HOUR_S + 1)
    assert await register(bench, 1, 120, 5) == 5


async def test_a_source_registers_so_many_devices_in_all_also_after_a_restart(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "HOURS_IN_ALL", 3)
    await again(bench, 5)
    assert await register(bench, 1, 100, 9) == 5
    for expected in (5, 5, 0):
        await again(bench, 5)
        assert await register(bench, 1, 200, 12) == expected
    assert await register(bench, 2, 300, 5) == 5


async def test_the_last_places_are_for_sources_with_few_devices(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("DEVICES_MAX", 10), ("PLACES_KEPT", 4), ("FEW_NAMES", 3)):
        monkeypatch.setattr(devices, name, value)
    assert await register(bench, 1, 100, 9) == 6
    assert await register(bench, 2, 200, 9) == 3
    assert await register(bench, 3, 300, 9) == 1, "all places are taken"


async def test_of_a_list_the_known_devices_are_stored_and_the_rest_comes_by_a_replay(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await again(bench, 2)
    colours = ("Red", "Blue", "Pink")
    tilts = {colour: {"gravity": 1.05, "temp": 68, "tempUnits": "F"} for colour in colours}
    body = json.dumps({"mdns_id": "tiltbridge", "tilts": tilts}).encode()
    taken = await bench.intake.take(bench.payload(body, source="192.168.1.9"))
    assert len(taken.reports) == 2
    (held,) = await bench.store.quarantine.newest(9)
    assert (taken.quarantined, held.readable, held.body) == (held.reason, True, body)
    replay = Replay(bench.store, bench.intake, bench.notices)
    assert (await replay.run(no_progress)).understood == 1
    assert sorted(line["device_id"] for line in await bench.lines()) == [
        f"{colour}@tiltbridge" for colour in sorted(colours)
    ]


async def test_a_mistake_of_a_driver_counts_as_readable(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> list[Report]:
        raise ZeroDivisionError

    monkeypatch.setattr(intake, "decode", broken)
    await bench.take(SPINDLE)
    assert [item.readable for item in await bench.store.quarantine.newest(9)] == [True]


async def test_no_yes_for_a_reading_that_fits_nowhere(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await again(bench, 1)
    monkeypatch.setattr(quarantine, "QUARANTINE_ROWS", 8)
    assert await register(bench, 1, 100, 3) == 1
    for _ in range(2):
        with pytest.raises(ShareUsedUp):
            await register(bench, 1, 200, 1)
    with pytest.raises(ShareUsedUp):
        await bench.take(b"garbage", source="192.168.1.1")
    assert await bench.store.quarantine.count() == 2
    assert (await bench.store.quarantine.state()).pushed_out == 0
    assert bench.stats.not_stored == 3
    assert bench.stats.accepted == bench.stats.stored + bench.stats.quarantined + bench.stats.not_stored


async def test_readings_of_a_source_take_a_fifth_of_the_quota_a_day_and_others_are_not_concerned(
    bench: Bench,
) -> None:
    async def send(host: int, number: int) -> None:
        body = SPINDLE | {"angle": number, "padding": "x" * 50_000}
        await bench.take(body, source=f"192.168.1.{host}")

    taken = int(16 * MIB * 0.2) // (50_000 + 200 + READING_BYTES)
    for number in range(taken):
        await send(1, number)
    with pytest.raises(ShareUsedUp, match=r"192\.168\.1\.1 has had 20% of the quota"):
        await send(1, taken)
    await send(1, taken - 1)
    assert bench.stats.duplicates == 1, "a duplicate takes nothing"
    await send(2, 1000)
    await again(bench)
    with pytest.raises(ShareUsedUp):
        await send(1, 1001)
    await send(2, 1002)
    bench.clock.advance((DAY_HOURS + 2) * HOUR_S)
    await send(1, 1003)


async def test_a_reading_that_is_not_stored_takes_nothing_of_the_share(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.take(SPINDLE)
    monkeypatch.setattr(bench.intake._ordinary, "shares", ReadingShares(READING_BYTES * 10))
    with monkeypatch.context() as failing:
        failing.setattr(bench.store, "take", _refuse)
        failing.setattr(bench.store, "take_soon", _refuse_soon)
        for angle in range(9):
            with pytest.raises(StoreUnavailable, match="the disk"):
                await bench.take(SPINDLE | {"angle": angle})
    await bench.take(SPINDLE | {"angle": 9})
    assert len(await bench.lines()) == 2


async def _refuse(*_: Any) -> None:
    raise StoreUnavailable("the disk")


def _refuse_soon(_: Any, settle: Settle) -> None:
    asyncio.get_running_loop().call_soon(settle, StoreUnavailable("the disk"))


async def test_the_source_of_every_reading_is_on_record(bench: Bench) -> None:
    await bench.take(SPINDLE, source="192.168.1.37")
    bench.clock.advance(900)
    await bench.take(SPINDLE | {"angle": 1}, source="192.168.1.37")
    bench.clock.advance(900)
    await bench.take(SPINDLE | {"angle": 2}, source="192.168.1.99")
    lines = await bench.lines()
    assert [line["received_from"] for line in lines] == ["192.168.1.37", "192.168.1.37", "192.168.1.99"]
    (device,) = await bench.store.devices.all()
    first, second = await bench.store.devices.sources(device.id)
    assert (first.address, first.readings, second.address, second.readings) == (
        "192.168.1.37", 2, "192.168.1.99", 1,
    )  # fmt: skip
    assert second.first_at == second.last_at == first.last_at + 900
    assert await bench.store.devices.first_sources() == {device.id: "192.168.1.37"}
