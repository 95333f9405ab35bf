"""One message to a broker: acknowledged by a real mosquitto, refused, hung, or nobody there."""

import asyncio
import socket
import threading

import pytest
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from gateway.domain.delivery import DeliveryResult
from gateway.outward.guard import OutwardFailed
from gateway.transports import paho_publish
from gateway.transports.mqtt_link import MqttUrl
from tests.system.transports.conftest import PASSWORD, USER, Mosquitto, ScriptedBroker

TOPIC = "hydrometer_gateway/0a1b2c3d/event"


@pytest.mark.broker
async def test_a_message_is_acknowledged_and_not_retained(mosquitto: Mosquitto) -> None:
    got: list[tuple[str, bytes, bool]] = []
    subscribed = threading.Event()
    listener = paho.Client(CallbackAPIVersion.VERSION2)
    listener.username_pw_set(USER, PASSWORD)
    listener.on_message = lambda _client, _data, m: got.append((m.topic, bytes(m.payload), m.retain))
    listener.on_subscribe = lambda *_: subscribed.set()
    listener.connect(mosquitto.url.host, mosquitto.url.port)
    listener.subscribe("hydrometer_gateway/#", 1)
    listener.loop_start()
    try:
        await asyncio.to_thread(subscribed.wait, 10)
        await paho_publish.publish(mosquitto.url, "test-alarms", TOPIC, b'{"event_type": "fired"}')
        async with asyncio.timeout(10):
            while not got:  # noqa: ASYNC110 (paho's thread tells nobody)
                await asyncio.sleep(0.01)
    finally:
        listener.disconnect()
        listener.loop_stop()
    assert got == [(TOPIC, b'{"event_type": "fired"}', False)]


@pytest.mark.broker
async def test_a_wrong_password_needs_a_person(mosquitto: Mosquitto) -> None:
    url = MqttUrl(mosquitto.url.host, mosquitto.url.port, user=USER, password="wrong")
    with pytest.raises(OutwardFailed, match="refuses us") as failed:
        await paho_publish.publish(url, "test-alarms", TOPIC, b"{}")
    assert failed.value.verdict is DeliveryResult.PAUSED


async def test_nothing_left_where_nobody_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = MqttUrl("127.0.0.1", probe.getsockname()[1])
        with pytest.raises(OutwardFailed, match="nobody listens there") as failed:
            await paho_publish.publish(url, "test-alarms", TOPIC, b"{}")
    assert failed.value.verdict is DeliveryResult.KEPT


async def test_a_broker_that_does_not_acknowledge(
    scripted_broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paho_publish, "ANSWER_S", 0.3)
    with pytest.raises(OutwardFailed, match="does not acknowledge") as failed:
        await paho_publish.publish(scripted_broker.url, "test-alarms", TOPIC, b"{}")
    assert failed.value.verdict is DeliveryResult.AMBIGUOUS
