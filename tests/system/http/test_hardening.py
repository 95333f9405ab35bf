"""Every answer's headers, host names that are not ours, requests without a key, and documents made once."""

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from gateway import site
from gateway.clock import SystemClock
from gateway.http import guard
from gateway.http.browsers import OwnHosts
from gateway.http.connections import TOO_SLOW
from gateway.http.guard import SERVER, GuardedSite, Refusals
from gateway.http.gzipped import takes_gzip
from gateway.http.hardening import HTML_POLICY, KEYLESS_BURST, SAFE_HEADERS
from gateway.network import Admission
from gateway.services.build import Services, build_services
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.http import HttpIngest
from tests.cases import each
from tests.patience import PATIENCE_S
from tests.system.transports.conftest import wait_for

SPINDLE = (
    b'{"name":"iSpindel042","ID":5312877,"angle":52.3,"temperature":19.8,"gravity":12.48,"interval":900}'
)


class Bench:
    """The whole site behind the guard on a real socket."""

    def __init__(self, services: Services, key: str) -> None:
        self.services, self.key = services, key

    async def start(self) -> None:
        services = self.services
        ingest = HttpIngest(
            services.intake,
            services.access,
            services.clock,
            Admission(services.clock),
            stats=services.stats,
        )
        hosts = OwnHosts(["brew.example.org"], machine="pi")
        app = site.build(services, ingest.routes(), ingest.alias_routes(), hosts=hosts)
        self.runner = web.AppRunner(app, **SERVER)
        await self.runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        await GuardedSite(self.runner, listener, Refusals(SystemClock())).start()

    async def open(self, source: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0))

    async def ask(
        self, line: str, *headers: str, body: bytes = b"", source: str = "127.0.0.1"
    ) -> tuple[str, dict[str, str], bytes]:
        """Status line, headers in lower case, and body of one request on a connection of its own."""
        named = headers if any(h.lower().startswith("host:") for h in headers) else ("Host: pi", *headers)
        lines = [f"{line} HTTP/1.1", *named, f"Content-Length: {len(body)}", "Connection: close", "", ""]
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await self.open(source)
            writer.write("\r\n".join(lines).encode() + body)
            head, _, rest = (await reader.read()).partition(b"\r\n\r\n")
            writer.close()
        status, *fields = head.decode("latin-1").split("\r\n")
        return status, {f.partition(":")[0].lower(): f.partition(":")[2].strip() for f in fields}, rest


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, SystemClock())
    first = await services.access.start(first_key="test")
    assert first is not None
    await services.intake.start()
    bench = Bench(services, first.key_text)
    await bench.start()
    yield bench
    await bench.runner.cleanup()
    await store.close()


ANSWERS = (
    ("POST /ingest", SPINDLE, 200),
    ("GET /", b"", 200),
    ("GET /ingest?temp=20&x=Mozilla", b"", 200),
    ("GET /healthz", b"", 200),
    ("HEAD /healthz", b"", 200),
    ("GET /docs", b"", 200),
    ("GET /openapi.json", b"", 200),
    ("GET /v1/recipes", b"", 401),
    ("GET /nothing", b"", 404),
    ("DELETE /ingest", b"", 405),
    ("OPTIONS /healthz", b"", 204),
    ("POST /ingest", b"x" * 70_000, 413),
    ("GET /v1/recipes?a b", b"", 400),
    ("TRACE\x01 /", b"", 400),
)


@each("line, body, status", ANSWERS)
async def test_every_answer_has_the_headers_and_none_names_the_server(
    bench: Bench, line: str, body: bytes, status: int
) -> None:
    first, headers, _ = await bench.ask(line, body=body)
    assert first.split(" ")[1] == str(status)
    assert {name: headers.get(name.lower()) for name in SAFE_HEADERS} == SAFE_HEADERS
    assert "server" not in headers
    if "text/html" in headers.get("content-type", ""):
        assert headers["content-security-policy"].endswith(HTML_POLICY)


async def test_refusals_have_the_headers_too(bench: Bench) -> None:
    page = ("GET /ingest?temp=20", "User-Agent: Mozilla/5.0")
    foreign, evil = ("GET /docs", "Host: evil.example"), ("POST /ingest", "Origin: http://evil.example")
    for line, header in (page, foreign, evil):
        first, headers, _ = await bench.ask(line, header)
        assert first.startswith("HTTP/1.1 403 ")
        assert {name: headers.get(name.lower()) for name in SAFE_HEADERS} == SAFE_HEADERS
        assert "server" not in headers
    assert headers["content-type"].startswith("application/json")
    assert all(f"\r\n{name}: {value}\r\n".encode() in TOO_SLOW for name, value in SAFE_HEADERS.items())


async def test_a_browser_that_would_report_by_an_address_gets_a_page(bench: Bench) -> None:
    line, agent = "GET /ingest/gravitymon?name=g&id=7f3a2c&gravity=1.0456", "User-Agent: Mozilla/5.0 (X11)"
    first, headers, body = await bench.ask(line, agent)
    assert (first[:12], headers["content-type"]) == ("HTTP/1.1 403", "text/html; charset=utf-8")
    assert b"A browser cannot report; use POST, or a key in the path." in body
    assert await bench.services.store.readings.count() == 0
    line = line.replace("gravitymon?", f"gravitymon/{bench.key}?")
    assert (await bench.ask(line, agent))[0].startswith("HTTP/1.1 200 ")
    assert await bench.services.store.readings.count() == 1
    assert bench.services.stats.pages_refused == 1


@each("header", ["X-API-KEY: {}", "Authorization: Bearer {}", "X-Webhook-Token: {}"])
async def test_a_page_that_knows_a_key_may_report(bench: Bench, header: str) -> None:
    page = ("Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "User-Agent: Mozilla/5.0")
    first, _, _ = await bench.ask("POST /ingest", *page, header.format(bench.key), body=SPINDLE)
    assert first.startswith("HTTP/1.1 200 ")
    first, _, _ = await bench.ask("POST /ingest", *page, header.format("hg_wrong"), body=SPINDLE)
    assert first.startswith("HTTP/1.1 403 ")


FOREIGN = ("evil.example", "evil.example:8080", "pi.evil.example", "industrial.api.ubidots.com")


@each("host", FOREIGN)
async def test_a_foreign_host_reaches_device_paths_alone(bench: Bench, host: str) -> None:
    named = f"Host: {host}"
    for path in ("/healthz", "/docs", "/openapi.json", "/metrics", "/v1/recipes", "/manage/keys", "/nothing"):
        first, _, body = await bench.ask(f"GET {path}", named, f"X-API-KEY: {bench.key}")
        assert first.startswith("HTTP/1.1 403 ")
        name = host.partition(":")[0]
        words = f"this gateway does not go by the name {name}; `--hostname {name}`"
        assert json.loads(body) == {"message": "failure", "detail": words}
    for path in ("/", "/ingest/ispindel", "/api/v1.6/devices/x/"):
        assert (await bench.ask(f"POST {path}", named, body=SPINDLE))[0].startswith("HTTP/1.1 200 ")


async def test_refused_hosts_are_counted_and_our_own_names_pass(bench: Bench) -> None:
    await bench.ask("GET /healthz", "Host: evil.example")
    assert bench.services.stats.hosts_refused == 1
    for host in ("pi", "pi.local:8080", "127.0.0.1", "[::1]:1", "brew.example.org", ""):
        assert (await bench.ask("GET /healthz", f"Host: {host}"))[0].startswith("HTTP/1.1 200 ")
    reader, writer = await bench.open()
    writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.0 200 ")
    writer.close()


async def test_a_neighbour_without_a_key_has_a_rate_and_this_machine_has_none(bench: Bench) -> None:
    burst = int(KEYLESS_BURST)
    asked = [await bench.ask("GET /healthz", source="127.0.0.9") for _ in range(burst + 10)]
    statuses = [first.split(" ")[1] for first, _, _ in asked]
    assert statuses[:burst] == ["200"] * burst
    assert "429" in statuses
    refused = next(headers for first, headers, _ in asked if " 429 " in first)
    assert int(refused["retry-after"]) >= 1
    key = f"X-API-KEY: {bench.key}"
    assert " 200 " in (await bench.ask("GET /healthz", key, source="127.0.0.9"))[0]
    assert " 200 " in (await bench.ask("POST /ingest", body=SPINDLE, source="127.0.0.9"))[0]
    assert " 200 " in (await bench.ask("GET /healthz", source="127.0.0.8"))[0]
    here = {(await bench.ask("GET /healthz"))[0].split(" ")[1] for _ in range(burst + 10)}
    assert here == {"200"}


async def test_a_description_is_sent_as_the_client_takes_it_and_only_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("/openapi.json", "/docs"):
        _, plain, body = await bench.ask(f"GET {path}")
        _, packed, compressed = await bench.ask(f"GET {path}", "Accept-Encoding: br, gzip")
        assert ("content-encoding" in plain, packed["content-encoding"]) == (False, "gzip")
        assert gzip.decompress(compressed) == body
        assert len(compressed) * 4 < len(body)
        assert plain["etag"] != packed["etag"]
        assert plain["vary"] == packed["vary"] == "Accept-Encoding"
        for tag in (plain["etag"], packed["etag"], f'"other", {plain["etag"]}', "*"):
            first, headers, nothing = await bench.ask(f"GET {path}", f"If-None-Match: {tag}")
            assert (first[:12], nothing) == ("HTTP/1.1 304", b"")
            assert headers["etag"] == plain["etag"]
        for tag in (f"W/{plain['etag']}x", '"other"', "nonsense"):
            first, _, _ = await bench.ask(f"GET {path}", f"If-None-Match: {tag}")
            assert first.startswith("HTTP/1.1 200 ")
        monkeypatch.setattr(gzip, "compress", None)
        _, again, _ = await bench.ask(f"HEAD {path}", "Accept-Encoding: gzip")
        monkeypatch.undo()
        assert again["content-length"] == str(len(compressed))


@each(
    "accepted, takes",
    [
        *((text, True) for text in ("gzip", "GZIP", "deflate, gzip;q=0.5", "*", "br, *;q=0.1", "gzip;q=1.0")),
        *(
            (text, False)
            for text in ("", "identity", "br", "gzip;q=0", "gzip; q=0.000", "*;q=0", "gzip;q=0, *")
        ),
    ],
)
async def test_accept_encoding(accepted: str, takes: bool) -> None:
    assert takes_gzip(accepted) is takes


async def test_a_connection_holds_one_large_answer_at_a_time(bench: Bench) -> None:
    """A client that asks a hundred times and reads nothing costs the memory of one or two answers."""
    lines = b"GET /openapi.json HTTP/1.1\r\nHost: pi\r\n\r\n"
    _, headers, _ = await bench.ask("GET /openapi.json")
    size = int(headers["content-length"])
    held: list[asyncio.Transport] = []
    made = guard.Guard.connection_made

    def note(self: guard.Guard, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        held.append(transport)
        made(self, transport)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard.Guard, "connection_made", note)
        reader, writer = await bench.open()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(lines * 100)
        await wait_for(lambda: held and held[0].get_write_buffer_size() > 0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert held[0].get_write_buffer_size() < 2 * size
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(3):
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 ")
                await reader.readexactly(size)
        writer.close()
