"""What golden cases cannot show of Tilts, their bridges, Pills and Plaato: replies, several readings."""

import json
from typing import Any

import pytest

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import BY_NAME, DRIVERS, decode, rapt, tilt
from gateway.drivers.addresses import of_path
from gateway.errors import DriverError
from tests.drivers.messages import ARRIVAL, payloads_of

FORM = "Timepoint=45730.8125&Temp=68&SG=1.045&Color={color}&Beer={beer}&Comment="


def reports(body: Any, driver: str | None = None, **more: Any) -> list[Report]:
    text = body if isinstance(body, str) else json.dumps(body)
    return decode(Payload(text.encode(), ARRIVAL, "http", driver=driver, **more)).reports


def report(body: Any, driver: str | None = None, **more: Any) -> Report:
    [found] = reports(body, driver, **more)
    return found


@pytest.mark.parametrize(
    ("beer", "color", "reply"),
    [
        ("Stout,12", "RED", {"beername": "Stout,12", "tiltcolor": "RED"}),
        ("Stout%2C12", "RED:aa:bb", {"beername": "Stout,12", "tiltcolor": "RED:aa:bb"}),
        ("Stout", "RED", None),
        ("Untitled", "RED", None),
        ("", "RED", None),
        ("Pale, dry,12", "RED", None),  # Tilt Pi would keep two of the three parts
        ("Stout,12", "", None),  # without a colour it would write to `undefined-Beer`
    ],
)
def test_beer_is_echoed_with_its_colour_where_one_comma_is_in_it(
    beer: str, color: str, reply: dict[str, str] | None
) -> None:
    assert report(FORM.format(beer=beer, color=color), "tilt").reply == reply


def test_google_sheets_target_gets_its_link_and_its_email_is_not_kept() -> None:
    sent = {
        "Beer": "Ale",
        "Temp": "68.0",
        "SG": "1.0450",
        "Color": "Red",
        "Email": "me@example.org",
        "tzOffset": -5,
    }
    found = report(sent)
    assert found.family == "tilt"
    assert found.reply == {"doclongurl": ""}
    assert "example.org" not in repr(found)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("RED", ("RED", "")),
        ("RED:f6:bd:d3:46:3a:05", ("RED", "f6:bd:d3:46:3a:05")),
        ("RED_F6:BD:D3:46:3A:05", ("RED", "F6:BD:D3:46:3A:05")),
        ("RED_F6BDD3463A05", ("RED", "F6BDD3463A05")),
        ("RED•HD", ("RED", "")),
        ("RED•HD:f6:bd:d3:46:3a:05", ("RED", "f6:bd:d3:46:3a:05")),
        ("Red •HD_F6BDD3463A05", ("Red", "F6BDD3463A05")),
        ("Red_2", ("Red_2", "")),
        ("", ("", "")),
    ],
)
def test_colour_and_mac(sent: str, expected: tuple[str, str]) -> None:
    assert tilt.split_color(sent) == expected


@pytest.mark.parametrize(
    "order",
    [("SG", "Beer", "Temp", "Color"), ("Beer", "Color", "SG", "Temp"), ("Color", "Temp", "SG", "Beer")],
)
def test_ampersand_in_the_beer_in_any_order_of_fields(order: tuple[str, ...]) -> None:
    values = {"SG": "1.045", "Beer": "Malt & Hops & Co", "Temp": "68", "Color": "RED"}
    found = report("&".join(f"{key}={values[key]}" for key in order), "tilt")
    assert (found.beer, found.name, found.gravity, found.temp) == ("Malt & Hops & Co", "RED", "1.045", "68")


@pytest.mark.parametrize("timepoint", ["0", "25569.8", "1e5", "nan", "", "-1"])
def test_timepoint_of_a_clock_that_was_not_set_is_no_time(timepoint: str) -> None:
    found = report(f"Timepoint={timepoint}&Temp=68&SG=1.045&Color=RED", "tilt")
    assert found.gravity == "1.045"
    assert (found.device_time is None) == (timepoint != "1e5")


def test_delayed_readings_of_one_tilt_keep_their_distances() -> None:
    times = ("18:30:00", "19:00:00", "19:30:00")
    found = reports(
        [
            {"color": "Red", "temp": 20, "gravity": 1050 - place, "timestamp": f"2025-03-14T{time}"}
            for place, time in enumerate(times)
        ]
    )
    assert [(one.gravity, one.age_s) for one in found] == [("1050", 3600.0), ("1049", 1800.0), ("1048", 0.0)]
    assert {one.device_key for one in found} == {"tilt_tools:Red"}


def test_two_bridges_with_a_tilt_of_one_colour_are_two_devices() -> None:
    tilts = {"Red": {"color": "Red", "gravity": "1.045", "temp": "68.0"}}
    keys = {report({"mdns_id": bridge, "tilts": tilts}).device_key for bridge in ("cellar", "garage")}
    assert keys == {"tiltbridge:Red@cellar", "tiltbridge:Red@garage"}


def test_a_bad_tilt_does_not_take_its_neighbours_along() -> None:
    tilts: list[Any] = [
        {"color": "Red", "raw_gravity": "x"},
        7,
        {"color": "Blue", "raw_gravity": "1.02", "raw_temp": "66"},
    ]
    assert [one.name for one in reports({"tilts": tilts, "tiltbridge_junior": True})] == ["Blue"]


def test_more_tilts_than_there_are_is_refused() -> None:
    tilts = {str(number): {"gravity": "1.045", "temp": "68"} for number in range(65)}
    with pytest.raises(DriverError, match="65 Tilts"):
        reports({"mdns_id": "t", "tilts": tilts})


def test_junior_is_kept_once_a_minute() -> None:
    assert BY_NAME["tiltbridge_junior"].spacing_s == 60


@pytest.mark.parametrize("value", [None, True, [], {}, "°", 10**40, "1" * 40, "\ud800", {"a": [1]}])
@pytest.mark.parametrize(
    "key", ["gravity", "temp", "color", "timestamp", "mac", "gravity_unit", "temp_valid"]
)
def test_a_member_of_any_type_gives_reports_or_a_driver_error(key: str, value: Any) -> None:
    sent = {"color": "Red", "gravity": 1.045, "temp": 68, "timestamp": 1741980600, "mac": "a", key: value}
    for name in ("tilt", "tiltbridge", "tilt_tools", "rapt", "plaato", "brewblox", "grainfather"):
        try:
            found = reports(sent, name)
        except DriverError:
            continue
        assert all(isinstance(one.stable_id, str) for one in found)


@pytest.mark.parametrize(
    "text",
    [
        "2025-03-14T19:29:00Z", "2025-03-14T19:29:00.1234567Z", "2025-03-14T20:29:00+01:00",
        "2025-03-14 19:29:00 +00:00", "2025-03-14+19:29:00Z", "20250314T192900Z",
        "Fri, 14 Mar 2025 19:29:00 GMT",
        "1741980540", 1741980540000,
    ],
)  # fmt: skip
def test_rapt_created_date_in_any_form_with_a_zone(text: Any) -> None:
    found = report({"device_id": "x", "gravity": "1.045", "temperature": "19", "created_date": text})
    assert found.measured_at == pytest.approx(1_741_980_540, abs=1)


@pytest.mark.parametrize("text", ["03/04/2025 19:29:00", "soon", "", "0001-01-01T00:00:00+23:59", [1]])
def test_rapt_created_date_that_says_nothing_certain_costs_no_reading(text: Any) -> None:
    assert (
        report({"device_id": "x", "gravity": "1.045", "temperature": "19", "created_date": text}).gravity
        == "1.045"
    )


@pytest.mark.parametrize("prefix", ["", "@", "device_", "@device_", "@Device_"])
def test_rapt_names_with_any_prefix(prefix: str) -> None:
    sent = {
        f"{prefix}{name}": value
        for name, value in {
            "id": "g",
            "name": "Pill",
            "gravity": "1045.6",
            "temperature": "19",
            "battery": "3",
        }.items()
    }
    found = report(sent, "rapt")
    assert (found.stable_id, found.name, found.gravity, found.temp) == ("g", "Pill", "1045.6", "19")
    assert found.facts == {"battery_percent": 3}


def test_plaato_on_the_web_hook_path_is_no_rapt_pill() -> None:
    address = of_path(DRIVERS, "/api/webhook/abc")
    assert address is not None
    assert address.driver is rapt.DRIVER
    sent = {
        "device_name": "A",
        "device_id": 1,
        "temp_unit": "°C",
        "temp": "20.1",
        "sg": "1.031",
        "co2_volume": 1,
    }
    assert report(sent, hint="rapt", token="abc").family == "plaato"


def test_renaming_a_tilt_in_brewblox_does_not_split_it() -> None:
    state = {
        "key": "tilt",
        "type": "Tilt.state",
        "color": "Red",
        "mac": "A1",
        "data": {"specificGravity": 1.01},
    }
    sent = [
        {"topic": "brewcast/state/tilt/Red/A1", "payload": json.dumps({**state, "name": name})}
        for name in ("Keg", "Tun")
    ]
    keys = {one.device_key for payload in payloads_of(sent) for one in decode(payload).reports}
    assert keys == {"brewblox:A1"}
