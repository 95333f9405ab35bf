"""SIGTERM and SIGINT: within 5 seconds, exit code 0, whatever the others do; and what was begun is kept."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.cloud import KEY, ScriptedCloud, hang, running
from tests.system.cli.filling import fill

from .program import FREE_PORTS, HTTP_ONLY, Server, answer, ispindel, post, serving, until

LIMIT_S = 5.0


async def stopped_in_time(server: Server, number: signal.Signals = signal.SIGTERM) -> None:
    status, seconds = await server.stop(number)
    assert status == 0, server.errors
    assert seconds < LIMIT_S


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_with_nothing_to_do(tmp_path: Path, number: signal.Signals) -> None:
    async with serving(tmp_path, *FREE_PORTS) as server:
        await stopped_in_time(server, number)
    assert not (tmp_path / "control.sock").exists()


async def test_with_idle_connections(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, *FREE_PORTS) as server,
        aiohttp.ClientSession() as http,
        connected(server),
        connected(server) as (reader, writer),
    ):
        assert await post(http, server, ispindel()) == 200  # stays open, keep-alive
        writer.write(b"POST /ingest HTTP/1.1\r\nHost: x\r\n")
        mqtt_reader, mqtt_writer = await asyncio.open_connection("127.0.0.1", server.mqtt_port)
        mqtt_writer.write(b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01a")
        assert await mqtt_reader.readexactly(4) == b"\x20\x02\x00\x00"
        await stopped_in_time(server)
        mqtt_writer.close()
        assert b" 200 " not in await reader.read()


async def test_with_a_slow_upload(tmp_path: Path) -> None:
    async with serving(tmp_path, *HTTP_ONLY) as server, connected(server) as (reader, writer):
        writer.write(b"POST /ingest HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{")
        await writer.drain()
        await asyncio.wait_for(_health_sees_it(server), 5)
        await stopped_in_time(server)
        assert b" 200 " not in await reader.read()


async def _health_sees_it(server: Server) -> None:
    """Another request after it was answered, so the first has been looked at."""
    async with aiohttp.ClientSession() as http, http.get(server.url + "/healthz") as response:
        assert response.status == 200


@pytest.mark.timeout(300)  # filling takes longest by far
async def test_with_a_reader_that_is_stuck(tmp_path: Path) -> None:
    await fill(tmp_path, 20_000, session=True)
    async with serving(tmp_path, *HTTP_ONLY) as server:
        key = (await answer(tmp_path, "keys add x")).out.strip()
        with socket.socket() as stuck:
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stuck.settimeout(10)
            await asyncio.to_thread(stuck.connect, ("127.0.0.1", server.port))
            stuck.sendall(
                f"GET /v1/fermentation/1 HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: {key}\r\n\r\n".encode()
            )
            first = await asyncio.to_thread(stuck.recv, 64)
            assert first.startswith(b"HTTP/1.1 200 OK")
            await stopped_in_time(server)


async def test_with_an_upstream_that_hangs(tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.write_text(KEY)
    data = tmp_path / "data"
    async with running(ScriptedCloud()) as cloud:
        cloud.script.append(hang)
        options = (
            "--upstream-url",
            cloud.url,
            "--upstream-key-file",
            str(key_file),
            "--forward-seconds",
            "0",
        )
        async with serving(data, *HTTP_ONLY, *options) as server, aiohttp.ClientSession() as http:
            assert await post(http, server, ispindel()) == 200
            await answer(data, "sessions add --batchcode A --upstream-id 7")
            await answer(data, "devices assign 1 1 --since 2020-01-01")
            await cloud.until(lambda: len(cloud.imports) == 1)
            await stopped_in_time(server)


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, *HTTP_ONLY) as server, connected(server) as (_, writer):
        writer.write(b"POST /ingest HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{")
        await _health_sees_it(server)
        server.process.send_signal(signal.SIGTERM)
        await until(lambda: any("stopping" in line for line in server.errors))
        status, seconds = await server.stop(signal.SIGINT)
        assert (status, seconds < 1) == (0, True)


async def test_what_was_answered_while_it_stopped_is_stored(tmp_path: Path) -> None:
    answered: list[int] = []

    async def load(server: Server, sender: int) -> None:
        async with aiohttp.ClientSession() as http:
            for number in range(sender, 1_000_000, 4):
                try:
                    if await post(http, server, ispindel(angle=f"{number}")) == 200:
                        answered.append(number)
                except aiohttp.ClientError:
                    return

    async with serving(tmp_path, *HTTP_ONLY) as server:
        senders = [asyncio.create_task(load(server, sender)) for sender in range(4)]
        await until(lambda: len(answered) > 50)
        await stopped_in_time(server)
        await asyncio.gather(*senders)
    stored = [round(r["angle"]) for r in (await answer(tmp_path, "readings --json --last 1000000")).objects]
    assert len(stored) == len(set(stored))
    assert set(answered) <= set(stored)
