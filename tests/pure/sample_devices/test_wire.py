"""Golden reports of all kinds, and the first ones' shape against the samples of devices.md."""

import re
from datetime import UTC

import pytest

from sample_devices.devices import KINDS, Targets, simulate_fleet
from sample_devices.wire.report import Address, HttpReport, MqttReport, Place, Report, Said
from tests.cases import each

from . import golden
from .golden import EVENING, GATEWAY, POINT, make

FIRST_KINDS = ["ispindel-http", "ispindel-mqtt", "gravitymon-http", "gravitymon-mqtt", "tiltpi-http"]
COLOURS = ["tiltbridge-mqtt", "tilt2mqtt", "brewblox-tilt", "raptpill2mqtt"]
NAMELESS = {  # nothing says who they are
    "brewpiless-get", "irelay", "home-assistant", "ispindel-tcontrol", "ispindel-tcontrol-6.0",
    "emanometer-influx", "emanometer-prometheus", "craftbeerpi",
}  # fmt: skip

# Bodies as printed in devices.md, sections 5.2 (the sample without a token), 6.2 and 7.2.
DOCUMENTED = {
    "ispindel-http": '{"name":"Dunkel_Box","ID":11054302,"angle":38.90418,"temperature":66.875,'
    '"temp_units":"F","battery":4.102177,"gravity":1.032741,"interval":1800,"RSSI":-58}',
    "gravitymon-http": '{"name": "gravmon7f3a2c", "ID": "7f3a2c", "token": "", "interval": 900, '
    '"temperature": 20.56, "temp_units": "C", "gravity": 1.0456, "velocity": -2.1, "angle": 45.123, '
    '"battery": 3.98, "RSSI": -70, "corr-gravity": 1.0450, "gravity-unit": "G", "run-time": 4.21 }',
    "tiltpi-http": "Timepoint=45730.8125&Temp=68&SG=1.045&Beer=Malt%20&%20Hops&Color=BLUE&Comment=",
}


@each("kind", KINDS)
def test_reports_are_the_golden_ones(kind: str) -> None:
    assert golden.rendered(make(kind)) == golden.path_of(kind).read_text("utf-8")


def test_every_golden_report_is_of_a_kind() -> None:
    assert {file.name for file in golden.GOLDEN.iterdir()} == {f"{kind}.txt" for kind in KINDS}


def said_by(kind: str, place: Place) -> Said:
    (said,) = make(kind, place).said
    return said


def body_of(report: Report) -> str:
    assert isinstance(report, HttpReport)
    return report.request.partition(b"\r\n\r\n")[2].decode()


def skeleton(body: str, decimals: bool) -> str:
    """Leave keys, order and spacing; of the values their kind, and their decimals where these are fixed."""
    body = re.sub(r'(?<=[:=])( ?)"[^"]*"', r"\1text", body).replace("RED", "BLUE")
    return re.sub(
        r"(?<=[:=]| )-?\d+(\.\d+)?", lambda n: "n" + re.sub(r"\d", "d", n[1] or "") * decimals, body
    )


@each("kind", DOCUMENTED)
def test_bodies_have_the_documented_shape(kind: str) -> None:
    decimals = kind == "gravitymon-http"
    assert skeleton(body_of(make(kind)), decimals) == skeleton(DOCUMENTED[kind], decimals)


@each("kind", DOCUMENTED)
def test_content_length_counts_bytes(kind: str) -> None:
    report = make(kind, Place(1, name="Bräu"))
    assert isinstance(report, HttpReport)
    head, _, body = report.request.partition(b"\r\n\r\n")
    assert f"ontent-{'l' if kind == 'tiltpi-http' else 'L'}ength: {len(body)}\r\n" in f"{head.decode()}\r\n"


@pytest.mark.parametrize(
    ("to", "host"),
    [
        (Address("h", 80), "h"),
        (Address("h", 443), "h"),
        (Address("h", 8080), "h:8080"),
        (Address("::1", 8080), "[::1]:8080"),
    ],
)
def test_host_header_has_the_port_only_where_it_is_unusual(to: Address, host: str) -> None:
    report = make("ispindel-http", to=to)
    assert isinstance(report, HttpReport)
    assert f"\r\nHost: {host}\r\n".encode() in report.request


@pytest.mark.parametrize("path", ["/", "api/ispindel", "/x?y=1"])
def test_request_target_is_sent_as_given(path: str) -> None:
    for kind in DOCUMENTED:
        report = make(kind, to=Address("h", 80, path))
        assert isinstance(report, HttpReport)
        assert report.request.startswith(f"POST {path} HTTP/1.1\r\n".encode())


def test_names_can_be_chosen() -> None:
    assert said_by("ispindel-http", Place(1, name="Dunkel Box")).name == "Dunkel_Box"
    assert said_by("gravitymon-mqtt", Place(1, name="cellar")).name == "cellar"
    qualified = make("tiltpi-http", Place(1, name="BLUE:aa:bb:cc:dd:ee:ff"))
    (said,) = qualified.said
    assert (said.name, said.device_id) == ("BLUE", "aa:bb:cc:dd:ee:ff")
    assert "&Color=BLUE:aa:bb:cc:dd:ee:ff&" in body_of(qualified)


@each(
    "kinds",
    [list(KINDS.keys() - NAMELESS), FIRST_KINDS, ["tiltpi-http"], ["tiltpi-http", "tiltpi-http"], COLOURS],
)
def test_no_two_devices_of_a_fleet_are_the_same(kinds: list[str]) -> None:
    fleet = simulate_fleet(kinds, 200, 7, Targets())
    said = [(each.kind, each.device.report(POINT, GATEWAY, EVENING).said) for each in fleet]
    assert len(
        {(kind, *((words.name, words.device_id) for words in all_said)) for kind, all_said in said}
    ) == (200)


def test_no_two_chip_ids_of_a_fleet_are_the_same() -> None:
    fleet = simulate_fleet(["ispindel-http", "gravitymon-http", "ispindel-tcp"], 300, 7, Targets())
    said = [words for each in fleet for words in each.device.report(POINT, GATEWAY, EVENING).said]
    assert len({words.device_id for words in said}) == 300


def test_no_two_mqtt_clients_of_a_fleet_knock_each_other_off() -> None:
    fleet = simulate_fleet(
        [kind for kind, made in KINDS.items() if made.transport == "mqtt"], 200, 7, Targets()
    )
    reports = [each.device.report(POINT, GATEWAY, EVENING) for each in fleet]
    clients = [each.login.client_id for each in reports if isinstance(each, MqttReport)]
    named = [client for client in clients if client]  # paho's publish has no id of its own
    assert len(set(named)) == len(named)


def test_first_eight_tilts_have_a_bare_colour_and_later_ones_a_mac() -> None:
    said = [said_by("tiltpi-http", Place(1, number, number)) for number in range(10)]
    assert [words.name for words in said[:8]] == [
        "RED", "GREEN", "BLACK", "PURPLE", "ORANGE", "BLUE", "YELLOW", "PINK",
    ]  # fmt: skip
    assert {words.device_id for words in said[:8]} == {None}
    assert (said[8].name, said[8].device_id) == ("RED", "f6:bd:01:00:00:08")
    assert (said[9].name, said[9].device_id) == ("GREEN", "f6:bd:01:00:00:09")


@each("kind", KINDS)
def test_same_place_point_and_moment_give_the_same_bytes(kind: str) -> None:
    assert make(kind, Place(5, 3, 1)) == make(kind, Place(5, 3, 1))
    if kind in FIRST_KINDS and kind != "tiltpi-http":  # a Tilt has no more identity than its colour
        assert said_by(kind, Place(5, 3, 1)).name != said_by(kind, Place(6, 3, 1)).name


def test_tilt_timepoint_is_the_only_thing_that_time_changes() -> None:
    other = EVENING.astimezone(UTC)
    for kind in FIRST_KINDS:
        late = KINDS[kind].factory(Place(1)).report(POINT, GATEWAY, other)
        assert (late == make(kind)) is (kind != "tiltpi-http")
