"""Services with formats of their own, beyond the golden cases: replies, lines, and what is no measurement."""

import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.clock import SystemClock
from gateway.domain.payload import Payload
from gateway.drivers import decode, wire
from gateway.errors import DriverError
from gateway.events import StoredNotices
from gateway.intake.intake import Intake, Taken
from gateway.services.access import Access
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.http import HttpIngest
from tests.pure.drivers.messages import ARRIVAL

BRICKS = b'{"apikey":"k","type":"ispindel","chipid":"aa","s_number_wort_0":12.4,"s_number_temp_0":19.8}'
LINE = b"measurement,host=a,device=1 gravity=1.05,temp=20"

INDEX_BYTES = 255
"""The iSpindel looks for the number with an index of eight bits, up to the first closing bracket."""

LONGEST_S = 0.05


class Bench:
    """The device paths on a real server; `interval_s` is what the user has set for the device."""

    interval_s: int | None = None

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.intake = Intake(store, StoredNotices(), Stats(), SystemClock())

    async def take(self, payload: Payload) -> Taken:
        return replace(await self.intake.take(payload), interval_s=self.interval_s)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = SqliteStore(tmp_path)
    await store.open()
    bench = Bench(store)
    await bench.intake.start()
    yield bench
    await store.close()


@pytest.fixture
async def client(bench: Bench) -> AsyncIterator[TestClient[web.Request, web.Application]]:
    access = Access(bench.store, SystemClock())
    await access.start()
    ingest = HttpIngest(bench, access, SystemClock())  # type: ignore[arg-type]  # an Intake but for the interval
    app = web.Application()
    app.add_routes(ingest.alias_routes())
    client = TestClient(TestServer(app))
    await client.start_server()
    yield client
    await client.close()


@pytest.mark.parametrize(("interval_s", "pause_ms"), [(None, 900_000), (1800, 1_800_000)])
async def test_bricks_are_told_when_to_come_again(
    bench: Bench,
    client: TestClient[web.Request, web.Application],
    interval_s: int | None,
    pause_ms: int,
) -> None:
    bench.interval_s = interval_s
    answer = await client.post("/api/iot/v1", data=BRICKS)
    text = await answer.text()
    assert json.loads(text)["error"] == 0
    start = text.index("next_request_ms") + len("next_request_ms") + 2
    end = text.index("}", start)
    assert end <= INDEX_BYTES
    assert int(text[start:end].split(",")[0]) == pause_ms


@pytest.mark.parametrize(
    ("path", "body", "status", "name"),
    [
        ("/write?db=x", LINE, 204, "a"),
        ("/api/v2/write?org=o&bucket=b", LINE, 204, "a"),
        ("/metrics/job/ispindel/instance/000", b"temperature 20\ngravity 1.05\n", 202, "ispindel/000"),
    ],
)
async def test_status_and_name_of_a_path(
    bench: Bench,
    client: TestClient[web.Request, web.Application],
    path: str,
    body: bytes,
    status: int,
    name: str,
) -> None:
    answer = await client.post(path, data=body)
    assert answer.status == status
    lines = bench.store.readings.json_lines(last=9, device_id=None, session_id=None)
    assert [json.loads(line)["name"] async for line in lines] == [name]


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
            began = time.perf_counter()
            with contextlib.suppress(DriverError):
                decode(Payload(body, ARRIVAL, "tcp", driver=driver))
            times.append(time.perf_counter() - began)
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
