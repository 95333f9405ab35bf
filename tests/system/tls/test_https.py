"""HTTPS on real sockets: verified answers, who is counted when, clients that break off, renewal."""

import asyncio
import logging
import socket
import ssl
import struct
from asyncio import sslproto
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from gateway import listening
from gateway.http.connections import TLS_CONNECTIONS, TLS_PER_SOURCE, ConnectionLimits
from gateway.http.guard import Handler
from gateway.tls import server
from gateway.tls.server import READ_BYTES
from tests.cases import each
from tests.patience import PATIENCE_S
from tests.program.program import until
from tests.system.test_listening import HOST, SPINDLE, Bench
from tests.system.test_listening import bench as bench  # the fixture
from tests.system.tls.conftest import Pair


async def start(bench: Bench, pair: Pair, **more: object) -> int:
    """Start with this pair; the port of HTTPS."""
    await bench.start(tls_cert=pair.certificate, tls_key=pair.key, tls_port=0, **more)
    return int(bench.urls("https")[0].rpartition(":")[2])


def trust(pair: Pair) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=pair.certificate)


async def secure(
    port: int, pair: Pair, source: str = HOST
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(PATIENCE_S):
        return await asyncio.open_connection(
            HOST, port, ssl=trust(pair), server_hostname="brew.example", local_addr=(source, 0)
        )


async def silent(port: int, source: str) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection(HOST, port, local_addr=(source, 0))
    return writer


async def health(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: brew.example\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: "))
        await reader.readexactly(int(length.split()[1]))
    return head.split(b"\r\n")[0]


async def test_verified_answers_at_every_host(bench: Bench, pair: Pair) -> None:
    await start(bench, pair, http_host=[HOST, "::1"])
    assert len(bench.urls("http")) == len(bench.urls("https")) == 2
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust(pair))) as http:
        for number, url in enumerate(bench.urls("https")):
            async with http.get(f"{url}/healthz") as answer:
                assert answer.status == 200
            async with http.post(f"{url}/ingest", data=SPINDLE.replace("19.8", f"19.{number}")) as answer:
                assert answer.status == 200
    assert bench.parts.stats.stored == 2


async def test_tls_only_leaves_device_paths_to_plain_http(bench: Bench, pair: Pair) -> None:
    await start(bench, pair, tls_only=True)
    [plain], [safe] = bench.urls("http"), bench.urls("https")
    [line] = [line for line in bench.said if line.startswith("HTTP on ")]
    assert "API" not in line
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust(pair))) as http:
        for path in ("/v1/recipes", "/manage/keys", "/healthz", "/docs", "/openapi.json", "/metrics"):
            async with http.get(plain + path) as answer:
                assert (answer.status, path) == (404, path)
        async with http.post(f"{plain}/ingest", data=SPINDLE) as answer:
            assert answer.status == 200
        async with http.get(f"{safe}/healthz") as answer:
            assert answer.status == 200


async def test_plain_posts_go_the_short_way_at_every_listener(
    bench: Bench, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, take = list[bool](), Handler.take

    def noted(handler: Handler, data: bytes) -> bool:
        taken.append(take(handler, data))
        return taken[-1]

    safe = await start(bench, pair, tls_only=True, also_listen=[0])
    monkeypatch.setattr(Handler, "take", noted)
    ports = *bench.ports("HTTP on "), *bench.ports("Devices on ")
    connections = [await secure(safe, pair), *[await asyncio.open_connection(HOST, port) for port in ports]]
    for reader, writer in connections:
        for body in (SPINDLE, SPINDLE.replace("19.8", "19.9")):
            head = f"POST /ingest HTTP/1.1\r\nHost: brew.example\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write((head + body).encode())
            async with asyncio.timeout(PATIENCE_S):
                answer = await reader.readuntil(b"}")
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()
    assert taken == [True] * 6


async def test_a_handshake_is_counted_before_it_is_done(bench: Bench, pair: Pair) -> None:
    port = await start(bench, pair)
    stats = bench.parts.stats
    crowd = [await silent(port, "127.0.0.2") for _ in range(TLS_PER_SOURCE)]
    await until(lambda: stats.connections == TLS_PER_SOURCE)
    reader, writer = await asyncio.open_connection(HOST, port, local_addr=("127.0.0.2", 0))
    assert await reader.read() == b"", "one more of the same source is closed at once"
    writer.close()
    assert stats.connections_refused == 1
    honest = await secure(port, pair, "127.0.0.3")
    assert await health(*honest) == b"HTTP/1.1 200 OK"
    for each_writer in (*crowd, honest[1]):
        each_writer.close()
    await until(lambda: stats.connections == 0)


async def test_a_crowd_of_many_sources_makes_room_for_a_newcomer(bench: Bench, pair: Pair) -> None:
    port = await start(bench, pair)
    crowd = [
        await silent(port, f"127.0.0.{2 + number // TLS_PER_SOURCE}") for number in range(TLS_CONNECTIONS + 8)
    ]
    await until(lambda: bench.parts.stats.connections == TLS_CONNECTIONS)
    honest = await secure(port, pair, "127.0.0.99")
    assert await health(*honest) == b"HTTP/1.1 200 OK"
    assert bench.parts.stats.connections <= TLS_CONNECTIONS
    for writer in (*crowd, honest[1]):
        writer.close()
    await until(lambda: bench.parts.stats.connections == 0)


HELLO = bytes.fromhex("16030100f8010000f40303")
"""The beginning of a ClientHello, without the rest."""


@each(
    "sent, reset",
    [
        (b"", False),
        (b"", True),
        (HELLO, False),
        (HELLO, True),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", False),
        (b"\x16\x03\x01\xff\xff" + b"x" * 3000, True),
    ],
)
async def test_a_broken_handshake_leaves_nothing_behind(
    bench: Bench, pair: Pair, caplog: pytest.LogCaptureFixture, sent: bytes, reset: bool
) -> None:
    port = int((bench.urls("https") or [f":{await start(bench, pair)}"])[0].rpartition(":")[2])
    with socket.create_connection((HOST, port)) as client:
        await until(lambda: bench.parts.stats.connections == 1)
        client.sendall(sent)
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await until(lambda: bench.parts.stats.connections == 0)
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []


async def test_a_probe_without_a_request_makes_no_log_line(
    bench: Bench, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    port = await start(bench, pair)
    _, writer = await secure(port, pair)
    await until(lambda: bench.parts.stats.connections == 1)
    writer.close()
    await until(lambda: bench.parts.stats.connections == 0)
    distrustful = ssl.create_default_context()
    with pytest.raises(ssl.SSLCertVerificationError):
        await asyncio.open_connection(HOST, port, ssl=distrustful)
    await until(lambda: bench.parts.stats.connections == 0)
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []


async def test_a_connection_that_stays_silent_is_ended_without_a_log_line(
    bench: Bench, pair: Pair, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = partial(ConnectionLimits, first_byte_s=0.1, look_s=0.02)
    monkeypatch.setattr(listening, "ConnectionLimits", hasty)
    port = await start(bench, pair)
    reader, writer = await secure(port, pair)
    async with asyncio.timeout(PATIENCE_S):
        assert await reader.read() == b""
    writer.close()
    await until(lambda: bench.parts.stats.connections == 0)
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []


async def test_a_handshake_has_a_deadline(bench: Bench, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HANDSHAKE_S", 0.1)
    port = await start(bench, pair)
    reader, writer = await asyncio.open_connection(HOST, port)
    async with asyncio.timeout(PATIENCE_S):
        assert await reader.read() == b""
    writer.close()
    await until(lambda: bench.parts.stats.connections == 0)


async def named(bench: Bench, host: str) -> int:
    """The status for a client that calls the machine by this name."""
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{bench.urls('http')[0]}/healthz", headers={"Host": host}) as answer,
    ):
        return answer.status


async def test_handshakes_of_one_source_have_a_rate(
    bench: Bench, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HANDSHAKE_BURST", 3.0)
    monkeypatch.setattr(server, "HANDSHAKE_RATE", 0.001)
    port = await start(bench, pair)
    for _ in range(3):
        (await secure(port, pair, "127.0.0.2"))[1].close()
    waiting = asyncio.create_task(secure(port, pair, "127.0.0.2"))
    for source in ("127.0.0.3", HOST, HOST, HOST, HOST):
        (await secure(port, pair, source))[1].close()
    assert not waiting.done()
    waiting.cancel()


async def test_open_connections_go_on_over_a_renewal(
    bench: Bench, pair: Pair, other: Pair, tmp_path: Path
) -> None:
    mine = Pair(tmp_path / "c.pem", tmp_path / "k.pem", pair.content)
    for path, content in zip(mine.files, pair.files, strict=True):
        path.write_bytes(content.read_bytes())
    port = await start(bench, mine)
    before = await secure(port, pair)
    assert await health(*before) == b"HTTP/1.1 200 OK"
    for path, content in zip(mine.files, other.files, strict=True):
        path.write_bytes(content.read_bytes())
    assert bench.certificate is not None
    assert await named(bench, "other.example") == 403
    await bench.certificate.reload()
    assert [await named(bench, name) for name in ("other.example", "brew.example", "nobody.example")] == [
        200,
        200,
        403,
    ]
    assert await health(*before) == b"HTTP/1.1 200 OK"
    _, after = await asyncio.open_connection(HOST, port, ssl=trust(other), server_hostname="other.example")
    for writer in (before[1], after):
        writer.close()


async def test_a_connection_keeps_a_small_buffer(bench: Bench, pair: Pair) -> None:
    """Fails where asyncio no longer knows the size that `server` sets."""
    port = await start(bench, pair)
    made: list[sslproto.SSLProtocol] = []
    _, writer = await secure(port, pair)
    made.append(writer.transport._ssl_protocol)  # type: ignore[attr-defined]
    assert [len(protocol._ssl_buffer) for protocol in made] == [READ_BYTES]  # type: ignore[attr-defined]
    assert made[0]._sslobj.version() in {"TLSv1.2", "TLSv1.3"}  # type: ignore[attr-defined]
    writer.close()


async def test_tls_1_1_is_refused(bench: Bench, pair: Pair) -> None:
    assert pair.content.context.minimum_version == ssl.TLSVersion.TLSv1_2
