"""Devices that exist keep their history when the schema learns who is who."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.domain.payload import Payload
from gateway.services.build import Services, build_services
from gateway.services.lookalikes import lookalikes
from gateway.store.sqlite import devices as sqlite_devices
from gateway.store.sqlite.engine import connections
from gateway.store.sqlite.engine import schema as store_schema
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.engine.schema import migrate, migrations
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock

BEFORE = 9
"""The schema that knew devices by family and id alone."""

MAC = "aabbccddee0f"
SPELLED = "AA:BB:CC:DD:EE:0F"
LOCAL = '{{"mdns_id":"b","tilts":{{"Red":{{"color":"{}","temp":"68","tempUnit":"F","gravity":"1.04"}}}}}}'
FORM = "Timepoint=1&Temp={}&SG=1.048&Beer=&Color=RED:{}&Comment="

DEVICE = """
INSERT INTO devices (id, key, family, stable_id, name, first_seen_at, session_id, settings)
VALUES (?, ?, ?, ?, 'RED', 1, ?, ?)
"""
READING = """
INSERT INTO readings (seq, oid, device_id, session_id, received_at, created_at, name, gravity, gravity_unit,
    temp, temp_unit, comment, beer, interval, source, ip, sg, celsius, channel, raw)
VALUES (?, randomblob(12), ?, ?, ?, ?, 'RED', '1.05', 'G', '68', 'F', '', '', '', ?, '', 1.05, 20.0,
    'http /ingest', x'00')
"""


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """A database of the schema before."""
    known = migrations()
    with closing(connections.open_writer(tmp_path / DATABASE_NAME)) as connection:
        with monkeypatch.context() as past:
            past.setattr(store_schema, "migrations", lambda: known[:BEFORE])
            migrate(connection)
        connection.execute(
            "INSERT INTO accounts (id, name, created_at) VALUES (1, 'owner', 1) ON CONFLICT DO NOTHING"
        )
        connection.execute(
            "INSERT INTO brewsessions (id, account_id, batchcode, phase, created_at, updated_at) "
            "VALUES (5, 1, 'B1', '', 1, 1)"
        )
        yield connection


def add(
    old: sqlite3.Connection,
    number: int,
    family: str,
    said: str,
    key: str,
    at: int,
    session: int | None = None,
) -> None:
    settings = '{"label":"Mine","gravity_unit":"G"}' if session else "{}"
    old.execute(DEVICE, (number, key, family, said, session, settings))
    for place in range(3):
        seq, created_at = number * 100 + place, at + 60 * place
        old.execute(READING, (seq, number, session, created_at * 1000, created_at, family))


async def opened(directory: Path, clock: FakeClock) -> tuple[SqliteStore, Services]:
    store = SqliteStore(directory)
    await store.open()
    services = build_services(store, directory, clock)
    await services.intake.start()
    return store, services


async def send(services: Services, clock: FakeClock, driver: str, body: str) -> None:
    clock.advance(900)
    payload = Payload(body.encode(), clock.now(), f"http /ingest/{driver}", driver=driver)
    assert (await services.intake.take(payload)).quarantined is None


async def readings_of(services: Services) -> dict[str, int]:
    return {summary.device.key: summary.readings for summary in await services.store.devices.summaries()}


async def test_a_tilt_known_by_its_mac_goes_on_as_the_device_it_was(
    tmp_path: Path, old: sqlite3.Connection
) -> None:
    add(old, 1, "tilt", SPELLED, f"tilt:{MAC}", 1_700_000_000, session=5)
    add(old, 2, "tilt", "BLUE", "tilt:BLUE", 1_700_000_000)
    clock = FakeClock(1_772_616_600.0)
    store, services = await opened(tmp_path, clock)
    await send(services, clock, "tilt", FORM.format(68, SPELLED))
    await send(services, clock, "tiltbridge", LOCAL.format(f"Red:{MAC}"))
    assert await readings_of(services) == {f"mac:{MAC}": 5, "tilt:BLUE": 3}
    device = (await services.store.devices.all())[0]
    assert (device.id, device.session_id, device.settings.label) == (1, 5, "Mine")
    lines = services.store.readings.json_lines(last=100, device_id=None, session_id=5)
    assert len([line async for line in lines]) == 5
    await store.close()


async def test_two_devices_of_one_mac_go_on_as_they_were_until_they_are_merged(
    tmp_path: Path, old: sqlite3.Connection
) -> None:
    add(old, 1, "tilt", SPELLED, f"tilt:{MAC}", 1_700_000_000)
    add(old, 2, "tiltbridge", MAC, f"tiltbridge:{MAC}", 1_710_000_000, session=5)
    clock = FakeClock(1_772_616_600.0)
    store, services = await opened(tmp_path, clock)
    await send(services, clock, "tilt", FORM.format(68, SPELLED))
    await send(services, clock, "tiltbridge", LOCAL.format(f"Red:{MAC}"))
    await send(services, clock, "tilt_tools", f'{{"color":"red","mac":"{MAC}","gravity":1.04,"temp":68}}')
    assert await readings_of(services) == {f"tilt:{MAC}": 4, f"mac:{MAC}": 5}
    one, two = await services.store.devices.all()
    assert [(shared, len(group)) for shared, group in lookalikes([one, two])] == [("the same MAC", 2)]
    await services.merging.merge(two, one, lambda _: None)
    await send(services, clock, "tilt", FORM.format(67, SPELLED))
    assert await readings_of(services) == {f"mac:{MAC}": 10}
    await store.close()


async def test_a_merged_device_whose_other_half_is_lost_goes_on_alone(
    tmp_path: Path, old: sqlite3.Connection
) -> None:
    """Salvage takes what it can read, in any order."""
    migrate(old)
    old.execute(DEVICE, (7, "tilt:RED", "tilt", "RED", None, "{}"))
    old.execute("UPDATE devices SET merged_into = 99 WHERE id = 7")
    clock = FakeClock(1_772_616_600.0)
    store, services = await opened(tmp_path, clock)
    await send(services, clock, "tilt", FORM.format(68, "").replace("RED:", "RED"))
    assert await readings_of(services) == {"tilt:RED": 1}
    await store.close()


async def test_addresses_are_those_of_the_newest_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, clock)
    for number, address in enumerate(["192.168.1.5", *["192.168.1.6"] * 3, "192.168.1.7"]):
        body = f'{{"name": "red", "ID": 7, "angle": 45.5, "temperature": 20.{number}, "gravity": 1.04}}'
        await services.intake.take(Payload(body.encode(), clock.now(), "http /ingest", source=address))
        clock.advance(900)
    [device] = await store.devices.all()
    first = int(clock.now()) - 5 * 900
    assert [
        (each.address, each.readings, each.first_at) for each in await store.devices.sources(device.id)
    ] == [
        ("192.168.1.5", 1, first),
        ("192.168.1.6", 3, first + 900),
        ("192.168.1.7", 1, first + 3600),
    ]
    monkeypatch.setattr(sqlite_devices, "SOURCES_OF", 3)
    assert [
        (each.address, each.readings, each.first_at) for each in await store.devices.sources(device.id)
    ] == [
        ("192.168.1.6", 2, first + 1800),
        ("192.168.1.7", 1, first + 3600),
    ]
    await store.close()
