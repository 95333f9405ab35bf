"""The connection to a broker that does exactly what the test says."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator

import pytest

from gateway.clock import SystemClock
from gateway.integrations.home_assistant import connection as module
from gateway.integrations.home_assistant.connection import Connection, NotConnected, Will
from gateway.transports.mqtt_link import MqttUrl, Reconnects
from tests.patience import PATIENCE_S
from tests.system.transports.conftest import ScriptedBroker, free_port, publish_packet, wait_for
from tests.system.transports.conftest import scripted_broker as scripted_broker  # the fixture

PUBLISH = 0x33
"""The first byte of a PUBLISH at QoS 1, retained."""


@pytest.fixture
async def connection(
    scripted_broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Connection]:
    monkeypatch.setattr(Reconnects, "delay_s", lambda _: 0.1)
    connection = Connection(
        scripted_broker.url, "out", SystemClock(), Will("s", "off"), ["homeassistant/status"]
    )
    connection.start()
    await wait_for(lambda: connection.is_connected and scripted_broker.subscriptions)
    yield connection
    await connection.stop()


def answer(broker: ScriptedBroker, mid: int) -> None:
    broker.send(bytes([0x40, 2, 0, mid]))


async def test_publishing_returns_after_the_acknowledgement(
    connection: Connection, scripted_broker: ScriptedBroker
) -> None:
    published = asyncio.create_task(connection.publish("a", "b", retain=True))
    await wait_for(lambda: scripted_broker.heard[-1] == PUBLISH)
    assert not published.done()
    answer(scripted_broker, 2)  # 1 was the subscription
    async with asyncio.timeout(PATIENCE_S):
        await published


async def test_what_is_under_way_fails_with_the_connection_and_all_works_on_the_next(
    connection: Connection, scripted_broker: ScriptedBroker
) -> None:
    changes = []
    connection.on_change = lambda: changes.append(connection.is_connected)
    published = asyncio.create_task(connection.publish("a", "b", retain=True))
    await wait_for(lambda: scripted_broker.heard[-1] == PUBLISH)
    scripted_broker.drop()
    with pytest.raises(NotConnected, match=r"lost 127\.0\.0\.1"):
        await published
    await wait_for(lambda: changes == [False, True])
    again = asyncio.create_task(connection.publish("a", "b", retain=True))
    await wait_for(lambda: PUBLISH in scripted_broker.heard[-2:])
    for mid in range(1, 6):
        answer(scripted_broker, mid)
    async with asyncio.timeout(PATIENCE_S):
        await again


async def test_a_broker_that_acknowledges_nothing_costs_no_more_and_more_memory(
    connection: Connection, scripted_broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.01)
    for _ in range(5):
        with pytest.raises(NotConnected):
            await connection.publish_all([("a", "b")] * 20)
    assert len(connection._client._out_messages) <= module.QUEUED
    assert len(connection._waiting) <= module.QUEUED


async def test_without_a_connection_publishing_fails_at_once() -> None:
    url = MqttUrl("127.0.0.1", free_port())
    connection = Connection(url, "out", SystemClock())
    with pytest.raises(NotConnected):
        await connection.publish("a", "b")
    connection.start()
    await wait_for(lambda: connection.state == f"cannot reach {url.where}; trying again")
    with pytest.raises(NotConnected):
        await connection.publish("a", "b")
    client = weakref.ref(connection._client)
    gc.disable()  # its sockets close without it
    try:
        await connection.stop()
        await wait_for(lambda: client() is None)  # its thread may hold it for a moment
    finally:
        gc.enable()


async def test_unreadable_packets_end_one_connection_and_not_the_thread(
    connection: Connection, scripted_broker: ScriptedBroker
) -> None:
    heard: list[tuple[str, bytes]] = []
    connection.on_message = lambda topic, payload: heard.append((topic, payload))
    scripted_broker.send(b"\x90\x00")
    await wait_for(lambda: scripted_broker.subscriptions == 2)
    await wait_for(lambda: connection.is_connected)
    scripted_broker.send(publish_packet(b"homeassistant/status", b"online", 5))
    await wait_for(lambda: heard == [("homeassistant/status", b"online")])


def test_the_waits_before_attempts_end_in_time() -> None:
    waits = Reconnects(module.RECONNECT_S)
    assert max(waits.delay_s() for _ in range(100)) <= module.RECONNECT_S <= 10 - module.CONNECT_S
