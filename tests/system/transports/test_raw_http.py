"""What ESP and MicroPython clients really write, byte by byte over a socket, and the readings that result."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway import site
from gateway.clock import SystemClock
from gateway.http.guard import SERVER, GuardedSite, Refusals
from gateway.network import Admission
from gateway.services.build import Services, build_services
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.http import HttpIngest
from tests.patience import PATIENCE_S

SPINDLE = (
    '{"name":"iSpindel042","ID":5312877,"angle":52.3,"temperature":19.8125,"temp_units":"C",'
    '"battery":3.96,"gravity":12.48312,"interval":900,"RSSI":-67}'
)
GRAVITYMON_QUERY = (
    "name=g&id=7f3a2c&token=&interval=900&temperature=20.56&temp-units=C&gravity=1.0456&angle=45.1"
    "&battery=3.98&rssi=-70&corr-gravity=1.0450&gravity-unit=G&run-time=4.21"
)
TILT = "Timepoint=45730.8125&SG=1.045&Temp=68&Color=RED&Beer={}&Comment=P"
HOST = "Host: gateway\r\n"
JSON_TYPE = "Content-Type: application/json\r\n"
FORM = "content-type: application/x-www-form-urlencoded; charset=utf-8\r\n"
CLOSE = "Connection: close\r\n"


@dataclass
class Bench:
    """The whole site behind the guard on a real socket, with a real store."""

    services: Services
    port: int
    key: str

    async def ask(self, *segments: bytes) -> bytes:
        """Everything that is answered until the connection is closed."""
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            for segment in segments:
                writer.write(segment)
                await writer.drain()
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return answer

    async def line(self) -> dict[str, Any]:
        """The only reading there is."""
        found = self.services.store.readings.json_lines(last=10, device_id=None, session_id=None)
        [line] = [json.loads(line) async for line in found]
        assert await self.services.store.quarantine.count() == 0
        return dict(line)

    async def is_empty(self) -> bool:
        found = self.services.store.readings.json_lines(last=10, device_id=None, session_id=None)
        return not [line async for line in found] and await self.services.store.quarantine.count() == 0


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock = SystemClock()
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, clock)
    await services.access.start()
    await services.intake.start()
    key = await services.access.add("reader", frozenset({"read"}))
    ingest = HttpIngest(services.intake, services.access, clock, Admission(clock))
    runner = web.AppRunner(site.build(services, ingest.routes(), ingest.alias_routes()), **SERVER)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    await GuardedSite(runner, listener, Refusals(clock)).start()
    yield Bench(services, listener.getsockname()[1], key)
    await runner.cleanup()
    await store.close()


def post(
    target: str = "/ingest/ispindel",
    body: str | bytes = SPINDLE,
    *,
    headers: str = HOST + JSON_TYPE + CLOSE,
    method: str = "POST",
    version: str = "1.1",
    length: int | None = None,
) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    declared = len(content) if length is None else length
    head = f"{method} {target} HTTP/{version}\r\n{headers}Content-Length: {declared}\r\n\r\n"
    return head.encode() + content


def get(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\n{HOST}{CLOSE}\r\n".encode()


def is_success(answer: bytes, version: str = "1.1") -> bool:
    """Brew Bubbles and TiltBridge 1.0 compare the very text of the first line."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.startswith(f"HTTP/{version} 200 OK\r\n".encode()) and json.loads(body)["result"] == "success"


ODD_POSTS = {
    "plain": post(),
    "no slash in front": post("ingest/ispindel"),
    "no slash and a query": post("ingest/ispindel?token=x y"),
    "no slash on an alias": post("api/ispindel"),
    "two blanks": post(" /ingest/ispindel "),
    "put": post(method="PUT"),
    "no content type": post(headers=HOST + CLOSE),
    "empty content type": post(headers=f"{HOST}Content-Type: \r\n{CLOSE}"),
    "wrong content type": post(headers=f"{HOST}Content-Type: x-www-form-urlencoded\r\n{CLOSE}"),
    "content type of a form": post(headers=HOST + FORM + CLOSE),
    "content type that is none": post(headers=f"{HOST}Content-Type: ;;=?\r\n{CLOSE}"),
    "content type with a blank in its name": post(headers=f"{HOST}Content Type: application/json\r\n{CLOSE}"),
    "two content types": post(headers=HOST + JSON_TYPE + FORM + CLOSE),
    "header without a colon": post(headers=f"{HOST}application/json\r\n{CLOSE}"),
    "user agent with umlaut": post(headers=f"{HOST}User-Agent: Gärung\r\n{CLOSE}"),
    "host with port": post(headers=f"Host: 192.168.1.5:8080\r\n{CLOSE}"),
    "host of a cloud": post(headers=f"Host: industrial.api.ubidots.com\r\n{CLOSE}"),
    "empty host": post(headers=f"Host:\r\n{CLOSE}"),
    "no host": post(headers=JSON_TYPE + CLOSE),
    "bom": post(body=b"\xef\xbb\xbf" + SPINDLE.encode()),
    "trailing nul": post(body=SPINDLE + "\0"),
    "nul behind the body": post(headers=HOST + JSON_TYPE) + b"\0",
    "length that is too short": post(headers=f"{HOST}User-Agent: x\r\n", length=20),
    "no length": post(headers=HOST + CLOSE).replace(b"Content-Length", b"X-Length"),
    "line ends in the body": post(body=f"\r\n{SPINDLE}\r\n\r\n"),
    "trailing comma": post(body=SPINDLE.replace("-67}", "-67, }")),
    "bare nan": post(
        body=SPINDLE.replace('"battery":3.96', '"battery":nan,"velocity":-nan').replace("-nan", "-inf")
    ),
    "texts for numbers": post(body=SPINDLE.replace("12.48312", '"12.48312"').replace("19.8125", '"19.8125"')),
    "decimal commas": post(body=SPINDLE.replace("12.48312", '"12,48312"').replace("19.8125", '"19,8125"')),
    "extra CRLF": post() + b"\r\n",
    "accept-encoding of ESP8266": post(
        headers=f"{HOST}User-Agent: ESP8266HTTPClient\r\n{CLOSE}"
        f"Accept-Encoding: identity;q=1,chunked;q=0.1,*;q=0\r\n{JSON_TYPE}"
    ),
}


@pytest.mark.parametrize("sent", ODD_POSTS.values(), ids=ODD_POSTS)
async def test_what_an_ispindel_posts_is_a_reading(bench: Bench, sent: bytes) -> None:
    assert is_success(await bench.ask(sent))
    line = await bench.line()
    assert (line["gravity"], line["temp"]) == ("12.48312", "19.8125")
    assert (line["angle"], line["rssi"]) == (52.3, -67)
    [device] = await bench.services.store.devices.all()
    assert (device.key, device.name) == ("ispindel:5312877", "iSpindel042")


@pytest.mark.parametrize("headers", [HOST, "", "Host: x:80\r\nUser-Agent: ESP8266HTTPClient\r\n"])
@pytest.mark.parametrize("target", ["/ingest/ispindel", "ingest/ispindel"])
async def test_http_1_0_with_and_without_a_host(bench: Bench, headers: str, target: str) -> None:
    assert is_success(await bench.ask(post(target, headers=headers, version="1.0")), "1.0")
    assert (await bench.line())["gravity"] == "12.48312"


async def test_head_and_body_in_segments_of_their_own(bench: Bench) -> None:
    head, separator, body = post("ingest/ispindel").partition(b"\r\n\r\n")
    assert is_success(await bench.ask(head + separator, body[:40], body[40:], b"\r\n"))
    assert (await bench.line())["gravity"] == "12.48312"


ODD_GETS = {
    "plain": f"/ingest/gravitymon?{GRAVITYMON_QUERY}",
    "no slash in front": f"ingest/gravitymon?{GRAVITYMON_QUERY}",
    "second ?": f"/ingest/gravitymon?key=x?{GRAVITYMON_QUERY}",
    "blanks": f"/ingest/gravitymon?beer=Pale Ale No 5&{GRAVITYMON_QUERY}",
    "version in a value": f"/ingest/gravitymon?beer=a HTTP/1.1 b&{GRAVITYMON_QUERY}",
    "umlaut": f"/ingest/gravitymon?beer=Füße&{GRAVITYMON_QUERY}",
    "number sign": f"/ingest/gravitymon?beer=No #5&{GRAVITYMON_QUERY}",
    "ampersand": f"/ingest/gravitymon?beer=Malt & Hops&{GRAVITYMON_QUERY}",
    "percent sign": f"/ingest/gravitymon?beer=100%&{GRAVITYMON_QUERY}",
    "brackets and quotes": f'/ingest/gravitymon?beer={{"a"}}<|>\'`^\\&{GRAVITYMON_QUERY}',
}


@pytest.mark.parametrize("target", ODD_GETS.values(), ids=ODD_GETS)
async def test_what_a_gravitymon_asks_for_is_a_reading(bench: Bench, target: str) -> None:
    assert is_success(await bench.ask(get(target)))
    line = await bench.line()
    assert (line["gravity"], line["temp"], line["corr_gravity"]) == ("1.0456", "20.56", "1.0450")
    assert (line["interval_s"], line["run_time_s"]) == (900, 4.21)


@pytest.mark.parametrize(
    "beer", ["Pale Ale", "Füße", "Weißbier dunkel", "Kölsch 🍺", "Malt & Hops", "日本のビール"]
)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_micropython_counts_characters(bench: Bench, beer: str, version: str) -> None:
    """A Tilt Pico's post: no User-Agent, nothing encoded, `len(str)` for a length."""
    body = TILT.format(beer)
    sent = post("/ingest/tilt", body, headers=FORM + HOST + CLOSE, version=version, length=len(body))
    assert is_success(await bench.ask(sent), version)
    assert (await bench.line())["beer"] == beer


async def test_a_tail_in_a_segment_of_its_own(bench: Bench) -> None:
    body = TILT.format("Füße")
    sent = post("/ingest/tilt", body, headers=FORM + HOST + CLOSE, length=len(body))
    tail = len(body.encode()) - len(body)
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
        writer.write(sent[:-tail])
        await writer.drain()
        await asyncio.sleep(0)
        writer.write(sent[-tail:])
        answer = await reader.read()
        writer.close()
    assert is_success(answer)
    assert (await bench.line())["comment"] == "P"


async def test_a_length_in_bytes_stays_right(bench: Bench) -> None:
    assert is_success(await bench.ask(post("/ingest/tilt", TILT.format("Füße"), headers=FORM + HOST + CLOSE)))
    assert (await bench.line())["beer"] == "Füße"


async def test_json_of_micropython_counts_characters_too(bench: Bench) -> None:
    body = SPINDLE.replace("iSpindel042", "Gärkeller")
    assert is_success(await bench.ask(post(body=body, length=len(body))))
    assert (await bench.line())["gravity"] == "12.48312"


@pytest.mark.parametrize("body", [SPINDLE[:40], ""])
@pytest.mark.parametrize(("headers", "version"), [(HOST, "1.1"), (HOST + CLOSE, "1.1"), ("", "1.0")])
async def test_a_device_that_breaks_off_leaves_no_traceback(
    bench: Bench, caplog: pytest.LogCaptureFixture, body: str, headers: str, version: str
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
    writer.write(post(body=body, headers=headers, version=version, length=len(SPINDLE)))
    writer.write_eof()
    async with asyncio.timeout(PATIENCE_S):
        await reader.read()
    writer.close()
    assert [record for record in caplog.records if record.exc_info or record.levelname == "ERROR"] == []
    assert await bench.is_empty()


async def test_two_posts_on_one_connection_with_line_ends_between(bench: Bench) -> None:
    first = post(headers=HOST + JSON_TYPE) + b"\r\n"
    second = post(body=SPINDLE.replace("5312877", "77"), headers=HOST + JSON_TYPE + CLOSE)
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
        writer.write(first)
        answers = [await reader.readuntil(b"}")]
        writer.write(second)
        answers.append(await reader.read())
        writer.close()
    assert [is_success(answer) for answer in answers] == [True, True]
    assert {device.key for device in await bench.services.store.devices.all()} == {
        "ispindel:5312877",
        "ispindel:77",
    }


API_ODDITIES = {
    "no slash": b"GET v1/recipes HTTP/1.1\r\n%s\r\n",
    "blank": b"GET /v1/recipes?keyword=a b HTTP/1.1\r\n%s\r\n",
    "no slash and blank": b"GET v1/recipes?keyword=a b HTTP/1.1\r\n%s\r\n",
    "in disguise": b"GET %%76%%31/recipes HTTP/1.1\r\n%s\r\n",
    "umlaut": "GET /v1/recipes?keyword=ä HTTP/1.1\r\n%s\r\n".encode(),
    "header without colon": b"GET /v1/recipes HTTP/1.1\r\nnonsense\r\n%s\r\n",
    "blank in a header name": b"GET /v1/recipes HTTP/1.1\r\nX A: b\r\n%s\r\n",
    "two hosts": b"GET /v1/recipes HTTP/1.1\r\nHost: a\r\n%s\r\n",
    "manage": b"GET manage/keys HTTP/1.1\r\n%s\r\n",
    "healthz": b"GET healthz HTTP/1.1\r\n%s\r\n",
    "docs": b"GET docs HTTP/1.1\r\n%s\r\n",
}


@pytest.mark.parametrize("sent", API_ODDITIES.values(), ids=API_ODDITIES)
async def test_the_api_takes_none_of_it(bench: Bench, sent: bytes) -> None:
    answer = await bench.ask(sent % f"{HOST}X-API-KEY: {bench.key}\r\n{CLOSE}".encode())
    assert answer.startswith(b"HTTP/1.0 400 Bad Request\r\n")
    assert set(json.loads(answer.partition(b"\r\n\r\n")[2])) == {"message", "detail"}


async def test_the_api_takes_no_body_behind_its_length(bench: Bench) -> None:
    body = '{"name":"Füße"}'
    headers = f"{HOST}X-API-KEY: {bench.key}\r\n{JSON_TYPE}{CLOSE}"
    answer = await bench.ask(post("/v1/fermentation/1/import", body, headers=headers, length=len(body)))
    assert answer.startswith(b"HTTP/1.0 400 Bad Request\r\n")
    assert await bench.is_empty()


async def test_the_api_is_served_as_before(bench: Bench) -> None:
    head = f"Host: localhost\r\nX-API-KEY: {bench.key}\r\n{CLOSE}\r\n"
    answer = await bench.ask(b"GET /v1/recipes HTTP/1.1\r\n" + head.encode())
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
