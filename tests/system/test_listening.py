"""Ports: what is served where, what a person is told, and what goes on where a port cannot be had."""

import asyncio
import errno
import os
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from gateway.clock import SystemClock
from gateway.config import Settings
from gateway.errors import ConfigError, PortTaken
from gateway.listening import Listeners, listen
from gateway.network import Admission
from gateway.services.build import Services, build_services
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.tcp import ACK

HOST = "127.0.0.1"
SPINDLE = '{"name":"iSpindel042","ID":5312877,"angle":52.3,"temperature":19.8,"gravity":12.48,"interval":900}'


class Bench:
    """Listeners on real sockets; `said` is what a person sees."""

    def __init__(self, services: Services, folder: Path) -> None:
        self.parts = services
        self.said: list[str] = []
        self._folder = folder
        self._inputs = AsyncExitStack()

    async def start(self, **settings: object) -> None:
        told = Settings.model_validate(
            {"data_dir": self._folder, "host": HOST, "port": 0, "tcp_port": 0, **settings}
        )
        listeners = Listeners(told, self.parts, Admission(SystemClock()), self.said.append, SystemClock())
        self._inputs.callback(listeners.close)
        listeners.bind()
        await listeners.start_http(self._inputs)
        await listeners.start_tcp(self._inputs)

    async def stop(self) -> None:
        await self._inputs.aclose()

    def ports(self, pattern: str) -> list[int]:
        found = (re.match(pattern + r"\S*:(\d+)", line) for line in self.said)
        return [int(match[1]) for match in found if match]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, SystemClock())
    await services.access.start()
    await services.intake.start()
    bench = Bench(services, tmp_path)
    yield bench
    await bench.stop()
    await store.close()


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server((HOST, 0)) as listener:
        yield listener.getsockname()[1]


async def test_device_ports_serve_device_paths_alone(bench: Bench) -> None:
    await bench.start(also_listen=[0, 0])
    ports = bench.ports("Devices on ")
    assert len(set(ports)) == 2
    async with aiohttp.ClientSession() as http:
        for number, port in enumerate(ports):
            url = f"http://{HOST}:{port}"
            body = SPINDLE.replace("19.8", f"19.{number}")
            for path in ("/", "/ingest/ispindel", "/api/hydrometer/v1/data"):
                async with http.post(url + path, data=body) as answer:
                    assert answer.status == 200
            for path in ("/v1/recipes", "/manage/keys", "/healthz", "/docs", "/openapi.json", "/elsewhere"):
                async with http.get(url + path) as answer:
                    assert (answer.status, (await answer.json())["message"]) == (404, "not-found")


async def test_an_odd_request_is_taken_on_a_device_port_too(bench: Bench) -> None:
    await bench.start(also_listen=[0])
    [port] = bench.ports("Devices on ")
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(f"POST ingest/ispindel HTTP/1.1\r\nContent-Length: {len(SPINDLE)}\r\n\r\n{SPINDLE}".encode())
    assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
    writer.close()


async def test_the_tcp_port_is_said_and_works(bench: Bench) -> None:
    await bench.start()
    [port] = bench.ports("TCP on ")
    assert bench.parts.stats.parts["tcp"] == f"listening on {HOST}:{port}"
    assert bench.parts.stats.parts.keys() == {"http", "tcp"}
    assert bench.parts.stats.in_trouble == set()
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(SPINDLE.encode())
    assert await reader.readexactly(1) == ACK
    writer.close()


async def test_taken_ports_of_devices_leave_the_rest_alone(bench: Bench, taken: int) -> None:
    await bench.start(tcp_port=taken, also_listen=[taken, 0])
    assert len(bench.ports("HTTP on ")) == len(bench.ports("Devices on ")) == 1
    remedies = {
        "tcp": "choose another with --tcp-port, or --no-tcp",
        f"http {taken}": f"leave out --also-listen {taken}",
    }
    assert bench.parts.stats.in_trouble == remedies.keys()
    for part, remedy in remedies.items():
        [line] = [line for line in bench.said if line.startswith(f"No {part}: ")]
        assert f"port {taken} on {HOST} is already in use; " in line
        assert line.endswith(remedy)
        assert line == f"No {part}: {bench.parts.stats.parts[part]}"


async def test_no_tcp(bench: Bench) -> None:
    await bench.start(no_tcp=True)
    assert (bench.ports("TCP on "), "tcp" in bench.parts.stats.parts) == ([], False)


async def test_a_taken_http_port_ends_the_start(bench: Bench, taken: int) -> None:
    with pytest.raises(PortTaken, match=f"HTTP: port {taken} .* another with --port"):
        await bench.start(port=taken)


def test_a_privileged_port_names_the_way_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> socket.socket:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(socket, "create_server", refuse)
    with pytest.raises(
        ConfigError, match=r"port 80: .*; allow it with `sysctl net\.ipv4\.ip_unprivileged_port_start=80`"
    ):
        listen("HTTP", "", 80, "")
    with pytest.raises(ConfigError, match=r"port 8080: this user may not do that$"):
        listen("HTTP", HOST, 8080, "")
