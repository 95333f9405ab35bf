"""The contract of `BrewSessions`: what is written, found and measured, for every implementation."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.brewsession import BrewSession, DeviceReading, Measured, Milestones
from gateway.domain.device import Device
from gateway.domain.reading import Reading
from gateway.errors import NameTaken, NotFound
from gateway.store.protocol import Store
from gateway.store.queries import Search
from gateway.store.sqlite.brewsessions import DEVICES, MILESTONES
from gateway.store.sqlite.engine.connections import open_reader
from gateway.store.sqlite.store import SqliteStore
from tests.system.store.conftest import SECOND, arrival, new_session, reading, report
from tests.system.store.test_recipes import recipe

NOTHING = Milestones(None, None, None, None)


def session(**row: Any) -> BrewSession:
    return replace(BrewSession(0, 1, "HP001", "Conditioning", 0, None, SECOND, SECOND), **row)


async def test_everything_that_is_said_comes_back(store: Store) -> None:
    folder = await store.folders.add(1, "brewsession", "Winter", SECOND)
    sent = session(
        id=4101,
        batchcode='İ"\\',
        phase="",
        recipe_id=7,
        upstream_id=12,
        upstream="https://brew.example",
        folder_id=folder.id,
        group_id="3",
        userdate="2026-03-01",
        notes="🍺\n",
        og="14.7",
        og_unit="P",
        ended_at=SECOND + 5,
        send_notes=True,
        lead_device=4,
        details={"source_ca": "1.5", "device_reading": '{"x":"ß"}', "target_ca": None},
        updated_at=SECOND + 1,
    )
    assert await store.sessions.add(sent) == sent
    assert await store.sessions.get(4101) == sent
    assert await store.sessions.all() == [sent]
    changed = session(id=4101, batchcode="B", account_id=1)
    await store.sessions.update(changed)
    assert await store.sessions.get(4101) == changed


async def test_ids_are_new_or_as_given(store: Store) -> None:
    assert (await store.sessions.add(session(id=4101))).id == 4101
    with pytest.raises(NameTaken, match="4101"):
        await store.sessions.add(session(id=4101, batchcode="other"))
    assert (await store.sessions.add(session())).id == 4102
    await store.sessions.delete(4102, SECOND)
    with pytest.raises(NameTaken):
        await store.sessions.add(session(id=4102))
    with pytest.raises(NameTaken):
        await store.sessions.add(session(folder_id=99))
    assert [one.id for one in await store.sessions.all()] == [4101]


async def test_a_folder_that_is_gone_takes_no_session(store: Store) -> None:
    folder = await store.folders.add(1, "brewsession", "Winter", SECOND)
    filed = await store.sessions.add(session(folder_id=folder.id))
    await store.folders.delete(folder.id)
    with pytest.raises(NotFound, match=f"no folder {folder.id}"):
        await store.sessions.update(filed)
    assert await store.sessions.get(filed.id) == replace(filed, folder_id=None)


async def test_deleting_hides_it_and_frees_its_devices(store: Store) -> None:
    gone, other = await new_session(store), await new_session(store)
    devices = [await store.devices.save(Device.first_seen(report(name), SECOND)) for name in "12"]
    await store.devices.assign(devices[0].id, gone.id, None)
    await store.devices.assign(devices[1].id, other.id, None)
    await store.readings.add([arrival()])
    await store.sessions.delete(gone.id, SECOND)
    assert await store.sessions.get(gone.id) is None
    assert await store.sessions.entry(gone.id) is None
    assert await store.sessions.all() == [other]
    assert (await store.sessions.search(Search(account_id=1)))[0] == 1
    assert [device.session_id for device in await store.devices.all()] == [None, other.id]
    assert await store.readings.count() == 1


async def test_an_entry_names_folder_and_recipe(store: Store) -> None:
    folder = await store.folders.add(1, "brewsession", "Winter", SECOND)
    brewed = await store.recipes.add(recipe("Porter", snapshot=True))
    filed = await store.sessions.add(session(folder_id=folder.id, recipe_id=brewed.id))
    entry = await store.sessions.entry(filed.id)
    assert entry is not None
    assert (entry.session, entry.folder_name, entry.recipe_title, entry.device) == (
        filed,
        "Winter",
        "Porter",
        None,
    )
    bare = await store.sessions.entry((await store.sessions.add(session())).id)
    assert bare is not None
    assert (bare.folder_name, bare.recipe_title) == (None, "")
    assert await store.sessions.entry(99) is None


async def device_of(store: Store, session_id: int) -> DeviceReading | None:
    entry = await store.sessions.entry(session_id)
    assert entry is not None
    return entry.device


async def test_the_device_of_an_entry(store: Store) -> None:
    one, other = await new_session(store), await new_session(store)
    device = await store.devices.save(Device.first_seen(report(), SECOND))
    await store.devices.assign(device.id, one.id, None)
    assert await device_of(store, one.id) == DeviceReading(device.id, "GREEN")
    await store.readings.add(
        [arrival("first"), arrival("last", at=SECOND + 2), arrival("late", at=SECOND + 1)]
    )
    last = DeviceReading(
        device.id, "GREEN", "last", "1.0410", "G", "66.5", "F", "46085.5", "Porter", "", SECOND + 2
    )
    assert await device_of(store, one.id) == last
    _, page = await store.sessions.search(Search(account_id=1))
    assert [entry.device for entry in page] == [None, last]
    await store.devices.assign(device.id, other.id, None)
    assert await device_of(store, one.id) is None
    assert await device_of(store, other.id) == DeviceReading(device.id, "GREEN")


async def test_of_several_devices_the_one_that_reported_last(store: Store) -> None:
    one = await new_session(store)
    devices = [await store.devices.save(Device.first_seen(report(name), SECOND)) for name in "123"]
    for device in devices:
        await store.devices.assign(device.id, one.id, None)
    shown = await device_of(store, one.id)
    assert shown is not None
    assert shown.device_id == devices[0].id
    for number, at in (("2", 1), ("3", 3), ("1", 2)):
        await store.readings.add([arrival(device=f"ispindel:{number}", at=SECOND + at)])
    shown = await device_of(store, one.id)
    assert shown is not None
    assert (shown.device_id, shown.created_at) == (devices[2].id, SECOND + 3)


async def test_pages_and_count(store: Store) -> None:
    for number in range(5):
        await store.sessions.add(session(batchcode=str(number), created_at=number))
    count, page = await store.sessions.search(Search(account_id=1, limit=2, offset=1))
    assert (count, [entry.session.batchcode for entry in page]) == (5, ["3", "2"])
    assert await store.sessions.search(Search(account_id=1, limit=0)) == (5, [])
    assert await store.sessions.search(Search(account_id=2)) == (0, [])


def row(at: int, *, gravity: str = "", temp: str = "", ph: str | None = None, oid: int = 0) -> Reading:
    extra = None if ph is None else json.dumps({"ph": ph})
    sg, celsius = (float(gravity) if gravity else None), (float(temp) if temp else None)
    plain = reading(at=SECOND + at, oid=f"{oid:024x}" if oid else None, extra=extra)
    return plain._replace(gravity=gravity, sg=sg, temp=temp, temp_unit="C", celsius=celsius)


def shown(at: int, gravity: str = "", temp: str = "", ph: str = "") -> Measured:
    sg = float(gravity) if gravity else None
    return Measured(gravity, "G", sg, temp, "C", ph, SECOND + at)


async def test_milestones(store: Store) -> None:
    one = await new_session(store)
    assert await store.sessions.milestones(one.id) == NOTHING
    rows = [row(1, temp="19"), row(2, gravity="1.05"), row(3, gravity="1.04", temp="20", ph="5")]
    rows += [row(5, ph="4.9"), row(6, temp="21"), row(4, gravity="1.01"), row(7, ph="")]
    await store.readings.import_readings(one, rows, reset=False)
    assert await store.sessions.milestones(one.id) == Milestones(
        shown(2, "1.05"), shown(4, "1.01"), shown(6, temp="21"), shown(5, ph="4.9")
    )
    await store.readings.import_readings(one, [], reset=True)
    assert await store.sessions.milestones(one.id) == NOTHING


async def test_of_the_same_second_the_ids_decide(store: Store) -> None:
    one = await new_session(store)
    rows = [row(1, gravity=f"1.0{n}", temp=str(n), ph=str(n), oid=n) for n in (3, 1, 2)]
    await store.readings.import_readings(one, rows, reset=False)
    last = shown(1, "1.03", "3", "3")
    assert await store.sessions.milestones(one.id) == Milestones(shown(1, "1.01", "1", "1"), last, last, last)


async def test_milestones_are_of_one_session(store: Store) -> None:
    one, other = await new_session(store), await new_session(store)
    await store.readings.import_readings(one, [row(1, gravity="1.05", temp="20", ph="5")], reset=False)
    assert await store.sessions.milestones(other.id) == NOTHING


def steps(path: Path, sql: str, parameter: Any) -> int:
    """How many instructions SQLite needs for a statement."""
    connection, counted = open_reader(path), 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    try:
        connection.set_progress_handler(count, 1)
        connection.execute(sql, (parameter,)).fetchall()
    finally:
        connection.close()
    return counted


async def test_many_readings_take_as_long_as_few(store: SqliteStore, tmp_path: Path) -> None:
    few, many = await new_session(store), await new_session(store)
    device = await store.devices.save(Device.first_seen(report(), SECOND))
    await store.devices.assign(device.id, few.id, None)
    for one, number in ((few, 10), (many, 5000)):
        rows = [row(at, gravity="1.05", temp="20", ph="5") for at in range(number)]
        await store.readings.import_readings(one, rows, reset=False)
    for sql in MILESTONES:
        costs = [steps(tmp_path / "gateway.sqlite3", sql, one.id) for one in (few, many)]
        assert max(costs) < 100, sql
    await store.readings.add([arrival(at=SECOND + at) for at in range(2000)])
    assert steps(tmp_path / "gateway.sqlite3", DEVICES, f"[{few.id}]") < 1000
