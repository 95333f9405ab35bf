"""Services with formats of their own, beyond the golden cases: lines, and what is no measurement."""

import contextlib
import time
from dataclasses import replace

import pytest

from gateway.domain.payload import Payload
from gateway.drivers import decode, wire
from gateway.errors import DriverError
from tests.pure.drivers.messages import ARRIVAL

LINE = b"measurement,host=a,device=1 gravity=1.05,temp=20"

LONGEST_S = 0.05


def test_lines_of_one_device_are_readings_at_their_own_times() -> None:
    body = b"\n".join(LINE + b" %d" % stamp for stamp in (1741979400, 1741979460000, 1741979520000000))
    reports = decode(Payload(body, ARRIVAL, "http /write")).reports
    assert [report.measured_at for report in reports] == [1741979400, 1741979460, 1741979520]


@pytest.mark.parametrize(
    "line", [b"m,host=my\\ tilt gravity=1", b"m gravity=1", b"m,t= g=1", b"m,a=b\\,c g\\ h=1"]
)
def test_lines_with_escapes_and_without_tags_are_line_protocol(line: bytes) -> None:
    assert wire.is_line_protocol(Payload(line, ARRIVAL, "http /ingest"))


@pytest.mark.parametrize(
    "body", [b"SG=1.05&Temp=68 5&Color=RED", b"name=a b&x=1", b"T: 20.5 D: 45.1", b"m,host=a", b""]
)
def test_forms_and_other_text_are_not(body: bytes) -> None:
    assert not wire.is_line_protocol(Payload(body, ARRIVAL, "http /ingest"))


@pytest.mark.parametrize("channel", ["http /ingest", "mqtt hydrometer/x"])
def test_an_empty_line_is_only_taken_by_tcp(channel: str) -> None:
    blank = Payload(b"\r\n", ARRIVAL, "tcp", hint="ispindel")
    assert decode(blank).reports == []
    with pytest.raises(DriverError):
        decode(replace(blank, channel=channel))


@pytest.mark.parametrize(
    ("driver", "body"),
    [
        ("smartpid", b'{"SSID":"home","client":"10.0.1.60","unit":"F","remote_enabled":true}'),
        ("smartpid", b'{"time":123,"event":"CH1 timer started"}'),
        ("smartpid", b'{"stop": true}'),
        ("smartpid", b"online"),
        ("esphome", b"offline"),
        ("itilt", b'{"0":"1","3":"1.08"}'),
    ],
)
def test_known_and_no_measurement(driver: str, body: bytes) -> None:
    assert decode(Payload(body, ARRIVAL, "mqtt", driver=driver, label="x")).reports == []


def test_canonical_names_win_over_words_in_others() -> None:
    body = b'{"tilt_gravity":"1.9","gravity":"1.05","room_temp":"30","temp_f":"68","tilt_rssi":"-60"}'
    [report] = decode(Payload(body, ARRIVAL, "mqtt", driver="esphome", label="vat")).reports
    assert (report.name, report.gravity, report.facts) == ("vat", "1.05", {"ext_temp": "30", "rssi": -60})


def test_a_name_that_ends_in_a_colour_is_kept() -> None:
    sent = Payload(b'{"sg":"1.05"}', ARRIVAL, "mqtt", driver="esphome", label="tilts/red")
    assert decode(sent).reports[0].stable_id == "tilts/red"


def test_coloured_rooms_are_no_hydrometers() -> None:
    body = b'{"blue_room_temperature":"-127","pink_lamp_wifi_signal":"-50"}'
    assert decode(Payload(body, ARRIVAL, "mqtt", driver="esphome", label="house")).reports == []


def test_two_nameless_devices_by_tcp_are_told_apart_by_their_address() -> None:
    sent = Payload(b"T: 19.8 D: 52.3 U: 3.96 G: 12.48\r\n", ARRIVAL, "tcp", hint="ispindel")
    keys = {decode(replace(sent, source=source)).reports[0].device_key for source in ("10.0.0.1", "10.0.0.2")}
    assert keys == {"tcontrol:10.0.0.1", "tcontrol:10.0.0.2"}


@pytest.mark.parametrize(
    "body",
    [
        b"m" + b",a=b" * 16_000,
        b"m a=" + b'"' * 64_000,
        b"m " + b"a\\," * 21_000,
        b"a b=1\n" * 10_000,
        b"a" + b" " * 64_000 + b"b c d",
        b"T:1\n" * 16_000,
        b"T:" * 32_000,
        b"cmd=set " + b"1 " * 32_000,
        b"".join(b'gravity{n="%d"} 1\n' % n for n in range(3000)),
    ],
    ids=lambda body: body[:12].decode(),
)
def test_no_text_of_64_kib_takes_long(body: bytes) -> None:
    for driver in ("influx", "prometheus", "fhem", "tcontrol", None):
        times = []
        for _ in range(3):  # the best of three: others use the machine, too
            began = time.process_time()
            with contextlib.suppress(DriverError):
                decode(Payload(body, ARRIVAL, "tcp", driver=driver))
            times.append(time.process_time() - began)
        assert min(times) < LONGEST_S, driver


@pytest.mark.parametrize(
    ("hint", "body"),
    [
        ("irelay", b'{"temperature":20.375,"unit":"celsius","token":"t"}'),
        ("brewpiless", b"beerTemp=18.4&gravity=1.0325"),
    ],
)
def test_two_nameless_devices_by_http_are_told_apart_by_their_address(hint: str, body: bytes) -> None:
    sent = [Payload(body, ARRIVAL, "http /ingest", source=f"192.168.1.{n}", hint=hint) for n in (7, 7, 8)]
    keys = [decode(payload).reports[0].device_key for payload in sent]
    assert keys == [f"{hint}:192.168.1.{n}" for n in (7, 7, 8)]
