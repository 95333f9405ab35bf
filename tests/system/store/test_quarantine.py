"""Quarantine in the store: bounded by number and bytes, counted, and left only in one step."""

from pathlib import Path

import pytest

from gateway.domain.device import Device
from gateway.domain.quarantined import Quarantined
from gateway.store.protocol import Store
from gateway.store.sqlite import quarantine
from gateway.store.sqlite.store import SqliteStore
from tests.system.store.conftest import SECOND, arrival, new_session, report


def item(body: bytes = b"x", at: int = SECOND * 1000) -> Quarantined:
    return Quarantined(body, "no driver", at, "http /", "192.0.2.1", "tilt", "a=b", "red", "stream")


async def numbers(store: Store) -> list[int]:
    return [kept.id for kept in await store.quarantine.newest(100)]


async def test_everything_about_a_payload_is_kept(store: Store) -> None:
    await store.quarantine.add(item(b"\x00\xff"))
    kept = await store.quarantine.get(1)
    assert kept is not None
    assert (kept.body, kept.id, kept.received_at, kept.hint) == (b"\x00\xff", 1, SECOND * 1000, "stream")
    assert kept == Quarantined(*(getattr(kept, name) for name in Quarantined.__slots__))
    assert (kept.driver, kept.query, kept.label, kept.source) == ("tilt", "a=b", "red", "192.0.2.1")
    assert await store.quarantine.get(2) is None


async def test_newest_and_after_are_oldest_first(store: Store) -> None:
    for _ in range(5):
        await store.quarantine.add(item())
    assert [kept.id for kept in await store.quarantine.newest(2)] == [4, 5]
    assert [kept.id for kept in await store.quarantine.after(1, 3)] == [2, 3, 4]
    assert await store.quarantine.after(5, 3) == []


async def test_beyond_its_number_the_oldest_are_pushed_out_and_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "QUARANTINE_ROWS", 3)
    for _ in range(5):
        await store.quarantine.add(item())
    assert await numbers(store) == [3, 4, 5]
    state = await store.quarantine.state()
    assert (state.items, state.size, state.pushed_out) == (3, 3, 2)


async def test_beyond_its_bytes_the_oldest_are_pushed_out_and_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "QUARANTINE_BYTES", 10)
    for size in (4, 4, 2, 5):
        await store.quarantine.add(item(b"x" * size))
    assert await numbers(store) == [3, 4]
    state = await store.quarantine.state()
    assert (state.items, state.size, state.pushed_out) == (2, 7, 2)


async def test_one_that_is_larger_than_all_is_kept_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "QUARANTINE_BYTES", 10)
    await store.quarantine.add(item())
    await store.quarantine.add(item(b"x" * 20))
    assert await numbers(store) == [2]


async def test_what_is_removed_is_not_counted_as_pushed_out_and_its_number_never_comes_again(
    store: Store,
) -> None:
    for _ in range(3):
        await store.quarantine.add(item(b"xx"))
    await store.quarantine.remove([2, 3, 99])
    await store.quarantine.remove([])
    state = await store.quarantine.state()
    assert (state.items, state.size, state.pushed_out) == (1, 2, 0)
    await store.quarantine.add(item())
    assert await numbers(store) == [1, 4]


async def test_numbers_and_counts_outlive_a_restart(tmp_path: Path) -> None:
    for expected in (1, 2):
        store = SqliteStore(tmp_path)
        await store.open()
        await store.quarantine.add(item(b"xyz"))
        assert (await store.quarantine.state()).size == 3 * expected
        assert len(await numbers(store)) == expected
        await store.close()


async def test_a_refused_reading_leaves_for_the_end_of_the_forwarding_queue(store: Store) -> None:
    session = await new_session(store, upstream_id=7)
    device = await store.devices.save(_device())
    await store.devices.assign(device.id, session.id, None)
    arrivals = [arrival("a"), arrival("b")]
    await store.readings.add(arrivals)
    batch = await store.outbox.begin("brew", session.id, 10)
    assert batch is not None
    await store.outbox.settle(batch)
    await store.quarantine.add(item())
    assert await store.quarantine.send_again(1, arrivals[0].reading.oid)
    assert await store.quarantine.count() == 0
    again = await store.outbox.begin("brew", session.id, 10)
    assert again is not None
    assert [arrivals[0].reading.oid in row for row in again.rows] == [True]


async def test_what_cannot_be_sent_again_stays(store: Store) -> None:
    await store.devices.save(_device())
    unassigned = arrival()
    await store.readings.add([unassigned])
    await store.quarantine.add(item())
    for oid in (unassigned.reading.oid, "00" * 12):
        assert not await store.quarantine.send_again(1, oid)
    assert await numbers(store) == [1]


def _device() -> Device:
    return Device.first_seen(report(), SECOND)
