"""Quarantine in the store: bounded, with a share for each source; left only in one step."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gateway.domain.device import Device
from gateway.domain.quarantined import Quarantined
from gateway.errors import ShareUsedUp
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
    for host in range(5):
        await store.quarantine.add(replace(item(), source=f"192.168.1.{host}"))
    assert [kept.id for kept in await store.quarantine.newest(2)] == [4, 5]
    assert [kept.id for kept in await store.quarantine.after(1, 3)] == [2, 3, 4]
    assert await store.quarantine.after(5, 3) == []


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let quarantine hold 12 payloads of 40 bytes in all: a share is 3 payloads and 10 bytes."""
    monkeypatch.setattr(quarantine, "QUARANTINE_ROWS", 12)
    monkeypatch.setattr(quarantine, "QUARANTINE_BYTES", 40)


async def add(store: Store, host: int, times: int = 1, *, size: int = 1, readable: bool = False) -> list[str]:
    """Add payloads of one neighbour; return what was answered to each."""
    answers = []
    for _ in range(times):
        payload = replace(item(b"x" * size), source=f"192.168.1.{host}", readable=readable)
        try:
            await store.quarantine.add(payload)
            answers.append("yes")
        except ShareUsedUp:
            answers.append("no")
    return answers


async def hosts(store: Store) -> str:
    """Return the sources in the order of their payloads: the last figure, with ! where it is readable."""
    kept = await store.quarantine.newest(100)
    return " ".join(f"{each.source[-1:]}{'!' if each.readable else ''}" for each in kept)


async def test_beyond_its_share_the_oldest_of_a_source_are_pushed_out_and_counted(store: Store) -> None:
    await add(store, 9)
    assert await add(store, 1, 5) == ["yes"] * 5
    assert await numbers(store) == [1, 4, 5, 6]
    state = await store.quarantine.state()
    assert (state.items, state.size, state.pushed_out) == (4, 4, 2)


async def test_beyond_the_bytes_of_its_share_the_oldest_of_a_source_are_pushed_out(store: Store) -> None:
    for size in (4, 4, 2, 5):
        assert await add(store, 1, size=size) == ["yes"]
    assert await numbers(store) == [3, 4]
    state = await store.quarantine.state()
    assert (state.items, state.size, state.pushed_out) == (2, 7, 2)


async def test_one_that_is_larger_than_a_share_gets_no_yes_and_pushes_nothing_out(store: Store) -> None:
    await add(store, 1)
    assert await add(store, 1, size=11) == ["no"]
    assert await numbers(store) == [1]


async def test_a_payload_that_can_be_read_never_goes(store: Store) -> None:
    await add(store, 1)
    assert await add(store, 1, 3, readable=True) == ["yes"] * 3
    assert await add(store, 1, readable=True) == ["no"]
    assert await add(store, 1) == ["no"]
    assert await hosts(store) == "1! 1! 1!"
    assert await add(store, 2) == ["yes"], "others have shares of their own"


async def test_in_a_full_quarantine_the_greediest_source_gives_way(store: Store) -> None:
    for host in (1, 2, 3):
        await add(store, host, 3)
    await add(store, 4, 2, readable=True)
    await add(store, 5)
    assert await hosts(store) == "1 1 1 2 2 2 3 3 3 4! 4! 5"
    assert await add(store, 6) == ["yes"]
    assert (await hosts(store)).endswith("4! 4! 5 6")
    assert len(await numbers(store)) == 12
    for host in range(4):
        await add(store, host, 20)
    assert (await hosts(store)).count("5") == (await hosts(store)).count("6") == 1, "they hold least"
    assert (await hosts(store)).count("4!") == 2


async def test_a_quarantine_full_of_payloads_that_can_be_read_says_no(store: Store) -> None:
    for host in range(4):
        assert await add(store, host, 3, readable=True) == ["yes"] * 3
    assert await add(store, 5) == await add(store, 5, readable=True) == ["no"]
    state = await store.quarantine.state()
    assert (state.items, state.pushed_out) == (12, 0)


async def test_bytes_of_a_full_quarantine_come_from_the_source_that_holds_most_bytes(store: Store) -> None:
    for host, size in ((1, 10), (2, 10), (3, 10), (4, 5), (5, 5)):
        await add(store, host, size=size)
    assert await add(store, 4, size=3) == ["yes"]
    assert await hosts(store) == "2 3 4 5 4"
    assert (await store.quarantine.state()).size == 33


async def test_addresses_of_one_ipv6_network_are_one_source(store: Store) -> None:
    for place in range(4):
        await store.quarantine.add(replace(item(), source=f"fd00::{place}"))
    assert await numbers(store) == [2, 3, 4]


async def test_strangers_push_out_nothing_that_is_kept_for_our_own_reasons(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.open()
    own = replace(item(), source="https://brew.example", channel="forward brew")
    keep_own = partial(quarantine.keep_own, item=own)
    for _ in range(6):
        await store._writer.run(keep_own)
    for host in (1, 2, 3):
        await add(store, host, 9)
    assert [kept.channel for kept in await store.quarantine.newest(99)].count("forward brew") == 6
    await store._writer.run(keep_own)
    assert [kept.channel for kept in await store.quarantine.newest(99)].count("forward brew") == 7
    for _ in range(30):
        await store._writer.run(keep_own)
    assert (await store.quarantine.state()).items == 12
    await store.close()


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
