"""The short way for plain posts: what it takes, and that nobody can tell it from the way through aiohttp."""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gateway import site
from gateway.errors import QuotaFull, ShareUsedUp, StoreUnavailable
from gateway.http import short_way
from gateway.http.connections import ConnectionLimiter, Phase
from gateway.http.guard import SERVER, Guard, Handler, Refusals
from gateway.http.short_way import HEAD_BYTES, HEADS, PLAIN_HEADERS, PostHandler, ShortWay
from gateway.network import SOURCE_BURST, Admission
from gateway.services.build import Services, build_services
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.http import HttpIngest
from sample_devices.wire.report import HttpReport
from tests.cases import each
from tests.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.payloads import ispindel
from tests.pure.drivers.test_cases import FILES
from tests.pure.sample_devices.golden import KINDS, make
from tests.system.transports.conftest import wait_for

HERE, NEIGHBOUR = "127.0.0.1", "127.0.0.2"
HOUR_S = 3600.0
SPINDLE = ispindel(7).encode()
PHASES_WITH_WORK = (Phase.HANDLING, Phase.ANSWER)


async def until(condition: Callable[[], object]) -> None:
    """Wait in small steps: thousands of posts take a moment each."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
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

    def __init__(self, server: web.Server, way: ShortWay | None, address: str) -> None:
        self.line = Line(address)
        gate = ConnectionLimiter(Stats())
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
        """Everything that is written until the connection waits for its client, without the times of answers."""
        for segment in segments:
            await asyncio.sleep(0)
            if self.line.is_open:
                self.send(segment)
        # Twice, because aiohttp's task takes a turn of the loop to begin with what has arrived.
        for _ in range(2):
            await asyncio.sleep(0)
            await until(lambda: self.phase() not in PHASES_WITH_WORK)
        written, self.line.written = self.line.written, b""
        return re.sub(rb"\r\nDate: [^\r]*", b"", written)

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

    def connect(self, address: str = HERE) -> Client:
        assert self.runner.server is not None
        client = Client(self.runner.server, self.way if self.short else None, address)
        self.ends.push_async_callback(client.end)
        return client

    def stored(self) -> list[tuple[Any, ...]]:
        """Everything that is stored of readings and payloads, without ids, in an order of its own.

        The readings of one payload are stored together, in any order.
        """
        with sqlite3.connect(self.folder / "gateway.sqlite3") as base:
            base.create_function("plain", 1, repr)
            found = [
                row
                for table in ("readings", "quarantine", "devices", "deliveries")
                for row in base.execute(STORED[table])
            ]
        return sorted(found, key=repr)

    def counts(self) -> dict[str, Any]:
        stats = self.services.stats
        return {name: getattr(stats, name) for name in stats.__slots__ if name not in {"parts"}}


@pytest.fixture
async def sites(tmp_path: Path) -> AsyncIterator[tuple[Site, Site]]:
    """A site with the short way, and another without it."""
    both = Site(tmp_path / "short", short=True), Site(tmp_path / "long", short=False)
    for one in both:
        await one.start()
    yield both
    for one in both:
        await one.ends.aclose()


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
    length: bytes = b"",
) -> bytes:
    length = length or b"Content-Length: %d\r\n" % len(body)
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


async def test_answers_and_rows_are_the_same_by_both_ways(sites: tuple[Site, Site], taken: list[bytes]) -> None:
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
