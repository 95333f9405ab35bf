"""Routes and lanes: what goes to a target that is no Brewing Data Service, and how far it is."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.device import Device
from gateway.domain.quarantined import Quarantined
from gateway.domain.target import Route, Target
from gateway.domain.totals import TargetTotals
from gateway.store.sqlite import routes
from gateway.store.sqlite.store import SqliteStore
from tests.system.store.conftest import SECOND, arrival, new_session, report

URL = "influx:grafana"
ALL = Route("all")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path)
    await store.open()
    try:
        await store.keys.owner(0)
        await store.targets.add(Target("grafana", URL, "", kind="influx"))
        yield store
    finally:
        await store.close()


async def device(store: SqliteStore, stable_id: str = "1") -> Device:
    return await store.devices.save(Device.first_seen(report(stable_id, stable_id), SECOND))


async def arrive(store: SqliteStore, stable_id: str, *times: int) -> None:
    await store.readings.add(
        [arrival(f"{stable_id}-{at}", device=f"ispindel:{stable_id}", at=SECOND + at) for at in times]
    )


async def waiting(store: SqliteStore) -> dict[int, int]:
    return {each.session_id: each.waiting for each in await store.routes.backlogs(URL)}


async def send(store: SqliteStore, lane: int, limit: int = 1000) -> int:
    batch = await store.routes.begin(URL, lane, limit)
    if batch is None:
        return 0
    await store.routes.settle(batch)
    return len(batch.rows)


async def totals(store: SqliteStore) -> TargetTotals:
    found = next(each for each in (await store.totals.totals({})).targets if each.name == URL)
    sums = found.forwarded + found.refused + found.pending + found.not_sent + found.superseded
    assert found.readings == sums
    return found


async def test_only_what_comes_after_the_route(store: SqliteStore) -> None:
    one, two = await device(store), await device(store, "2")
    await arrive(store, "1", 1, 2)
    assert await waiting(store) == {}
    await store.routes.add(URL, Route("device", one.id), None)
    assert await waiting(store) == {}
    await arrive(store, "1", 3)
    await arrive(store, "2", 3)
    assert await waiting(store) == {one.id: 1}
    await store.routes.add(URL, ALL, SECOND)
    assert await waiting(store) == {one.id: 3, two.id: 1}
    assert await store.routes.of(URL) == [ALL, Route("device", one.id)]
    assert await store.routes.remove(URL, ALL)
    assert not await store.routes.remove(URL, ALL)
    assert await waiting(store) == {one.id: 1}


async def test_earlier_readings_go_though_a_batch_was_under_way(store: SqliteStore) -> None:
    one = await device(store)
    await arrive(store, "1", 1, 2)
    await store.routes.add(URL, ALL, None)
    await arrive(store, "1", 3)
    batch = await store.routes.begin(URL, one.id, 10)
    assert batch is not None
    await store.routes.add(URL, ALL, SECOND)
    await store.routes.settle(batch)
    assert await waiting(store) == {one.id: 3}
    assert await send(store, one.id) == 3
    assert (await totals(store)).forwarded == 3


async def test_a_brew_goes_with_the_readings_of_all_its_devices(store: SqliteStore) -> None:
    session = await new_session(store)
    one, two = await device(store), await device(store, "2")
    await store.devices.assign(one.id, session.id, None)
    await store.routes.add(URL, Route("brew", session.id), None)
    await arrive(store, "1", 1)
    await arrive(store, "2", 1)
    assert await waiting(store) == {one.id: 1}
    await store.devices.assign(two.id, session.id, SECOND)
    assert await waiting(store) == {one.id: 1, two.id: 1}
    assert [each.session_id for each in await store.deliveries.counts(session.id)] == [session.id]


async def test_what_was_refused_is_counted_and_never_comes_again(store: SqliteStore) -> None:
    one = await device(store)
    await store.routes.add(URL, ALL, None)
    await arrive(store, "1", 1, 2, 3)
    batch = await store.routes.begin(URL, one.id, 1)
    assert batch is not None
    await store.routes.refuse(batch, Quarantined(b"{}", "no", SECOND * 1000, "forward x", "device 1"))
    assert await waiting(store) == {one.id: 2}
    assert await send(store, one.id) == 2
    found = await totals(store)
    assert (found.readings, found.forwarded, found.refused, found.pending) == (3, 2, 1, 0)
    assert await store.routes.send_again(URL, SECOND) == {one.id: 2}
    assert await waiting(store) == {one.id: 2}


async def test_a_device_that_becomes_part_of_another_loses_nothing(store: SqliteStore) -> None:
    one, two = await device(store), await device(store, "2")
    await store.routes.add(URL, Route("device", one.id), None)
    await store.routes.add(URL, Route("device", two.id), None)
    await arrive(store, "2", 1)
    await arrive(store, "1", 1, 2)
    assert await send(store, one.id) == 2
    await store.devices.merge(one, two)
    assert await store.routes.of(URL) == [Route("device", one.id)]
    assert await waiting(store) == {one.id: 3}


async def test_a_forgotten_device_and_a_removed_target_leave_no_route(store: SqliteStore) -> None:
    one = await device(store)
    await store.routes.add(URL, Route("device", one.id), None)
    await store.routes.add(URL, ALL, None)
    await arrive(store, "1", 1)
    assert await send(store, one.id) == 1
    await store.devices.forget(one.id, SECOND, with_readings=False)
    assert await store.routes.of(URL) == [ALL]
    await store.targets.remove("grafana")
    assert await store.routes.of(URL) == []
    await store.targets.add(Target("grafana", URL, "", kind="influx"))
    assert await waiting(store) == {}


async def test_readings_of_a_forgotten_device_do_not_go_once_more(store: SqliteStore) -> None:
    one = await device(store)
    session = await new_session(store)
    await store.devices.assign(one.id, session.id, None)
    await store.routes.add(URL, ALL, None)
    await arrive(store, "1", 1, 2, 3)
    assert await send(store, one.id, 2) == 2
    await store.devices.forget(one.id, SECOND, with_readings=False)
    assert await waiting(store) == {one.id: 1}
    assert await send(store, one.id) == 1
    assert (await totals(store)).forwarded == 3


async def test_a_place_in_the_queue_is_above_every_watermark(store: SqliteStore) -> None:
    one = await device(store)
    session = await new_session(store)
    await store.devices.assign(one.id, session.id, None)
    await store.routes.add(URL, ALL, None)
    await arrive(store, "1", 1, 2)
    assert await send(store, one.id) == 2
    await store.devices.forget(one.id, SECOND, with_readings=True)
    while await store.devices.delete_readings(one.id, 100):
        pass
    again = await device(store, "3")
    await arrive(store, "3", 5)
    assert await waiting(store) == {again.id: 1}


async def test_a_place_in_the_queue_is_above_the_beginning_of_every_route(store: SqliteStore) -> None:
    one = await device(store)
    await arrive(store, "1", 1, 2)
    await store.routes.add(URL, ALL, None)
    await store.devices.forget(one.id, SECOND, with_readings=True)
    while await store.devices.delete_readings(one.id, 100):
        pass
    again = await device(store, "3")
    await arrive(store, "3", 5)
    assert await waiting(store) == {again.id: 1}


async def test_a_device_with_the_number_of_a_forgotten_one_begins_anew(store: SqliteStore) -> None:
    await store.targets.remove("grafana")
    await store.targets.add(Target("grafana", URL, "", kind="webhook", settings='{"latest": true}'))
    await store.routes.add(URL, ALL, None)
    one = await device(store)
    await arrive(store, "1", 1)
    batch = await store.latest.begin(URL, one.id, 0)
    assert batch is not None
    await store.latest.settle(batch, SECOND)
    assert (await totals(store)).forwarded == 1
    await store.devices.forget(one.id, SECOND, with_readings=True)
    while await store.devices.delete_readings(one.id, 100):
        pass
    again = await device(store, "3")
    assert again.id == one.id
    await arrive(store, "3", 5)
    [newest] = await store.latest.look(URL, 0)
    assert newest.sent_at is None
    assert ((await totals(store)).pending, (await totals(store)).forwarded) == (1, 0)


async def test_lanes_far_behind_are_found_and_idle_ones_move_up(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "CAUGHT_UP_AFTER", 3)
    one, two = await device(store), await device(store, "2")
    await store.routes.add(URL, ALL, None)
    await arrive(store, "1", 1, 2)
    await arrive(store, "2", *range(1, 9))
    assert await waiting(store) == {one.id: 2, two.id: 8}
    assert await send(store, two.id) == 8
    assert await waiting(store) == {one.id: 2}
    assert await send(store, one.id) == 2
    await arrive(store, "2", *range(20, 30))
    assert await waiting(store) == {two.id: 10}
    await arrive(store, "1", 40)
    assert await waiting(store) == {one.id: 1, two.id: 10}
    assert await send(store, one.id) == 1


async def test_what_is_sent_again_goes_though_its_lane_was_just_found_idle(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "CAUGHT_UP_AFTER", 3)
    one, two = await device(store), await device(store, "2")
    await store.routes.add(URL, ALL, None)
    await arrive(store, "1", 1, 2)
    assert await send(store, one.id) == 2
    await arrive(store, "2", *range(1, 9))
    move_up = store.routes._catch_up

    async def later(*looked: Any) -> None:
        assert await store.routes.send_again(URL, SECOND, lane=one.id) == {one.id: 2}
        await move_up(*looked)

    monkeypatch.setattr(store.routes, "_catch_up", later)
    assert await waiting(store) == {two.id: 8}
    monkeypatch.undo()
    assert await waiting(store) == {one.id: 2, two.id: 8}


async def test_retention_keeps_what_waits(store: SqliteStore) -> None:
    session = await new_session(store, upstream_id=7)
    await store.targets.add(Target("cloud", "https://cloud", "key", unnamed=True))
    one = await device(store)
    await store.routes.add(URL, ALL, None)
    await store.devices.assign(one.id, session.id, None)
    await arrive(store, "1", 1, 2)
    batch = await store.outbox.begin("https://cloud", session.id, 10)
    assert batch is not None
    await store.outbox.settle(batch)
    await store.devices.assign(one.id, (await new_session(store)).id, None)
    before = SECOND + 10**6
    [finished] = await store.upkeep.finished(before)
    assert (await store.upkeep.prune(finished, before, 100))[0] == 0
    assert await send(store, one.id) == 2
    assert (await store.upkeep.prune(finished, before, 100))[0] == 2


async def test_retention_forgets_what_was_taken(store: SqliteStore) -> None:
    session = await new_session(store, upstream_id=7)
    await store.targets.add(Target("cloud", "https://cloud", "key", unnamed=True))
    one = await device(store)
    await store.routes.add(URL, ALL, None)
    await store.devices.assign(one.id, session.id, None)
    await arrive(store, "1", 1, 2)
    shown = await store.latest.begin(URL, one.id, 0)
    sent = await store.outbox.begin("https://cloud", session.id, 10)
    assert shown is not None
    assert sent is not None
    await store.latest.settle(shown, SECOND)
    await store.outbox.settle(sent)
    await store.devices.assign(one.id, (await new_session(store)).id, None)
    noted = "SELECT seq FROM taken", ()
    assert await store.routes._read(*noted) == [(2,)]
    before = SECOND + 10**6
    [finished] = await store.upkeep.finished(before)
    assert (await store.upkeep.prune(finished, before, 100))[0] == 2
    assert await store.routes._read(*noted) == []


async def test_a_damaged_reading_goes_nowhere(store: SqliteStore) -> None:
    one = await device(store)
    await store.routes.add(URL, ALL, None)
    await arrive(store, "1", 1, 2)
    broken = "UPDATE readings SET gravity = '9' WHERE created_at = ?"
    await store._writer.run(lambda connection: connection.execute(broken, (SECOND + 1,)) and None)
    assert await send(store, one.id) == 1
    assert await store.quarantine.count() == 1
