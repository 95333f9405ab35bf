"""The short way for plain posts: what it takes, and that nobody can tell it from the way through aiohttp."""

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gateway import site
from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.errors import QuotaFull, ShareUsedUp, StoreUnavailable
from gateway.http import middleware, short_way
from gateway.http.connections import TOO_SLOW, ConnectionLimiter, ConnectionLimits, Phase
from gateway.http.guard import SERVER, Guard, Handler, Refusals
from gateway.http.short_way import HEAD_BYTES, HEADS, PostHandler, ShortWay
from gateway.intake.ordinary import Done, Taken
from gateway.network import SOURCE_BURST, Admission
from gateway.services.build import Services, build_services
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.http import HttpIngest
from sample_devices.devices import KINDS
from sample_devices.wire.report import HttpReport
from tests.cases import each
from tests.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.payloads import ispindel
from tests.pure.drivers.test_cases import FILES
from tests.pure.sample_devices.golden import make

HERE, NEIGHBOUR = "127.0.0.1", "127.0.0.2"
HOUR_S = 3600.0
SPINDLE = ispindel(7).encode()
DATE = re.compile(rb"\r\nDate: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT(?=\r\n)")
IDS = frozenset({"id", "seq", "oid", "crc"})
PHASES_WITH_WORK = (Phase.HANDLING, Phase.ANSWER)


async def until(condition: Callable[[], object]) -> None:
    """Wait in small steps: thousands of posts take a moment each."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.0005)


class Line(asyncio.Transport):
    """A connection's transport in memory: segments are as the test cuts them."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 40_000)})
        self.written = b""
        self.is_open = self.reads = True
        self.protocol: asyncio.BaseProtocol | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert self.is_open
        self.written += data

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False

    abort = close

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def get_write_buffer_size(self) -> int:
        return 0

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol


class Client:
    """A connection to a site."""

    def __init__(
        self, server: web.Server, way: ShortWay | None, address: str, gate: ConnectionLimiter
    ) -> None:
        self.line = Line(address)
        self.guard = Guard(server, Refusals(FakeClock()), gate, way=way)
        self.guard.connection_made(self.line)
        self.line.protocol = self.guard

    @property
    def handler(self) -> Handler:
        behind = self.guard._behind
        assert isinstance(behind, Handler)
        return behind

    def send(self, data: bytes) -> None:
        assert isinstance(self.line.protocol, asyncio.Protocol)
        self.line.protocol.data_received(data)

    def phase(self) -> Phase:
        return self.handler.doing().phase

    async def ask(self, *segments: bytes) -> bytes:
        """Everything that is written until the connection waits for its client, without the dates."""
        for segment in segments:
            await asyncio.sleep(0)
            if self.line.is_open:
                self.send(segment)
        # Twice, because aiohttp's task takes a turn of the loop to begin with what has arrived.
        for _ in range(2):
            await asyncio.sleep(0)
            await until(lambda: self.phase() not in PHASES_WITH_WORK)
        written, self.line.written = self.line.written, b""
        return DATE.sub(b"", written)

    async def end(self) -> None:
        if isinstance(self.line.protocol, asyncio.Protocol):
            self.line.close()
            self.line.protocol.connection_lost(None)
        await asyncio.sleep(0)


class Site:
    """The whole HTTP side with a store of its own, with or without the short way."""

    def __init__(self, folder: Path, *, short: bool) -> None:
        self.clock = FakeClock(1_772_616_600.0)
        self.folder = folder
        self.short = short
        self.ends = AsyncExitStack()

    async def start(self) -> None:
        self.folder.mkdir()
        self.store = SqliteStore(self.folder)
        await self.store.open()
        self.ends.push_async_callback(self.store.close)
        self.services: Services = build_services(self.store, self.folder, self.clock, 10_000)
        await self.services.access.start()
        await self.services.intake.start()
        self.ingest = HttpIngest(
            self.services.intake, self.services.access, self.clock, Admission(self.clock)
        )
        routes = self.ingest.routes(), self.ingest.alias_routes()
        self.app = site.build(self.services, *routes)
        self.runner = web.AppRunner(self.app, **SERVER)
        await self.runner.setup()
        self.ends.push_async_callback(self.runner.cleanup)
        self.way = self.ingest.short_way()
        assert self.way is not None
        self.paths = self.way._paths

    def connect(self, address: str = HERE, gate: ConnectionLimiter | None = None) -> Client:
        assert self.runner.server is not None
        gate = gate or ConnectionLimiter(Stats())
        client = Client(self.runner.server, self.way if self.short else None, address, gate)
        self.ends.push_async_callback(client.end)
        return client

    def stored(self) -> list[str]:
        """Everything that is stored of readings, payloads and devices, but ids and what depends on them."""
        found: list[str] = []
        with sqlite3.connect(self.folder / "gateway.sqlite3") as base:
            base.row_factory = sqlite3.Row
            keys = dict(base.execute("SELECT id, key FROM devices").fetchall())
            for table in ("readings", "quarantine", "devices", "inbox"):
                for row in base.execute(f"SELECT * FROM {table}"):  # noqa: S608
                    values = {name: row[name] for name in row.keys() if name not in IDS}  # noqa: SIM118
                    found.append(f"{table} {keys.get(values.pop('device_id', 0))} {values}")
        # Sorted, because the readings of one payload are stored together, in any order.
        return sorted(found)

    def counts(self) -> dict[str, Any]:
        stats = self.services.stats
        return {name: getattr(stats, name) for name in stats.__slots__ if name not in {"parts"}}


Sites = tuple[Site, Site]


@pytest.fixture
async def short(tmp_path: Path) -> AsyncIterator[Site]:
    """A site with the short way."""
    site = Site(tmp_path / "short", short=True)
    await site.start()
    yield site
    await site.ends.aclose()


@pytest.fixture
async def sites(tmp_path: Path, short: Site) -> AsyncIterator[Sites]:
    """A site with the short way, and another without it."""
    long = Site(tmp_path / "long", short=False)
    await long.start()
    yield short, long
    await long.ends.aclose()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The segments that go the short way."""
    found: list[bytes] = []
    take = PostHandler.take

    def noted(handler: PostHandler, data: bytes) -> bool:
        is_taken = take(handler, data)
        if is_taken:
            found.append(data)
        return is_taken

    monkeypatch.setattr(Handler, "take", noted)
    return found


def post(
    target: str = "/ingest/ispindel",
    body: bytes = SPINDLE,
    more: bytes = b"User-Agent: ESP8266HTTPClient\r\nConnection: keep-alive\r\n",
    line: bytes = b"POST %b HTTP/1.1\r\n",
    host: bytes = b"Host: gateway:8080\r\n",
    length: bytes | None = None,
) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body) if length is None else length
    return line % target.encode() + host + more + length + b"\r\n" + body


def golden() -> Iterator[tuple[str, str, bytes]]:
    """The name, path and body of each post that a driver's case or a simulated device has."""
    for file in FILES:
        case = json.loads(file.read_text("utf-8"))
        if case["transport"] == "http" and case["method"] == "POST":
            yield file.stem, case["path"], (case["body"] or "").encode()
    for kind in KINDS:
        report = make(kind)
        if isinstance(report, HttpReport):
            head, _, body = report.request.partition(b"\r\n\r\n")
            if head.startswith(b"POST "):
                yield kind, head.split(b" ")[1].decode(), body


async def test_answers_and_rows_are_the_same_by_both_ways(sites: Sites, taken: list[bytes]) -> None:
    short, long = sites
    clients = {one: one.connect() for one in sites}
    failures, plain, others = [], 0, 0
    for name, path, body in golden():
        is_plain = path.encode() in short.paths and len(body) > 0
        # Twice the simulated devices, because the second reading of a device is the ordinary one.
        for number in range(2 if name in KINDS else 1):
            answers = []
            for one in sites:
                one.clock.advance(HOUR_S)
                client = clients[one] if is_plain else one.connect()
                answers.append(await client.ask(post(path, body)))
            if answers[0] != answers[1] or not answers[0].startswith(b"HTTP/1.1 2"):
                failures.append((name, number, answers))
            plain, others = plain + is_plain, others + (not is_plain)
    assert failures == []
    assert short.stored() == long.stored()
    assert short.counts() == long.counts()
    assert (len(taken), plain > 250, others > 20) == (plain, True, True)


FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
NEXT = post(more=b"", body=b'{"name":"a","ID":7,"gravity":12.5}')
GET = b"GET /ingest/ispindel?name=x HTTP/1.1\r\nHost: x\r\n\r\n"

PLAIN = {
    "all headers": post(more=FORM + b"Accept: */*\r\nAccept-Encoding: gzip\r\nCache-Control: no-cache\r\n"),
    "none but host": post(more=b""),
    "capitals": post(more=b"CONNECTION:Keep-Alive\r\nuser-agent:\t x \r\n"),
    "host of a cloud": post(host=b"Host: api.brewfather.net\r\n"),
    "empty host": post(host=b"Host:\r\n"),
    "slash at the end": post("/ingest/ispindel/"),
    "blank behind the body": post(body=SPINDLE + b" "),
    "no device": post("/", b"hello"),
    "root": post("/"),
}
"""Requests that are plain."""

ODD = {
    "own header": post(more=b"X-Firmware: 1\r\n"),
    "key": post(more=b"X-API-KEY: hg_wrong\r\n"),
    "closing": post(more=b"Connection: close\r\n"),
    "two words of connection": post(more=b"Connection: keep-alive, close\r\n"),
    "upgrade": post(more=b"Connection: upgrade\r\nUpgrade: websocket\r\n"),
    "page": post(more=b"Origin: http://evil.example\r\n"),
    "fetch": post(more=b"Sec-Fetch-Site: cross-site\r\n"),
    "forwarded": post(more=b"X-Forwarded-For: 8.8.8.8\r\n"),
    "real ip": post(more=b"X-Real-IP: 8.8.8.8\r\n"),
    "zipped": post(more=b"Content-Encoding: gzip\r\n"),
    "chunked": post(more=b"Transfer-Encoding: chunked\r\n", length=b"\r\n", body=b"3\r\nabc\r\n0\r\n\r\n"),
    "chunked with a length": post(more=b"Transfer-Encoding: chunked\r\n", body=b"3\r\nabc\r\n0\r\n\r\n"),
    "expect": post(more=b"Expect: 100-continue\r\n"),
    "no host": post(host=b""),
    "two hosts": post(host=b"Host: a\r\nHost: b\r\n"),
    "two agents": post(more=b"User-Agent: a\r\nUser-Agent: b\r\n"),
    "no length": post(length=b""),
    "two lengths": post(length=b"Content-Length: %d\r\n" % len(SPINDLE) * 2),
    "two lengths that differ": post(length=b"Content-Length: 3\r\nContent-Length: %d\r\n" % len(SPINDLE)),
    "plus": post(length=b"Content-Length: +%d\r\n" % len(SPINDLE)),
    "minus": post(length=b"Content-Length: -1\r\n"),
    "list of lengths": post(length=b"Content-Length: %d, %d\r\n" % (len(SPINDLE), len(SPINDLE))),
    "hexadecimal": post(length=b"Content-Length: 0x10\r\n"),
    "zero": post(body=b""),
    "short by one": post(length=b"Content-Length: %d\r\n" % (len(SPINDLE) - 1)),
    "zeros in front of the length": post(length=b"Content-Length: 00%d\r\n" % len(SPINDLE)),
    "too large": post(body=b"x" * 65_537),
    "huge": post(length=b"Content-Length: 99999999999999999999\r\n"),
    "bare LF": post().replace(b"\r\n", b"\n"),
    "one bare LF": post(more=b"User-Agent: x\n"),
    "bare CR": post(more=b"User-Agent: x\ry\r\n"),
    "NUL": post(more=b"User-Agent: x\0y\r\n"),
    "umlaut": post(more="User-Agent: Gär\r\n".encode()),
    "folded": post(more=b"User-Agent: x\r\n y\r\n"),
    "folded by a tab": post(more=b"User-Agent: x\r\n\ty\r\n"),
    "blank before the colon": post(more=b"User-Agent : x\r\n"),
    "no colon": post(more=b"nonsense\r\n"),
    "no name": post(more=b": x\r\n"),
    "line end in front": b"\r\n" + post(),
    "long head": post(more=b"User-Agent: " + b"x" * 600 + b"\r\n"),
    "absolute": post("http://gateway/ingest/ispindel"),
    "query": post("/ingest/ispindel?name=x"),
    "empty query": post("/ingest/ispindel?"),
    "fragment": post("/ingest/ispindel#x"),
    "percent": post("/ingest/%69spindel"),
    "two slashes": post("//ingest/ispindel"),
    "two slashes inside": post("/ingest//ispindel"),
    "dots": post("/x/../ingest/ispindel"),
    "no slash": post("ingest/ispindel"),
    "star": post("*"),
    "nobody's path": post("/nothing"),
    "API": post("/v1/recipes"),
    "label": post("/iot/red/ispindel"),
    "token": post("/ispindel/abc"),
    "parameters": post("/ingest/rapt"),
    "numbered": post("/update", b"field1=52.3"),
    "no content": post("/write", b"a,b=c d=1"),
    "exchange": post("/api/tiltbridge/device/register", b"{}"),
    "PUT": post(line=b"PUT %b HTTP/1.1\r\n"),
    "small letters": post(line=b"post %b HTTP/1.1\r\n"),
    "HTTP/1.0": post(line=b"POST %b HTTP/1.0\r\n"),
    "HTTP/1.2": post(line=b"POST %b HTTP/1.2\r\n"),
    "HTTP/2": post(line=b"POST %b HTTP/2.0\r\n"),
    "no version": post(line=b"POST %b\r\n"),
    "two blanks": post(line=b"POST  %b HTTP/1.1\r\n"),
    "blank behind": post(line=b"POST %b HTTP/1.1 \r\n"),
    "get": GET,
    "garbage": b"\x00\x01garbage\r\n\r\n",
    "garbage behind": post() + b"garbage\r\n\r\n",
    "NUL behind": post() + b"\0",
    "line end behind": post() + b"\r\n",
    "two at once": post() + NEXT,
    "three at once": post() + NEXT + GET,
    "smuggled": post(body=b"0\r\n\r\n" + NEXT, length=b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
}
"""Requests that are not plain."""


def plans() -> Iterator[tuple[str, bool, tuple[bytes, ...]]]:
    """What is sent on a connection, and whether its first segment goes the short way."""
    for name, sent in (PLAIN | ODD).items():
        yield name, name in PLAIN, (sent, NEXT)
        yield f"{name} behind a plain post", True, (NEXT, sent, NEXT)
        if name in PLAIN:
            yield f"{name} behind a request that is not plain", False, (GET, sent, NEXT)
    for place in range(1, len(NEXT)):
        yield f"cut at {place}", False, (NEXT[:place], NEXT[place:])
    for place in range(1, len(NEXT), 9):
        yield f"cut at {place} behind a plain post", True, (NEXT, NEXT[:place], NEXT[place:], NEXT)


@each("name, is_short, sent", plans())
async def test_every_request_is_answered_as_without_the_short_way(
    sites: Sites, taken: list[bytes], name: str, is_short: bool, sent: tuple[bytes, ...]
) -> None:
    taken.clear()
    answers = []
    for one in sites:
        client = one.connect()
        # Each segment waits for the answer to the one before, and the last two do not.
        found = [await client.ask(segment) for segment in sent[:-2]]
        found.append(await client.ask(*sent[-2:]))
        answers.append((found, client.phase(), client.handler.doing().request))
        await client.end()
    assert answers[0] == answers[1]
    assert (sent[0] in taken) == is_short, "the short way was not taken, or was"


class Store:
    """Stands in for the way in: a reading is on the medium when the test says so."""

    def __init__(self, one: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[tuple[Payload, Done]] = []
        self.is_slow = True
        self._quick = one.services.intake.take_now
        monkeypatch.setattr(one.services.intake, "take_now", self._take_now)

    def _take_now(self, payload: Payload, done: Done) -> bool:
        if not self.is_slow:
            return self._quick(payload, done)
        self.waiting.append((payload, done))
        return True

    def settle(self, result: Taken | Exception) -> bytes:
        """Settle the oldest reading, and return its body."""
        payload, done = self.waiting.pop(0)
        done(result)
        return payload.body


@pytest.fixture
def store(short: Site, monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(short, monkeypatch)


def doing(client: Client) -> tuple[Phase, int]:
    return client.handler.doing()[:2]


def number_of_answers(client: Client) -> int:
    return client.line.written.count(b"HTTP/1.1 200 OK")


async def test_requests_that_follow_too_soon_are_kept_back(sites: Sites, store: Store) -> None:
    client, long = (one.connect() for one in sites)
    first, second = post(), post("/ingest", b"2", more=b"Connection: keep-alive\r\n")
    client.send(first)
    assert (doing(client), client.line.reads) == ((Phase.HANDLING, 1), True)
    client.send(second)
    assert (doing(client), client.line.reads, len(store.waiting)) == ((Phase.HANDLING, 1), False, 1)
    assert store.settle(Taken()) == SPINDLE
    assert (doing(client), client.line.reads, number_of_answers(client)) == ((Phase.HANDLING, 2), True, 1)
    for segment in (second, GET[:9], GET[9:], second):
        client.send(segment)
    store.is_slow = False
    assert store.settle(Taken()) == b"2"
    answers = [await long.ask(segment) for segment in (first, second, second, GET, second)]
    assert await client.ask() == b"".join(answers)
    assert doing(client) == doing(long) == (Phase.IDLE, 5)
    assert store.waiting == []


async def test_the_stop_waits_for_the_answer_under_way(short: Site, store: Store) -> None:
    client, other, silent = (short.connect() for _ in range(3))
    for one in (client, other):
        one.send(post())
        one.send(post(body=b"too late"))
    stopping = asyncio.create_task(short.runner.cleanup())
    await until(lambda: not silent.line.is_open)
    assert (client.line.is_open, other.line.is_open) == (True, True)
    other.line.close()  # its client has gone
    store.settle(Taken())
    store.settle(Taken())
    await stopping
    assert (number_of_answers(client), number_of_answers(other)) == (1, 0)
    assert (client.line.is_open, store.waiting) == (False, [])


async def test_the_stop_does_not_wait_for_ever(
    short: Site, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: Payload) -> Taken:
        await asyncio.Event().wait()
        raise AssertionError

    quick, slow = short.connect(), short.connect()
    quick.send(post())
    monkeypatch.setattr(short.services.intake, "take_now", lambda *_: False)
    monkeypatch.setattr(short.services.intake, "take_in_steps", never)
    slow.send(post())
    await asyncio.gather(quick.handler.shutdown(0.01), slow.handler.shutdown(0.01))
    assert [one.line.is_open for one in (quick, slow)] == [False, False]
    store.settle(Taken())
    assert quick.line.written == b""
    await until(lambda: not [task for task in asyncio.all_tasks() if "take_in_steps" in repr(task)])


async def test_a_client_that_leaves_meanwhile_is_written_nothing(short: Site, store: Store) -> None:
    client = short.connect()
    client.send(post())
    client.send(post(body=b"of no answer"))
    await client.end()
    store.settle(StoreUnavailable())
    assert (client.line.written, store.waiting) == (b"", [])


BUG = Taken((cast(Report, None),))
"""A result of which no answer can be made."""


@each("result", [StoreUnavailable("full"), QuotaFull(), ShareUsedUp(), RuntimeError("a bug"), BUG])
async def test_an_error_is_answered_as_without_the_short_way(sites: Sites, result: Taken | Exception) -> None:
    async def in_steps(_: Payload) -> Taken:
        if isinstance(result, Exception):
            raise result
        return result

    def soon(_: Payload, done: Done) -> bool:
        asyncio.get_running_loop().call_soon(done, result)
        return True

    answers = []
    with pytest.MonkeyPatch.context() as patch:
        for one in sites:
            patch.setattr(one.services.intake, "take_now", lambda *_: False)
            patch.setattr(one.services.intake, "take_in_steps", in_steps)
            answers.append(await one.connect().ask(post()))
        patch.setattr(sites[0].services.intake, "take_now", soon)
        answers.append(await sites[0].connect().ask(post()))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].startswith(b"HTTP/1.1 50")


async def test_the_date_is_of_this_second(short: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    client = short.connect()
    for now in (1_772_616_600.9, 1_772_616_601.0, 1_772_616_500.0):
        monkeypatch.setattr(short_way, "time", SimpleNamespace(time=partial(float, now)))
        client.send(NEXT)
        await until(lambda: client.phase() is Phase.IDLE)
    dates = re.findall(rb"Date: Wed, 04 Mar 2026 (.*) GMT\r\n", client.line.written)
    assert dates == [b"09:30:00", b"09:30:01", b"09:28:20"]


async def test_deadlines_and_limits_are_the_same(short: Site, store: Store) -> None:
    stats = Stats()
    limits = ConnectionLimits(connections=2, head_s=0.1, idle_s=0.1, look_s=0.01)
    gate = ConnectionLimiter(stats, limits)
    clients = [short.connect(NEIGHBOUR, gate) for _ in range(2)]
    for client in clients:
        client.send(post())
    await asyncio.sleep(2 * limits.idle_s)  # work of ours has no deadline, and makes no room
    assert not short.connect("127.0.0.3", gate).line.is_open
    assert [client.line.is_open for client in clients] == [True, True]
    for _ in clients:
        store.settle(Taken())
    clients[1].send(GET[:9])
    await until(lambda: not any(client.line.is_open for client in clients))
    assert (stats.connections_refused, stats.connections_cut) == (1, 1)  # an idle one ends without a count
    assert [client.line.written.endswith(TOO_SLOW) for client in clients] == [False, True]


async def test_a_neighbours_rate_is_the_same(
    sites: Sites, taken: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "REFUSAL_S", 0.01)
    answers = []
    for one in sites:
        client = one.connect(NEIGHBOUR)
        answers.append([await client.ask(NEXT) for _ in range(int(SOURCE_BURST) + 2)])
    assert answers[0] == answers[1]
    assert [answer[:12] for answer in answers[0][-3:]] == [b"HTTP/1.1 200", b"HTTP/1.1 429", b"HTTP/1.1 429"]
    assert len(taken) == SOURCE_BURST


async def test_strangers_go_the_long_way(sites: Sites, taken: list[bytes]) -> None:
    for address in ("8.8.8.8", "2001:db8::1", ""):
        answers = [await one.connect(address).ask(NEXT) for one in sites]
        assert answers[0] == answers[1]
        assert answers[0].startswith(b"HTTP/1.1 401 ")
    for address in ("::1", "::ffff:192.168.1.7", "fe80::1%eth0"):
        answers = [await one.connect(address).ask(NEXT) for one in sites]
        assert answers[0] == answers[1]
        assert answers[0].startswith(b"HTTP/1.1 200 ")
    assert (len(taken), sites[0].stored()) == (3, sites[1].stored())


async def test_a_client_that_reads_no_answers_goes_the_long_way(short: Site, taken: list[bytes]) -> None:
    client = short.connect()
    await client.ask(NEXT)
    client.handler.pause_writing()
    client.send(NEXT)
    await until(lambda: doing(client) == (Phase.ANSWER, 2))
    client.handler.resume_writing()
    assert (await client.ask()).startswith(b"HTTP/1.1 200 ")
    assert len(taken) == 1


async def test_heads_are_remembered_within_a_bound_and_none_with_a_key(short: Site, store: Store) -> None:
    way = short.way
    assert way is not None
    heads = [
        post(more=b"User-Agent: %d\r\n" % number).partition(b"\r\n\r\n")[0] for number in range(HEADS + 5)
    ]
    assert [head for head in heads if way.read(head) is None] == []
    assert list(way.heads) == heads[5:]
    way.heads.clear()
    key = await short.services.access.add("device", frozenset({"ingest"}))
    for sent in (post(more=f"X-API-KEY: {key}\r\n".encode()), post(f"/ingest/{key}"), *ODD.values()):
        way.read(sent.partition(b"\r\n\r\n")[0])
    assert not [head for head in way.heads if key.encode() in head]
    assert max(map(len, way.heads)) <= HEAD_BYTES


async def test_where_every_report_needs_a_key_there_is_no_short_way(short: Site) -> None:
    services, clock = short.services, short.clock
    keyed = HttpIngest(services.intake, services.access, clock, Admission(clock), require_key=True)
    assert keyed.short_way() is None


async def test_the_router_finds_the_same_paths(short: Site) -> None:
    paths, request, found = short.paths, make_mocked_request("POST", "/"), {}
    for path in paths:
        match = await short.app.router.resolve(request.clone(rel_url=path.decode()))
        assert isinstance(match.handler, partial)
        found[path] = match.handler.args[0]
    assert found == {path: plain.payload.__self__ for path, plain in paths.items()}  # type: ignore[attr-defined]
    assert {b"/", b"/ingest", b"/ingest/ispindel", b"/ingest/tilt/", b"/gravity"} <= set(paths)
    assert not {b"/ingest/rapt", b"/update", b"/write", b"/ingest/influx"} & set(paths)


async def test_aiohttps_deadline_for_the_next_request_is_off(short: Site) -> None:
    """It would end a connection that has only made plain posts, after an hour and in the midst of a post."""
    client = short.connect()
    await client.ask(NEXT)
    assert client.handler._keepalive_handle is None
    await client.ask(GET)
    assert client.handler._keepalive_handle is not None
