"""What the golden cases of the iSpindel and its relatives cannot say: history, and who is who."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.device import USUAL_TEMP_UNIT, Device, DeviceSettings
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import GravityUnit, Report, TempUnit
from gateway.drivers import BY_NAME, bricks, decode, fill, wire
from gateway.errors import DriverError
from gateway.intake.normalise import normalise
from tests.pure.drivers.messages import ARRIVAL


def report_of(body: Mapping[str, Any] | str, driver: str, source: str = "", **members: Any) -> Report:
    [report] = decode(delivered(body, driver, source, **members)).reports
    return report


def delivered(body: Mapping[str, Any] | str, driver: str, source: str = "", **members: Any) -> Payload:
    raw = body if isinstance(body, str) else json.dumps(body)
    return Payload(raw.encode(), ARRIVAL, f"http /ingest/{driver}", driver, source, **members)


def reading_of(body: Mapping[str, Any], driver: str, device: Device) -> Reading:
    payload = delivered(body, driver)
    [report] = decode(payload).reports
    return normalise(report, device, payload)[0]


NEW = Device(1, "ubidots:a", "ubidots", "a", "a", 0)
FAHRENHEIT = replace(NEW, inferred={USUAL_TEMP_UNIT: ("F", "")})


@pytest.mark.parametrize(
    ("temp", "device", "text", "unit"),
    [
        (85, NEW, "", "F"),
        (85, FAHRENHEIT, "85", "F"),
        (85.06, FAHRENHEIT, "85.06", "F"),
        (85, replace(NEW, settings=DeviceSettings(temp_unit="F")), "85", "F"),
        (85, replace(NEW, settings=DeviceSettings(temp_unit="C")), "", "C"),
        (185, FAHRENHEIT, "", "F"),
        (-127, FAHRENHEIT, "", "F"),
        (68.5, NEW, "68.5", "F"),
        (293.1, FAHRENHEIT, "19.95", "C"),
        (249.9, NEW, "249.9", "F"),
        (293.1, replace(NEW, settings=DeviceSettings(temp_unit="F")), "293.1", "F"),
    ],
)
def test_a_temperature_whose_unit_is_not_sent(temp: float, device: Device, text: str, unit: TempUnit) -> None:
    reading = reading_of({"tilt": 40, "temperature": temp, "gravity": 12.5}, "ubidots", device)
    assert (reading.temp, reading.temp_unit) == (text, unit)
    assert ("temp_sensor_fault" in (reading.flags or "")) == (text == "")


@pytest.mark.parametrize(
    ("temp", "unit", "is_fault"),
    [
        (-127.5, "C", True),
        (-269.5, "C", True),
        (-195.7, "F", True),
        (-453.1, "F", True),
        (-100.0, "C", False),
        (84.5, "C", False),
        (185, "F", True),
        (85, "F", False),
        (85, None, False),
        (-127, None, True),
    ],
)
def test_a_sensor_that_is_not_there(temp: float, unit: TempUnit | None, is_fault: bool) -> None:
    assert wire.is_sensor_fault(temp, unit) == is_fault


@pytest.mark.parametrize(
    ("gravity", "before", "unit"),
    [(-9.1, "P", "P"), (52.1, "P", "P"), (-14.054, None, "P"), (52.1, None, "G"), (52.1, "G", "G")],
)
def test_a_gravity_beyond_all_has_the_unit_of_the_device(
    gravity: float, before: GravityUnit | None, unit: str
) -> None:
    device = replace(NEW, gravity_unit=before)
    reading = reading_of({"tilt": 40, "temperature": 20, "gravity": gravity}, "ubidots", device)
    assert (reading.gravity, reading.gravity_unit, reading.sg) == (str(gravity), unit, None)
    assert reading.flags == '["gravity_out_of_range"]'


UBIDOTS_TEMPLATE = {"temperature": 20.56, "gravity": 1.0456, "angle": 45.12, "battery": 3.98, "rssi": -70}
NAMELESS = {
    "spindle": (json.dumps(UBIDOTS_TEMPLATE), "gravitymon"),
    "generic": (json.dumps(UBIDOTS_TEMPLATE), "ispindel"),
    "influx": ("measurements,source= tilt=52.3,temperature=19.8,gravity=12.48", "influx"),
    "thingspeak": ("field1=52.33&field2=20.1&field3=C&field4=3.96&field5=12.4", "thingspeak"),
    "fermentrack": ('{"version":"1.0","field1":"Pale Ale","field3":"C","field4":18.4}', "thingspeak"),
}


@pytest.mark.parametrize("name", NAMELESS)
def test_devices_without_a_name_are_told_apart_by_their_addresses(name: str) -> None:
    body, driver = NAMELESS[name]
    keys = [report_of(body, driver, f"192.168.1.{host}").device_key for host in (7, 8)]
    assert keys == [f"{driver}:192.168.1.7", f"{driver}:192.168.1.8"]


@pytest.mark.parametrize("name", NAMELESS)
def test_history_of_a_device_without_a_name_is_its_own_after_it_moved(name: str) -> None:
    """As it is read again: for the device, whose id stands where the address says a name."""
    body, driver = NAMELESS[name]
    device_key = report_of(body, driver, "192.168.1.7").device_key
    assert report_of(body, driver, "192.168.1.9", label="192.168.1.7").device_key == device_key


def test_thingspeak_tells_devices_apart_by_the_header_with_the_write_key() -> None:
    body = "field1=52.33&field2=20.1&field3=C&field4=3.96&field5=12.48&field6=900&field7=-67"
    one, two = (report_of(body, "thingspeak", "192.168.1.7", token=key) for key in ("W1", "W2"))
    assert one.stable_id != two.stable_id
    assert one.stable_id == report_of(f"{body}&api_key=W1", "thingspeak", "192.168.1.9").stable_id
    assert "W1" not in one.stable_id
    ours = report_of(body, "thingspeak", "192.168.1.7", token="hg_secret")
    assert ours.stable_id == "192.168.1.7"


def test_an_answer_for_a_brick_that_has_no_sensor() -> None:
    assert BY_NAME["bricks"].reply == bricks.REPLY
    query = "apikey=k3y&type=brick&brand=bierbot&version=1.3&chipid=ff&a_bool_epower_0=1"
    assert decode(Payload(b"", ARRIVAL, "http", "bricks", query=query)).reports == []


@pytest.mark.parametrize(
    ("members", "gravity", "unit"),
    [
        ({"gravity": "12.1"}, "12.1", None),
        ({"gravity": "12.1", "sg": "1.0488"}, "1.0488", "G"),
        ({"gravity": "12.1", "plato": "12.08"}, "12.08", "P"),
        ({"sg": "1.0488", "plato": "12.08"}, "1.0488", "G"),
        ({"raw_gravity": "1.0512", "gravity": "1.0488"}, "1.0488", None),
        ({"raw_gravity": "1.0512", "smoothed_gravity": "1.0488"}, "1.0488", "G"),
        ({"specific_gravity_uncali": "1.0512", "plato_cali": "12.08"}, "12.08", "P"),
        ({"gravity": "12.1", "sg": "1.0488", "gravity_unit": "P"}, "12.1", "P"),
        ({"plato": "12.08", "sg": "1.0488", "gravity-unit": "P"}, "12.08", "P"),
        ({"sg": "0", "plato": "12.08"}, "12.08", "P"),
        ({"sg": "null", "Plato[degP]": "12.08"}, "12.08", "P"),
        ({"tilt_SG": "1.0488", "gravity": "12.1"}, "1.0488", "G"),
        ({"G": "12.1"}, "12.1", None),
    ],
)
def test_gravity_by_any_name(members: dict[str, str], gravity: str, unit: str | None) -> None:
    report = Report("a")
    fill.any_gravity(report, members)
    assert (report.gravity, report.gravity_unit, report.flags) == (gravity, unit, [])


@pytest.mark.parametrize(
    ("members", "required", "flags"),
    [
        ({}, True, ["gravity_missing"]),
        ({}, False, []),
        ({"sg": "0", "plato": "0"}, True, ["gravity_zero"]),
        ({"plato": "null"}, True, ["gravity_missing"]),
    ],
)
def test_no_gravity_by_any_name(members: dict[str, str], required: bool, flags: list[str]) -> None:
    report = Report("a")
    fill.any_gravity(report, members, unit="G", reason="its name", required=required)
    assert (report.gravity, report.flags) == (None, flags)


def test_the_end_of_a_name_says_the_unit_of_gravity_alone() -> None:
    one = report_of({"name": "a[SG]", "angle": 40, "gravity": 1.0488, "plato": 12.08}, "ispindel")
    assert (one.gravity, one.gravity_unit) == ("1.0488", "G")
    two = report_of({"name": "a[SG]", "angle": 40, "plato": 12.08}, "ispindel")
    assert (two.gravity, two.gravity_unit) == ("12.08", "P")
    hydrom = report_of({"name": "a[SG]", "angle": 40, "gravity": 12.1, "tilt_SG": 1.0488}, "ispindel")
    assert (hydrom.gravity, hydrom.gravity_unit) == ("1.0488", "G")


def test_spindles_that_a_bridge_sends_late_keep_their_times() -> None:
    items = [
        {"name": "a", "angle": 40, "temperature": 20 + n, "timestamp": ARRIVAL - 900 * n} for n in (0, 1)
    ]
    body = json.dumps(items).encode()
    payload = Payload(body, ARRIVAL, "http /ingest/ispindel", driver="ispindel")
    reports = decode(payload).reports
    readings = [normalise(report, Device.first_seen(report, 0), payload)[0] for report in reports]
    assert [reading.created_at for reading in readings] == [int(ARRIVAL), int(ARRIVAL - 900)]


@pytest.mark.parametrize(
    "body",
    [
        "measurements,source=eMano1 ",
        "chamber,host=c,device=1,mode=o beer-temp=0.000000,chamber-temp=0.000000,beer-target-temp=0.000000",
    ],
)
def test_lines_that_say_nothing_are_no_reading_and_no_trouble(body: str) -> None:
    assert decode(delivered(body, "influx")).reports == []
    [report] = decode(delivered(f"{body}\nm,host=a gravity=1.05", "influx")).reports
    assert report.gravity == "1.05"


def test_lines_of_something_else_are_trouble_still() -> None:
    with pytest.raises(DriverError, match="without a measurement"):
        decode(delivered("cpu,host=a load=0.5", "influx"))
