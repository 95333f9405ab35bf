"""Golden bytes of each kind, and their shape against the samples of devices.md."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from sample_devices.devices import KINDS, Targets, simulate_fleet
from sample_devices.fermentation import Fermentation
from sample_devices.wire.report import Address, HttpReport, Login, Message, MqttReport, Place, Report, Said

POINT = Fermentation("1|0").at(48 * 3600)
GATEWAY = Address("brewgw.lan", 8080)
# Node gives this serial for 19:30 at UTC-5; the flow itself rounds nothing.
EVENING = datetime(2025, 3, 14, 19, 30, tzinfo=timezone(timedelta(hours=-5)))

FIRST_KINDS = ["ispindel-http", "ispindel-mqtt", "gravitymon-http", "gravitymon-mqtt", "tiltpi-http"]
COLOURS = ["tiltbridge-mqtt", "tilt2mqtt", "brewblox-tilt", "raptpill2mqtt"]
NAMELESS = {"brewpiless-get", "irelay", "home-assistant", "ispindel-tcontrol"}  # nothing says who they are

ISPINDEL_HTTP = (
    b"POST /ingest/ispindel HTTP/1.1\r\n"
    b"Host: brewgw.lan:8080\r\n"
    b"User-Agent: ESP8266HTTPClient\r\n"
    b"Connection: keep-alive\r\n"
    b"Accept-Encoding: identity;q=1,chunked;q=0.1,*;q=0\r\n"
    b"Content-Type: application/json\r\n"
    b"Content-Length: 155\r\n"
    b"\r\n"
    b'{"name":"iSpindel100","ID":6017514,"angle":46.98097,"temperature":19.1875,"temp_units":"C",'
    b'"battery":4.144097,"gravity":7.375617,"interval":900,"RSSI":-65}'
)

GRAVITYMON_HTTP = (
    b"POST /ingest/gravitymon HTTP/1.1\r\n"
    b"Host: brewgw.lan:8080\r\n"
    b"User-Agent: ESP32HTTPClient\r\n"
    b"Connection: keep-alive\r\n"
    b"Accept-Encoding: identity;q=1,chunked;q=0.1,*;q=0\r\n"
    b"Content-Type: application/json\r\n"
    b"Content-Length: 261\r\n"
    b"\r\n"
    b'{"name": "gravmon5bd1ea", "ID": "5bd1ea", "token": "", "interval": 900, "temperature": 19.19, '
    b'"temp_units": "C", "gravity": 1.0293, "velocity": -12.4, "angle": 46.981, "battery": 4.14, '
    b'"RSSI": -65, "corr-gravity": 1.0291, "gravity-unit": "G", "run-time": 4.34 }'
)

TILTPI_HTTP = (
    b"POST /ingest/tilt HTTP/1.1\r\n"
    b"content-type: application/x-www-form-urlencoded; charset=utf-8\r\n"
    b"content-length: 84\r\n"
    b"Host: brewgw.lan:8080\r\n"
    b"Connection: close\r\n"
    b"\r\n"
    b"Timepoint=45730.81249999999&Temp=67&SG=1.029&Beer=Malt%20&%20Hops&Color=RED&Comment="
)

ISPINDEL_MQTT = (
    ("ispindel/iSpindel100/tilt", b"46.98097"),
    ("ispindel/iSpindel100/temperature", b"19.1875"),
    ("ispindel/iSpindel100/temp_units", b"C"),
    ("ispindel/iSpindel100/battery", b"4.144097"),
    ("ispindel/iSpindel100/gravity", b"7.375617"),
    ("ispindel/iSpindel100/interval", b"900"),
    ("ispindel/iSpindel100/RSSI", b"-65"),
)

GRAVITYMON_MQTT = (
    ("ispindel/gravmon5bd1ea/tilt", b"46.981"),
    ("ispindel/gravmon5bd1ea/temperature", b"19.19"),
    ("ispindel/gravmon5bd1ea/temp_units", b"C"),
    ("ispindel/gravmon5bd1ea/battery", b"4.14"),
    ("ispindel/gravmon5bd1ea/gravity", b"1.0293"),
    ("ispindel/gravmon5bd1ea/velocity", b"-12.4"),
    ("ispindel/gravmon5bd1ea/interval", b"900"),
    ("ispindel/gravmon5bd1ea/RSSI", b"-65"),
)

# Bodies as printed in devices.md, sections 5.2 (the sample without a token), 6.2 and 7.2.
DOCUMENTED = {
    "ispindel-http": '{"name":"Dunkel_Box","ID":11054302,"angle":38.90418,"temperature":66.875,'
    '"temp_units":"F","battery":4.102177,"gravity":1.032741,"interval":1800,"RSSI":-58}',
    "gravitymon-http": '{"name": "gravmon7f3a2c", "ID": "7f3a2c", "token": "", "interval": 900, '
    '"temperature": 20.56, "temp_units": "C", "gravity": 1.0456, "velocity": -2.1, "angle": 45.123, '
    '"battery": 3.98, "RSSI": -70, "corr-gravity": 1.0450, "gravity-unit": "G", "run-time": 4.21 }',
    "tiltpi-http": "Timepoint=45730.8125&Temp=68&SG=1.045&Beer=Malt%20&%20Hops&Color=BLUE&Comment=",
}


def make(kind: str, place: Place = Place(1), to: Address = GATEWAY) -> Report:  # noqa: B008 - immutable
    return KINDS[kind].factory(place).report(POINT, to, EVENING)


def said_by(kind: str, place: Place) -> Said:
    (said,) = make(kind, place).said
    return said


def body_of(report: Report) -> str:
    assert isinstance(report, HttpReport)
    return report.request.partition(b"\r\n\r\n")[2].decode()


@pytest.mark.parametrize(
    ("kind", "request_bytes", "said"),
    [
        ("ispindel-http", ISPINDEL_HTTP, Said("iSpindel100", "6017514", "7.375617", "P", "19.1875", "C")),
        ("gravitymon-http", GRAVITYMON_HTTP, Said("gravmon5bd1ea", "5bd1ea", "1.0293", "G", "19.19", "C")),
        ("tiltpi-http", TILTPI_HTTP, Said("RED", None, "1.029", "G", "67", "F")),
    ],
)
def test_http_bytes(kind: str, request_bytes: bytes, said: Said) -> None:
    assert make(kind) == HttpReport((said,), request_bytes)


@pytest.mark.parametrize(
    ("kind", "login", "messages", "said"),
    [
        (
            "ispindel-mqtt",
            Login("iSpindel100", 15, user="", password=""),
            ISPINDEL_MQTT,
            Said("iSpindel100", None, "7.375617", "P", "19.1875", "C"),
        ),
        (
            "gravitymon-mqtt",
            Login("gravmon5bd1ea", 10),
            GRAVITYMON_MQTT,
            Said("gravmon5bd1ea", None, "1.0293", "G", "19.19", "C"),
        ),
    ],
)
def test_mqtt_messages(kind: str, login: Login, messages: tuple[tuple[str, bytes], ...], said: Said) -> None:
    assert make(kind) == MqttReport((said,), login, tuple(Message(*message) for message in messages))


def skeleton(body: str, decimals: bool) -> str:
    """Leave keys, order and spacing; of the values their kind, and their decimals where these are fixed."""
    body = re.sub(r'(?<=[:=])( ?)"[^"]*"', r"\1text", body).replace("RED", "BLUE")
    return re.sub(
        r"(?<=[:=]| )-?\d+(\.\d+)?", lambda n: "n" + re.sub(r"\d", "d", n[1] or "") * decimals, body
    )


@pytest.mark.parametrize("kind", DOCUMENTED)
def test_bodies_have_the_documented_shape(kind: str) -> None:
    decimals = kind == "gravitymon-http"
    assert skeleton(body_of(make(kind)), decimals) == skeleton(DOCUMENTED[kind], decimals)


@pytest.mark.parametrize("kind", DOCUMENTED)
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("kind", KINDS)
def test_same_place_point_and_moment_give_the_same_bytes(kind: str) -> None:
    assert make(kind, Place(5, 3, 1)) == make(kind, Place(5, 3, 1))
    if kind in FIRST_KINDS and kind != "tiltpi-http":  # a Tilt has no more identity than its colour
        assert said_by(kind, Place(5, 3, 1)).name != said_by(kind, Place(6, 3, 1)).name


def test_tilt_timepoint_is_the_only_thing_that_time_changes() -> None:
    other = EVENING.astimezone(UTC)
    for kind in FIRST_KINDS:
        late = KINDS[kind].factory(Place(1)).report(POINT, GATEWAY, other)
        assert (late == make(kind)) is (kind != "tiltpi-http")
