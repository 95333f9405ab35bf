"""Devices that earlier versions knew by less than what told them apart go on, or begin anew."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.drivers import Decoded, decode
from gateway.intake import intake as intake_module
from gateway.services.build import Services
from tests.brew import brew
from tests.clock import FakeClock

Write = Callable[[str], str]

COLORS = {"a": "Red", "b": "Blue"}
MACS = {"a": "AA:BB:CC:DD:EE:01", "b": "AA:BB:CC:DD:EE:02"}

EXPOSITION = '# TYPE gravity gauge\ngravity{{sensor="{0}"}} 1.048\ntemperature{{sensor="{0}"}} 20\n'
FORMATS: dict[str, tuple[str, Write, str]] = {
    "influx, a tag": ("influx", lambda one: f"brew,sensor={one} gravity=1.048,temp=20", "10.0.0.7"),
    "influx, a collector's host": (
        "influx", lambda one: f"mqtt,host=pi,topic=beer/{one} gravity=1.048,temp=20", "pi",
    ),
    "influx, host and name": ("influx", lambda one: f"b,host=pi,name={one} gravity=1.048,temp=20", "pi"),
    "prometheus, a label": ("prometheus", EXPOSITION.format, "job"),
    "stream, a member": (
        "stream", lambda one: json.dumps({"device_id": one, "gravity": 1.048, "temp": 20}), "10.0.0.7",
    ),
    "an iSpindel's JSON, a member": (
        "ispindel",
        lambda one: json.dumps({"sensor": one, "angle": 50, "gravity": 1.048, "temperature": 20}),
        "10.0.0.7",
    ),
    "a list, a member": (
        "stream", lambda one: json.dumps([{"device": one, "gravity": 1.048, "temp": 20}]), "10.0.0.7",
    ),
    "stream, the colour of a Tilt": (
        "stream",
        lambda one: json.dumps({"name": "tilt", "color": COLORS[one], "gravity": 1.048, "temp": 20}),
        "tilt",
    ),
    "influx, the colour of a Tilt": (
        "influx", lambda one: f"tilt,host=pi,name=Ale,color={COLORS[one]} SG=1.048,temp=68", "pi",
    ),
    "influx, a colour behind one device": (
        "influx", lambda one: f"tilt,device=bridge,color={COLORS[one]} SG=1.048,temp=68", "bridge",
    ),
    "TiltBridge, a MAC": (
        "tiltbridge",
        lambda one: json.dumps({"color": "Red", "device": "b", "mac": MACS[one], "gravity": 1.04}),
        "Red@b",
    ),
}  # fmt: skip
"""Driver, what the device called `a` or `b` sends, and the id that earlier versions put both under."""


def payload_of(driver: str, body: str, clock: FakeClock) -> Payload:
    clock.advance(900)
    is_list = body.startswith("[")
    return Payload(
        body.encode(),
        clock.now(),
        f"http /ingest/{driver}",
        driver=None if is_list else driver,
        hint=driver if is_list else None,
        source="10.0.0.7",
        label="job" if driver == "prometheus" else "",
    )


async def take(services: Services, clock: FakeClock, driver: str, body: str) -> None:
    assert (await services.intake.take(payload_of(driver, body, clock))).quarantined is None


async def before(
    services: Services, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, name: str, *ones: str
) -> Device:
    """What an earlier version stored of these: one device under the lesser id."""
    driver, write, lesser = FORMATS[name]

    def decoded(payload: Payload) -> Decoded:
        found = decode(payload)
        for report in found.reports:
            report.stable_id, report.shared_id = lesser, ""
        return found

    with monkeypatch.context() as past:
        past.setattr(intake_module, "decode", decoded)
        for one in ones:
            await take(services, clock, driver, write(one))
    [device] = await services.store.devices.all()
    assert device.key == f"{driver}:{lesser}"
    session = await services.store.sessions.add(brew())
    await services.store.devices.assign(device.id, session.id, 0)
    await services.intake.devices.load()
    return device


async def counts(services: Services) -> list[tuple[int, int]]:
    return [(found.device.id, found.readings) for found in await services.store.devices.summaries()]


@pytest.mark.parametrize("name", FORMATS)
async def test_devices_behind_one_address_are_told_apart(
    services: Services, clock: FakeClock, name: str
) -> None:
    driver, write, _ = FORMATS[name]
    for one in ("a", "b", "a"):
        await take(services, clock, driver, write(one))
    assert await counts(services) == [(1, 2), (2, 1)]


@pytest.mark.parametrize("name", FORMATS)
async def test_a_device_that_was_one_all_along_goes_on(
    services: Services, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    driver, write, _ = FORMATS[name]
    old = await before(services, clock, monkeypatch, name, "a", "a", "a")
    await take(services, clock, driver, write("a"))
    await take(services, clock, driver, write("b"))
    await take(services, clock, driver, write("a"))
    assert await counts(services) == [(1, 5), (2, 1)]
    device = (await services.store.devices.all())[0]
    assert device.key != old.key
    assert device.session_id == 1
    done = await services.reprocessor.configure(device, type(device.settings)(temp_unit="F"), lambda _: None)
    assert done.readings == 5
    await services.intake.devices.load()
    await take(services, clock, driver, write("a"))
    assert await counts(services) == [(1, 6), (2, 1)]


@pytest.mark.parametrize("name", FORMATS)
async def test_what_was_several_all_along_stays_and_new_devices_begin(
    services: Services, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    driver, write, _ = FORMATS[name]
    old = await before(services, clock, monkeypatch, name, "a", "b")
    await take(services, clock, driver, write("a"))
    await take(services, clock, driver, write("b"))
    assert await counts(services) == [(1, 2), (2, 1), (3, 1)]
    [kept, *_] = await services.store.devices.all()
    assert kept.key == old.key


async def test_an_id_that_is_the_devices_alone_goes_on_beside_a_mac(
    services: Services, clock: FakeClock
) -> None:
    """A template of RAPT's portal that says the MAC as well since yesterday."""
    said: dict[str, Any] = {"device_id": "3f2a", "gravity": 1048, "temperature": 20}
    await take(services, clock, "rapt", json.dumps(said))
    await take(services, clock, "rapt", json.dumps(said | {"mac": MACS["a"], "temperature": 21}))
    assert await counts(services) == [(1, 2)]
    body = json.dumps({"color": "Red", "mac": MACS["a"], "gravity": 1.04, "temp": 68})
    await take(services, clock, "tilt_tools", body)
    await take(services, clock, "rapt", json.dumps(said | {"temperature": 22}))
    assert await counts(services) == [(1, 4)]
    [device] = await services.store.devices.all()
    assert (device.key, [alias.key for alias in device.aliases]) == ("mac:aabbccddee01", ["rapt:3f2a"])
