"""Two devices that are one hydrometer: found, looked at, made one, with the history of both."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.calibration import Calibration
from gateway.domain.device import Device, DeviceSettings, find_device
from gateway.domain.payload import Payload
from gateway.domain.quarantined import Quarantined
from gateway.errors import InvalidInput
from gateway.intake.replay import Replay
from gateway.services.build import Services, build_services
from gateway.services.lookalikes import lookalikes
from gateway.store.sqlite.engine import checksum, connections
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.clock import FakeClock

MAC = "F6:BD:D3:46:3A:05"
TILT_PI = "Timepoint=1&Temp={}&SG=1.048&Beer=&Color=RED&Comment="
TILT_PI_WITH_MAC = f"Timepoint=1&Temp=68&SG=1.048&Beer=&Color=RED:{MAC}&Comment="
BRIDGE = '{{"mdns_id":"b","tilts":{{"Red":{{"color":"Red","temp":"{}","tempUnit":"F","gravity":"1.047"}}}}}}'


async def take(services: Services, clock: FakeClock, body: str, driver: str, **more: Any) -> None:
    clock.advance(900)
    payload = Payload(body.encode(), clock.now(), f"http /ingest/{driver}", driver=driver, **more)
    taken = await services.intake.take(payload)
    assert taken.quarantined is None


async def two(services: Services, clock: FakeClock) -> tuple[Device, Device]:
    """The same Tilt, three times by Tilt Pi and twice by TiltBridge."""
    for temp in (68, 67, 66):
        await take(services, clock, TILT_PI.format(temp), "tilt")
    for temp in (68, 67):
        await take(services, clock, BRIDGE.format(temp), "tiltbridge")
    a, b = await services.store.devices.all()
    assert (a.key, b.key) == ("tilt:RED", "tiltbridge:Red@b")
    return a, b


async def merge(services: Services) -> Device:
    a, b = await services.store.devices.all()
    await services.merging.merge(a, b, lambda _: None)
    [device] = await services.store.devices.all()
    return device


async def lines(services: Services, device: Device | None = None) -> list[dict[str, Any]]:
    device_id = None if device is None else device.id
    found = services.store.readings.json_lines(last=1000, device_id=device_id, session_id=None)
    return [json.loads(line) async for line in found]


def dump(directory: Path) -> list[str]:
    connection = sqlite3.connect(directory / DATABASE_NAME)
    found = list(connection.iterdump())
    connection.close()
    return found


def damaged(directory: Path) -> int:
    connection = connections.open_writer(directory / DATABASE_NAME)
    checksum.install(connection)
    sql = f"SELECT {checksum.intact_sql()} FROM readings"  # noqa: S608
    intact = [bool(found) for (found,) in connection.execute(sql)]
    connection.close()
    return intact.count(False)


def places(directory: Path) -> list[tuple[int, int | None]]:
    connection = sqlite3.connect(directory / DATABASE_NAME)
    found = connection.execute("SELECT seq, session_id FROM readings ORDER BY seq").fetchall()
    connection.close()
    return found


async def test_a_plan_says_what_would_happen_and_changes_nothing(
    services: Services, clock: FakeClock, tmp_path: Path
) -> None:
    a, b = await two(services, clock)
    session = await services.store.sessions.add(brew())
    await services.store.devices.assign(b.id, session.id, 0)
    a, b = await services.store.devices.all()
    before = dump(tmp_path)
    plan = await services.merging.plan(a, b)
    assert dump(tmp_path) == before
    assert [sum(part.readings for part in side.parts) for side in (plan.into, plan.other)] == [3, 2]
    assert (plan.session, plan.overlap, plan.taken, plan.given_up) == (session.id, 0, (), ())
    assert [part.session_id for part in plan.other.parts] == [session.id]


async def test_a_merge_keeps_every_reading_at_its_place_and_whole(
    services: Services, clock: FakeClock, tmp_path: Path
) -> None:
    a, b = await two(services, clock)
    session = await services.store.sessions.add(brew())
    await services.store.devices.assign(b.id, session.id, 0)
    before, was = await lines(services), places(tmp_path)
    device = await merge(services)
    after = await lines(services, device)
    same = [{k: v for k, v in line.items() if k != "device_id"} for line in before]
    assert [{k: v for k, v in line.items() if k != "device_id"} for line in after] == same
    assert places(tmp_path) == was, "what was forwarded is behind the watermark, and stays there"
    assert damaged(tmp_path) == 0
    assert (device.id, device.session_id) == (a.id, session.id)
    assert [alias.key for alias in device.aliases] == ["tiltbridge:Red@b"]


async def test_what_was_forwarded_is_not_sent_again_and_what_waits_is_sent_once(
    services: Services, clock: FakeClock
) -> None:
    a, b = await two(services, clock)
    session = await services.store.sessions.add(brew(upstream_id=4101))
    for device in (a, b):
        await services.store.devices.assign(device.id, session.id, 0)
    sent = await services.store.outbox.begin("https://up", session.id, 4)
    assert sent is not None
    await services.store.outbox.settle(sent)
    calibration = Calibration(gravity_offset=-0.002)
    await services.reprocessor.configure(a, DeviceSettings(calibration=calibration), lambda _: None)
    await merge(services)
    rest = await services.store.outbox.begin("https://up", session.id, 100)
    assert rest is not None
    assert (len(sent.seqs), len(rest.seqs)) == (4, 1)
    assert not set(sent.seqs) & set(rest.seqs)


async def test_what_comes_under_the_old_key_is_the_other_devices_now_and_after_a_restart(
    services: Services, clock: FakeClock, tmp_path: Path
) -> None:
    await two(services, clock)
    await merge(services)
    await take(services, clock, BRIDGE.format(65), "tiltbridge")
    await services.store.close()
    store = SqliteStore(tmp_path)
    await store.open()
    again = build_services(store, tmp_path, clock)
    await again.intake.start()
    await take(again, clock, BRIDGE.format(64), "tiltbridge")
    await take(again, clock, TILT_PI.format(63), "tilt")
    [device] = await again.store.devices.all()
    temps = [line["temp"] for line in await lines(again, device)]
    assert temps == ["68", "67", "66", "68", "67", "65", "64", "63"]
    await store.close()


async def test_a_delivery_that_comes_again_after_a_merge_is_the_same_reading(
    services: Services, clock: FakeClock
) -> None:
    await two(services, clock)
    await take(services, clock, BRIDGE.format(60), "tiltbridge", delivery="7")
    device = await merge(services)
    clock.advance(5)
    body = BRIDGE.format(60).encode()
    await services.intake.take(Payload(body, clock.now(), "http /ingest/tiltbridge", driver="tiltbridge"))
    assert len(await lines(services, device)) == 6
    clock.advance(86_400)
    late = Payload(body, clock.now(), "mqtt tiltbridge", driver="tiltbridge", delivery="7", redelivered=True)
    await services.intake.take(late)
    assert len(await lines(services, device)) == 6


async def test_quarantine_of_the_old_key_is_replayed_into_the_device(
    services: Services, clock: FakeClock
) -> None:
    await two(services, clock)
    device = await merge(services)
    item = Quarantined(
        body=BRIDGE.format(59).encode(),
        reason="no driver then",
        received_at=int(clock.now() * 1000),
        channel="http /ingest/tiltbridge",
        source="",
        driver="tiltbridge",
    )
    await services.store.quarantine.add(item)
    [kept] = await services.store.quarantine.newest(1)
    assert await Replay(services.store, services.intake, services.notices).settle(kept) is None
    assert (await lines(services, device))[-1]["temp"] == "59"
    assert len(await services.store.devices.all()) == 1


async def test_settings_of_both_count_and_hold_for_the_readings_of_both(
    services: Services, clock: FakeClock, tmp_path: Path
) -> None:
    a, b = await two(services, clock)
    calibration = Calibration(gravity_offset=-0.002)
    await services.reprocessor.configure(a, DeviceSettings(label="Mine"), lambda _: None)
    said = DeviceSettings(label="Yours", calibration=calibration, excluded=((1, 5),))
    await services.reprocessor.configure(b, said, lambda _: None)
    a, b = await services.store.devices.all()
    plan = await services.merging.plan(a, b)
    assert (plan.taken, plan.given_up) == (("calibration", "excluded spans"), ("label",))
    assert plan.understood_again
    device = await merge(services)
    assert device.settings == replace(said, label="Mine")
    assert not device.reprocessing
    shown = [line["calibrated_gravity"] for line in await lines(services, device)]
    assert shown == ["1.0460", "1.0460", "1.0460", "1.0450", "1.0450"]
    await services.reprocessor.configure(device, DeviceSettings(), lambda _: None)
    found = await lines(services, device)
    assert {line["calibrated_gravity"] for line in found} == {None}
    assert [line["gravity"] for line in found] == ["1.048"] * 3 + ["1.047"] * 2
    assert [line["source"] for line in found] == ["tilt"] * 3 + ["tiltbridge"] * 2
    assert damaged(tmp_path) == 0


async def test_a_unit_set_after_a_merge_is_applied_to_what_each_of_them_sent(
    services: Services, clock: FakeClock
) -> None:
    """The bytes of both are read by the driver of each, under the name that each had in its topic."""
    for name, angle in (("one", 50), ("two", 51)):
        body = json.dumps({"angle": angle, "temperature": 20, "gravity": 1.05})
        await take(services, clock, body, "ispindel", label=name)
    device = await merge(services)
    settings = DeviceSettings(gravity_unit="P", temp_unit="F")
    done = await services.reprocessor.configure(device, settings, lambda _: None)
    assert (done.readings, done.changed) == (2, 2)
    assert [(r["gravity_unit"], r["temp_unit"]) for r in await lines(services)] == [("P", "F")] * 2
    assert [r["name"] for r in await lines(services)] == ["one", "two"]
    [device] = await services.store.devices.all()
    await services.reprocessor.configure(device, DeviceSettings(), lambda _: None)
    assert [(r["gravity_unit"], r["angle"]) for r in await lines(services)] == [("G", 50), ("G", 51)]


async def test_a_third_device_follows_into_the_last(services: Services, clock: FakeClock) -> None:
    await two(services, clock)
    await take(services, clock, '{"color":"red","gravity":1.046,"temp":68}', "tilt_tools")
    a, b, c = await services.store.devices.all()
    await services.merging.merge(b, c, lambda _: None)
    await services.merging.merge(a, find_device(await services.store.devices.all(), c.key), lambda _: None)
    [device] = await services.store.devices.all()
    await take(services, clock, '{"color":"red","gravity":1.045,"temp":68}', "tilt_tools")
    assert len(await lines(services, device)) == 7
    assert {alias.key for alias in device.aliases} == {"tiltbridge:Red@b", "tilt_tools:red"}
    await services.intake.devices.load()
    await take(services, clock, '{"color":"red","gravity":1.044,"temp":68}', "tilt_tools")
    assert len(await lines(services, device)) == 8


async def test_what_cannot_be_one_is_refused(services: Services, clock: FakeClock) -> None:
    await take(services, clock, TILT_PI.format(68), "tilt")
    gauge = '{"name":"keg","id":"7","temperature":4,"pressure":12,"pressure-unit":"PSI"}'
    await take(services, clock, gauge, "pressuremon")
    a, b = await services.store.devices.all()
    with pytest.raises(InvalidInput, match="one device already"):
        await services.merging.plan(a, a)
    with pytest.raises(InvalidInput, match="a hydrometer and device 2 a pressure gauge: they cannot be one"):
        await services.merging.merge(a, b, lambda _: None)
    assert len(await services.store.devices.all()) == 2


async def test_readings_told_twice_are_counted_and_stay(services: Services, clock: FakeClock) -> None:
    await two(services, clock)
    body = TILT_PI.format(61).encode()
    await services.intake.take(Payload(body, clock.now() + 20, "http /ingest/tilt", driver="tilt"))
    a, b = await services.store.devices.all()
    assert (await services.merging.plan(a, b)).overlap == 1
    assert len(await lines(services, await merge(services))) == 6


async def test_a_mac_is_one_device_whoever_tells_it(services: Services, clock: FakeClock) -> None:
    spoken = {
        "tilt": TILT_PI_WITH_MAC,
        "tilt_tools": json.dumps({"color": "Red", "mac": MAC.lower(), "gravity": 1.048, "temp": 68}),
        "brewblox": json.dumps({
            "key": "tilt", "type": "Tilt.state", "color": "Red", "mac": MAC.replace(":", ""), "name": "Red",
            "data": {"specificGravity": 1.048, "temperature[degF]": 68},
        }),
    }  # fmt: skip
    for driver, body in spoken.items():
        await take(services, clock, body, driver)
    [device] = await services.store.devices.all()
    assert device.key == "mac:f6bdd3463a05"
    assert [line["source"] for line in await lines(services, device)] == list(spoken)
    done = await services.reprocessor.configure(device, DeviceSettings(temp_unit="C"), lambda _: None)
    assert (done.readings, done.changed) == (3, 3), "each is read by the driver that it came by"


async def test_a_colour_is_one_device_however_it_is_spelled(services: Services, clock: FakeClock) -> None:
    await take(services, clock, TILT_PI.format(68), "tilt")
    await take(services, clock, TILT_PI.format(67).replace("RED", "Red"), "tilt")
    [device] = await services.store.devices.all()
    done = await services.reprocessor.configure(device, DeviceSettings(temp_unit="C"), lambda _: None)
    assert (device.key, done.changed) == ("tilt:RED", 2)


async def test_devices_that_may_be_one_are_named(services: Services, clock: FakeClock) -> None:
    await two(services, clock)
    await take(services, clock, TILT_PI.format(68).replace("RED", "BLUE"), "tilt")
    [(shared, alike)] = lookalikes(await services.store.devices.all())
    assert (shared, [device.id for device in alike]) == ("the same colour", [1, 2])


async def test_tilts_of_one_colour_with_macs_of_their_own_are_two(
    services: Services, clock: FakeClock
) -> None:
    await take(services, clock, TILT_PI_WITH_MAC, "tilt")
    await take(services, clock, TILT_PI_WITH_MAC.replace("F6", "F7"), "tilt")
    a, b = await services.store.devices.all()
    assert lookalikes([a, b]) == []
    assert "may well be two" in (await services.merging.plan(a, b)).doubt
