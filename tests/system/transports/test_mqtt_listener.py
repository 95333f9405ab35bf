"""The MQTT listener: devices as they are, and clients that mean no good."""

import asyncio
import json
import logging
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from gateway.clock import SystemClock
from gateway.network import Admission
from gateway.services.access import Access
from gateway.stats import Stats
from gateway.store.protocol import Store
from gateway.transports.mqtt import MqttIngest
from gateway.transports.mqtt_limits import MqttLimits
from gateway.transports.mqtt_link import MqttUrl
from gateway.transports.mqtt_listener import MqttListener
from gateway.transports.topics import TopicMap
from tests.payloads import ispindel_mqtt
from tests.system.transports.conftest import RESETS, FakeIntake, open_port, publish, wait_for

DISCONNECT = b"\xe0\x00"


class Parts:
    """The listener, and a fake intake that takes its messages."""

    def __init__(
        self, limits: MqttLimits | None = None, access: Access | None = None, *, require_key: bool = False
    ) -> None:
        self.topics, self.clock, self.stats = TopicMap(["brewery/+/+=brewpiless"]), SystemClock(), Stats()
        self.bridge = MqttListener(
            self.topics, self.clock, Admission(self.clock), self.stats, access,
            limits=limits, require_key=require_key,
        )  # fmt: skip
        self.intake, self.port = FakeIntake(), 0
        self.ingest = MqttIngest(
            self.bridge, self.topics, self.intake, cast(Store, EmptyStore()), self.stats, self.clock
        )

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        self.port = await open_port(self.bridge)
        task = asyncio.create_task(self.ingest.run())
        try:
            yield
            async with asyncio.timeout(2):
                await self.bridge.stop()
            assert not task.done()
        finally:
            await self.bridge.stop()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @property
    def url(self) -> MqttUrl:
        return MqttUrl("127.0.0.1", self.port)


class EmptyStore:
    """Knows of no earlier delivery."""

    def __init__(self) -> None:
        self.readings = self

    async def latest_deliveries(self, _: str) -> list[tuple[bytes, str]]:
        return []


@pytest.fixture
async def parts() -> AsyncIterator[Parts]:
    parts = Parts()
    async with parts.listening():
        yield parts


def connect_packet(client_id: bytes, *, user: bytes | None = None) -> bytes:
    """MQTT 3.1.1, clean session, keep-alive 15 s; a user, even an empty one, with an empty password."""
    flags = b"\x02" if user is None else b"\xc2"
    body = b"\x00\x04MQTT\x04" + flags + b"\x00\x0f" + struct.pack(">H", len(client_id)) + client_id
    if user is not None:
        body += struct.pack(">H", len(user)) + user + b"\x00\x00"
    return bytes([0x10, len(body)]) + body


def hasty_device(port: int, name: str, *, disconnects: bool) -> None:
    """As PubSubClient does it: QoS 0, clean session, name as client id, all values, and gone."""
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(connect_packet(name.encode()))
        assert connection.recv(4) == b"\x20\x02\x00\x00"
        connection.sendall(all_values(name) + (DISCONNECT if disconnects else b""))


def all_values(name: str) -> bytes:
    """PUBLISH packets of QoS 0, a value in each."""
    data = b""
    for topic, text in ispindel_mqtt(name):
        body = struct.pack(">H", len(topic)) + topic.encode() + text.encode()
        data += bytes([0x30, len(body)]) + body
    return data


@pytest.mark.parametrize("disconnects", [True, False])
async def test_a_device_that_sends_and_leaves(
    parts: Parts, caplog: pytest.LogCaptureFixture, disconnects: bool
) -> None:
    caplog.set_level(logging.INFO)
    caplog.clear()
    for n in range(10):
        name = f"spindle{n % 5}"  # the same name again, as after a deep sleep
        await asyncio.to_thread(hasty_device, parts.url.port, name, disconnects=disconnects)
    await wait_for(lambda: len(parts.intake.stored) == 10 and parts.bridge.in_flight == 0)
    assert all(len(json.loads(payload.body)) == 7 for payload in parts.intake.stored)
    assert [record.getMessage() for record in caplog.records] == []


async def test_what_was_sent_before_a_reset_is_taken(parts: Parts) -> None:
    for n in range(20):
        with socket.create_connection(("127.0.0.1", parts.url.port), 5) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
            connection.sendall(connect_packet(b"hasty%d" % n) + all_values(f"spindle{n}") + DISCONNECT)
    await wait_for(lambda: len(parts.intake.stored) == 20 and parts.bridge.in_flight == 0)
    assert all(len(json.loads(payload.body)) == 7 for payload in parts.intake.stored)


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("retain", [False, True])
async def test_what_other_clients_publish(parts: Parts, qos: int, retain: bool) -> None:
    messages = [("hydrometer/red", f'{{"n":{n}}}') for n in range(20)]
    await asyncio.to_thread(lambda: publish(parts.url, messages, qos, retain=retain))
    await wait_for(lambda: len(parts.intake.stored) == 20 and parts.bridge.in_flight == 0)
    assert sorted(p.body for p in parts.intake.stored) == sorted(text.encode() for _, text in messages)


def publish_packet(topic: str, text: str) -> bytes:
    body = struct.pack(">H", len(topic)) + topic.encode() + text.encode()
    return bytes([0x30, len(body)]) + body


@pytest.mark.parametrize("user", [None, b"", b"somebody"])
async def test_any_user_may_come_and_an_empty_one(parts: Parts, user: bytes | None) -> None:
    with socket.create_connection(("127.0.0.1", parts.url.port), 5) as connection:
        connection.sendall(connect_packet(b"red", user=user))
        assert await asyncio.to_thread(connection.recv, 4) == b"\x20\x02\x00\x00"
        connection.sendall(publish_packet("hydrometer/red", "{}"))
        await wait_for(lambda: parts.intake.stored)


async def test_of_two_devices_with_one_name_both_are_heard(parts: Parts) -> None:
    """The client id is the device's name; MQTT would end the earlier connection; we do not."""
    with socket.create_connection(("127.0.0.1", parts.url.port), 5) as second:
        with socket.create_connection(("127.0.0.1", parts.url.port), 5) as first:
            for connection in (first, second):
                connection.settimeout(5)
                connection.sendall(connect_packet(b"iSpindel"))
                assert await asyncio.to_thread(connection.recv, 4) == b"\x20\x02\x00\x00"
            first.sendall(publish_packet("hydrometer/red", "1"))
            await wait_for(lambda: len(parts.intake.stored) == 1)
            second.sendall(publish_packet("hydrometer/red", "2"))
            await wait_for(lambda: len(parts.intake.stored) == 2)
        second.sendall(publish_packet("hydrometer/red", "3"))
        await wait_for(lambda: len(parts.intake.stored) == 3)
    assert [payload.body for payload in parts.intake.stored] == [b"1", b"2", b"3"]


async def test_topics_that_begin_with_a_dollar_are_topics(parts: Parts) -> None:
    with socket.create_connection(("127.0.0.1", parts.url.port), 5) as connection:
        connection.sendall(connect_packet(b"red") + publish_packet("$SYS/broker/version", "{}"))
        connection.sendall(publish_packet("$aws/things/red/shadow/update", "{}"))
        await wait_for(lambda: parts.intake.stored)
    assert [payload.channel for payload in parts.intake.stored] == ["mqtt $aws/things/red/shadow/update"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00" * 64,
        b"\x10\xff\xff\xff\x7f",
        b"\x10\x05\x00\x04MQ",
        connect_packet(b"odd") + b"\x32\x05\xff\xff\xff\xff\xff",
        connect_packet(b"odd") + b"\xf0\x00\xf0\x00",
        connect_packet(b"odd") + connect_packet(b"odd"),
    ],
)
async def test_bytes_that_are_not_mqtt(parts: Parts, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    def send() -> None:
        with socket.create_connection(("127.0.0.1", parts.url.port), 5) as connection:
            connection.sendall(data)

    await asyncio.to_thread(send)
    await asyncio.to_thread(publish, parts.url, [("hydrometer/red", "{}")])
    await wait_for(lambda: parts.intake.stored)
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_foreign_addresses_may_not_stay(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gateway.network.is_local", lambda _: False)

    def try_twice() -> list[bytes]:
        answers = []
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", parts.url.port), 5) as connection:
                connection.settimeout(5)
                connection.sendall(connect_packet(b"gateway-test"))
                try:
                    answers.append(connection.recv(4))
                except ConnectionResetError:
                    answers.append(b"")
        return answers

    assert await asyncio.to_thread(try_twice) == [b"", b""]
    assert [r.getMessage() for r in caplog.records if "refused" in r.getMessage()] == [
        "mqtt: 127.0.0.1 is refused: not an address of the local network"
    ]
    monkeypatch.undo()
    await asyncio.to_thread(publish, parts.url, [("hydrometer/red", "{}")])
    await wait_for(lambda: parts.intake.stored)


async def test_a_packet_that_is_too_long_is_not_read(parts: Parts) -> None:
    with socket.create_connection(("127.0.0.1", parts.url.port), 5) as connection:
        connection.settimeout(5)
        head = struct.pack(">H", 14) + b"hydrometer/red"
        connection.sendall(connect_packet(b"long") + b"\x30\xff\xff\xff\x7f" + head)  # 256 MB
        assert await asyncio.to_thread(connection.recv, 4) == b"\x20\x02\x00\x00"
        assert await asyncio.to_thread(connection.recv, 1) == b""
    assert parts.intake.payloads == []


async def test_stop_is_quick_with_clients_connected_and_frees_the_port(parts: Parts) -> None:
    port = parts.url.port
    connections = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(20)]
    for place, connection in enumerate(connections[:10]):
        connection.sendall(connect_packet(f"idle{place}".encode()))
        assert await asyncio.to_thread(connection.recv, 4) == b"\x20\x02\x00\x00"
    async with asyncio.timeout(2):
        await parts.bridge.stop()
        await parts.bridge.stop()
    for connection in connections:
        connection.close()
    socket.create_server(("127.0.0.1", port)).close()
