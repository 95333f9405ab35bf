"""What a brew session says of its device: meter_*, device_* and the JSON text of the last reading."""

import json
from typing import Any

import pytest

from gateway.domain.brewsession import BrewSession
from tests.system.api.conftest import Service
from tests.system.api.library import Brewery, opened
from tests.system.api.test_brewsessions import one

SPINDLE = {
    "name": "iSpindel042",
    "ID": 7,
    "angle": 40.0,
    "temperature": 19.8,
    "temp_units": "C",
    "gravity": 12.0,
}
TILT = {
    "Color": "GREEN", "SG": "1.0410", "Temp": "66.5", "Timepoint": "46085.39583333333",
    "Beer": "Harbour Porter", "Comment": "İt's \"fine\" 🍺",
}  # fmt: skip

NO_DEVICE = {
    "meter_active": "0", "meter_color": None, "meter_updated": None, "device_reading": None,
    "device_updated_at": None, "device_active": None, "device_id": None,
}  # fmt: skip

LAST_READING = [
    "SG",
    "Temp",
    "Color",
    "Timepoint",
    "Beer",
    "Comment",
    "gravity",
    "gravity_unit",
    "temp",
    "temp_unit",
]
"""Six members of the specification, four of api-decisions section 8."""


@pytest.fixture
async def brewery(service: Service) -> Brewery:
    return await opened(service)


@pytest.fixture
async def session(brewery: Brewery) -> BrewSession:
    return await brewery.session()


async def members(brewery: Brewery, session: BrewSession) -> dict[str, Any]:
    """The session's members about its device: the same singly and in the list."""
    entry = await one(brewery, session.id)
    (listed,) = (await brewery.get("brewsessions", {"id": str(session.id)}))["brewsessions"]
    found = {name: entry[name] for name in NO_DEVICE}
    assert found == {name: listed[name] for name in NO_DEVICE}
    return found


def last_reading(found: dict[str, Any]) -> dict[str, str]:
    """The reading in the JSON text, whose members are all texts."""
    envelope = json.loads(found["device_reading"])
    assert list(envelope) == ["last_reading"]
    reading: dict[str, str] = envelope["last_reading"]
    assert list(reading) == LAST_READING
    assert {type(value) for value in reading.values()} == {str}
    return reading


async def assign(
    brewery: Brewery, session: BrewSession, device: str = "7", since: float | None = None
) -> str:
    """Puts the device in; its id as the API says it."""
    await brewery.service.services.brewsessions.assign(device, session.id, since)
    devices = await brewery.service.services.store.devices.all()
    return next(str(known.id) for known in devices if known.session_id == session.id)


async def test_no_device(brewery: Brewery, session: BrewSession) -> None:
    await brewery.take(session, [{"gravity": 1.05, "temp": 20}])
    assert await members(brewery, session) == NO_DEVICE


async def test_a_device_that_has_not_reported_yet(brewery: Brewery, session: BrewSession) -> None:
    await brewery.report(SPINDLE)
    device_id = await assign(brewery, session)
    assert await members(brewery, session) == NO_DEVICE | {
        "meter_active": "1",
        "meter_color": "iSpindel042",
        "device_active": "1",
        "device_id": device_id,
    }


async def test_a_meter_s_reading_comes_out_as_it_came(brewery: Brewery, session: BrewSession) -> None:
    await brewery.report(TILT, at=-60)
    device_id = await assign(brewery, session, "GREEN")
    await brewery.report(TILT)
    found = await members(brewery, session)
    assert found == {
        "meter_active": "1",
        "meter_color": "GREEN",
        "meter_updated": "2026-03-04 09:30:00",
        "device_reading": found["device_reading"],
        "device_updated_at": "2026-03-04 09:30:00",
        "device_active": "1",
        "device_id": device_id,
    }
    assert last_reading(found) == {
        "SG": "1.0410",
        "Temp": "66.5",
        "Color": "GREEN",
        "Timepoint": "46085.39583333333",
        "Beer": "Harbour Porter",
        "Comment": 'İt\'s "fine" 🍺',
        "gravity": "1.0410",
        "gravity_unit": "G",
        "temp": "66.5",
        "temp_unit": "F",
    }


@pytest.mark.parametrize(
    ("gravity", "temperature", "sg", "fahrenheit"),
    [
        (12.0, 20, "1.04838", "68"),
        (0.5, 0, "1.00194", "32"),
        (13.5, 19.8, "1.05472", "67.64"),
        (-0.5, -17.78, "0.99807", "0"),
        (12.48, -40, "1.0504", "-40"),
    ],
)
async def test_plato_and_celsius_are_shown_as_sg_and_fahrenheit_as_well(
    brewery: Brewery, session: BrewSession, gravity: float, temperature: float, sg: str, fahrenheit: str
) -> None:
    await brewery.report(SPINDLE, at=-900)
    await assign(brewery, session)
    await brewery.report(SPINDLE | {"gravity": gravity, "temperature": temperature})
    reading = last_reading(await members(brewery, session))
    assert (reading["SG"], reading["Temp"]) == (sg, fahrenheit)
    assert (reading["gravity"], reading["gravity_unit"]) == (str(gravity), "P")
    assert (reading["temp"], reading["temp_unit"]) == (str(temperature), "C")
    assert (reading["Color"], reading["Beer"], reading["Comment"]) == ("iSpindel042", "", "")
    assert reading["Timepoint"] == "46085.39583333333"


async def test_a_reading_without_gravity_or_temperature(brewery: Brewery, session: BrewSession) -> None:
    await brewery.report(SPINDLE, at=-900)
    await assign(brewery, session)
    await brewery.report(
        {"name": "iSpindel042", "ID": 7, "angle": 40.0, "temperature": None, "gravity": None}
    )
    reading = last_reading(await members(brewery, session))
    assert (reading["SG"], reading["Temp"], reading["gravity"], reading["temp"]) == ("", "", "", "")


async def test_the_last_reading_is_that_of_the_latest_time(brewery: Brewery, session: BrewSession) -> None:
    await brewery.report(SPINDLE)
    await assign(brewery, session)
    for at in (900, 2700, 1800):
        await brewery.report(SPINDLE | {"angle": at / 100, "gravity": at / 300}, at=at)
    assert last_reading(await members(brewery, session))["gravity"] == "9.0"


async def test_of_the_same_second_the_later_arrival_is_the_last(
    brewery: Brewery, session: BrewSession
) -> None:
    await brewery.report(SPINDLE, at=-900)
    await assign(brewery, session)
    for gravity in (9.0, 11.0, 10.0):
        await brewery.report(SPINDLE | {"gravity": gravity})
    assert last_reading(await members(brewery, session))["gravity"] == "10.0"


async def test_after_its_release_there_is_none_again(brewery: Brewery, session: BrewSession) -> None:
    await brewery.report(SPINDLE, at=-900)
    await assign(brewery, session)
    await brewery.report(SPINDLE)
    assert await members(brewery, session) != NO_DEVICE
    await brewery.service.services.brewsessions.release("7")
    assert await members(brewery, session) == NO_DEVICE
    await brewery.report(SPINDLE, at=900)
    assert await members(brewery, session) == NO_DEVICE


async def test_readings_in_an_earlier_session_are_not_of_this_one(
    brewery: Brewery, session: BrewSession
) -> None:
    await brewery.report(SPINDLE, at=-900)
    await assign(brewery, session)
    await brewery.report(SPINDLE | {"gravity": 11.0})
    later = await brewery.session(batchcode="HP002")
    await assign(brewery, later)
    assert (await members(brewery, later))["device_reading"] is None
    assert await members(brewery, session) == NO_DEVICE
    await brewery.report(SPINDLE | {"gravity": 5.0}, at=900)
    assert last_reading(await members(brewery, later))["gravity"] == "5.0"
    await assign(brewery, session)  # back again: its own last one counts
    assert last_reading(await members(brewery, session))["gravity"] == "11.0"


async def test_readings_that_come_along_with_the_device_count(brewery: Brewery, session: BrewSession) -> None:
    await brewery.report(SPINDLE, at=-900)
    await assign(brewery, session, since=brewery.service.clock.now() - 1000)
    found = await members(brewery, session)
    assert found["device_updated_at"] == "2026-03-04 09:15:00"


async def test_of_two_devices_the_one_that_reported_last_is_shown(
    brewery: Brewery, session: BrewSession
) -> None:
    other = {**SPINDLE, "ID": 8, "name": "other"}
    for device in (SPINDLE, other):
        await brewery.report(device, at=-900)
        await assign(brewery, session, str(device["ID"]))
    assert (await members(brewery, session))["meter_color"] == "iSpindel042"
    for device, at in ((other, 0), (SPINDLE, 60), (other, 120)):
        await brewery.report(device | {"gravity": at / 10 + 1}, at=at)
        found = await members(brewery, session)
        assert found["meter_color"] == device["name"]
        assert last_reading(found)["gravity"] == str(at / 10 + 1)
    await brewery.service.services.brewsessions.release("8")
    found = await members(brewery, session)
    assert (found["meter_color"], last_reading(found)["gravity"]) == ("iSpindel042", "7.0")


async def test_imports_are_no_device_s_readings(brewery: Brewery, session: BrewSession) -> None:
    await brewery.report(SPINDLE, at=-900)
    await assign(brewery, session)
    await brewery.report(SPINDLE)
    await brewery.take(session, [{"gravity": 1.01, "created_at": "2026-03-06"}])
    assert last_reading(await members(brewery, session))["gravity"] == "12.0"
    await brewery.take(session, [], reset=True)
    found = await members(brewery, session)
    assert (found["device_reading"], found["device_updated_at"], found["device_active"]) == (None, None, "1")


async def test_a_deleted_session_gives_its_device_back(brewery: Brewery, session: BrewSession) -> None:
    await brewery.report(SPINDLE)
    await assign(brewery, session)
    await brewery.service.services.brewsessions.delete_session(session)
    devices = await brewery.service.services.store.devices.all()
    assert [device.session_id for device in devices] == [None]


async def test_each_session_of_a_list_has_its_own_device(brewery: Brewery) -> None:
    for number in (1, 2, 3):
        session = await brewery.session(batchcode=f"B{number}")
        if number != 2:
            device = {**SPINDLE, "ID": number, "name": f"i{number}"}
            await brewery.report(device)
            await assign(brewery, session, f"i{number}")
    entries = (await brewery.get("brewsessions", "sort=batchcode:1"))["brewsessions"]
    assert [entry["meter_color"] for entry in entries] == ["i1", None, "i3"]
