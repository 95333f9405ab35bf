"""What golden cases cannot show of streams, controllers and builds of one's own: names, zeros, sensors."""

import json
from itertools import permutations
from typing import Any

import pytest

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import decode
from gateway.errors import DriverError
from tests.pure.drivers.messages import ARRIVAL, payloads_of

PILL = {"specific_gravity": "1.045", "temperature": "20.1", "unit": "C", "battery": "88", "rssi": "-61"}


def reports(body: Any, driver: str, **more: Any) -> list[Report]:
    text = body if isinstance(body, str) else json.dumps(body)
    return decode(Payload(text.encode(), ARRIVAL, "http", driver=driver, **more)).reports


def report(body: Any, driver: str, **more: Any) -> Report:
    [found] = reports(body, driver, **more)
    return found


def node(values: dict[str, str], label: str = "node", chosen: tuple[str, ...] = ()) -> list[Report]:
    """Of an ESPHome node that publishes these states, in their order."""
    sent = [
        {"topic": topic if "/" in topic else f"{label}/sensor/{topic}/state", "payload": text}
        for topic, text in values.items()
    ]
    return [each for payload in payloads_of(sent, chosen) for each in decode(payload).reports]


def test_named_devices_at_grainfathers_address_are_as_many_and_keep_what_they_say() -> None:
    found = [report({"name": name, **PILL}, "grainfather") for name in ("Pill A", "Pill B,SG")]
    assert [each.device_key for each in found] == ["grainfather:Pill A", "grainfather:Pill B"]
    assert [each.name for each in found] == ["Pill A", "Pill B"]
    assert found[0].facts == {"battery_percent": 88, "rssi": -61}


@pytest.mark.parametrize(
    ("label", "source", "stable_id"), [("abc", "10.0.0.1", "abc"), ("", "10.0.0.1", "10.0.0.1"), ("", "", "")]
)
def test_nameless_devices_at_grainfathers_address(label: str, source: str, stable_id: str) -> None:
    found = report(PILL, "grainfather", label=label, source=source)
    assert (found.stable_id, found.name) == (stable_id, "")


@pytest.mark.parametrize("driver", ["stream", "brewpiless"])
@pytest.mark.parametrize(
    ("gravity", "temp"),
    [
        ({"specific_gravity": "1.032"}, {"Temp": "18.4"}),
        ({"SG": "1.032"}, {"beer_temp": "18.4"}),
        ({"sg": "1.032"}, {"beer-temp": "18.4"}),
        ({"G": "1.032"}, {"T": "18.4"}),
        ({"Gravity": "1.032"}, {"temp_celsius": "18.4"}),
    ],
)
def test_other_names_of_section_13(driver: str, gravity: dict[str, str], temp: dict[str, str]) -> None:
    found = report({"name": "bpl", **gravity, **temp, "voltage": "3.9", "tiltValue": "44"}, driver)
    assert (found.name, found.gravity, found.temp) == ("bpl", "1.032", "18.4")
    assert (found.facts["battery"], found.facts["angle"]) == (3.9, 44)


def test_brewpiless_with_names_of_the_users_own() -> None:
    found = report("name=bpl&beer_temp=18.4&sg=1.032&host=cellar", "brewpiless")
    assert (found.name, found.gravity, found.gravity_unit, found.temp) == ("bpl", "1.032", "G", "18.4")
    assert report("beer_temp=18.4&host=cellar", "brewpiless").stable_id == "cellar"


def test_an_ispindels_names_are_brewpiless_where_the_user_says_so() -> None:
    said = '{"name":"bpl1","ID":"cellar","angle":44.12,"temperature":18.4,"gravity":1.0325}'
    [payload] = payloads_of([{"topic": "brewery/bpl1", "payload": said}])
    [found] = decode(payload).reports
    assert (found.device_key, found.gravity, found.temp) == ("brewpiless:bpl1", "1.0325", "18.4")
    [found] = decode(Payload(said.encode(), ARRIVAL, "http", hint="brewpiless")).reports
    assert found.device_key == "ispindel:cellar"


def test_a_streams_own_time() -> None:
    found = report({"name": "vat", "temp": 18.4, "timestamp": "2025-03-14T19:20:00Z"}, "stream")
    assert found.measured_at == 1741980000.0


@pytest.mark.parametrize(
    ("member", "fact", "value"),
    [
        ({"bpm": 0}, "bpm", 0),
        ({"pressure": 0}, "pressure", "0"),
        ({"aux_temp": 0.0}, "aux_temp", "0.0"),
        ({"ext_temp": "0"}, "ext_temp", "0"),
        ({"aux_temp": 0, "ext_temp": 0, "pressure": 0, "ph": 0, "bpm": 12}, "aux_temp", "0"),
    ],
)
def test_zeros_that_are_measurements(member: dict[str, Any], fact: str, value: object) -> None:
    assert report({"name": "vat", "temp": 2.5, **member}, "stream").facts[fact] == value


def test_zeros_of_gravitymons_template_and_of_what_is_never_zero() -> None:
    zeros = {"aux_temp": 0, "ext_temp": "0", "pressure": 0.0, "ph": 0, "bpm": 0}
    assert report({"name": "vat", "temp": 2.5, **zeros}, "stream").facts == {}
    assert report({"name": "vat", "temp": 2.5, "battery": 0, "RSSI": 0, "angle": 0}, "stream").facts == {}


@pytest.mark.parametrize(
    "values",
    [
        {"temp": "21.3"},
        {"temperature": "9.5", "pressure": "1013.2"},
        {"ph": "7.1", "temperature": "25.0"},
        {"battery": "3.0", "rssi": "-70", "temp": "18.4"},
        {"bpm": "62", "temp": "36.6"},
        {"room_temperature": "-127"},
        {"target_gravity": "1.010", "temperature": "21"},
    ],
)
def test_the_sensors_of_a_house_are_no_hydrometer(values: dict[str, str]) -> None:
    assert node(values) == []


@pytest.mark.parametrize(
    "values",
    [
        {"temp": "21.3", "sg": "1.05"},
        {"temp": "21.3", "velocity": "-2"},
        {"temp": "21.3", "angle": "44"},
        {"beer_temperature": "21.3"},
        {"temp": "21.3", "tilt_rssi": "-60"},
    ],
)
def test_what_shows_a_hydrometer(values: dict[str, str]) -> None:
    [found] = node(values)
    assert (found.stable_id, found.temp) == ("node", "21.3")


def test_what_the_user_mapped_is_a_hydrometers_and_wins() -> None:
    chosen = ("my/probe=vat 1:temp", "vat/sensor/wort/state=vat:gravity")
    [alone] = node({"my/probe": "21.3"}, chosen=chosen)
    assert (alone.stable_id, alone.temp) == ("vat 1", "21.3")
    both = {"gravity": "1.9", "beer_temperature_f": "66", "wort": "1.05"}
    [found] = node(both, "vat", chosen)
    assert (found.stable_id, found.gravity, found.temp) == ("vat", "1.05", "66")
    again = Payload(b'{":temp":"21.3"}', ARRIVAL, "", driver="esphome", label="vat 1")
    assert decode(again).reports == [alone]


@pytest.mark.parametrize(
    ("values", "gravity", "temp"),
    [
        ({"gravity": "1.05", "internal_temperature": "44.1", "beer_temperature": "19.0"}, "1.05", "19.0"),
        ({"gravity": "1.05", "fridge_temperature_c": "4.0", "temperature": "19.0"}, "1.05", "19.0"),
        ({"target_gravity": "1.010", "specific_gravity": "1.05", "setpoint_temp": "18"}, "1.05", None),
        ({"raw_gravity": "1.06", "corrected_gravity": "1.05", "esp32_temperature": "50"}, "1.05", None),
        ({"raw_sg": "1.06", "tilt_gravity": "1.05", "mpu6050_temperature": "30"}, "1.05", None),
        ({"raw_temperature_c": "20", "temperature": "19.0", "sg": "1.05"}, "1.05", "19.0"),
        ({"uncalibrated_gravity": "1.06", "temperature": "21", "wort_temperature": "19.0"}, "1.06", "19.0"),
    ],
)
def test_which_sensor_counts_does_not_depend_on_the_order(
    values: dict[str, str], gravity: str, temp: str | None
) -> None:
    for order in permutations(values.items()):
        [found] = node(dict(order))
        assert (found.gravity, found.temp) == (gravity, temp)


def test_what_is_only_wished_for_is_passed_over_in_silence() -> None:
    assert node({"target_temperature": "18", "final_gravity": "1.010"}, "fermenter") == []
    with pytest.raises(DriverError, match="no name in it means"):
        node({"reading": "1.05"}, "fermenter")


def test_a_signal_in_percent_is_no_rssi() -> None:
    [found] = node({"sg": "1.05", "wifi_signal_percent": "62", "battery_level": "80"})
    assert found.facts == {"battery_percent": 80}


@pytest.mark.parametrize(
    ("said", "gravity"),
    [
        ({"timestamp": 0}, None),
        ({"timestamp": 1741980000}, "0.9961"),
        ({"plato": -1}, None),
        ({"plato": -1, "auxTemp": 18.1}, "0.9961"),
        ({"plato": -0.97}, "0.9961"),
        ({}, "0.9961"),
    ],
)
def test_brewpiless_mark_for_no_gravity_and_a_dry_cider(said: dict[str, Any], gravity: str | None) -> None:
    found = report({"id": "bpl", "beerTemp": 18.4, "gravity": "0.9961", **said}, "brewpiless")
    assert found.gravity == gravity


@pytest.mark.parametrize(("age_s", "stale"), [(0, False), (3600, False), (3601, True), (90 * 86_400, True)])
def test_brewpiless_hydrometer_falls_silent(age_s: int, stale: bool) -> None:
    reported = int(ARRIVAL) - age_s + 1
    found = report({"id": "bpl", "gravity": 1.032, "timestamp": reported}, "brewpiless")
    assert found.flags == ["gravity_stale"] * stale
    assert found.measured_at == (None if stale else reported)
    assert found.facts.get("device_time") == (reported if stale else None)


def test_brewpiless_with_the_same_kind_of_hydrometer_are_as_many() -> None:
    body = {"gravity": 1.032, "hydrometerName": "Tilt"}
    keys = {report(body, "brewpiless", source=each).device_key for each in ("10.0.0.1", "10.0.0.2")}
    assert keys == {"brewpiless:10.0.0.1", "brewpiless:10.0.0.2"}
    assert report({**body, "hydrometerName": "iSpindel042"}, "brewpiless").stable_id == "iSpindel042"
    assert reports({"state": 0, "mode": 0, "hydrometerName": "unkown"}, "brewpiless") == []
