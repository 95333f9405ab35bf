"""What golden cases cannot show of Tilts, their bridges, Pills and Plaato: replies, several readings."""

import json
from typing import Any

import pytest

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import BY_NAME, DRIVERS, decode, rapt, tilts
from gateway.drivers.addresses import of_path
from gateway.errors import DriverError
from tests.pure.drivers.messages import ARRIVAL, payloads_of

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
        ("Pale, dry,12", "RED", {"beername": "Pale, dry,12", "tiltcolor": "RED"}),
        ("Stout,12", "", None),  # without a colour it would write to `undefined-Beer`
    ],
)
def test_beer_is_echoed_with_its_colour_where_a_comma_is_in_it(
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
    assert tilts.split_color(sent) == expected


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


def test_one_clock_counts_for_all_tilts_of_a_list() -> None:
    sent = [("Red", "10:00"), ("Red", "10:10"), ("Purple", "10:00"), ("Purple", "11:00")]
    found = reports(
        [
            {"color": color, "temp": 20, "gravity": 1050, "timestamp": f"2025-03-14T{time}:00"}
            for color, time in sent
        ]
    )
    assert [one.age_s for one in found] == [3600.0, 3000.0, 3600.0, 0.0]


def test_a_list_of_a_day_is_read_and_each_reading_keeps_its_own_bytes() -> None:
    sent = [
        {"color": "Red", "temp": 20, "gravity": 1050, "timestamp": f"2025-03-14T10:00:00.{n:06}"}
        for n in range(8640)
    ]
    found = reports(sent, hint="tilt")
    assert len(found) == len(sent)
    assert found[7].raw == f"[{json.dumps(sent[7])}]".encode()
    assert reports(sent[:1], hint="tilt")[0].raw is None


def test_readings_of_more_devices_than_a_bridge_hears_are_refused() -> None:
    with pytest.raises(DriverError, match="65 devices"):
        reports([{"color": f"c{n}", "temp": 20, "gravity": 1050} for n in range(65)])


@pytest.mark.parametrize(
    ("sent", "temp", "unit"),
    [
        ([{"color": "Red", "temp": 48.89, "gravity": 1052}], "48.89", "C"),  # wort of 120 °F
        ([{"color": "Red", "temp": -1.5, "gravity": 1012}], "-1.5", "C"),
        ({"color": "RED", "temp": 29.0, "gravity": 1.012}, "29.0", "F"),  # just before it freezes
        ({"color": "RED", "temp": 68, "gravity": 1.012}, "68", "F"),
    ],
)
def test_pytilt_has_celsius_and_others_fahrenheit(sent: Any, temp: str, unit: str) -> None:
    [found] = reports(sent, hint="tilt_tools")
    assert (found.temp, found.temp_unit) == (temp, unit)


@pytest.mark.parametrize(
    ("driver", "sent"),
    [
        ("tilt", "Timepoint=45730.8&Temp=999&SG=1.006&Color=RED"),
        ("tilt", "Timepoint=45730.8&Temp=998.9&SG=1.006&Color=RED"),  # a Tilt Pi that shows Celsius
        ("tilt", "Timepoint=45730.8&Temp=1001.0&SG=1.006&Color=RED"),  # with its user's calibration
        ("stream", {"name": "Tilt RED", "temp": 999.0, "temp_unit": "F", "gravity": 1.006}),
        ("tilt_tools", [{"color": "Red", "temp": 537.22, "gravity": 1006}]),
        ("brewblox", {"key": "tilt", "data": {"Red": {"Temperature[degF]": 998, "Specific gravity": 1.006}}}),
    ],
)
def test_firmware_version_is_no_reading(driver: str, sent: Any) -> None:
    assert reports(sent, None if isinstance(sent, list) else driver, hint=driver) == []


@pytest.mark.parametrize(
    ("driver", "sent"),
    [
        ("tilt", "Timepoint=45730.8&Temp=684&SG=10.456&Color=RED"),
        ("tilt", {"SG": 10456, "Temp": 684, "Color": "RED"}),
        ("tilt_tools", {"color": "RED", "gravity": 10456, "temp": 684}),
        ("tilt_tools", {"specific_gravity_uncali": "10.456", "temperature_farenheit_uncali": "684.0"}),
        ("stream", {"name": "Tilt RED", "temp": 684, "temp_unit": "F", "gravity": 10456}),
    ],
)
def test_tilt_pro_by_a_program_that_does_not_know_it(driver: str, sent: Any) -> None:
    found = report(sent, driver, label="RED")
    assert found.temp is not None
    assert found.gravity in {"1.0456", "10456"}  # normalisation divides by 10,000
    assert (float(found.temp), found.temp_unit) == (68.4, "F")


def test_tilt_pro_of_99_9_degrees_is_no_firmware_version() -> None:
    assert report({"color": "RED", "gravity": 10456, "temp": 999}, "tilt_tools").temp == "99.9"


def test_wort_in_plato_is_no_tilt_pro() -> None:
    assert report({"name": "x", "temp": 68, "temp_unit": "F", "gravity": 10.4}, "stream").gravity == "10.4"


@pytest.mark.parametrize("named", ["tilt", "tilt_tools", "tiltbridge", "tiltbridge_junior"])
@pytest.mark.parametrize(
    ("sent", "family"),
    [
        ({"mdns_id": "t", "tilts": {"Red": {"gravity": "1.045", "temp": "68.0"}}}, "tiltbridge"),
        ({"tilts": [{"color": "Red", "raw_gravity": "1.02", "raw_temp": "66"}]}, "tiltbridge_junior"),
        ({"Beer": "Ale", "Temp": "68.0", "SG": "1.0450", "Color": "Red", "Email": ""}, "tilt"),
        ({"color": "red", "name": "Ale", "gravity": 1.045, "temp_fahrenheit": 68}, "tilt_tools"),
    ],
)
def test_path_of_one_program_takes_what_another_sends(named: str, sent: Any, family: str) -> None:
    assert report(sent, named).family == family


def test_tilt_without_a_colour_is_known_by_its_name_and_not_by_the_beer() -> None:
    sent = {"name": "PitchTiltred", "beer": "Saison", "temp": 68, "gravity": 1.045, "gravity_unity": "G"}
    found = report(sent, "tilt_tools")
    assert (found.stable_id, found.beer) == ("PitchTiltred", "Saison")


def test_one_tilt_has_one_key_whichever_way_its_mac_is_written() -> None:
    macs = ("f6:bd:d3:46:3a:05", "F6BDD3463A05", "F6-BD-D3-46-3A-05")
    found = [report(FORM.format(beer="", color=f"RED:{mac}"), "tilt") for mac in macs]
    assert {one.device_key for one in found} == {"mac:f6bdd3463a05"}
    assert [one.stable_id for one in found] == list(macs)


def test_percent_of_a_pico_is_a_percent() -> None:
    found = report("Timepoint=45730.8&SG=1.045&Temp=68.0&Color=RED&Beer=Lite 3%ABV&Comment=", "tilt")
    assert found.beer == "Lite 3%ABV"


def test_second_half_of_a_name_is_no_cloud_id() -> None:
    assert report(FORM.format(beer="Cream,Ale", color="RED"), "tilt").beer == "Cream,Ale"


@pytest.mark.parametrize(
    ("topic", "key"),
    [
        ("tiltbridge/tilt_Red", "tiltbridge:Red"),
        ("/tilt_Red", "tiltbridge:Red"),
        ("cellar/tilt_Red", "tiltbridge:Red@cellar"),
        ("home/garage/tilt_Red", "tiltbridge:Red@home/garage"),
    ],
)
def test_another_topic_is_another_bridge(topic: str, key: str) -> None:
    body = b'{"Color":"Red","fermunits":"SG","SG":"1.0450","Temp":"68.0","tempunits":"F"}'
    payload = Payload(body, ARRIVAL, f"mqtt {topic}", driver="tiltbridge", label="tilt_Red")
    assert [one.device_key for one in decode(payload).reports] == [key]


@pytest.mark.parametrize(("service", "key"), [("tilt", "brewblox:Red"), ("garage", "brewblox:Red@garage")])
def test_another_service_of_brewblox_has_other_tilts(service: str, key: str) -> None:
    sent = {"key": service, "data": {"Red": {"Temperature[degF]": 68, "Specific gravity": 1.045}}}
    assert report(sent, "brewblox").device_key == key


def test_battery_of_a_pill_that_imitates_an_ispindel_is_percent() -> None:
    sent = {"name": "Pill", "ID": "x", "angle": 0, "temperature": 20, "gravity": 1.04, "battery": 4.9}
    assert report(sent, "rapt").facts["battery_percent"] == 4.9


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


@pytest.mark.parametrize(
    ("query", "name"), [("A%2BB", "A+B"), ("A%20B", "A B"), ("A+B", "A B"), ("C%2B%2B+%25", "C++ %")]
)
def test_rapt_name_in_a_query(query: str, name: str) -> None:
    live = Payload(b"", ARRIVAL, "http", hint="rapt", query=f"name={query}&temp=19&gravity=1045.1")
    again = Payload(live.query.encode(), ARRIVAL, "http", driver="rapt")
    assert [one.name for payload in (live, again) for one in decode(payload).reports] == [name, name]


@pytest.mark.parametrize("name", ["Pill 100%", "IPA 50 %", "%"])
def test_rapt_name_with_a_per_cent_sign(name: str) -> None:
    sent = {"device_name": name, "gravity": "1045.6", "temperature": "19", "battery": "87.4 %"}
    found = report(sent, "rapt")
    assert (found.name, found.facts["battery_percent"]) == (name, 87.4)


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
