"""Ports: what is served where, what a person is told, and what goes on where a port cannot be had."""

import asyncio
import errno
import os
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway import interfaces
from gateway.clock import SystemClock
from gateway.errors import ConfigError, PortTaken
from gateway.interfaces import OwnAddress, own_addresses, public_addresses, public_warning, reach
from gateway.listening import Listeners
from gateway.network import Admission
from gateway.services.build import Services, build_services
from gateway.settings import Settings
from gateway.sockets import listen
from gateway.store.sqlite.store import SqliteStore
from gateway.tls.certificate import CertificateFiles
from gateway.transports.tcp import ACK
from tests.cases import each

HOST = "127.0.0.1"
SPINDLE = '{"name":"iSpindel042","ID":5312877,"angle":52.3,"temperature":19.8,"gravity":12.48,"interval":900}'


class Bench:
    """Listeners on real sockets; `said` is what a person sees."""

    def __init__(self, services: Services, folder: Path) -> None:
        self.parts = services
        self.said: list[str] = []
        self._folder = folder
        self._inputs = AsyncExitStack()
        self.certificate: CertificateFiles | None = None

    async def start(self, **settings: Any) -> None:
        free: dict[str, Any] = {"port": 0, "tcp_port": 0, "mqtt_port": 0, "mqtt_tls_port": 0}
        told = Settings(**{"data_dir": self._folder, "host": HOST, **free, **settings})
        clock = SystemClock()
        if told.tls_cert is not None and told.tls_key is not None:
            self.certificate = CertificateFiles(told.tls_cert, told.tls_key, self.parts.stats, clock)
        listeners = Listeners(told, self.parts, Admission(clock), self.said.append, clock, self.certificate)
        self._inputs.callback(listeners.close)
        listeners.bind()
        await listeners.start_http(self._inputs)
        await listeners.start_tcp(self._inputs)

    async def stop(self) -> None:
        await self._inputs.aclose()

    def urls(self, scheme: str) -> list[str]:
        found = (re.match(rf"{scheme.upper()} on ({scheme}://\S+)", line) for line in self.said)
        return [match[1] for match in found if match]

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
    access = "from this machine alone; local devices alone, without a key"
    assert bench.parts.stats.parts["tcp"] == f"listening on {HOST}:{port} ({access})"
    assert bench.parts.stats.parts.keys() == {"http", "page", "tcp"}
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
    for (part, remedy), (name, what) in zip(
        remedies.items(), (("TCP", "TCP"), (f"http {taken}", "HTTP")), strict=True
    ):
        [line] = [line for line in bench.said if line.startswith(f"No {name}: ")]
        assert line.startswith(f"No {name}: port {taken} on {HOST} is already in use by ")
        assert line.endswith(remedy)
        assert bench.parts.stats.parts[part] == f"{what}: {line.removeprefix(f'No {name}: ')}"


async def test_no_tcp(bench: Bench) -> None:
    await bench.start(no_tcp=True)
    assert (bench.ports("TCP on "), "tcp" in bench.parts.stats.parts) == ([], False)


async def test_a_taken_http_port_ends_the_start(bench: Bench, taken: int) -> None:
    with pytest.raises(PortTaken, match=f"HTTP: port {taken} .* another with --port"):
        await bench.start(port=taken)


async def test_several_hosts_of_each_listener(bench: Bench) -> None:
    await bench.start(http_host=[HOST, "::1", "127.0.0.2"], tcp_host=["%lo", "127.0.0.1"], also_listen=[0])
    urls = bench.urls("http")
    port = urls[0].rpartition(":")[2]
    assert urls == [f"http://{HOST}:{port}", f"http://[::1]:{port}", f"http://127.0.0.2:{port}"]
    async with aiohttp.ClientSession() as http:
        for url in urls:
            async with http.get(f"{url}/healthz") as answer:
                assert answer.status == 200
    assert len(bench.ports("Devices on ")) == 3
    [line] = [line for line in bench.said if line.startswith("TCP on ")]
    assert line.endswith("(from the network at lo; local devices alone, without a key)")
    for host in (HOST, "::1"):
        reader, writer = await asyncio.open_connection(host, bench.ports("TCP on ")[0])
        writer.write(SPINDLE.encode())
        assert await reader.readexactly(1) == ACK
        writer.close()


@each(
    "host, words",
    [
        ("", "from every network of this machine"),
        ("%eth0", "from the network at eth0"),
        ("::1", "from this machine alone"),
        ("127.0.0.9", "from this machine alone"),
        ("192.168.1.20", "from the local network"),
        ("fe80::1%eth0", "from the local network"),
        ("93.184.216.34", "from anywhere that has a way to it"),
    ],
)
def test_who_reaches_a_host(host: str, words: str) -> None:
    assert reach(host) == words


def test_a_public_address_is_a_warning_where_it_is_listened_on(monkeypatch: pytest.MonkeyPatch) -> None:
    own = [
        OwnAddress("eth0", "192.168.1.20"),
        OwnAddress("eth0", "2a00:1450::1"),
        OwnAddress("ppp0", "93.184.216.34"),
        OwnAddress("wg0", "100.64.0.1"),
        OwnAddress("lo", "::1"),
    ]
    monkeypatch.setattr(interfaces, "own_addresses", lambda: own)
    assert public_addresses([""]) == public_addresses(["%eth0", "%ppp0"]) == ["2a00:1450::1", "93.184.216.34"]
    assert public_addresses(["0.0.0.0"]) == public_addresses(["93.184.216.34"]) == ["93.184.216.34"]  # noqa: S104
    assert public_addresses(["192.168.1.20", "127.0.0.1", "fd00::1", "%lo"]) == []
    assert "the Internet may reach this gateway at 2a00:1450::1, " in public_warning(["%eth0"])
    assert public_warning(["192.168.1.20"]) == ""


def test_own_addresses_are_read_without_a_netlink_socket() -> None:
    assert {OwnAddress("lo", "127.0.0.1"), OwnAddress("lo", "::1")} <= set(own_addresses())


@each("hosts", [["%eth0", "192.168.1.20"], ["fd00::1", "%lo", "127.0.0.1"]])
def test_interfaces_and_addresses_do_not_mix(hosts: list[str]) -> None:
    with pytest.raises(ConfigError, match="give interfaces or addresses, not both"):
        Settings(http_host=hosts)


@each(
    "given, words",
    [
        ({"tls_cert": "c.pem"}, "--tls-cert and --tls-key belong together: give both"),
        ({"tls_key": "k.pem"}, "--tls-cert and --tls-key belong together: give both"),
        ({"tls_only": True}, "--tls-only needs --tls-cert and --tls-key; `tls self-signed` makes both files"),
    ],
)
def test_half_a_pair_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(**given)
    assert str(caught.value) == words


async def test_an_interface_that_is_not_there_is_named(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="cannot listen on interface nope0 port 0: no such device"):
        await bench.start(http_host=["%nope0"])


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
