"""The contracts of `Keys`, `BrewSessions`, `Devices` and `Quarantine`, for every implementation."""

from dataclasses import replace

import pytest

from gateway.domain.device import Device
from gateway.domain.key import ALL_SCOPES, ApiKey, digest
from gateway.errors import NameTaken, NotFound
from gateway.store.protocol import Store
from tests.system.store.conftest import SECOND, arrival, in_session, new_session, report


def key(name: str, text: str) -> ApiKey:
    return ApiKey(name, 1, text[:4], digest(text), ALL_SCOPES, SECOND)


async def test_there_is_one_owner(store: Store) -> None:
    assert await store.keys.owner(SECOND) == (1, True)  # the same one, and still without a key


async def test_keys_come_back_oldest_first_until_revoked(store: Store) -> None:
    first, second = key("b", "text-1"), replace(key("a", "text-2"), scopes=frozenset({"read"}))
    await store.keys.add(first)
    await store.keys.add(second)
    assert await store.keys.active() == [first, second]
    assert await store.keys.revoke(1, "b", SECOND)
    assert not await store.keys.revoke(1, "b", SECOND)
    assert not await store.keys.revoke(1, "unknown", SECOND)
    assert await store.keys.active() == [second]


async def test_active_names_are_taken_and_revoked_ones_are_free(store: Store) -> None:
    await store.keys.add(key("a", "text-1"))
    with pytest.raises(NameTaken):
        await store.keys.add(key("a", "text-2"))
    await store.keys.revoke(1, "a", SECOND)
    await store.keys.add(key("a", "text-3"))
    assert [found.sha256 for found in await store.keys.active()] == [digest("text-3")]


async def test_brew_sessions(store: Store) -> None:
    first, second = await new_session(store), await new_session(store, upstream_id=4101)
    assert (first.id, first.upstream_id, first.recipe_id) == (1, None, 0)
    assert (first.created_at, first.updated_at) == (SECOND, SECOND)
    assert second.upstream_id == 4101
    assert await store.sessions.all() == [first, second]
    assert await store.sessions.get(2) == second
    assert await store.sessions.get(3) is None
    assert await store.sessions.get(0) is None


async def test_device_is_saved_once_and_keeps_its_session(store: Store) -> None:
    saved = await store.devices.save(Device.first_seen(report(), SECOND))
    session = await new_session(store)
    await store.devices.assign(saved.id, session.id, None)
    changed = await store.devices.save(replace(saved, name="RED", gravity_unit="P", interval_s=900))
    assert changed == replace(saved, name="RED", gravity_unit="P", interval_s=900, session_id=session.id)
    assert await store.devices.all() == [changed]


async def test_device_summaries_show_the_last_reading(store: Store) -> None:
    await store.devices.save(Device.first_seen(report("1"), SECOND))
    await store.devices.save(Device.first_seen(report("2"), SECOND))
    await store.readings.add([arrival(at=SECOND), arrival(at=SECOND + 5)])
    one, two = await store.devices.summaries()
    assert (one.readings, one.last_seen_at, one.gravity, one.gravity_unit) == (2, SECOND + 5, "1.0410", "G")
    assert (one.temp, one.temp_unit, one.device.stable_id) == ("66.5", "F", "1")
    assert (two.readings, two.last_seen_at, two.gravity, two.device.stable_id) == (0, None, None, "2")


async def test_assigning_claims_unassigned_readings_since_then(store: Store) -> None:
    device = await store.devices.save(Device.first_seen(report(), SECOND))
    session, other = await new_session(store), await new_session(store)
    await store.readings.add([arrival(str(n), at=SECOND + n) for n in range(3)])
    assert await store.devices.assign(device.id, session.id, SECOND + 1) == 2
    assert await store.devices.assign(device.id, other.id, 0) == 1
    assert (await in_session(store, session)).count(b'"_id"') == 2
    assert (await in_session(store, other)).count(b'"_id"') == 1


async def test_assigning_an_unknown_device(store: Store) -> None:
    session = await new_session(store)
    with pytest.raises(NotFound):
        await store.devices.assign(99, session.id, None)
