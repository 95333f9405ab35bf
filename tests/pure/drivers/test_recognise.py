"""Payloads on the shared paths `/` and `/ingest`: the table of devices section 3.3, and all cases."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import BY_NAME, decode, wire
from gateway.drivers.recognise import ORDER, recognise
from gateway.errors import DriverError
from tests.pure.drivers.messages import ARRIVAL
from tests.pure.drivers.test_cases import FILES, payloads

EXAMPLES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"tiltbridge_junior": {}, "tilts": []}, "tiltbridge_junior"),
    ({"tilts": [{"color": "Red"}]}, "tiltbridge_junior"),
    ({"mdns_id": "tiltbridge", "tilts": {"Red": {}}}, "tiltbridge"),
    ({"mdns_id": "tiltbridge", "tilts": None}, "tiltbridge"),
    ({"api_key": "k", "brewpi_devices": [], "gravity_sensors": []}, "fermentrack"),
    ({"api_key": "k", "gravity_sensors": []}, "fermentrack"),
    ({"api_key": "k", "brewpi": []}, "fermentrack"),
    ({"name": "e", "type": "eManometer", "pressure": 1, "temperature": 4}, "emanometer"),
    ({"apikey": "k", "chipid": "c", "type": "ispindel", "s_number_tilt_0": 30}, "bricks"),
    ({"name": "p", "temperature": 4, "pressure-unit": "PSI", "run-time": 2}, "pressuremon"),
    ({"name": "p", "temperature": 4, "pressure_unit": "PSI"}, "pressuremon"),
    ({"name": "g", "temperature": 20, "angle": 30, "corr-gravity": 1.05}, "gravitymon"),
    ({"name": "g", "temperature": 20, "angle": 30, "gravity-unit": "P"}, "gravitymon"),
    ({"name": "g", "temperature": 20, "angle": 30, "run-time": 2}, "gravitymon"),
    ({"SG": "1.05", "Temp": "68", "Color": "RED"}, "tilt"),
    ({"SG": "1.05", "Temp": "68", "Timepoint": "45000.5"}, "tilt"),
    ({"SG": 1.05, "Temp": 68, "Unit": "fahrenheit"}, "grainfather"),
    ({"specific_gravity": 1.05, "temperature": 20, "unit": "celsius"}, "grainfather"),
    ({"sg": 1.05, "temp": 20, "bubbles": 12}, "plaato"),
    ({"sg": 1.05, "temp": 20, "co2_volume": 1.2}, "plaato"),
    ({"name": "t", "ID": "1", "angle": 30, "temperature": 20, "currentGravity": 1.05}, "torpedo"),
    ({"beerTemp": 18, "gravity": 1.05}, "brewpiless"),
    ({"fridgeTemp": 4}, "brewpiless"),
    ({"api_name": "Brew Bubbles", "bpm": 3, "temp": 20}, "brew_bubbles"),
    ({"color": "red", "device": "tiltbridge", "gravity": 1.05, "temp": 68}, "tiltbridge"),
    ({"name": "b", "color": "red", "gravity": 1.05, "temp_celsius": 20}, "tilt_tools"),
    ({"name": "i", "angle": 30, "temperature": 20}, "ispindel"),
    ({"tilt": 30, "temperature": 20}, "ispindel"),
    ({"name": "s", "temp": 20, "gravity": 1.05}, "stream"),
    # Beyond the table of section 3.3:
    ({"device_id": "d", "gravity": 1050, "temperature": 20}, "rapt"),
    ({"Color": "Red", "fermunits": "SG", "SG": "1.05", "Temp": "68"}, "tiltbridge"),
    ({"device_name": "Airlock", "v102": "12", "v103": "20.1"}, "plaato"),
    ({"@device_id": "d", "@gravity": "1045"}, "rapt"),
    ({"device_id": "d", "device_type": "TemperatureController", "temperature": "4"}, "rapt"),
    ({"specific_gravity_uncali": "1.045", "battery": "87"}, "rapt"),
    ({"specific_gravity_uncali": "1.045", "plato_uncali": "11"}, "tilt_tools"),
    ({"key": "k", "data": {"Gravity": 12}}, "brewblox"),
    ({"state": {"reported": {"tilt": 30}}, "key": "k"}, "aws"),
    ({"temperature": 20, "unit": "celsius"}, "irelay"),
    ({"temperature": 20, "sg": 1.05, "plato": 12}, "torpedo"),
    ({"api_key": "k", "field1": 1.05, "field2": 20}, "thingspeak"),
    ({"token": "k", "v1": "20", "v2": "1.05", "v3": "30"}, "blynk"),
    ({"cmd.Test": "set a 30 20 C 4 12 1", "XHR": "1"}, "fhem"),
    ({"T: 20.5 D: 45.1 U: 3.9 G: 10.2": ""}, "tcontrol"),
    ({"temp": 20, "unit": "C", "runmode": "monitor"}, "smartpid"),
    ({"Temperature from DS18B20": 20, "Tilt": 30}, "itilt"),
    ({"beer-temperature": 20, "tilt": 30}, "itilt"),
)

ONLY_BY_ADDRESS = {
    "brewblox/brewblox_tilt_current_mqtt_state": "a service's presence, known by its topic",
    "rapt/meadtools_fahrenheit": "neither an angle nor a word of RAPT's",
    "rapt/raptpill_to_meadtools_json_post": "neither an angle nor a word of RAPT's",
    "tiltbridge/mqtt_with_an_empty_topic": "anybody's messages on a topic of one level",
    "aws/desired_only": "the envelope without what is reported",
    "bricks/brick_without_sensors": "a key and an id, as others have them",
    "craftbeerpi/": "numbers whose meaning only the option says",
    "home_assistant/statestream": "object ids that the user chose: only the topic says whose",
    "theengs/theengs_tilt": "among the things of a house, which nobody else passes over",
    "brewpiless/": "letters that the user chose: only the path says whose",
    "emanometer/without_a_probe": "a user's template without the type",
    "esphome/": "object ids that the user chose: only the topic says whose",
    "ispindel/emanometer_mqtt_under_the_ispindel_root": "single values: only the topic says whose",
    "influx/emanometer_cleared": "a line without a field: no line of the protocol's",
    "itilt/cayenne": "channels by number: only the topic says whose",
    "prometheus/labels_and_time": "without the comments that begin the format",
    "stream/brewfather_custom_stream_shape_minimal_defaults_apply": "a name and a pressure alone",
    "prometheus/emanometer_cleared": "an empty body",
    "thingspeak/fermentrack_without_a_controller": "nothing but a key and a version",
    "ubidots/": "without a unit of the temperature, which look-alikes of the iSpindel's mean as Celsius",
}
"""Cases that nothing but their address can explain, by the beginning of `folder/case`; and why."""

LOOSE = frozenset({"family", "gravity_unit_reason", "temp_unit_reason", "battery_reason"})

CASES = [path for path in FILES if "expected_error" not in path.read_text("utf-8")]


def case_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize(
    ("members", "driver"), EXAMPLES, ids=lambda value: "" if isinstance(value, dict) else value
)
def test_what_these_members_show(members: dict[str, Any], driver: str) -> None:
    row = recognise(members)
    assert row is not None
    assert row.driver == driver


@pytest.mark.parametrize("place", range(len(ORDER)), ids=lambda place: f"{place}_{ORDER[place].driver}")
def test_every_row_decides_at_least_one_example_or_case(place: int) -> None:
    examples = (members for members, _ in EXAMPLES)
    assert any(recognise(members) is ORDER[place] for members in chain(examples, members_of_cases()))


def members_of_cases() -> Iterator[Mapping[str, Any]]:
    for path in CASES:
        for payload in payloads(json.loads(path.read_text("utf-8"))):
            with suppress(DriverError):
                yield wire.fields(payload)


def test_a_row_that_is_remembered_by_names_is_the_first_that_fits_whatever_the_values() -> None:
    sent: list[dict[str, Any]] = [members for members, _ in EXAMPLES]
    values: tuple[Any, ...] = (None, "eManometer", [], {}, 0)
    sent += [dict.fromkeys(members, value) for members in sent for value in values]
    sent += [dict(reversed(members.items())) for members in sent]
    for members in (*sent, *sent):
        assert recognise(members) == next((row for row in ORDER if row.fits(members)), None), members


def test_rows_name_drivers_that_there_are() -> None:
    assert {row.driver for row in ORDER} <= BY_NAME.keys()


def test_a_payload_that_fits_no_row_is_an_error() -> None:
    with pytest.raises(DriverError, match="no known device"):
        decode(Payload(b'{"hello": 1}', ARRIVAL, "http /ingest"))


@pytest.mark.parametrize("path", CASES, ids=case_of)
def test_on_the_shared_path_it_is_read_as_on_its_own(path: Path) -> None:
    assert is_alike(path) or case_of(path).startswith(tuple(ONLY_BY_ADDRESS))


@pytest.mark.parametrize("beginning", ONLY_BY_ADDRESS)
def test_an_exception_is_one(beginning: str) -> None:
    assert not all(is_alike(path) for path in CASES if case_of(path).startswith(beginning))


def is_alike(path: Path) -> bool:
    return all(
        as_shared(payload) == as_own(payload) for payload in payloads(json.loads(path.read_text("utf-8")))
    )


def as_own(payload: Payload) -> list[dict[str, Any]]:
    return [comparable(report) for report in decode(replace(payload, fields=None)).reports]


def as_shared(payload: Payload) -> list[dict[str, Any]] | None:
    """What the same bytes are on `/ingest`; None where they are not understood there."""
    channel = payload.channel if payload.channel.startswith("tcp") else "http /ingest"
    try:
        return as_own(replace(payload, driver=None, hint=None, channel=channel))
    except DriverError:
        return None


def comparable(report: Report) -> dict[str, Any]:
    """All but the family, which look-alikes of the iSpindel have from their address, and reasons in words."""
    told = {field.name: getattr(report, field.name) for field in fields(report)}
    return {name: value for name, value in told.items() if name not in LOOSE}
