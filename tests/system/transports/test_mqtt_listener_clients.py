"""The MQTT listener and single clients: order, leaving, QoS 2 ids, sessions."""

import asyncio
import itertools
import socket

import pytest

from gateway.transports.mqtt_limits import MqttLimits
from tests import mqtt_wire as wire
from tests.cases import each
from tests.mqtt_client import Client, opened
from tests.system.transports.conftest import RESETS, wait_for
from tests.system.transports.test_mqtt_listener import Parts
from tests.system.transports.test_mqtt_listener import parts as parts  # the fixture

TOPIC = "hydrometer/red"
WELCOME = b"\x20\x02\x00\x00"
WELCOME_BACK = b"\x20\x02\x01\x00"
NUMBERS = itertools.count(1)
EXPIRES = b"\x11\x00\x00\x00\x3c"
"""The property session expiry: 60 s."""


def puback(mid: int) -> bytes:
    return b"\x40\x02" + mid.to_bytes(2)


def pubrec(mid: int) -> bytes:
    return b"\x50\x02" + mid.to_bytes(2)


def bodies(parts: Parts) -> list[bytes]:
    return [payload.body for payload in parts.intake.payloads]


async def test_pubacks_of_messages_sent_in_one_write_come_in_order(parts: Parts) -> None:
    number = 2_500  # more than may be in flight
    data = [wire.publish(TOPIC, b"%d" % mid, 1, mid) for mid in range(1, number + 1)]
    async with opened(parts.port, wire.connect() + b"".join(data)) as client:
        await client.hears(WELCOME + b"".join(map(puback, range(1, number + 1))))
    assert bodies(parts) == [b"%d" % mid for mid in range(1, number + 1)]
    assert parts.bridge.in_flight == 0


@each("level", [wire.MQTT_3_1_1, wire.MQTT_5])
async def test_nothing_overtakes_a_slow_commit(level: int, parts: Parts) -> None:
    parts.intake.open.clear()
    before = len(parts.intake.payloads)
    codes = b"\x03\x00\x04\x10" if level == wire.MQTT_5 else b"\x02\x00\x04"
    sent = [
        wire.publish(TOPIC, b"one %d" % level, 1, 1, level=level),
        wire.publish("brewery/bpl1/gravity", b"1.050", 1, 2, level=level),
        wire.publish(TOPIC, b"two %d" % level, 2, 3, level=level),
        wire.publish("nobody/hears/this", b"", 1, 4, level=level),
        wire.publish(TOPIC, b"three %d" % level, 1, 5, level=level),
    ]
    async with opened(parts.port, wire.connect(level), *sent) as client:
        assert (await client.packet())[0] == 0x20
        await client.ping()  # overtakes: it is no acknowledgement
        await wait_for(lambda: len(parts.intake.payloads) >= before + 3)
        parts.intake.open.set()
        await client.hears(puback(1) + puback(2) + pubrec(3) + b"\x40" + codes + puback(5))


GOODBYES = ("disconnect", "fin", "reset", "disconnect and reset")


def visit(port: int, name: str, goodbye: str, *, apart: bool, qos: int, number: int = 10) -> list[bytes]:
    """Connect, publish and leave, without a look at any answer. Return what was published."""
    texts = [f"{name} {n}".encode() for n in range(number)]
    packets = [wire.publish(TOPIC, text, qos if n % 2 else 0, n + 1) for n, text in enumerate(texts)]
    packets.insert(0, wire.connect(client_id=name))
    if "disconnect" in goodbye:
        packets.append(wire.GOODBYE)
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        # Else the client's own system throws bytes away that it has not sent when it resets.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for data in packets if apart else [b"".join(packets)]:
            connection.sendall(data)
        if "reset" in goodbye:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
    return texts


@pytest.mark.parametrize("qos", [0, 1])
async def test_a_client_that_leaves_is_heard_to_its_last_byte(parts: Parts, qos: int) -> None:
    def visits() -> list[bytes]:
        sent = []
        for goodbye in GOODBYES:
            for apart in (False, True):
                for _ in range(8):
                    sent += visit(parts.port, f"v{next(NUMBERS)}", goodbye, apart=apart, qos=qos)
        return sent

    sent = await asyncio.to_thread(visits)
    await wait_for(lambda: len(parts.intake.stored) >= len(sent))
    assert sorted(bodies(parts)) == sorted(sent)
    await wait_for(lambda: parts.stats.mqtt.connections == 0)


async def test_a_client_that_leaves_while_it_is_held_is_heard_too(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.transports.mqtt_link.IN_FLIGHT_MESSAGES", 3)
    parts.intake.open.clear()
    ways = list(itertools.product(GOODBYES, (False, True)))
    sent = [
        visit(parts.port, f"h{next(NUMBERS)}", goodbye, apart=apart, qos=0, number=30)
        for goodbye, apart in ways
    ]
    await wait_for(parts.bridge.is_full)
    parts.intake.open.set()
    await wait_for(lambda: len(parts.intake.stored) >= 30 * len(ways))
    assert sorted(bodies(parts)) == sorted(itertools.chain(*sent))
    await wait_for(lambda: parts.stats.mqtt.connections == 0)


@each("clean, comes_twice", [(False, False), (True, True)])
async def test_an_id_of_qos_2_is_one_message_until_it_is_released(
    clean: bool, comes_twice: bool, parts: Parts
) -> None:
    """With a kept session also over connections; without one, the intake knows it by its bytes."""
    name, before = f"ids{next(NUMBERS)}", len(parts.intake.payloads)
    first = wire.publish(TOPIC, b"first", 2, 7)
    async with opened(parts.port, wire.connect(client_id=name, clean=clean), first) as client:
        await client.hears(WELCOME + pubrec(7))
        await client.send(first, wire.publish(TOPIC, b"first", 2, 7, dup=True))
        await client.hears(pubrec(7) + pubrec(7))
    await wait_for(lambda: parts.stats.mqtt.connections == 0)
    async with opened(parts.port, wire.connect(client_id=name, clean=clean)) as client:
        await client.hears(WELCOME if clean else WELCOME_BACK)
        await client.send(wire.publish(TOPIC, b"first", 2, 7, dup=True))
        await client.hears(pubrec(7))
        await client.send(wire.release(7))
        await client.hears(b"\x70\x02\x00\x07")
        await client.send(wire.publish(TOPIC, b"second", 2, 7))
        await client.hears(pubrec(7))
    assert bodies(parts)[before:] == [b"first", *([b"first"] if comes_twice else []), b"second"]


async def test_an_id_of_qos_2_that_waits_for_its_commit_is_acknowledged_after_it(parts: Parts) -> None:
    parts.intake.open.clear()
    connect, again = wire.connect(client_id="slow", clean=False), wire.publish(TOPIC, b"x", 2, 7, dup=True)
    async with opened(parts.port, connect, wire.publish(TOPIC, b"x", 2, 7)) as client:
        await client.hears(WELCOME)
        await wait_for(lambda: parts.intake.payloads)
        client.reset()
    async with opened(parts.port, connect, again, again) as client:
        await client.hears(WELCOME_BACK)
        await client.ping()
        parts.intake.open.set()
        await client.hears(pubrec(7) + pubrec(7))
    assert bodies(parts) == [b"x"]


@each("qos", [1, 2])
async def test_a_connection_that_is_cut_again_and_again_loses_nothing(qos: int, parts: Parts) -> None:
    number, name = 150, f"cut{qos}"
    connect = wire.connect(client_id=name, clean=False)
    unacknowledged = {mid: f"{name} {mid}".encode() for mid in range(1, number + 1)}
    dup = False
    while unacknowledged:
        mids = [*unacknowledged][:40]
        data = [wire.publish(TOPIC, unacknowledged[mid], qos, mid, dup=dup) for mid in mids]
        async with opened(parts.port, connect + b"".join(data)) as client:
            await client.packet()
            for mid in mids[:25]:
                while (answer := await client.packet())[0] == 0x70:
                    pass  # PUBCOMP
                assert answer == (puback if qos == 1 else pubrec)(mid)
                if qos == 2:
                    await client.send(wire.release(mid))
                del unacknowledged[mid]
            client.reset()
        dup = True
    await wait_for(lambda: parts.bridge.in_flight == 0)
    found = [body for body in bodies(parts) if body.startswith(name.encode())]
    assert {*found} == {f"{name} {mid}".encode() for mid in range(1, number + 1)}


async def present(client: Client) -> bool:
    """Whether CONNACK says that there is a session."""
    answer = await client.packet()
    assert (answer[0], answer[3]) == (0x20, 0)
    return answer[2] == 1


@each(
    "level, clean, raw, goodbye, kept",
    [
        (wire.MQTT_3_1, False, b"", b"", False),  # its CONNACK cannot tell
        (wire.MQTT_3_1_1, False, b"", wire.GOODBYE, True),
        (wire.MQTT_3_1_1, True, b"", wire.GOODBYE, False),
        (wire.MQTT_5, False, b"", wire.GOODBYE, False),
        (wire.MQTT_5, True, EXPIRES, wire.GOODBYE, True),
        (wire.MQTT_5, False, EXPIRES, b"", True),
        (wire.MQTT_5, False, EXPIRES, wire.packet(0xE0, b"\x00\x05\x11\x00\x00\x00\x00"), False),
    ],
)
async def test_which_sessions_are_kept(
    level: int, clean: bool, raw: bytes, goodbye: bytes, kept: bool, parts: Parts
) -> None:
    name = f"session{next(NUMBERS)}"
    async with opened(parts.port, wire.connect(level, name, clean=clean, raw=raw)) as client:
        assert await present(client) is False
        await client.send(goodbye)
    await wait_for(lambda: parts.stats.mqtt.connections == 0)
    async with opened(
        parts.port, wire.connect(level, name, clean=False, raw=raw), source="127.0.0.9"
    ) as client:
        assert await present(client) is False, "another source has no part in it"
        await client.send(wire.packet(0xE0, b"\x00\x05\x11\x00\x00\x00\x00") if raw else wire.GOODBYE)
    await wait_for(lambda: parts.stats.mqtt.connections == 0)
    async with opened(parts.port, wire.connect(level, name, clean=False, raw=raw)) as client:
        assert await present(client) is kept
    await wait_for(lambda: parts.stats.mqtt.connections == 0)
    async with opened(parts.port, wire.connect(level, name, clean=True)) as client:
        assert await present(client) is False


@each(
    "connect, told",
    [
        (wire.connect(wire.MQTT_5, "a", keep_alive=0), b"\x13\x0e\x10"),
        (wire.connect(wire.MQTT_5, "a", keep_alive=3_601), b"\x13\x0e\x10"),
        (wire.connect(wire.MQTT_5, "", keep_alive=60), b"\x12\x00\x13hg-"),
        (wire.connect(wire.MQTT_5, "b", raw=b"\x11\xff\xff\xff\xff"), b"\x11\x00\x09\x3a\x80"),
        (wire.connect(wire.MQTT_3_1_1, "", clean=False), b"\x20\x02\x00\x02"),
        (wire.connect(wire.MQTT_3_1_1, "x" * 257), b"\x20\x02\x00\x02"),
        (wire.connect(wire.MQTT_3_1_1, "c", user="x" * 257), b"\x20\x02\x00\x04"),
        (wire.connect(wire.MQTT_3_1_1, "", bridge=True), WELCOME),
    ],
)
async def test_what_connack_tells(connect: bytes, told: bytes, parts: Parts) -> None:
    async with opened(parts.port, connect) as client:
        assert told in await client.packet()


async def test_a_session_is_taken_over_and_a_clean_client_is_not(parts: Parts) -> None:
    connect = wire.connect(wire.MQTT_5, "kept", clean=False, raw=EXPIRES)
    async with opened(parts.port, connect) as first:
        assert await present(first) is False
        await first.send(wire.publish(TOPIC, b"before", level=wire.MQTT_5))
        async with opened(parts.port, connect) as second:
            assert await present(second) is True
            assert await first.rest() == b"\xe0\x01\x8e"
            await second.send(wire.publish(TOPIC, b"after", level=wire.MQTT_5))
            await second.ping()
    assert bodies(parts) == [b"before", b"after"]
    async with (
        opened(parts.port, wire.connect(client_id="twins")) as first,
        opened(parts.port, wire.connect(client_id="twins")) as second,
    ):
        for client in (first, second):
            await client.hears(WELCOME)
        assert parts.stats.mqtt.shared_ids == {}
        async with opened(parts.port, wire.connect(client_id="twins"), source="127.0.0.9") as third:
            await third.hears(WELCOME)
        assert parts.stats.mqtt.shared_ids == {"twins": ["127.0.0.1", "127.0.0.9"]}
        for client in (first, second):
            await client.ping()


async def test_filters_that_want_to_read_are_refused_and_command_topics_are_not(parts: Parts) -> None:
    filters = ("#", "hydrometer/red", "home/lamp/set", "+/x")
    for level, codes in (
        (wire.MQTT_3_1, b"\x00\x00\x00\x00"),
        (wire.MQTT_3_1_1, b"\x80\x80\x00\x80"),
        (wire.MQTT_5, b"\x87\x87\x00\x87"),
    ):
        async with opened(parts.port, wire.connect(level), wire.subscribe(3, filters, level)) as client:
            await client.packet()
            answer = await client.packet()
            assert (answer[0], answer[2:4], answer[-4:]) == (0x90, b"\x00\x03", codes)
            await client.send(wire.publish(TOPIC, b"{}", level=level))
            await client.ping()  # and nothing was delivered before
            await client.send(wire.unsubscribe(4, filters, level))
            assert (await client.packet())[0] == 0xB0
    assert parts.stats.unread.messages == {}


async def test_what_is_open_when_the_listener_stops_is_still_acknowledged(parts: Parts) -> None:
    parts.intake.open.clear()
    connects = [wire.connect(level) for level in (wire.MQTT_3_1_1, wire.MQTT_5)]
    async with opened(parts.port, connects[0]) as old, opened(parts.port, connects[1]) as new:
        for client, level in ((old, wire.MQTT_3_1_1), (new, wire.MQTT_5)):
            await client.packet()
            await client.send(wire.publish(TOPIC, b"%d" % level, 1, 7, level=level))
        await wait_for(lambda: len(parts.intake.payloads) == 2)
        stopping = asyncio.create_task(parts.bridge.stop())
        await asyncio.sleep(0.05)
        parts.intake.open.set()
        assert await old.rest() == puback(7)
        assert await new.rest() == puback(7) + b"\xe0\x01\x8b"
        await stopping


async def test_a_store_that_refuses_for_long_is_told_to_clients() -> None:
    parts = Parts(MqttLimits(refusing_s=0.05, look_s=0.02))
    async with parts.listening():
        parts.intake.open.clear()
        async with opened(
            parts.port, wire.connect(wire.MQTT_5), wire.publish(TOPIC, b"x", 1, 1, level=wire.MQTT_5)
        ) as client:
            await client.packet()
            async with opened(parts.port, wire.connect()) as other:
                await other.hears(WELCOME)
                await wait_for(lambda: parts.intake.payloads)
                parts.bridge.note_store(refuses=True)
                assert await client.rest() == b"\xe0\x01\x97"
                await other.ping()  # nothing of it is unacknowledged
        async with opened(parts.port, wire.connect()) as late:
            assert await late.rest() == b"\x20\x02\x00\x03"
        parts.bridge.note_store(refuses=False)
        parts.intake.open.set()
        async with opened(parts.port, wire.connect()) as late:
            await late.hears(WELCOME)
    assert bodies(parts) == [b"x"]
