"""Clients that are slow, many or rude: what a connection may take, on real sockets with short deadlines."""

import asyncio
import logging
import re
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

import pytest
from aiohttp import web

from gateway.errors import StoreUnavailable
from gateway.http.connections import (
    TOO_SLOW,
    Activity,
    ConnectionLimiter,
    ConnectionLimits,
    Phase,
    Shares,
)
from gateway.http.guard import SERVER, GuardedSite, Handler, Refusals
from gateway.http.middleware import error_response, errors_middleware, read_body
from gateway.network import NO_PROXIES, TrustedProxies
from gateway.stats import Stats
from tests.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.system.transports.conftest import wait_for

NEIGHBOUR = "127.0.0.2"
"""An address of this machine that does not count as loopback here: a source like any other."""

LONG_S = 60.0
SHORT_S = 0.1
LOOK_S = 0.02

BODY_BYTES = 10 * 1024 * 1024
LARGE_BYTES = 16 * 1024 * 1024
"""More than all buffers between the two ends hold."""

QUIET = ConnectionLimits(
    first_byte_s=LONG_S,
    head_s=LONG_S,
    body_s=LONG_S,
    answer_s=LONG_S,
    idle_s=LONG_S,
    closing_s=LONG_S,
    look_s=LOOK_S,
)
"""No deadline that a test could meet by accident."""


def bounds(**changes: float) -> ConnectionLimits:
    values = {name: getattr(QUIET, name) for name in ConnectionLimits.__slots__}
    return ConnectionLimits(**{**values, **changes})


class Client:
    """One connection from an address of our choice."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def end(self) -> bytes:
        """Everything until the server closes; a reset is an end as well."""
        heard = b""
        async with asyncio.timeout(PATIENCE_S):
            try:
                while data := await self.reader.read(65_536):
                    heard += data
            except ConnectionResetError:
                pass
        return heard

    async def status(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            line = await self.reader.readline()
            length = 0
            while (header := await self.reader.readline()) != b"\r\n":
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            await self.reader.readexactly(length)
        return int(line.split()[1])


class Bench:
    """A small application behind the guard; `held` keeps requests to /hold waiting while it is unset."""

    def __init__(self, limits: ConnectionLimits, proxies: TrustedProxies = NO_PROXIES) -> None:
        self.stats = Stats()
        self.held = asyncio.Event()
        self.seen: list[str] = []
        self.bodies: list[int] = []
        self._gate = ConnectionLimiter(self.stats, limits, proxies)
        self._ends = AsyncExitStack()

    async def start(self) -> None:
        app = web.Application(middlewares=[errors_middleware])
        app.add_routes(
            [web.get("/", self._quick), web.get("/hold/{n}", self._hold), web.get("/large", self._large)]
        )
        app.router.add_post("/take", self._take)
        self.made(app)
        self.runner = web.AppRunner(app, **SERVER, shutdown_timeout=SHORT_S)
        await self.runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        await GuardedSite(self.runner, listener, Refusals(FakeClock(), self.stats), self._gate).start()
        self._ends.push_async_callback(self.runner.cleanup)

    def made(self, app: web.Application) -> None:
        """Add to the application before it starts."""

    async def stop(self) -> None:
        self.held.set()
        await self._ends.aclose()

    async def connect(self, address: str = NEIGHBOUR, receive_bytes: int = 0) -> Client:
        line = socket.socket()
        if receive_bytes:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        line.setblocking(False)
        line.bind((address, 0))
        await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", self.port))
        client = Client(*await asyncio.open_connection(sock=line, limit=65_536))
        self._ends.callback(client.writer.close)
        return client

    async def _quick(self, request: web.Request) -> web.Response:
        return web.Response(text="yes")

    async def _hold(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request.match_info["n"])
        await self.held.wait()
        return web.Response(text="held")

    async def _take(self, request: web.Request) -> web.Response:
        self.seen.append("take")
        self.bodies.append(len(await read_body(request, BODY_BYTES)))
        return web.Response(text="taken")

    async def _large(self, request: web.Request) -> web.Response:
        return web.Response(body=bytes(LARGE_BYTES))


@pytest.fixture
async def benches() -> AsyncIterator[list[Bench]]:
    started: list[Bench] = []
    yield started
    for bench in started:
        await bench.stop()


async def start(benches: list[Bench], **changes: float) -> Bench:
    bench = Bench(bounds(**changes))
    await bench.start()
    benches.append(bench)
    return bench


async def test_a_connection_that_says_nothing_is_closed(benches: list[Bench]) -> None:
    bench = await start(benches, first_byte_s=SHORT_S)
    clients = [await bench.connect() for _ in range(20)]
    assert [await client.end() for client in clients] == [b""] * 20
    await wait_for(lambda: bench.stats.connections == 0)
    assert bench.stats.connections_cut == 20


@pytest.mark.parametrize(
    "beginning", [b"POST /take HTTP/1.1\r\nHost: x\r\nX", b"POST /v1/take HTTP/1.1\r\nX-", b"P", b"OPTIONS "]
)
async def test_a_head_that_does_not_end_is_answered_408(benches: list[Bench], beginning: bytes) -> None:
    bench = await start(benches, head_s=SHORT_S)
    client = await bench.connect()
    client.writer.write(beginning)
    answer = await client.end()
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert answer.endswith(b'{"message": "failure", "detail": "the request took too long to arrive"}')


async def test_a_head_in_drops_has_no_more_time(benches: list[Bench]) -> None:
    bench = await start(benches, head_s=SHORT_S)
    client = await bench.connect()

    async def drip() -> None:
        client.writer.write(b"GET / HTTP/1.1\r\n")
        while True:
            client.writer.write(b"X: y\r\n")
            await asyncio.sleep(LOOK_S)

    dripping = asyncio.create_task(drip())
    assert b" 408 " in await client.end()
    dripping.cancel()


async def test_a_later_head_has_the_same_deadline(benches: list[Bench]) -> None:
    bench = await start(benches, head_s=SHORT_S)
    client = await bench.connect()
    client.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await client.status() == 200
    client.writer.write(b"GET / HTTP/1.1\r\n")
    assert (await client.end()).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("path", [b"/take", b"take"])
@pytest.mark.parametrize(
    "more", [b"Content-Length: 10\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"]
)
async def test_a_body_that_does_not_end_is_answered_408(
    benches: list[Bench], path: bytes, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await start(benches, body_s=SHORT_S)
    client = await bench.connect()
    client.writer.write(b"POST " + path + b" HTTP/1.1\r\nHost: x\r\n" + more)
    answer = await client.end()
    assert answer.startswith((b"HTTP/1.1 408 ", b"HTTP/1.0 400 "))
    assert bench.bodies == []


async def test_an_invited_body_that_does_not_come_is_cut_off(benches: list[Bench]) -> None:
    bench = await start(benches, body_s=SHORT_S)
    client = await bench.connect()
    client.writer.write(
        b"POST /take HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    )
    answer = await client.end()
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 408 ")


async def test_a_large_body_has_the_time_that_its_bytes_need(benches: list[Bench]) -> None:
    bench = await start(benches, body_s=SHORT_S, bytes_per_s=10_000)
    client = await bench.connect()
    pieces, piece = 12, bytes(500)  # half a tenth of a second's worth of time for each
    client.writer.write(
        b"POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (pieces * len(piece))
    )
    for _ in range(pieces):
        await asyncio.sleep(SHORT_S / 4)
        client.writer.write(piece)
    assert await client.status() == 200
    assert bench.bodies == [pieces * len(piece)]


async def test_a_connection_that_is_kept_for_nothing_is_closed(benches: list[Bench]) -> None:
    bench = await start(benches, idle_s=SHORT_S)
    client = await bench.connect()
    client.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await client.status() == 200
    assert await client.end() == b""
    assert bench.stats.connections_cut == 0


async def test_what_takes_time_on_our_side_has_no_deadline(benches: list[Bench]) -> None:
    bench = await start(benches, first_byte_s=0, head_s=0, body_s=0, idle_s=0, answer_s=0)
    client = await bench.connect("127.0.0.1")
    client.writer.write(b"GET /hold/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    await wait_for(lambda: bench.seen)
    await asyncio.sleep(5 * LOOK_S)
    bench.held.set()
    assert (await client.end()).endswith(b"held")


async def test_an_answer_that_nobody_reads_is_cut_off(
    benches: list[Bench], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench = await start(benches, answer_s=SHORT_S)
    client = await bench.connect(receive_bytes=4096)
    client.writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    await wait_for(lambda: bench.stats.connections_cut)
    assert len(await client.end()) < LARGE_BYTES
    assert caplog.messages[0] == f"http: {NEIGHBOUR} was cut off, too slow with reading an answer"
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_slow_reader_that_goes_on_reading_gets_it_all(benches: list[Bench]) -> None:
    # A pause is a quarter of what an answer may rest, all are twice as much: a busy machine adds to them.
    bench = await start(benches, answer_s=4 * SHORT_S, bytes_per_s=LARGE_BYTES // 32)
    client = await bench.connect(receive_bytes=4096)
    client.writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    heard, pauses = 0, 0
    async with asyncio.timeout(PATIENCE_S):
        while data := await client.reader.read(1 << 20):
            heard += len(data)
            if heard > pauses * LARGE_BYTES / 8:
                pauses += 1
                await asyncio.sleep(SHORT_S)
    assert heard > LARGE_BYTES


@pytest.mark.parametrize(
    ("address", "admitted"), [("::1", 5), ("127.0.0.1", 5), ("fd00::1", 3), (NEIGHBOUR, 3)]
)
async def test_this_machine_has_no_bounded_share_by_either_of_its_addresses(
    address: str, admitted: int
) -> None:
    gate = ConnectionLimiter(Stats(), bounds(per_source=3))
    places = [gate.admit(address, lambda: Activity(Phase.IDLE, 0, 0), lambda _: None) for _ in range(5)]
    open_ones = [place for place in places if place is not None]
    assert len(open_ones) == admitted
    for place in open_ones:
        gate.leave(place)


async def test_one_source_has_a_bounded_share_and_others_are_not_touched(
    benches: list[Bench], caplog: pytest.LogCaptureFixture
) -> None:
    bench = await start(benches, per_source=3)
    own = [await bench.connect() for _ in range(3)]
    await wait_for(lambda: bench.stats.connections == 3)
    assert await (await bench.connect()).end() == b""
    assert (bench.stats.connections, bench.stats.connections_refused) == (3, 1)
    assert caplog.messages == [f"http: {NEIGHBOUR} has 3 connections and gets no more"]
    for address in ("127.0.0.3", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"):
        client = await bench.connect(address)
        client.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await client.status() == 200
    own[0].writer.close()
    await wait_for(lambda: bench.stats.connections == 7)
    again = await bench.connect()
    again.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await again.status() == 200


async def test_where_all_is_taken_whoever_waits_makes_room(benches: list[Bench]) -> None:
    bench = await start(benches, connections=2)
    busy = await bench.connect()
    busy.writer.write(b"GET /hold/1 HTTP/1.1\r\nHost: x\r\n\r\n")
    await wait_for(lambda: bench.seen)
    silent = await bench.connect()
    await wait_for(lambda: bench.stats.connections == 2)
    third = await bench.connect()
    assert await silent.end() == b""
    third.writer.write(b"GET /hold/2 HTTP/1.1\r\nHost: x\r\n\r\n")
    await wait_for(lambda: len(bench.seen) == 2)
    assert await (await bench.connect()).end() == b""  # now everybody has a request under way
    assert (bench.stats.connections_cut, bench.stats.connections_refused) == (1, 1)
    bench.held.set()
    assert [await busy.status(), await third.status()] == [200, 200]


async def test_who_has_most_makes_room_for_who_has_less(benches: list[Bench]) -> None:
    bench = await start(benches, connections=6, per_source=6)
    modest = await bench.connect("127.0.0.3")
    modest.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await modest.status() == 200  # the oldest, and waiting
    greedy = [await bench.connect() for _ in range(5)]
    for number, client in enumerate(greedy):
        client.writer.write(b"POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
        await wait_for(partial(_has, bench.seen, number + 1))
    new = await bench.connect("127.0.0.4")
    new.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await new.status() == 200
    assert (await greedy[0].end()).startswith(b"HTTP/1.1 408 ")
    modest.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await modest.status() == 200


async def test_this_machine_makes_room_for_itself_alone(benches: list[Bench]) -> None:
    bench = await start(benches, connections=2)
    own = [await bench.connect("127.0.0.1") for _ in range(2)]
    await wait_for(lambda: bench.stats.connections == 2)
    assert await (await bench.connect()).end() == b""
    third = await bench.connect("127.0.0.1")
    third.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await third.status() == 200
    assert await own[0].end() == b""
    assert (bench.stats.connections_cut, bench.stats.connections_refused) == (1, 1)


@pytest.mark.parametrize("proxy", ["127.0.0.1", "127.0.0.9"])
async def test_a_proxy_has_no_share_but_makes_room(benches: list[Bench], proxy: str) -> None:
    """However many the proxy lets in, a device on the network is never refused."""
    bench = Bench(bounds(connections=5, per_source=2), TrustedProxies([proxy]))
    await bench.start()
    benches.append(bench)
    device = await bench.connect("127.0.0.3")
    device.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await device.status() == 200
    strangers = [await bench.connect(proxy) for _ in range(4)]
    await wait_for(lambda: bench.stats.connections == 5)
    another = await bench.connect("127.0.0.4")
    another.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await another.status() == 200
    assert await strangers[0].end() == b""
    for _ in range(3):
        await bench.connect(proxy)
    assert await strangers[1].end() == b""
    for client in (device, another):
        client.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await client.status() == 200
    assert bench.stats.connections_refused == 0


async def test_garbage_as_a_later_piece_of_a_body_is_no_wait(benches: list[Bench]) -> None:
    bench = await start(benches)
    client = await bench.connect()
    client.writer.write(b"POST /take HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    await wait_for(lambda: bench.seen)
    client.writer.write(b"zzz\r\nno chunk\r\n")
    answer = await client.end()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert bench.bodies == []
    assert bench.stats.unreadable == 1


async def test_requests_that_come_all_at_once_wait_in_a_bounded_queue(
    benches: list[Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    longest, take = [0], Handler.data_received

    def measured(handler: Handler, data: bytes) -> None:
        take(handler, data)
        longest[0] = max(longest[0], len(handler._messages))

    monkeypatch.setattr(Handler, "data_received", measured)
    bench = await start(benches)
    client = await bench.connect()
    many = 2000
    client.writer.write(b"".join(b"GET /hold/%d HTTP/1.1\r\nHost: x\r\n\r\n" % n for n in range(many)))
    await wait_for(lambda: bench.seen)
    bench.held.set()
    for _ in range(many):
        assert await client.status() == 200
    assert bench.seen == [str(n) for n in range(many)]
    assert 1 < longest[0] <= 32


def _has(seen: list[str], number: int) -> bool:
    return len(seen) >= number


async def test_uploads_that_are_aborted_are_no_tracebacks(
    benches: list[Bench], caplog: pytest.LogCaptureFixture
) -> None:
    bench = await start(benches)
    for number in range(30):
        client = await bench.connect()
        client.writer.write(b"POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
        await wait_for(partial(_has, bench.seen, number + 1))
        linger = struct.pack("ii", 1, 0)
        client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        client.writer.transport.abort()
    await wait_for(lambda: bench.stats.unreadable == 30)
    assert [record.exc_info for record in caplog.records] == [None]


async def test_a_source_waits_for_its_own_turn_only() -> None:
    shares = Shares(1, wait_s=SHORT_S)
    async with shares.hold("192.0.2.1"):
        async with shares.hold("192.0.2.2"):
            pass
        with pytest.raises(StoreUnavailable, match="too many long requests"):
            async with shares.hold("192.0.2.1"):
                pytest.fail("there was only one share")
    async with shares.hold("192.0.2.1"):
        pass
    assert not shares._sources


def test_the_answer_to_the_slow_is_the_error_body() -> None:
    head, _, body = TOO_SLOW.partition(b"\r\n\r\n")
    assert error_response(408, "failure", "the request took too long to arrive").body == body
    assert re.search(rb"Content-Length: (\d+)", head)[1] == b"%d" % len(body)  # type: ignore[index]
