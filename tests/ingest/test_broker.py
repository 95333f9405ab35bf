"""The embedded broker: devices as they are, our own bridge, and clients that mean no good."""

import asyncio
import json
import logging
import socket
import struct
from collections.abc import AsyncIterator
from typing import cast

import pytest

from gateway.clock import SystemClock
from gateway.errors import PortTaken
from gateway.ingest import broker as module
from gateway.ingest.broker import EmbeddedBroker
from gateway.ingest.mqtt import TOPICS, MqttListener
from gateway.ingest.mqtt_link import MqttUrl
from gateway.ingest.paho_bridge import Bridge
from gateway.stats import Stats
from gateway.store.protocol import Store
from tests.ingest.conftest import FakeIntake, ispindel, publish, wait_for


class Parts:
    """The embedded broker with our listener on it."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.url = MqttUrl("127.0.0.1", broker.port)
        self.intake = FakeIntake()
        self.bridge = Bridge(self.url, "gateway-test", TOPICS, SystemClock())
        self.listener = MqttListener(self.bridge, self.intake, cast(Store, None), Stats(), SystemClock())


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    broker = EmbeddedBroker("127.0.0.1", 0)
    await broker.start()
    yield broker
    async with asyncio.timeout(2):
        await broker.stop()


@pytest.fixture
async def parts(broker: EmbeddedBroker) -> AsyncIterator[Parts]:
    parts = Parts(broker)
    parts.bridge.start()
    task = asyncio.create_task(parts.listener.run())
    await wait_for(lambda: parts.bridge.state.startswith("connected"))
    yield parts
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await parts.bridge.stop()


def connect_packet(client_id: bytes) -> bytes:
    body = b"\x00\x04MQTT\x04\x02\x00\x0f" + struct.pack(">H", len(client_id)) + client_id
    return bytes([0x10, len(body)]) + body


def hasty_device(port: int, name: str, *, disconnects: bool) -> None:
    """As PubSubClient does it: QoS 0, clean session, name as client id, all values, and gone."""
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(connect_packet(name.encode()))
        assert connection.recv(4) == b"\x20\x02\x00\x00"
        data = b""
        for topic, text in ispindel(name):
            body = struct.pack(">H", len(topic)) + topic.encode() + text.encode()
            data += bytes([0x30, len(body)]) + body
        connection.sendall(data + (b"\xe0\x00" if disconnects else b""))


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


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("retain", [False, True])
async def test_what_other_clients_publish(parts: Parts, qos: int, retain: bool) -> None:
    messages = [("hydrometer/red", f'{{"n":{n}}}') for n in range(20)]
    await asyncio.to_thread(lambda: publish(parts.url, messages, qos, retain=retain))
    await wait_for(lambda: len(parts.intake.stored) == 20 and parts.bridge.in_flight == 0)
    assert sorted(p.body for p in parts.intake.stored) == sorted(text.encode() for _, text in messages)


async def test_nothing_is_retained(broker: EmbeddedBroker, parts: Parts) -> None:
    await asyncio.to_thread(lambda: publish(parts.url, [("hydrometer/red", "{}")], retain=True))
    late = Bridge(parts.url, "late", ["hydrometer/+"], SystemClock())
    late.start()
    await wait_for(lambda: late.state.startswith("connected"))
    await asyncio.to_thread(publish, parts.url, [("hydrometer/red", "live")])
    assert [message.payload for message in await late.next_batch(5)] == [b"live"]
    await late.stop()


async def test_late_acknowledgements_do_no_harm(parts: Parts) -> None:
    parts.intake.open.clear()
    await asyncio.to_thread(publish, parts.url, [("hydrometer/red", "1")])
    await wait_for(lambda: parts.intake.payloads)
    held = asyncio.get_running_loop().call_later(5.5, parts.intake.open.set)  # amqtt gives up after 5 s
    await wait_for(lambda: parts.intake.stored)
    assert held.cancelled() is False
    await asyncio.to_thread(publish, parts.url, [("hydrometer/red", "2")])
    await wait_for(lambda: len(parts.intake.stored) == 2 and parts.bridge.in_flight == 0)
    assert [payload.body for payload in parts.intake.stored] == [b"1", b"2"]


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


async def test_foreign_addresses_never_reach_it(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "is_local", lambda _: False)

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
    assert [r.getMessage() for r in caplog.records if "refuses" in r.getMessage()] == [
        "mqtt: embedded broker refuses 127.0.0.1: not an address of the local network"
    ]
    monkeypatch.undo()
    await asyncio.to_thread(publish, parts.url, [("hydrometer/red", "{}")])
    await wait_for(lambda: parts.intake.stored)


async def test_connections_are_bounded(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECTIONS", 1)
    with (
        socket.create_connection(("127.0.0.1", broker.port), 5),
        socket.create_connection(("127.0.0.1", broker.port), 5) as second,
    ):
        second.settimeout(5)
        assert await asyncio.to_thread(second.recv, 1) == b""


async def test_a_port_that_is_taken_is_named_with_what_to_do(broker: EmbeddedBroker) -> None:
    with pytest.raises(PortTaken) as caught:
        await EmbeddedBroker("127.0.0.1", broker.port).start()
    assert caught.value.port == broker.port
    assert f"port {broker.port} on 127.0.0.1 is already in use" in str(caught.value)
    assert f"--mqtt-url mqtt://127.0.0.1:{broker.port}" in str(caught.value)


async def test_stop_is_quick_with_clients_connected_and_frees_the_port(parts: Parts) -> None:
    second = EmbeddedBroker("127.0.0.1", 0)
    await second.start()
    port = second.port
    connections = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(20)]
    for place, connection in enumerate(connections[:10]):
        connection.sendall(connect_packet(f"idle{place}".encode()))
        assert await asyncio.to_thread(connection.recv, 4) == b"\x20\x02\x00\x00"
    async with asyncio.timeout(2):
        await second.stop()
        await second.stop()
    for connection in connections:
        connection.close()
    third = EmbeddedBroker("127.0.0.1", port)
    await third.start()
    await third.stop()
