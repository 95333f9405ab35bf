"""A forgotten device is gone from lists and from memory; its readings stay as they are, or go for good."""

import asyncio
import json
from typing import Any

import pytest

from gateway.domain.device import Device
from gateway.domain.objectid import new_object_id
from gateway.domain.payload import Payload
from gateway.domain.target import Target
from gateway.errors import NameTaken, NotFound
from gateway.intake.retiming import Retiming
from gateway.services import forgetting
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services
from gateway.store.records import Arrival, BootTime
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.payloads import ispindel

ARRIVAL = 1_772_616_600
INTERVAL_S = 900
URL = "https://brew.example"


async def take(services: Services, body: str, place: int = 0) -> None:
    await services.intake.take(Payload(body.encode(), ARRIVAL + place * INTERVAL_S, "http /ingest"))


async def lines(services: Services) -> list[dict[str, Any]]:
    found = services.store.readings.json_lines(last=1000, device_id=None, session_id=None)
    return [json.loads(line) async for line in found]


async def device(services: Services, key: str = "ispindel:1") -> Device:
    return next(device for device in await services.store.devices.all() if device.key == key)


async def brewing(services: Services, readings: int = 3) -> int:
    """A device in a brew session that is forwarded, with readings there and one from before."""
    await take(services, ispindel(1, gravity="13.0"), -1)
    session = await services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
    await services.store.targets.add(Target("brew", URL, ""))
    await services.brewsessions.assign("1", session.id, None)
    for place in range(readings):
        await take(services, ispindel(1, gravity=f"12.{place}"), place)
    await services.store.targets.map(session.id, URL, 77)
    return session.id


async def scrubbed(services: Services) -> int:
    await services.store.upkeep.scrub(-1)
    return (await services.store.upkeep.condition()).damaged


async def test_its_readings_stay_and_the_name_registers_as_a_new_device(services: Services) -> None:
    session = await brewing(services)
    before = await lines(services)
    done = await services.forgetting.forget(await device(services))
    assert (done.kept, done.unassigned, done.deleted) == (4, 1, 0)
    assert await lines(services) == before
    assert await services.store.devices.all() == [] == await services.store.devices.summaries()
    assert await scrubbed(services) == 0
    # The same bytes as the last ones: of a new device these are a new reading.
    await take(services, ispindel(1, gravity="12.2"), 2)
    again = await device(services)
    assert (again.session_id, again.first_seen_at) == (None, ARRIVAL + 2 * INTERVAL_S)
    assert [line["brewevent_id"] for line in await lines(services)].count(session) == 3
    assert len(await lines(services)) == 5


async def test_what_waits_for_a_target_is_forwarded_all_the_same(services: Services) -> None:
    session = await brewing(services)
    (before,) = await services.store.outbox.backlogs(URL)
    open_batch = await services.store.outbox.begin(URL, session, 2)
    assert open_batch is not None
    await services.forgetting.forget(await device(services))
    await services.store.outbox.settle(open_batch)
    rest = await services.store.outbox.begin(URL, session, 100)
    assert rest is not None
    assert before.waiting == 3 == len(open_batch.seqs) + len(rest.seqs)
    await services.store.outbox.settle(rest)
    assert await services.store.outbox.backlogs(URL) == []


async def test_with_its_readings_nothing_is_left_and_the_queue_goes_on(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await brewing(services, readings=5)
    await take(services, ispindel(2), 9)
    open_batch = await services.store.outbox.begin(URL, session, 2)
    assert open_batch is not None
    monkeypatch.setattr(forgetting, "DELETED_READINGS", 2)
    counts: list[int] = []
    done = await services.forgetting.forget(
        await device(services), with_readings=True, progress=lambda count, *_: counts.append(count)
    )
    assert (done.deleted, counts) == (6, [2, 4, 6, 6])
    assert [line["device_id"] for line in await lines(services)] == ["2"]
    assert [found.key for found in await services.store.devices.all()] == ["ispindel:2"]
    assert await services.store.devices.get(1) is None
    # What the target took of the open attempt is settled; a place in the queue never comes again.
    await services.store.outbox.settle(open_batch)
    await services.brewsessions.assign("ispindel:2", session, ARRIVAL)
    batch = await services.store.outbox.begin(URL, session, 100)
    assert batch is not None
    assert len(batch.seqs) == 1
    assert batch.seqs[0] > max(open_batch.seqs)
    assert await scrubbed(services) == 0


async def test_the_next_start_goes_on_with_deleting(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    await brewing(services)
    monkeypatch.setattr(forgetting, "DELETED_READINGS", 2)
    found = await device(services)
    await services.store.devices.forget(found.id, ARRIVAL, with_readings=True)
    await services.store.devices.delete_readings(found.id, 2)
    await services.intake.start()
    assert await services.store.devices.forgotten_with_readings() == [found.id]
    await services.forgetting.resume()
    assert await services.store.devices.forgotten_with_readings() == []
    assert await lines(services) == []


async def test_readings_of_a_device_that_is_only_forgotten_are_never_deleted(services: Services) -> None:
    await brewing(services)
    found = await device(services)
    await services.forgetting.forget(found)
    assert await services.store.devices.delete_readings(found.id, 100) == 0
    assert len(await lines(services)) == 4


async def test_the_keys_of_merged_devices_go_as_well(services: Services) -> None:
    await take(services, ispindel(1))
    await take(services, ispindel(2), 1)
    into, other = await services.store.devices.all()
    await services.merging.merge(into, other, lambda _: None)
    await services.forgetting.forget(await device(services))
    await take(services, ispindel(2), 2)
    assert [found.key for found in await services.store.devices.all()] == ["ispindel:2"]
    assert len(await lines(services)) == 3


async def test_a_reading_on_its_way_makes_a_new_device(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    await take(services, ispindel(1))
    first = await device(services)
    begun, go_on, store = asyncio.Event(), asyncio.Event(), services.store
    take_it = SqliteStore.take

    async def slow(self: SqliteStore, arrival: Arrival, *more: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await take_it(self, arrival, *more)

    monkeypatch.setattr(SqliteStore, "take", slow)
    under_way = asyncio.create_task(take(services, ispindel(1, gravity="12.4"), 1))
    await begun.wait()
    await services.forgetting.forget(first)
    go_on.set()
    await under_way
    again = await device(services)
    assert again.id != first.id
    assert await store.quarantine.count() == 0
    assert len(await lines(services)) == 2


async def test_a_device_that_has_reported_meanwhile_stays(services: Services) -> None:
    await take(services, ispindel(1))
    with pytest.raises(NameTaken, match="has reported since"):
        await services.forgetting.forget(await device(services), unless_since=ARRIVAL)
    assert await device(services)
    await services.forgetting.forget(await device(services), unless_since=ARRIVAL + 1)
    with pytest.raises(NotFound):
        await services.store.devices.forget(1, ARRIVAL, with_readings=False)


async def test_readings_of_a_forgotten_device_get_their_right_times(
    services: Services, clock: FakeClock
) -> None:
    store = services.store
    boot = await store.retiming.boot("a boot")
    await take(services, ispindel(1))
    found = await device(services)
    raw = await store.payloads.latest(found.id, 1)
    reading = raw[0].reading
    wrong = reading._replace(oid=new_object_id(1000), created_at=1000, received_at=1_000_000)
    arrival = Arrival(wrong, found.key, raw[0].raw, "http /ingest")
    await store.take(arrival, None, BootTime(boot.id, 5_000))
    await services.forgetting.forget(found)
    assert await Retiming(store, services.reprocessor.turn).settle(boot.id, ARRIVAL * 1000) == 1
    assert sorted(line["created_at"][11:19] for line in await lines(services)) == ["09:30:00", "09:30:05"]


async def test_another_device_does_not_inherit_the_settings_of_its_alarms(services: Services) -> None:
    """An id is free once the readings are gone: the next device had its battery unwatched."""
    await take(services, ispindel(1))
    one, alarms = await device(services), services.alarms
    await alarms.set("battery", {"off": True}, "device", str(one.id))
    await alarms.set("battery", {"volts": 3.3}, "device", "77")
    await services.forgetting.forget(one, with_readings=True)
    await take(services, ispindel(2), 1)
    assert (await device(services, "ispindel:2")).id == one.id
    for _ in range(2):
        assert alarms.setting_of("battery", device=one.id) == {}
        assert alarms.setting_of("battery", device=77) == {"volts": 3.3}
        await alarms.start()  # as it is stored
