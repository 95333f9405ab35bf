"""With Debian's mosquitto and the configuration we ship."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import pytest
from paho.mqtt import client as paho

from gateway.clock import SystemClock
from gateway.stats import Stats
from gateway.store.protocol import Store
from gateway.transports import mqtt
from gateway.transports.mqtt import MqttIngest
from gateway.transports.mqtt_link import Message
from gateway.transports.paho_bridge import Bridge
from gateway.transports.paho_client import Client
from gateway.transports.topics import TopicMap
from tests.patience import PATIENCE_S
from tests.payloads import ispindel_mqtt
from tests.system.transports.conftest import FakeIntake, Mosquitto, publish, wait_for
from tests.system.transports.conftest import mosquitto as mosquitto  # the fixture

pytestmark = pytest.mark.broker

GOODBYE = "Received DISCONNECT from gateway-test"


class EmptyStore:
    """Knows of no earlier delivery."""

    readings: "EmptyStore"

    def __init__(self) -> None:
        self.readings = self

    async def latest_deliveries(self, _: str) -> list[tuple[bytes, str]]:
        return []


async def leave(broker: Mosquitto, bridge: Bridge) -> None:
    goodbyes = broker.log.count(GOODBYE)
    await bridge.stop()
    # It may still be reading our acknowledgements; whoever connects now would make it drop the rest.
    await wait_for(lambda: broker.log.count(GOODBYE) > goodbyes)


@asynccontextmanager
async def listening(broker: Mosquitto, intake: FakeIntake) -> AsyncIterator[Bridge]:
    """A gateway's MQTT side; leaving it is as abrupt as a process can end without being killed."""
    stats = Stats()
    topics = TopicMap()
    bridge = Bridge(broker.url, "gateway-test", topics.filters, SystemClock())
    listener = MqttIngest(bridge, topics, intake, cast(Store, EmptyStore()), stats, SystemClock())
    bridge.start()
    task = asyncio.create_task(listener.run())
    try:
        await wait_for(lambda: stats.parts["mqtt"].startswith("connected"))
        assert stats.in_trouble == set()
        yield bridge
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await leave(broker, bridge)


async def test_seven_values_are_one_reading(mosquitto: Mosquitto) -> None:
    intake = FakeIntake()
    async with listening(mosquitto, intake):
        await asyncio.to_thread(
            publish, mosquitto.url, [*ispindel_mqtt("red"), *ispindel_mqtt("", tilt="1")], 0
        )
        await wait_for(lambda: len(intake.stored) == 2)
    assert [payload.label for payload in intake.stored] == ["red", ""]
    assert json.loads(intake.stored[1].body)["tilt"] == "1"


async def test_a_template_pasted_in_lines(mosquitto: Mosquitto) -> None:
    intake = FakeIntake()
    messages = [(f" {topic}", text) for topic, text in ispindel_mqtt("red")]
    async with listening(mosquitto, intake):
        await asyncio.to_thread(publish, mosquitto.url, messages, 0)
        await wait_for(lambda: intake.stored)
    assert len(json.loads(intake.stored[0].body)) == 7


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_every_quality_of_service_arrives_once(mosquitto: Mosquitto, qos: int) -> None:
    intake = FakeIntake()
    async with listening(mosquitto, intake) as bridge:
        messages = [("hydrometer/red", f'{{"n":{n}}}') for n in range(50)]
        await asyncio.to_thread(publish, mosquitto.url, messages, qos)
        await wait_for(lambda: len(intake.stored) >= 50 and bridge.in_flight == 0)
    assert [payload.body.decode() for payload in intake.stored] == [text for _, text in messages]
    assert {payload.delivery is None for payload in intake.stored} == {qos == 0}


async def test_what_was_not_stored_comes_again_after_a_restart_and_what_was_does_not(
    mosquitto: Mosquitto,
) -> None:
    first, second, third = FakeIntake(), FakeIntake(), FakeIntake()
    async with listening(mosquitto, first) as bridge:
        await asyncio.to_thread(publish, mosquitto.url, [("hydrometer/red", b"stored")])
        await wait_for(lambda: first.stored and bridge.in_flight == 0)
        first.open.clear()
        await asyncio.to_thread(publish, mosquitto.url, [("hydrometer/red", b"open"), *ispindel_mqtt("blue")])
        await wait_for(lambda: len(first.payloads) >= 2 and bridge.in_flight == 8)
    async with listening(mosquitto, second) as bridge:
        await wait_for(lambda: len(second.stored) == 2 and bridge.in_flight == 0)
    again = next(payload for payload in second.stored if payload.label == "red")
    assert (again.body, again.delivery) == (b"open", first.payloads[1].delivery)
    assert all(payload.redelivered for payload in second.stored)
    async with listening(mosquitto, third):
        await asyncio.to_thread(publish, mosquitto.url, [("hydrometer/red", b"last")])
        await wait_for(lambda: third.stored)
    assert [payload.body for payload in third.payloads] == [b"last"]


async def test_acknowledgements_of_a_burst_are_one_write_and_each_of_them_arrives(
    mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows, too, whether paho's private names, which `paho_client` lists, still mean the same."""
    sent: list[bytes] = []
    send = Client._sock_send

    def noted(client: Client, packet: bytes) -> int:
        sent.append(packet)
        return send(client, packet)

    monkeypatch.setattr(Client, "_sock_send", noted)

    @asynccontextmanager
    async def connected() -> AsyncIterator[Bridge]:
        bridge = Bridge(mosquitto.url, "gateway-test", ["hydrometer/+"], SystemClock())
        bridge.start()
        await wait_for(lambda: bridge.is_receiving)
        sent.clear()
        yield bridge
        await leave(mosquitto, bridge)

    async def receive(bridge: Bridge, count: int) -> list[Message]:
        messages: list[Message] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(messages) < count:
                messages += await bridge.next_batch()
        return messages

    bodies = [b"%d" % number for number in range(300)]
    due = [(body, True) for body in bodies[200:]]
    async with connected() as bridge:
        await asyncio.to_thread(publish, mosquitto.url, [("hydrometer/red", body) for body in bodies])
        first = await receive(bridge, 300)
        assert [message.payload for message in first] == bodies
        bridge.ack([*first[100:200], *first[:100], *first[250:]])
        assert bridge.in_flight == 100
        await wait_for(lambda: sent)
    assert [len(packet) for packet in sent if packet[0] == paho.PUBACK] == [200 * 4]
    async with connected() as bridge:
        again = await receive(bridge, 100)
        assert [(message.payload, message.dup) for message in again] == due
        bridge.ack(again)
        await wait_for(lambda: sent)
    assert sum(len(packet) for packet in sent if packet[0] == paho.PUBACK) == 100 * 4
    async with connected() as bridge:
        await asyncio.to_thread(publish, mosquitto.url, [("hydrometer/red", b"last")])
        assert [message.payload for message in await receive(bridge, 1)] == [b"last"]


async def test_a_store_that_refuses_loses_nothing_even_at_quality_of_service_0(
    mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt, "RETRY_FIRST_S", 0.05)
    intake = FakeIntake(refusals=10)
    async with listening(mosquitto, intake) as bridge:
        await asyncio.to_thread(publish, mosquitto.url, [("hydrometer/red", b"one")], 1)
        await asyncio.to_thread(publish, mosquitto.url, ispindel_mqtt("blue"), 0)
        await wait_for(lambda: intake.payloads)
        assert bridge.in_flight
        await wait_for(lambda: len(intake.stored) == 2 and bridge.in_flight == 0)


async def test_a_killed_broker_forgets_nothing_and_has_us_back(mosquitto: Mosquitto) -> None:
    intake = FakeIntake()
    async with listening(mosquitto, FakeIntake()):
        pass  # so that there is a session
    messages = [("hydrometer/red", f'{{"n":{n}}}') for n in range(1500)]
    await asyncio.to_thread(publish, mosquitto.url, messages)
    # It says PUBACK first and saves within a second: what it had not saved is its loss, not ours.
    await wait_for(lambda: messages[-1][1].encode() in mosquitto.saved)
    mosquitto.kill()
    await asyncio.to_thread(mosquitto.start)
    async with listening(mosquitto, intake) as bridge:
        await wait_for(lambda: len(intake.stored) == len(messages))
        await wait_for(lambda: bridge.in_flight == 0)
        mosquitto.kill()
        await wait_for(lambda: "connected" not in bridge.state)
        assert not bridge.is_receiving
        await asyncio.to_thread(mosquitto.start)
        await wait_for(lambda: bridge.state.startswith("connected"), 35)
        assert bridge.is_receiving
        await asyncio.to_thread(publish, mosquitto.url, [("hydrometer/red", b"after")])
        await wait_for(lambda: any(payload.body == b"after" for payload in intake.stored))


async def test_a_retained_value_is_no_reading_and_a_retained_reading_is_marked(mosquitto: Mosquitto) -> None:
    intake = FakeIntake()
    old = [("hydrometer/red", "old"), *ispindel_mqtt("red")]
    await asyncio.to_thread(lambda: publish(mosquitto.url, old, retain=True))
    async with listening(mosquitto, intake) as bridge:
        await asyncio.to_thread(publish, mosquitto.url, [("hydrometer/red", "new")])
        await wait_for(lambda: intake.stored and bridge.in_flight == 0)
    assert [(payload.body, payload.retained) for payload in intake.payloads] == [
        (b"old", True),
        (b"new", False),
    ]


async def test_subscriptions_that_overlap_double_no_message(mosquitto: Mosquitto) -> None:
    """What an earlier start of ours subscribed to stays in the session at the broker."""
    mosquitto.kill()
    with mosquitto._conf.open("a") as configuration:
        configuration.write("allow_duplicate_messages true\n")
    await asyncio.to_thread(mosquitto.start)
    wide = Bridge(mosquitto.url, "gateway-test", ["ispindel/#", "+/+/tilt", "+/red"], SystemClock())
    wide.start()
    await wait_for(lambda: wide.state.startswith("connected"))
    await asyncio.to_thread(publish, mosquitto.url, ispindel_mqtt("red")[:1])
    copies = await wide.next_batch(5)
    if len(copies) == 1:
        copies += await wide.next_batch(5)
    assert len(copies) == 2, "mosquitto sends one for each subscription"
    wide.ack(copies)
    await wide.stop()
    intake = FakeIntake()
    async with listening(mosquitto, intake) as bridge:
        messages = [*ispindel_mqtt("red"), ("hydrometer/red", "{}"), ("hydrometer/blue", "last")]
        await asyncio.to_thread(publish, mosquitto.url, messages)
        await wait_for(lambda: len(intake.stored) >= 3 and bridge.in_flight == 0)
    bodies = {payload.channel: payload.body for payload in intake.stored}
    assert sorted(bodies) == ["mqtt hydrometer/blue", "mqtt hydrometer/red", "mqtt ispindel/red"]
    assert len(intake.stored) == len(bodies)
    assert len(json.loads(bodies["mqtt ispindel/red"])) == 7


async def test_a_wrong_password_is_said_and_not_shown(
    mosquitto: Mosquitto, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = replace(mosquitto.url, password="guessed")
    bridge = Bridge(wrong, "gateway-test", TopicMap().filters, SystemClock())
    bridge.start()
    await wait_for(lambda: "refuses us" in bridge.state)
    assert bridge.state.endswith("Not authorized")
    assert not bridge.is_receiving
    await bridge.stop()
    assert "guessed" not in caplog.text


async def test_two_gateways_with_one_id_notice_each_other(mosquitto: Mosquitto) -> None:
    bridges = [Bridge(mosquitto.url, "gateway-test", ["hydrometer/+"], SystemClock()) for _ in range(2)]
    for bridge in bridges:
        bridge.start()
    await wait_for(lambda: any("another client" in bridge.state for bridge in bridges), 30)
    for bridge in bridges:
        await bridge.stop()
