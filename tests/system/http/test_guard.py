"""What the guard makes of the first bytes of a connection, and when it leaves them alone."""

import asyncio
import logging
import re
import socket
import struct
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from gateway.endpoints import ENDPOINTS
from gateway.http import request_head
from gateway.http.guard import SERVER, GuardedSite, Refusals
from gateway.http.middleware import errors_middleware, read_body
from gateway.http.request_head import BODY_BYTES, HEAD_BYTES, HEAD_WAIT_S, OURS, TAIL_WAIT_S, WAIT_S, look
from gateway.logs import MINUTE_S
from gateway.manage import watch
from tests.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.system.transports.conftest import wait_for

HOST = b"Host: x\r\n"


def request(
    target: str | bytes, *, headers: bytes = HOST, body: bytes = b"hi", version: str = "1.1"
) -> bytes:
    path = target if isinstance(target, bytes) else target.encode()
    line = b"POST " + path + f" HTTP/{version}\r\n".encode()
    return line + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize(
    ("target", "mended"),
    [
        ("api/ispindel", b"/api/ispindel"),
        ("ispindel?id=1", b"/ispindel?id=1"),
        ("?name=a", b"/?name=a"),
        ("", b"/"),
        ("/fhem?cmd.Test=set x 1 2&XHR=1", b"/fhem?cmd.Test=set%20x%201%202&XHR=1"),
        ("/a?beer=Pale Ale HTTP/1.1 b", b"/a?beer=Pale%20Ale%20HTTP/1.1%20b"),
        ("/a?name=Füße", b"/a?name=F%C3%BC%C3%9Fe"),
        (b"/a?name=\xfc\x01\t", b"/a?name=%FC%01%09"),
        ("/a?name=no#1&gravity=1.05", b"/a?name=no%231&gravity=1.05"),
        ("metrics/job/ispindel/instance/000", b"/metrics/job/ispindel/instance/000"),
        ("http://gateway:8080/a b", b"http://gateway:8080/a%20b"),
        ("v1x/recipes", b"/v1x/recipes"),
        ("//api/v2/write?org=a", b"/api/v2/write?org=a"),  # GravityMon's server with a slash at its end
    ],
)
def test_an_odd_target_is_mended(target: str | bytes, mended: bytes) -> None:
    found = look(request(target))
    assert isinstance(found, bytes)
    assert found.startswith(b"POST " + mended + b" HTTP/1.1\r\n")
    assert found.endswith(b"\r\n\r\nhi")
    assert b"\r\nconnection: close\r\n" in found


@pytest.mark.parametrize(
    "target",
    [
        *("v1/recipes", "v1", "manage/keys", "docs", "openapi.json", "healthz", "metrics", "dashboard/x"),
        *("/v1/recipes?keyword=a b", "%761/recipes", "./v1/a", "//v1/a b", " v1/a", "x/../v1/a", "v1?a=1"),
        *("http://x/v1/a b", "%2e%2e/v1", "metrics/jobs", "/v1/a#b"),
    ],
)
def test_no_path_of_the_api_is_mended(target: str) -> None:
    assert look(request(target, headers=b"X A: b\r\n")) == request(target, headers=b"X A: b\r\n")


@pytest.mark.parametrize(
    "received",
    [
        request("/ingest"),
        request("/ingest", body="ü".encode(), headers=HOST + b"User-Agent: x\r\nConnection: close\r\n"),
        request("/ingest", body="ü".encode()),
        request("/ingest?x=%20%zz{}|\"'<>\\^`"),
        request("http://gateway/ingest"),
        b"GET / HTTP/1.0\r\n\r\n",
        b"DELETE manage/keys HTTP/1.1\r\n\r\n",
        b"\r\nPOST api HTTP/1.1\r\n\r\n",
        b"GET a\r\n\r\n",
        b"GET a HTTP/1.1\nHost: x\n\n",
        b"GET a HTTP/2.0\r\n\r\n",
        b"\x16\x03\x01",
        b"PRI * HTTP/2.0\r\n",
        b"GET /" + b"x" * HEAD_BYTES,
        b"GET a HTTP/1.1\r\n" + b"X: y\r\n" * HEAD_BYTES,
        request("api", body=b"x" * (BODY_BYTES + 1)),
        request("api", headers=HOST + b"Content-Length: 2\r\n"),
        request("api", headers=HOST + b"Content-Length : 3\r\n"),
        request("api", headers=HOST + b"Transfer-Encoding: chunked\r\n"),
        request("api", headers=HOST + b"Expect: 100-continue\r\n"),
        request("/ingest") + b"\r\n",
        request("/ingest") + b"\r\n" + request("/ingest"),
        request("/ingest") + b"PO",
        request("/ingest") + b"DELETE /manage/keys/1 HTTP/1.1\r\n\r\n",
        request("api", headers=HOST + b"Transfer Encoding, transfer-encoding: chunked\r\n"),
        request("api", headers=b"Host: x\nContent-Length: 5\r\n"),
        b"POST api HTTP/1.1\r\nContent-Length: +2\r\n\r\nhi",
        "POST api HTTP/1.1\r\nContent-Length: ²\r\n\r\nhi".encode("latin-1"),
    ],
)
def test_everything_else_is_passed_on_as_it_came(received: bytes) -> None:
    assert look(received) == received


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (b"Content Type: application/json", b""),
        (b"application/json", b""),
        (b": application/json", b""),
        (b"X-Name: a\x01b", b""),
        (b" folded: x", b""),
        ("Spül: x".encode(), b""),
        (b"host: y", b""),
        (b"X-Name : a", b"x-name: a"),
    ],
)
def test_a_header_line_that_cannot_be_read_is_left_out(line: bytes, kept: bytes) -> None:
    found = look(request("/ingest", headers=HOST + line + b"\r\nX-Api-Key: k\r\n"))
    assert isinstance(found, bytes)
    lines = found.partition(b"\r\n\r\n")[0].split(b"\r\n")
    expected = [
        b"host: x",
        *([kept] if kept else []),
        b"x-api-key: k",
        b"connection: close",
        b"content-length: 2",
    ]
    assert lines[1:] == expected


def test_a_missing_host_is_made_up() -> None:
    assert b"\r\nhost: gateway\r\n" in bytes(look(request("/ingest", headers=b"")))  # type: ignore[arg-type]
    assert look(request("/ingest", headers=b"", version="1.0")).endswith(b"hi")  # type: ignore[union-attr]


BEER = "SG=1.045&Beer=Füße"


@pytest.mark.parametrize("headers", [HOST + b"Connection: close\r\n", b""])
def test_a_length_in_characters_takes_the_bytes_behind_it(headers: bytes) -> None:
    version = b"HTTP/1.1" if headers else b"HTTP/1.0"
    head = b"POST /ingest/tilt " + version + b"\r\n" + headers + b"Content-Length: %d\r\n\r\n" % len(BEER)
    whole = BEER.encode()
    short = whole[: len(BEER)]
    assert look(head) == WAIT_S
    assert look(head + short[:-1]) == WAIT_S
    assert look(head + short) == TAIL_WAIT_S
    assert look(head + whole[:-1]) == TAIL_WAIT_S
    for received in (whole, whole + b"\r\n", whole + b"GET /v1 HTTP/1.1\r\n\r\n"):
        found = look(head + received)
        assert isinstance(found, bytes)
        assert found.endswith(b"\r\ncontent-length: %d\r\n\r\n" % len(whole) + whole)


@pytest.mark.parametrize("stray", [b"\0", b"rest}", b"\r\nx", b"\xc3\xa4"])
def test_what_follows_the_body_and_is_no_request_belongs_to_it(stray: bytes) -> None:
    sent = request("/ingest", headers=HOST + b"User-Agent: x\r\n")
    found = look(sent + stray)
    assert isinstance(found, bytes)
    assert found.endswith(b"content-length: %d\r\n\r\nhi" % (2 + len(stray)) + stray)
    assert look(sent + stray, waited=True) == found


def test_nobody_waits_where_the_length_may_be_right() -> None:
    head = HOST + b"Connection: close\r\n"
    ascii_only = request("/ingest", headers=head, body=b"Beer=Pale")
    assert look(ascii_only) == ascii_only
    latin = request("/ingest", headers=head, body="Beer=Füße".encode("latin-1"))
    assert look(latin) == latin
    right = request("/ingest", headers=head, body=BEER.encode())
    assert look(right) == TAIL_WAIT_S
    assert look(right, waited=True) == right


@pytest.mark.parametrize("received", [b"", b"P", b"POST", b"POST api", b"POST api HTTP/1.1\r\nHost"])
def test_the_rest_of_a_request_is_waited_for(received: bytes) -> None:
    assert look(received) == HEAD_WAIT_S
    assert look(received, waited=True) == received


@given(st.binary(max_size=60), st.sampled_from([b"", b"POST ", b"GET /", b"GET /a b HTTP/1.1\r\n"]))
def test_any_bytes_get_an_answer(noise: bytes, start: bytes) -> None:
    for received in (start + noise, start + noise + b"\r\n\r\n", request(start + noise)):
        assert isinstance(look(received, waited=True), bytes)
        assert isinstance(look(received), bytes | float)


@given(st.binary(max_size=40))
def test_what_is_mended_has_one_well_formed_line_and_one_length(target: bytes) -> None:
    received = request(target)
    found = look(received)
    if found in (received, HEAD_WAIT_S, WAIT_S):
        return
    assert isinstance(found, bytes)
    head, _, body = found.partition(b"\r\n\r\n")
    assert re.match(rb"POST [!-~]+ HTTP/1\.[01]\r\n", head)
    assert head.lower().count(b"\r\ncontent-length: ") == 1
    assert body == b"hi"


def test_every_path_of_the_api_is_known_to_the_guard() -> None:
    paths = [endpoint.path for endpoint in (*ENDPOINTS, *watch.endpoints(0))]
    assert {path.split("/")[1].encode() for path in paths} <= OURS
    assert {b"docs", b"openapi.json"} <= OURS


class Bench:
    """A handler that notes what it gets, behind the guard, on a real socket."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bytes]] = []
        self.arrived = asyncio.Event()
        self.clock = FakeClock()

    async def start(self) -> None:
        app = web.Application(middlewares=[errors_middleware])
        app.router.add_route("*", "/{any:.*}", self._take)
        self.runner = web.AppRunner(app, **SERVER)
        await self.runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        self.site = GuardedSite(self.runner, listener, Refusals(self.clock))
        await self.site.start()

    async def _take(self, request: web.Request) -> web.Response:
        self.arrived.set()
        self.seen.append((request.path_qs, await read_body(request, BODY_BYTES)))
        return web.Response(text="yes")

    async def ask(self, *pieces: bytes) -> bytes:
        """Everything the server says to these segments until it closes."""
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return answer


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    await bench.start()
    yield bench
    await bench.runner.cleanup()


async def test_a_request_in_pieces_is_mended_all_the_same(bench: Bench) -> None:
    whole = request("api/a b")
    answer = await bench.ask(*(whole[n : n + 1] for n in range(len(whole))))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert bench.seen == [("/api/a%20b", b"hi")]


async def test_what_follows_a_mended_request_is_no_request(bench: Bench) -> None:
    answer = await bench.ask(request("api") + b"GET /v1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert bench.seen == [("/api", b"hi")]


async def test_later_requests_of_a_connection_are_aiohttps(bench: Bench) -> None:
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
        answer = b""
        for target in ("/one", "/two", "three"):
            writer.write(request(target))
            answer += await reader.readuntil(b"yes" if target != "three" else b"}")
        writer.close()
    statuses = re.findall(rb"HTTP/1\.[01] ([0-9]+)", answer)
    assert statuses == [b"200", b"200", b"400"]
    assert bench.seen == [("/one", b"hi"), ("/two", b"hi")]


async def test_the_wait_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_head, "HEAD_WAIT_S", 0.05)
    assert (await bench.ask(b"POST api HTTP/1.1\r\nHost: x\r\n")).startswith(b"HTTP/1.0 400 ")


async def test_a_client_that_leaves_while_we_wait_leaves_nothing_behind(bench: Bench) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
    writer.write(b"POST api HTTP/1.1\r\n")
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    assert (await bench.ask(request("api"))).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_garbage_is_400_with_our_error_body_and_one_line_a_minute(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        answer = await bench.ask(b"\x00\x01garbage\r\n\r\n")
        assert answer.startswith(b"HTTP/1.0 400 Bad Request\r\n")
        assert b'\r\n\r\n{"message": "failure", "detail": "this is no HTTP request' in answer
        assert b"garbage" not in answer
    assert [(record.levelno, record.exc_info) for record in caplog.records] == [(logging.WARNING, None)]
    bench.clock.advance(MINUTE_S)
    await bench.ask(b"garbage\r\n\r\n")
    assert [record.getMessage().split(",")[0] for record in caplog.records] == [
        "http: requests that nobody could read: 1",
        "http: requests that nobody could read: 3",
    ]


async def test_a_client_that_aborts_its_post_is_no_traceback(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", bench.port)
    writer.write(request("/ingest", body=b"x" * 10)[:-1])
    async with asyncio.timeout(PATIENCE_S):
        await bench.arrived.wait()
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()
    await wait_for(lambda: caplog.records)
    [record] = caplog.records
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)
    assert record.getMessage().endswith("the client went away in the midst of it")
