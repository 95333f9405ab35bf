"""The bridge against a broker that does exactly what the test says, malformed things included."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.clock import SystemClock
from gateway.errors import ConfigError
from gateway.settings import Settings
from gateway.transports import mqtt_link, paho_bridge
from gateway.transports.mqtt_link import (
    PACKET_BYTES,
    RECONNECT_CAP_S,
    TAKEOVER_CAP_S,
    Message,
    MqttUrl,
    Reconnects,
    advice_of,
    broker_of,
)
from gateway.transports.paho_bridge import Bridge
from gateway.transports.paho_client import Client
from tests.patience import PATIENCE_S
from tests.system.transports.conftest import ScriptedBroker, free_port, publish_packet, wait_for


@pytest.fixture
async def bridge(scripted_broker: ScriptedBroker) -> AsyncIterator[Bridge]:
    bridge = Bridge(scripted_broker.url, "gateway-test", ["hydrometer/+"], SystemClock())
    bridge.start()
    await wait_for(lambda: scripted_broker.subscriptions == 1)
    yield bridge
    await bridge.stop()


async def receive(bridge: Bridge, count: int) -> list[Message]:
    messages: list[Message] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(messages) < count:
            messages += await bridge.next_batch()
    return messages


async def test_acknowledgements_leave_in_order_of_arrival(
    bridge: Bridge, scripted_broker: ScriptedBroker
) -> None:
    scripted_broker.send(b"".join(publish_packet(b"hydrometer/red", b"{}", mid) for mid in (7, 5, 9)))
    seven, five, nine = await receive(bridge, 3)
    assert [one.mid for one in (seven, five, nine)] == [7, 5, 9]
    bridge.ack([nine])
    bridge.ack([five])
    assert bridge.in_flight == 3
    bridge.ack([seven])
    await wait_for(lambda: len(scripted_broker.acknowledged) == 3)
    assert scripted_broker.acknowledged == [7, 5, 9]
    assert bridge.in_flight == 0


async def test_a_message_of_an_earlier_connection_is_not_acknowledged_on_the_next(
    bridge: Bridge, scripted_broker: ScriptedBroker
) -> None:
    scripted_broker.send(publish_packet(b"hydrometer/red", b"{}", 1))
    (old,) = await receive(bridge, 1)
    scripted_broker.drop()
    await wait_for(lambda: scripted_broker.subscriptions == 2)
    scripted_broker.send(publish_packet(b"hydrometer/red", b"{}", 1, dup=True))
    (again,) = await receive(bridge, 1)
    assert (again.dup, again.mid) == (True, old.mid)
    bridge.ack([old])
    scripted_broker.send(publish_packet(b"hydrometer/red", b"{}", 2))
    (new,) = await receive(bridge, 1)
    bridge.ack([again, new])
    await wait_for(lambda: len(scripted_broker.acknowledged) == 2)
    assert scripted_broker.acknowledged == [1, 2]


async def test_a_burst_is_acknowledged_in_one_write(
    bridge: Bridge, scripted_broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_broker.send(b"".join(publish_packet(b"hydrometer/red", b"{}", mid) for mid in range(1, 101)))
    messages = await receive(bridge, 100)
    sent: list[int] = []
    send = Client._sock_send

    def noted(client: Client, packet: bytes) -> int:
        sent.append(len(packet))
        return send(client, packet)

    monkeypatch.setattr(Client, "_sock_send", noted)
    bridge.ack([*messages[50:], *messages[:50]])
    await wait_for(lambda: scripted_broker.acknowledged == list(range(1, 101)))
    assert sent == [400]


async def test_a_burst_is_one_list_and_one_wake_up(
    bridge: Bridge, scripted_broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted: list[object] = []
    post = Bridge._post

    def noted(bridge: Bridge, *work: Any) -> None:
        posted.append(work)
        post(bridge, *work)

    monkeypatch.setattr(Bridge, "_post", noted)
    scripted_broker.send(b"".join(publish_packet(b"hydrometer/red", b"{}", mid) for mid in range(1, 101)))
    assert [message.mid for message in await bridge.next_batch()] == list(range(1, 101))
    assert len(posted) == 1


async def test_a_broker_that_sends_more_than_was_asked_for_is_answered_at_quality_of_service_2(
    bridge: Bridge, scripted_broker: ScriptedBroker
) -> None:
    packet = publish_packet(b"hydrometer/red", b"{}", 0x1234)
    scripted_broker.send(b"\x34" + packet[1:])
    await wait_for(lambda: scripted_broker.heard[-1] == 0x50)
    scripted_broker.send(b"\x62\x02\x12\x34" + publish_packet(b"hydrometer/red", b"{}", 0x1235))
    bridge.ack(await receive(bridge, 2))
    await wait_for(lambda: sorted(scripted_broker.heard[-2:]) == [0x40, 0x70])
    assert scripted_broker.connections == 1


async def test_a_broker_that_has_vanished_is_noticed_by_its_silence_and_a_full_window_is_no_silence(
    scripted_broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paho_bridge, "KEEPALIVE_S", 1)  # the scripted broker answers no PINGREQ
    monkeypatch.setattr(paho_bridge, "ROOM_S", 0.1)
    monkeypatch.setattr(Reconnects, "delay_s", lambda _: 0.1)
    monkeypatch.setattr(mqtt_link, "IN_FLIGHT_MESSAGES", 1)
    bridge = Bridge(scripted_broker.url, "gateway-test", ["hydrometer/+"], SystemClock())
    bridge.start()
    await wait_for(lambda: scripted_broker.subscriptions == 2)
    scripted_broker.send(b"".join(publish_packet(b"hydrometer/red", b"{}", mid) for mid in (1, 2)))
    held = await receive(bridge, 1)
    connections, heard = scripted_broker.connections, len(scripted_broker.heard)
    await wait_for(lambda: scripted_broker.heard[heard:].count(0xC0) > 1)
    assert scripted_broker.connections == connections
    scripted_broker.drop()
    await wait_for(lambda: scripted_broker.subscriptions == 3)  # with a full window
    bridge.ack(held)
    connections = scripted_broker.connections
    await wait_for(lambda: scripted_broker.connections > connections)
    await bridge.stop()


async def test_a_broker_that_never_accepts_us_is_left(
    scripted_broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paho_bridge, "KEEPALIVE_S", 1)
    monkeypatch.setattr(scripted_broker, "_answer", lambda *_: None)
    bridge = Bridge(scripted_broker.url, "gateway-test", ["hydrometer/+"], SystemClock())
    bridge.start()
    await wait_for(lambda: scripted_broker.heard == [0x10, 0x10])
    await bridge.stop()
    assert not bridge.is_receiving


async def test_a_full_window_leaves_the_rest_to_the_broker(
    bridge: Bridge, scripted_broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_link, "IN_FLIGHT_MESSAGES", 10)
    scripted_broker.send(b"".join(publish_packet(b"hydrometer/red", b"{}", mid) for mid in range(1, 36)))
    held: list[Message] = []
    while len(held) < 35:
        batch = await receive(bridge, 1)
        held += batch
        assert bridge.in_flight <= 10
        if bridge.in_flight == 10:
            assert await bridge.next_batch(0.05) == []
        bridge.ack(batch)
    await wait_for(lambda: len(scripted_broker.acknowledged) == 35)


async def test_stop_does_not_wait_for_a_full_window(
    bridge: Bridge, scripted_broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_link, "IN_FLIGHT_MESSAGES", 1)
    scripted_broker.send(b"".join(publish_packet(b"hydrometer/red", b"{}", mid) for mid in range(1, 4)))
    await wait_for(lambda: bridge.in_flight == 1)
    async with asyncio.timeout(2):
        await bridge.stop()


@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(b"\x32\x01\x00", id="shorter than its topic length"),
        pytest.param(b"\x32\x05\xff\xff\x61\x62\x63", id="topic longer than the packet"),
        pytest.param(b"\x30\x00", id="nothing in it"),
        pytest.param(b"\x40\x01\x00", id="half an acknowledgement"),
        pytest.param(b"\x32\xff\xff\xff\xff\x7f", id="length of five bytes"),
        pytest.param(b"\xf0\x00", id="a type that does not exist"),
    ],
)
async def test_what_cannot_be_read_costs_the_connection_and_no_more(
    bridge: Bridge, scripted_broker: ScriptedBroker, packet: bytes
) -> None:
    scripted_broker.send(packet)
    await wait_for(lambda: scripted_broker.subscriptions == 2)
    scripted_broker.send(publish_packet(b"hydrometer/red", b"{}", 1))
    (message,) = await receive(bridge, 1)
    assert message.topic == "hydrometer/red"


async def test_a_broker_that_sends_nonsense_again_and_again_is_no_takeover(
    bridge: Bridge, scripted_broker: ScriptedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    for times in range(1, 4):
        scripted_broker.send(b"\x32\x01\x00")
        await wait_for(lambda: scripted_broker.subscriptions == times + 1)  # noqa: B023 - called at once
        scripted_broker.send(publish_packet(b"hydrometer/red", b"{}", times))
        bridge.ack(await receive(bridge, 1))
    assert bridge.state == f"connected to {scripted_broker.url.where}"
    assert bridge.is_receiving
    told = {record.getMessage() for record in caplog.records}
    assert told == {f"mqtt: {scripted_broker.url.where} sent an unreadable packet (malformed); trying again"}


async def test_a_message_that_is_too_long_is_let_pass_and_not_kept(
    bridge: Bridge, scripted_broker: ScriptedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """Acknowledged, or the broker would send it again for ever; the connection stays."""
    packet = bytearray(publish_packet(b"hydrometer/red", b"", 9))
    length = len(packet) - 2 + 4 * PACKET_BYTES
    packet[1:2] = bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14])
    scripted_broker.send(bytes(packet) + bytes(4 * PACKET_BYTES))
    scripted_broker.send(publish_packet(b"hydrometer/red", b"{}", 10))
    long, short = await receive(bridge, 2)
    assert (long.topic, long.mid, long.payload) == ("hydrometer/red", 9, b"")
    assert (short.mid, short.payload) == (10, b"{}")
    bridge.ack([long, short])
    await wait_for(lambda: scripted_broker.acknowledged == [9, 10])
    assert scripted_broker.connections == 1
    assert "'hydrometer/red' is longer than 131072 bytes" in caplog.text


async def test_the_window_is_bounded_in_bytes_too(
    bridge: Bridge, scripted_broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_link, "IN_FLIGHT_BYTES", 300)
    scripted_broker.send(b"".join(publish_packet(b"hydrometer/red", b"x" * 100, mid) for mid in range(1, 9)))
    held = await receive(bridge, 3)
    assert await bridge.next_batch(0.05) == []
    assert bridge.in_flight == 3
    bridge.ack(held)
    await receive(bridge, 3)


async def test_a_topic_that_is_no_text_is_handed_over_without_one(
    bridge: Bridge, scripted_broker: ScriptedBroker
) -> None:
    scripted_broker.send(publish_packet(b"hydrometer/\xff\xfe", b"{}", 1))
    (message,) = await receive(bridge, 1)
    assert message.topic == ""


async def test_a_second_client_with_our_id_is_named_once(
    scripted_broker: ScriptedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    scripted_broker.drops_after_subscribe = True
    states: list[str] = []
    bridge = Bridge(scripted_broker.url, "gateway-test", ["hydrometer/+"], SystemClock())
    bridge.on_state = states.append
    bridge.start()
    await wait_for(lambda: "another client" in bridge.state)
    assert not bridge.is_receiving
    assert scripted_broker.connections >= 3
    await wait_for(lambda: scripted_broker.connections >= 4)
    assert "'gateway-test'" in bridge.state
    await bridge.stop()
    warnings = [r for r in caplog.records if "another client" in r.getMessage()]
    assert len(warnings) == 1
    assert states[-1] == bridge.state


async def test_a_broker_that_is_not_there_is_said_once_without_the_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    url = MqttUrl("127.0.0.1", free_port(), user="me", password="secret words")
    bridge = Bridge(url, "gateway-test", ["hydrometer/+"], SystemClock())
    bridge.start()
    await wait_for(lambda: "cannot reach" in bridge.state)
    assert not bridge.is_receiving
    await bridge.stop()
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == [
        f"mqtt: cannot reach 127.0.0.1:{url.port}; trying again"
    ]
    assert "secret" not in caplog.text + repr(url) + repr(bridge.__dict__)


def test_pauses_grow_are_jittered_and_capped() -> None:
    reconnects = Reconnects()
    delays = [reconnects.delay_s() for _ in range(20)]
    assert 0.5 <= delays[0] <= 1
    assert all(RECONNECT_CAP_S / 2 <= delay <= RECONNECT_CAP_S for delay in delays[6:])
    assert len(set(delays[6:])) > 1
    reconnects.connected(0.0)
    assert reconnects.delay_s() <= 1


def test_broken_connections_are_tried_less_often_until_a_message_came_through() -> None:
    reconnects = Reconnects()
    for now in range(20):
        reconnects.connected(float(now))
        reconnects.broken()
        assert not reconnects.lost(now + 0.1)
        assert not reconnects.taken_over(now + 0.1)
        delay = reconnects.delay_s()
    assert RECONNECT_CAP_S / 2 <= delay <= RECONNECT_CAP_S
    reconnects.received()
    assert reconnects.delay_s() <= 1


def test_short_connections_mean_a_takeover_until_one_lasts() -> None:
    reconnects = Reconnects()
    for now in (0.0, 10.0, 20.0):
        assert not reconnects.taken_over(now)
        reconnects.connected(now)
        assert reconnects.lost(now + 1)
    assert reconnects.taken_over(21.0)
    assert not reconnects.lost(22.0)
    assert reconnects.delay_s() <= 8
    for now in range(30, 130, 10):
        reconnects.connected(float(now))
        reconnects.lost(now + 1.0)
    assert RECONNECT_CAP_S < reconnects.delay_s() <= TAKEOVER_CAP_S
    reconnects.connected(1000.0)
    assert reconnects.taken_over(1001.0)
    assert not reconnects.taken_over(1061.0)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("mqtt://broker", MqttUrl("broker", 1883)),
        ("mqtts://broker", MqttUrl("broker", 8883, tls=True)),
        ("mqtt://me:p%40ss@10.0.0.1:1884", MqttUrl("10.0.0.1", 1884, user="me", password="p@ss")),
        ("mqtt://[::1]:1883", MqttUrl("::1", 1883)),
    ],
)
def test_urls(text: str, url: MqttUrl) -> None:
    assert MqttUrl.parse(text) == url


@pytest.mark.parametrize(
    "text", ["", "broker", "http://broker", "mqtt://", "mqtt://me:secret@h:x", f"mqtt://{'a' * 64}.example"]
)
def test_urls_that_are_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MqttUrl.parse(text)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_password_comes_from_a_file_and_is_warned_of_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "broker.password"
    file.write_text("geheim wort\n")
    file.chmod(0o600)

    def told(**more: Any) -> Settings:
        return Settings(**{"data_dir": tmp_path, "mqtt_url": "mqtt://b", **more})

    good = told(mqtt_user="me", mqtt_password_file=file)
    assert broker_of(good) == MqttUrl("b", 1883, user="me", password="geheim wort")
    assert advice_of(good) == []
    file.chmod(0o640)
    [readable] = advice_of(good)
    assert readable == f"Other users can read {file}: chmod 600 {file}"
    in_url = told(mqtt_url="mqtt://me:geheim@b")
    assert broker_of(in_url) == MqttUrl("b", 1883, user="me", password="geheim")
    [visible] = advice_of(in_url)
    assert "--mqtt-password-file" in visible
    assert "geheim" not in f"{visible}{in_url.shown_options()}"
    assert broker_of(told(no_mqtt=True)) is None
    with pytest.raises(ConfigError, match="needs --mqtt-user"):
        broker_of(told(mqtt_password_file=file))
    file.write_text("one\ntwo\n")
    with pytest.raises(ConfigError, match="does not hold one line"):
        broker_of(good)
