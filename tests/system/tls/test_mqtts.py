"""MQTT over TLS on real sockets: verified, renewed, counted before the handshake, quiet about probes."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from gateway.clock import SystemClock
from gateway.stats import Stats
from gateway.tls.certificate import CertificateFiles
from gateway.transports.mqtt_limits import MqttLimits
from gateway.transports.paho_bridge import Bridge
from tests.patience import PATIENCE_S
from tests.program.program import until
from tests.system.tls.conftest import Pair, made_in
from tests.system.transports.conftest import ScriptedBroker, open_port, wait_for
from tests.system.transports.test_mqtt_listener import Parts, connect_packet

HOST = "127.0.0.1"
CONNACK = b"\x20\x02\x00\x00"
LIMITS = MqttLimits()


@asynccontextmanager
async def secure_port(pair: Pair) -> AsyncIterator[tuple[Parts, int, CertificateFiles]]:
    parts = Parts()
    files = CertificateFiles(*pair.files, Stats(), SystemClock())
    async with parts.listening():
        yield parts, await open_port(parts.bridge, files.context), files


async def visit(port: int, pair: Pair, name: str, source: str = HOST) -> asyncio.StreamWriter:
    """Publish a reading at QoS 1, and return once it is acknowledged."""
    context = ssl.create_default_context(cafile=pair.certificate)
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection(
            HOST, port, ssl=context, server_hostname=name, local_addr=(source, 0)
        )
        writer.write(connect_packet(b"x"))
        assert await reader.readexactly(4) == CONNACK
        topic = b"hydrometer/red"
        body = bytes([0, len(topic)]) + topic + b"\x00\x07" + b'{"n":1}'
        writer.write(bytes([0x32, len(body)]) + body)
        assert await reader.readexactly(4) == b"\x40\x02\x00\x07"
    return writer


async def test_a_verified_client_is_acknowledged_before_and_after_a_renewal(
    pair: Pair, other: Pair, tmp_path: Path
) -> None:
    mine = Pair(tmp_path / "c.pem", tmp_path / "k.pem", pair.content)
    for path, content in zip(mine.files, pair.files, strict=True):
        path.write_bytes(content.read_bytes())
    async with secure_port(mine) as (parts, port, files):
        before = await visit(port, pair, "brew.example")
        for path, content in zip(mine.files, other.files, strict=True):
            path.write_bytes(content.read_bytes())
        await files.reload()
        after = await visit(port, other, "other.example")
        assert len(parts.intake.stored) == 2
        before.write(b"\xc0\x00")
        await before.drain()
        assert not before.is_closing()
        for writer in (before, after):
            writer.close()


async def test_a_handshake_is_counted_before_it_is_done(pair: Pair) -> None:
    async with secure_port(pair) as (parts, port, _):
        crowd = [
            await asyncio.open_connection(HOST, port, local_addr=("127.0.0.2", 0))
            for _ in range(LIMITS.tls_per_source)
        ]
        await until(lambda: parts.stats.mqtt.connections == LIMITS.tls_per_source)
        reader, writer = await asyncio.open_connection(HOST, port, local_addr=("127.0.0.2", 0))
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b"", "one more of the same source is closed at once"
        honest = await visit(port, pair, "brew.example", "127.0.0.3")
        for each in (writer, honest, *(other for _, other in crowd)):
            each.close()
        await until(lambda: parts.stats.mqtt.connections == 0)


async def test_probes_and_broken_handshakes_leave_nothing_and_say_nothing(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    async with secure_port(pair) as (parts, port, _):
        context = ssl.create_default_context(cafile=pair.certificate)
        for sent in (None, b"", b"\x16\x03\x01\x00\xf8\x01"):
            tls = context if sent is None else None
            name = "brew.example" if sent is None else None
            _, writer = await asyncio.open_connection(HOST, port, ssl=tls, server_hostname=name)
            writer.write(sent or b"")
            await until(lambda: parts.stats.mqtt.connections == 1)
            writer.close()
            await until(lambda: parts.stats.mqtt.connections == 0)
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(connect_packet(b"plain"))
        async with asyncio.timeout(PATIENCE_S):
            await reader.read()
        writer.close()
        await until(lambda: parts.stats.mqtt.connections == 0)
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []


def _has_state(bridge: Bridge, words: str) -> bool:
    return bridge.state.startswith(words)


# paho leaves the socket of a failed handshake to the garbage collection.
@pytest.mark.filterwarnings("ignore:.*<ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")
async def test_a_broker_elsewhere_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Pair
) -> None:
    mine = made_in(tmp_path, "localhost")
    broker, context = ScriptedBroker(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*mine.files)
    await broker.start(context, "localhost")
    for trusted, words in ((other, "cannot reach"), (mine, "connected to")):
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted.certificate))
        bridge = Bridge(broker.url, "gateway-test", ["hydrometer/+"], SystemClock())
        bridge.start()
        await wait_for(partial(_has_state, bridge, words))
        await bridge.stop()
    await wait_for(lambda: broker.heard == [0x10, 0x82, 0xE0])
    await broker.stop()
