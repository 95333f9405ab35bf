"""Attempts that leave nothing else behind are remembered: what was wrong, from where, and never more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.clock import SystemClock
from gateway.domain.key import SHOWN_CHARACTERS
from gateway.listening import HTTP, MQTT, TCP, Listeners
from gateway.network import Admission
from gateway.services.build import Services, build_services
from gateway.services.knocks import KNOCKS, MINUTE_S, Knock, KnockKind, Knocks
from gateway.settings import Settings
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.mqtt_listener import MqttListener
from gateway.transports.tcp import TcpLimits
from gateway.transports.topics import TopicMap
from tests.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.system.transports.conftest import wait_for

HOST = "127.0.0.1"
KEY = "hg_" + "A" * 43

TLS_HELLO = bytes.fromhex("16030100a5010000a10303") + bytes(60)
HEAD = b"Host: 127.0.0.1\r\nUser-Agent: ESP8266HTTPClient\r\nConnection: close\r\n"
LARGE = b"POST /ingest HTTP/1.1\r\nContent-Length: 9999999\r\n" + HEAD + b"\r\n"


def get(target: str, agent: bytes = b"ESP8266HTTPClient") -> bytes:
    return b"GET %b HTTP/1.1\r\n%b\r\n" % (target.encode(), HEAD.replace(b"ESP8266HTTPClient", agent))


def connect(level: int, user: bytes = b"", password: bytes = b"") -> bytes:
    """An MQTT CONNECT of a version, with a login if there is one."""
    flags = 0x02 | (0xC0 if user else 0)
    texts = [b"spindle", *((user, password) if user else ())]
    body = b"\x00\x04MQTT" + bytes([level, flags, 0, 60])
    body += b"".join(len(text).to_bytes(2, "big") + text for text in texts)
    return b"\x10" + bytes([len(body)]) + body


class Ports:
    """A gateway's listeners on real sockets."""

    def __init__(self, services: Services, listeners: Listeners) -> None:
        self.services = services
        self._listeners = listeners

    async def ask(self, part: str, data: bytes) -> bytes:
        """Send bytes to a listener, and return the first line of its answer."""
        [bound] = self._listeners.of(part)
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(HOST, bound.port)
            writer.write(data)
            line = await reader.readline()
            writer.close()
        return line

    async def send(self, part: str, data: bytes) -> None:
        """Send bytes to a listener, and wait until it answers or ends the connection."""
        [bound] = self._listeners.of(part)
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(HOST, bound.port)
            writer.write(data)
            with suppress(ConnectionError):
                await reader.read(1)
            writer.close()

    async def newest(self, number: int) -> Knock:
        """The newest knock, once there were so many attempts."""
        knocks = self.services.knocks
        await wait_for(lambda: sum(each.times for each in knocks.since(0)) >= number)
        return knocks.since(0)[0]


@pytest.fixture
async def ports(tmp_path: Path) -> AsyncIterator[Ports]:
    async with listening(tmp_path) as ports:
        yield ports


@asynccontextmanager
async def listening(tmp_path: Path, **more: Any) -> AsyncIterator[Ports]:
    store = SqliteStore(tmp_path)
    await store.open()
    clock, admission = SystemClock(), Admission(SystemClock())
    services = build_services(store, tmp_path, clock)
    await services.access.start()
    await services.intake.start()
    free: dict[str, Any] = {"port": 0, "tcp_port": 0, "mqtt_port": 0, "also_listen": [0]}
    settings = Settings(data_dir=tmp_path, host=HOST, **free, **more)
    async with AsyncExitStack() as inputs:
        inputs.push_async_callback(store.close)
        listeners = Listeners(settings, services, admission, lambda _: None, clock)
        inputs.callback(listeners.close)
        listeners.bind()
        await listeners.start_http(inputs)
        await listeners.start_tcp(inputs)
        mqtt = MqttListener(
            TopicMap(), clock, admission, services.stats, services.access, knocks=services.knocks
        )
        await listeners.start_mqtt(mqtt, inputs)
        yield Ports(services, listeners)


ATTEMPTS = [
    (HTTP, TLS_HELLO, KnockKind.HTTPS, ""),
    (HTTP, b"\x00\x01\x02\x03\r\n\r\n", KnockKind.NO_HTTP, ""),
    (HTTP, get(f"/isspindel/{KEY}?token=secret"), KnockKind.PATH, f"/isspindel/{KEY[:SHOWN_CHARACTERS]}"),
    ("http 0", get("/v1/recipes"), KnockKind.PATH, "/v1/recipes"),
    (HTTP, get("/manage/devices"), KnockKind.KEY, "/manage/devices"),
    (HTTP, LARGE, KnockKind.TOO_LARGE, "/ingest"),
    (MQTT, TLS_HELLO, KnockKind.MQTT_TLS, ""),
    (MQTT, get("/ingest"), KnockKind.NO_MQTT, ""),
    (MQTT, connect(7), KnockKind.MQTT_VERSION, ""),
    (MQTT, connect(4, b"x", KEY.encode()), KnockKind.MQTT_KEY, ""),
    (TCP, b'{"name":"' + b"x" * TcpLimits().object_bytes, KnockKind.TOO_LARGE, ""),
]  # fmt: skip


async def test_each_attempt_is_remembered_as_what_it_was(ports: Ports) -> None:
    for number, (part, data, kind, detail) in enumerate(ATTEMPTS, 1):
        await ports.send(part, data)
        found = await ports.newest(number)
        assert (found.kind, found.address, found.detail) == (kind, HOST, detail)
    assert KEY not in repr(ports.services.knocks.since(0))
    assert "secret" not in repr(ports.services.knocks.since(0))


async def test_what_arrives_and_people_who_look_are_no_attempts(ports: Ports) -> None:
    body = b'{"name":"iSpindel042","ID":5,"angle":52.3,"temperature":19.8,"gravity":12.48}'
    await ports.send(HTTP, b"POST / HTTP/1.1\r\nContent-Length: %d\r\n%b\r\n%b" % (len(body), HEAD, body))
    await ports.send(HTTP, get("/favicon.ico", b"Mozilla/5.0 (X11; Linux)"))
    await ports.send(HTTP, get("/ui/nothing"))
    assert ports.services.knocks.since(0) == []


async def test_a_proxy_that_names_nobody_is_refused_as_ever(tmp_path: Path) -> None:
    async with listening(tmp_path, trusted_proxy=["127.0.0.1"]) as ports:
        odd = get("/elsewhere").replace(b"Connection", b"X-Forwarded-For: nobody at all\r\nConnection")
        for part, status in ((HTTP, b"400"), ("http 0", b"404")):
            assert (await ports.ask(part, odd)).startswith(b"HTTP/1.1 " + status)
        assert ports.services.knocks.since(0) == []


def test_one_kind_of_one_address_is_one_knock_a_minute() -> None:
    start = 1_770_000_000 // MINUTE_S * MINUTE_S
    clock = FakeClock(start)
    knocks = Knocks(clock)
    for second in (0, 1, 59, 60):
        clock.jump(start + second - clock.now())
        knocks.add(KnockKind.PATH, "10.0.0.5", f"/{second}")
    knocks.add(KnockKind.HTTPS, "10.0.0.5")
    knocks.add(KnockKind.PATH, "10.0.0.6", "/x\n" + "y" * 200)
    found = [(each.kind, each.address[-1], each.times) for each in knocks.since(0)]
    assert found == [("path", "6", 1), ("https", "5", 1), ("path", "5", 1), ("path", "5", 3)]
    assert "\n" not in knocks.since(0)[0].detail
    assert len(knocks.since(0)[0].detail) == 80
    assert [each.address for each in knocks.since(start + 60)][-1] == "10.0.0.5"
    assert len(knocks.since(start + 60)) == 3


def test_no_more_than_a_hundred_are_kept() -> None:
    knocks = Knocks(FakeClock())
    for number in range(3 * KNOCKS):
        knocks.add(KnockKind.HTTPS, f"10.0.{number // 256}.{number % 256}")
    assert len(knocks.since(0)) == KNOCKS
    assert knocks.since(0)[0].address == "10.0.1.43"
