"""Device paths over real sockets: answers that firmware takes, neighbours, keys, limits."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import test_utils, web
from aiohttp.test_utils import TestClient, TestServer
from yarl import URL

from gateway.clock import SystemClock
from gateway.errors import QuotaFull, ShareUsedUp, StoreUnavailable
from gateway.events import StoredNotices
from gateway.http import short_way
from gateway.http.guard import GuardedSite, Refusals
from gateway.http.middleware import SERVICES, errors_middleware, key_middleware
from gateway.intake.intake import Intake
from gateway.network import Admission, Peer
from gateway.services.access import Access
from gateway.services.build import build_services
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from gateway.transports import http as http_ingest
from gateway.transports.http import BODY_BYTES, HttpIngest
from tests.cases import each
from tests.patience import PATIENCE_S

SPINDLE = '{"name":"iSpindel042","ID":5312877,"angle":52.3,"temperature":19.8,"gravity":12.48,"interval":900}'
GRAVITYMON = (
    '{"name":"g","ID":"7f3a2c","temperature":20.56,"gravity":1.0456,"corr-gravity":1.0450,"run-time":4.2}'
)
TILT = "Timepoint=45730.8125&Temp=68&SG=1.045&Beer=West%20Coast%20IPA,4821&Color=RED&Comment="


BOTH_WAYS = pytest.mark.parametrize("bench", ["through aiohttp", "the short way"], indirect=True)
"""For tests whose posts are plain: `tests/system/http/test_short_way.py` compares the two ways."""


class Bench:
    """The device paths on a real server, with a real store behind them."""

    def __init__(self, store: SqliteStore, *, short: bool = False) -> None:
        self.store = store
        self._short = short
        self.access = Access(store, SystemClock())
        self.intake = Intake(store, StoredNotices(), Stats(), SystemClock())

    async def start(self) -> TestClient[web.Request, web.Application]:
        await self.access.start()
        await self.intake.start()
        app = web.Application(middlewares=[errors_middleware, key_middleware])
        app[SERVICES] = replace(build_services(self.store, Path(), SystemClock()), access=self.access)
        ingest = HttpIngest(self.intake, self.access, SystemClock(), Admission(SystemClock()))
        app.add_routes([*ingest.routes(), *ingest.alias_routes()])
        self.client = TestClient(TestServer(app), auto_decompress=False)

        def guarded(runner: web.BaseRunner, sock: socket.socket, **_: object) -> GuardedSite:
            return GuardedSite(runner, sock, Refusals(SystemClock()), way=ingest.short_way())

        with pytest.MonkeyPatch.context() as patch:
            if self._short:
                patch.setattr(test_utils, "SockSite", guarded)
            await self.client.start_server()
        return self.client

    async def lines(self) -> list[dict[str, Any]]:
        found = self.store.readings.json_lines(last=1000, device_id=None, session_id=None)
        return [json.loads(line) async for line in found]


@pytest.fixture
async def bench(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    store = SqliteStore(tmp_path)
    await store.open()
    bench = Bench(store, short=getattr(request, "param", "") == "the short way")
    await bench.start()
    yield bench
    await bench.client.close()
    await store.close()


@pytest.fixture
def from_the_internet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_ingest, "peer_of", lambda _: Peer("8.8.8.8"))
    monkeypatch.setattr(short_way, "address_of", lambda _: "8.8.8.8")


@BOTH_WAYS
@pytest.mark.parametrize(
    ("path", "body", "key"),
    [
        ("/ingest/ispindel", SPINDLE, "ispindel:5312877"),
        ("/ingest/ispindel/", SPINDLE, "ispindel:5312877"),
        ("/ingest/gravitymon", GRAVITYMON, "gravitymon:7f3a2c"),
        ("/ingest/tilt", TILT, "tilt:RED"),
        ("/ingest", SPINDLE, "ispindel:5312877"),
        ("/", SPINDLE, "ispindel:5312877"),
        ("/ingest", GRAVITYMON, "gravitymon:7f3a2c"),
        ("/", TILT, "tilt:RED"),
        ("/ingest/", TILT, "tilt:RED"),
    ],
)
async def test_paths(bench: Bench, path: str, body: str, key: str) -> None:
    answer = await bench.client.post(path, data=body)
    assert (answer.status, answer.reason) == (200, "OK")
    assert answer.content_type == "application/json"
    found = await answer.json()
    assert (found["result"], found["message"]) == ("success", "success")
    (device,) = await bench.store.devices.all()
    assert device.key == key


async def test_get_template_of_gravitymon(bench: Bench) -> None:
    query = "name=g&id=7f3a2c&temperature=20.56&temp-units=C&gravity=1.0456&corr-gravity=1.0450&rssi=-70"
    assert (await bench.client.get(f"/ingest/gravitymon?{query}")).status == 200
    (line,) = await bench.lines()
    assert (line["gravity"], line["corr_gravity"], line["rssi"]) == ("1.0456", "1.0450", -70)


THINGSPEAK = "field1=52.3&field2=19.8&field3=C&field4=4.1&field5=12.48&field6=900&field7=-61&headers=false"


def entry_id_of(answer: bytes) -> int:
    """What mathworks/thingspeak-arduino makes of it (finishWrite, getHTTPResponse; String.toInt)."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    _, found, length = head.partition(b"Content-Length:")
    assert found
    text = rest[: int(length.split(b"\r\n")[0])]
    digits = re.match(rb"\s*-?\d+", text)
    return int(digits[0]) if digits else 0


@pytest.mark.parametrize(
    ("body", "is_taken"),
    [
        (THINGSPEAK, True),
        ("field1=beer&field2=7", True),  # in quarantine, and no device does better on a no
        ("version=1.0&api_key=K", False),  # Fermentrack without a controller
    ],
)
async def test_thingspeaks_answer_is_the_number_of_the_entry(bench: Bench, body: str, is_taken: bool) -> None:
    for _ in range(2):  # what comes again is taken, too
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.client.port)
        head = (
            "POST /update HTTP/1.1\r\nHost: api.thingspeak.com\r\nUser-Agent: tslib-arduino/2.0.1\r\n"
            "X-THINGSPEAKAPIKEY: ABCDEFGHIJKLMNOP\r\nConnection: close\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body.encode())
        answer = await reader.read()
        writer.close()
        assert (0 < entry_id_of(answer) < 2**31) == is_taken


async def test_thingspeaks_json_path_answers_json(bench: Bench) -> None:
    answer = await bench.client.post("/update.json", data=THINGSPEAK)
    assert (await answer.json())["message"] == "success"


async def test_a_browser_gets_a_hint_and_leaves_nothing_behind(bench: Bench) -> None:
    answer = await bench.client.get("/")
    assert (answer.status, "takes readings" in await answer.text()) == (200, True)
    assert await bench.store.quarantine.count() == 0


@BOTH_WAYS
async def test_tilt_pi_hears_what_makes_it_clear_its_comment(bench: Bench) -> None:
    answer = await (await bench.client.post("/ingest/tilt", data=TILT)).json()
    assert (answer["beername"], answer["tiltcolor"]) == ("West Coast IPA,4821", "RED")
    without_id = TILT.replace(",4821", "")
    assert "beername" not in await (await bench.client.post("/ingest/tilt", data=without_id)).json()


async def test_raw_bytes_on_the_wire(bench: Bench) -> None:
    """Brew Bubbles and old TiltBridge compare the very text of the status line."""
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.client.port)
    head = f"POST /ingest/ispindel HTTP/1.0\r\nHost: gateway\r\nContent-Length: {len(SPINDLE)}\r\n\r\n"
    writer.write(head.encode() + SPINDLE.encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
    assert b"Content-Length: " in answer
    assert b"chunked" not in answer


@BOTH_WAYS
async def test_not_understood_is_200_and_kept(bench: Bench) -> None:
    answer = await bench.client.post("/ingest", data="hello")
    assert answer.status == 200
    assert await bench.store.quarantine.count() == 1


@BOTH_WAYS
@each("error, wait", [(StoreUnavailable, "5"), (QuotaFull, "60"), (ShareUsedUp, "600")])
async def test_503_where_nothing_could_be_stored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: type[StoreUnavailable], wait: str
) -> None:
    async def refuse(*_: object) -> None:
        raise error

    with monkeypatch.context() as refusing:
        refusing.setattr(bench.store, "take", refuse)
        answer = await bench.client.post("/ingest/ispindel", data=SPINDLE)
    assert (answer.status, answer.headers["Retry-After"]) == (503, wait)


@pytest.mark.parametrize("size", [BODY_BYTES, BODY_BYTES + 1])
@pytest.mark.parametrize("chunked", [False, True])
async def test_body_limit(bench: Bench, size: int, chunked: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * size

    answer = await bench.client.post("/ingest", data=pieces() if chunked else b"x" * size)
    assert answer.status == (200 if size == BODY_BYTES else 413)
    if size > BODY_BYTES:
        assert set(await answer.json()) == {"message", "detail"}


@BOTH_WAYS
async def test_compressed_bodies_are_refused(bench: Bench) -> None:
    answer = await bench.client.post("/ingest", data=b"x", headers={"Content-Encoding": "gzip"})
    assert answer.status == 415


@BOTH_WAYS
@pytest.mark.usefixtures("from_the_internet")
async def test_strangers_need_a_key_in_header_or_path(bench: Bench) -> None:
    key = await bench.access.add("far", frozenset({"ingest"}))
    read_only = await bench.access.add("reader", frozenset({"read"}))
    post = bench.client.post
    assert (await post("/ingest/ispindel", data=SPINDLE)).status == 401
    assert (await post("/ingest/ispindel", data=SPINDLE, headers={"X-API-KEY": read_only})).status == 401
    assert (await post(f"/ingest/ispindel/{read_only}", data=SPINDLE)).status == 401
    assert await bench.lines() == []
    assert (await post("/ingest/ispindel", data=SPINDLE, headers={"x-api-key": key})).status == 200
    assert (await post(f"/ingest/ispindel/{key}", data=SPINDLE)).status == 200
    assert (await post(f"/ingest/{key}", data=GRAVITYMON)).status == 200
    assert len(await bench.lines()) == 2


async def test_neighbours_are_limited_and_loopback_is_not(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {(await bench.client.post("/ingest", data="x")).status for _ in range(100)} == {200}
    monkeypatch.setattr(http_ingest, "peer_of", lambda _: Peer("192.168.1.7"))
    assert {(await bench.client.post("/ingest", data="x")).status for _ in range(60)} == {200}
    answer = await bench.client.post("/ingest", data="x")
    for _ in range(600):  # on a slow machine two readings a second come back meanwhile
        if answer.status == 429:
            break
        answer = await bench.client.post("/ingest", data="x")
    assert answer.status == 429
    assert int(answer.headers["Retry-After"]) >= 1


@BOTH_WAYS
async def test_web_pages_of_other_sites_cannot_report(bench: Bench) -> None:
    answer = await bench.client.post("/ingest", data=SPINDLE, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 403


@pytest.mark.parametrize("path", ["/ingest/nothing", "/ingest/ispindel/x", "/elsewhere", "/ingest/tilt/a/b"])
async def test_paths_that_no_device_uses(bench: Bench, path: str) -> None:
    answer = await bench.client.post(path, data=SPINDLE)
    assert (answer.status, await answer.json()) == (
        404,
        {"message": "not-found", "detail": "no records found"},
    )


async def test_a_device_path_needs_post_put_or_get(bench: Bench) -> None:
    assert (await bench.client.put("/ingest/ispindel", data=SPINDLE)).status == 200
    answer = await bench.client.delete("/ingest/ispindel")
    assert answer.status == 405
    assert set(answer.headers["Allow"].replace(" ", "").split(",")) == {"GET", "POST", "PUT"}


@pytest.mark.parametrize("way", ["query", "headers"])
@pytest.mark.parametrize("body", ['{"gravity":"1045.6","temperature":"19.6"}', "{}", ""])
async def test_parameters_of_rapts_web_hook_come_beside_the_body(bench: Bench, way: str, body: str) -> None:
    for number in ("1", "2"):
        beside = {"device_id": f"g{number}", "device_name": f"Pill {number}"}
        if "gravity" not in body:
            beside |= {"gravity": "1045.6", "@temperature": "19.6"}
        if way == "headers":
            beside = {name.lstrip("@"): value for name, value in beside.items()}
            answer = await bench.client.post("/rapt", data=body, headers=beside)
        else:
            answer = await bench.client.post("/ingest/rapt", data=body, params={**beside, "token": "x"})
        assert answer.status == 200
    lines = await bench.lines()
    assert [(line["name"], line["gravity"], line["temp"]) for line in lines] == [
        ("Pill 1", "1.0456", "19.6"),
        ("Pill 2", "1.0456", "19.6"),
    ]
    assert {device.key for device in await bench.store.devices.all()} == {"rapt:g1", "rapt:g2"}


async def test_rapts_web_hook_by_get_with_headers_only(bench: Bench) -> None:
    said = {"device_id": "g", "gravity": "1.045", "temperature": "19"}
    assert (await bench.client.get("/ingest/rapt", headers=said)).status == 200
    assert [line["gravity"] for line in await bench.lines()] == ["1.045"]


async def test_pytilts_list_of_half_a_day_and_the_longer_one_after_it(bench: Bench) -> None:
    """It posts all that it could not post before, and again with more if the answer gets lost."""
    sent = [
        {
            "color": "Red",
            "temp": 20.5,
            "gravity": 1050,
            "timestamp": f"2025-03-14T10:00:00.{n:06}",
        }
        for n in range(1300)
    ]
    for count in (1200, 1300):
        body = json.dumps(sent[:count]).encode()
        assert len(body) > BODY_BYTES
        assert (await bench.client.post("/API/tilt", data=body)).status == 200
    assert await bench.store.readings.count() == 1300
    assert await bench.store.quarantine.count() == 0


@BOTH_WAYS
async def test_comment_that_tilt_pi_sends_again_and_again_is_flagged(bench: Bench) -> None:
    form = "Timepoint=45730.8{place}&Temp=68&SG=1.045&Beer=Untitled&Color=RED&Comment={comment}"
    said = ("", "dry hop", "dry hop", "dry hop", "", "dry hop", "cold crash")
    for place, comment in enumerate(said):
        if place == 3:
            await bench.intake.start()  # as after a restart
        await bench.client.post("/ingest/tilt", data=form.format(place=place, comment=comment))
    found = sorted(await bench.lines(), key=lambda line: line["_id"]["$oid"])
    assert [line["comment"] for line in found] == list(said)
    again = ["comment_repeated" in line["flags"] for line in found]
    assert again == [False, False, True, True, False, False, False]


async def test_a_nul_in_the_path_is_no_nul_in_a_name(bench: Bench) -> None:
    await bench.client.post("/iot/%00/tilt", data='{"SG":1.045,"Temp":68,"Unit":"F"}')
    assert [device.key for device in await bench.store.devices.all()] == ["grainfather:\ufffd"]


@pytest.mark.parametrize(
    "path", ["/tilt", "/brewpi-api.php", "/brewpiless", "/fermentrack", "/api/iot/v1", "/API/tilt"]
)
async def test_spindle_at_the_alias_of_another_family_is_read(bench: Bench, path: str) -> None:
    await bench.client.post(path, data=SPINDLE)
    assert [device.key for device in await bench.store.devices.all()] == ["ispindel:5312877"]


@pytest.mark.parametrize(
    "header",
    ["X-API-KEY: {}", "X-Webhook-Token: {}", "Authorization: Token {}", "Authorization: Bearer {}"],
)
@pytest.mark.usefixtures("from_the_internet")
async def test_strangers_may_put_their_key_where_their_firmware_can(bench: Bench, header: str) -> None:
    key = await bench.access.add("cloud", frozenset({"ingest"}))
    name, _, value = header.format(key).partition(": ")
    answer = await bench.client.post("/ingest", data=SPINDLE, headers={name: value})
    assert answer.status == 200
    assert (await bench.client.post("/ingest", data=SPINDLE, headers={name: value + "x"})).status == 401


@pytest.mark.parametrize("start", ["", "\r\n", " ", "\ufeff"])
async def test_body_beside_parameters_may_begin_with_anything(bench: Bench, start: str) -> None:
    body = start + '{"gravity":"1045.6","temperature":"19.6"}'
    await bench.client.post("/ingest/rapt?name=Pill9&temperature=3", data=body.encode())
    assert [(line["name"], line["gravity"], line["temp"]) for line in await bench.lines()] == [
        ("Pill9", "1.0456", "19.6")
    ]


@pytest.mark.parametrize("name", ["Gärtank".encode("latin-1"), "Gärtank".encode()])
async def test_header_of_any_encoding(bench: Bench, name: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.client.port)
    headers = b"Host: x\r\ngravity: 1.045\r\ntemperature: 19\r\nConnection: close\r\n"
    writer.write(b"GET /ingest/rapt HTTP/1.1\r\n" + headers + b"device_name: " + name + b"\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
    writer.close()
    assert [line["name"] for line in await bench.lines()] == ["Gärtank"]


@pytest.mark.usefixtures("from_the_internet")
async def test_key_in_the_path_counts_whatever_a_header_says(bench: Bench) -> None:
    key = await bench.access.add("cloud", frozenset({"ingest"}))
    for headers in ({"Authorization": "Basic dTpw"}, {"X-Webhook-Token": "other"}):
        answer = await bench.client.post(f"/ingest/ispindel/{key}", data=SPINDLE, headers=headers)
        assert answer.status == 200


def everything_stored(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.name.startswith("gateway.sql"))


async def test_a_key_in_an_address_is_not_stored(bench: Bench, tmp_path: Path) -> None:
    key = await bench.access.add("cloud", frozenset({"ingest"}))
    odd = key.replace("_", "%5F").replace("-", "%2d")
    for text in (key, odd):
        reading = f"name=g{len(text)}&ID=7f3a2c&temperature=20.5&gravity=1.045&token={text}"
        for path in (f"/ingest/gravitymon?{reading}", f"/ingest?nonsense=1&api_key={text}"):
            assert (await bench.client.get(URL(path, encoded=True))).status == 200
    assert (await bench.client.post(f"/ingest/ispindel/{key}", data=b"nonsense")).status == 200
    kept = [item.query for item in await bench.store.quarantine.newest(10)]
    assert kept == [f"nonsense=1&api_key={key[:10]}"] * 2 + [""]
    assert len(await bench.lines()) == 2
    stored = everything_stored(tmp_path)
    assert b"gravity=1.045" in stored
    assert not [part for part in (key, odd) if part[10:].encode() in stored]


async def test_a_long_body_that_trickles_in_keeps_no_other_source_waiting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, ends = asyncio.Event(), asyncio.Event()

    def sender(request: web.Request) -> Peer:
        arrived.set()
        return Peer(request.headers["Sender"])

    async def trickle() -> AsyncIterator[bytes]:
        yield b"["
        await ends.wait()

    monkeypatch.setattr(http_ingest, "peer_of", sender)
    length = str(2 * BODY_BYTES)
    slow = asyncio.create_task(
        bench.client.post("/ingest", data=trickle(), headers={"Sender": "10.0.0.1", "Content-Length": length})
    )
    async with asyncio.timeout(PATIENCE_S):
        await arrived.wait()
        reading = {"color": "Red", "temp": 20.5, "gravity": 1050}
        body = json.dumps([reading | {"timestamp": f"2025-03-14T10:00:00.{n:06}"} for n in range(900)])
        answer = await bench.client.post("/API/tilt", data=body, headers={"Sender": "10.0.0.2"})
    assert (len(body) > BODY_BYTES, answer.status) == (True, 200)
    ends.set()
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


async def test_long_bodies_are_lists_and_taken_one_by_one(bench: Bench) -> None:
    reading = {"color": "Red", "temp": 20.5, "gravity": 1050}
    bodies = [
        json.dumps([reading | {"timestamp": f"2025-03-14T1{n}:00:00.{place:06}"} for place in range(900)])
        for n in range(3)
    ]
    answers = await asyncio.gather(*(bench.client.post("/API/tilt", data=body) for body in bodies))
    assert [answer.status for answer in answers] == [200] * 3
    assert await bench.store.readings.count() == 2700
    assert (await bench.client.post("/API/tilt", data="x" * (BODY_BYTES + 1))).status == 413
