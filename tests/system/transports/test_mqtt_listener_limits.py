"""The MQTT listener's limits: deadlines, connections, rate, memory, and who may come."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from gateway.clock import SystemClock
from gateway.errors import QuotaFull
from gateway.services.access import Access
from gateway.services.build import build_services
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.mqtt_limits import OPEN_IDS, MqttLimits
from tests import mqtt_wire as wire
from tests.cases import each
from tests.mqtt_client import Client, opened
from tests.system.tls.conftest import made_in
from tests.system.transports.conftest import open_port, wait_for
from tests.system.transports.test_mqtt_listener import Parts

TOPIC = "hydrometer/red"
WELCOME = b"\x20\x02\x00\x00"
NEIGHBOUR, OTHER = "127.0.0.7", "127.0.0.8"


@asynccontextmanager
async def listening(
    limits: MqttLimits | None = None, access: Access | None = None, *, require_key: bool = False
) -> AsyncIterator[Parts]:
    parts = Parts(limits, access, require_key=require_key)
    async with parts.listening():
        yield parts


async def is_closed(client: Client) -> float:
    """Wait for the end of the connection; return when that was."""
    await client.rest()
    return time.monotonic()


async def test_keep_alive_is_enforced_but_not_on_a_client_that_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.transports.mqtt_link.IN_FLIGHT_MESSAGES", 1)
    async with listening(MqttLimits(look_s=0.1)) as parts, AsyncExitStack() as stack:
        clients: list[Client] = []
        for level, keep_alive in ((4, 1), (5, 1), (4, 1), (4, 0), (4, 1)):
            client = await stack.enter_async_context(
                opened(parts.port, wire.connect(level, f"k{len(clients)}", keep_alive=keep_alive))
            )
            assert (await client.packet())[0] == 0x20
            clients.append(client)
        old, new, pings, never, held = clients
        parts.intake.open.clear()
        await held.send(wire.publish(TOPIC, b"1", 1, 1), wire.publish(TOPIC, b"2", 1, 2))
        await wait_for(lambda: parts.stats.mqtt.held)
        began = time.monotonic()

        async def ping() -> None:
            for _ in range(4):
                await asyncio.sleep(0.6)
                await pings.ping()

        pinging = asyncio.create_task(ping())
        assert 1.0 < await is_closed(old) - began < 3
        assert await new.rest() == b"\xe0\x01\x8d"
        await pinging
        await never.ping()
        parts.intake.open.set()
        await held.hears(b"\x40\x02\x00\x01\x40\x02\x00\x02")
        assert parts.stats.mqtt.connections == 3


@each(
    "sent, limits, ends",
    [
        (b"", MqttLimits(connect_s=0.1, look_s=0.02), b""),
        (wire.connect()[:7], MqttLimits(connect_s=0.1, look_s=0.02), b""),
        (wire.connect() + b"\x30\x7f\x00", MqttLimits(packet_s=0.1, look_s=0.02), WELCOME),
    ],
)
async def test_a_client_that_is_too_slow_is_ended(sent: bytes, limits: MqttLimits, ends: bytes) -> None:
    async with listening(limits) as parts, opened(parts.port, sent) as client:
        assert await client.rest() == ends


async def test_connections_are_bounded_for_each_source_and_the_silent_make_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = MqttLimits(per_source=4, connections=12, silent_s=0.2)
    async with listening(limits) as parts, AsyncExitStack() as stack:

        async def come(source: str) -> Client:
            return await stack.enter_async_context(opened(parts.port, wire.connect(), source=source))

        crowd = [await come(NEIGHBOUR) for _ in range(4)]
        for client in crowd:
            await client.hears(WELCOME)
        assert await (await come(NEIGHBOUR)).rest() == b""
        assert await (await come(NEIGHBOUR)).rest() == b""
        await (await come(OTHER)).hears(WELCOME)
        for _ in range(6):
            await (await come("127.0.0.1")).hears(WELCOME)
        await asyncio.sleep(0.25)
        for client in crowd[1:]:
            await client.ping()
        await (await come(NEIGHBOUR)).hears(WELCOME)
        assert await crowd[0].rest() == b""
        assert parts.stats.mqtt.refused["crowd"] == 2
        assert parts.stats.mqtt.connections == 11
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [f"mqtt: connections of {NEIGHBOUR} are refused: too many are open"]


async def test_beyond_the_rate_a_neighbour_waits_and_loses_nothing() -> None:
    async with listening() as parts:
        many = [wire.publish(TOPIC, b"%d" % n) for n in range(200)]
        async with (
            opened(parts.port, wire.connect(), b"".join(many), source=NEIGHBOUR) as client,
            opened(parts.port, wire.connect(), source=OTHER) as other,
        ):
            await client.hears(WELCOME)
            await other.hears(WELCOME)
            await wait_for(lambda: parts.stats.mqtt.held)
            began = time.monotonic()
            assert 58 <= len(parts.intake.payloads) <= 75
            await other.send(wire.publish("hydrometer/other", b"x", 1, 1))
            await other.hears(b"\x40\x02\x00\x01")
            before = len(parts.intake.payloads)
            await wait_for(lambda: len(parts.intake.payloads) >= before + 3)
            assert time.monotonic() - began > 0.9, "two a second"
            values = [wire.publish(f"ispindel/red/k{n}", b"1") for n in range(150)]
            log_lines = [wire.publish("fermenter/debug", b"-") for _ in range(400)]
            await other.send(b"".join(values + log_lines))
            await other.ping()


async def test_a_source_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.transports.mqtt_link.IN_FLIGHT_MESSAGES", 16)
    async with listening() as parts:
        parts.intake.open.clear()
        greedy = [wire.publish(TOPIC, b"%d" % mid, 1, mid) for mid in range(1, 9)]
        async with (
            opened(parts.port, wire.connect(), *greedy, source=NEIGHBOUR) as client,
            opened(parts.port, wire.connect(), wire.publish(TOPIC, b"x", 1, 1), source=OTHER) as other,
        ):
            await wait_for(lambda: len(parts.intake.payloads) == 5)
            assert parts.bridge.in_flight == 5, "a quarter, and the other's"
            parts.intake.open.set()
            await other.hears(WELCOME + b"\x40\x02\x00\x01")
            await client.hears(WELCOME + b"".join(b"\x40\x02" + mid.to_bytes(2) for mid in range(1, 9)))
        assert parts.bridge._shares == {}


async def test_a_client_that_has_left_is_not_held_for_ever() -> None:
    """At two readings a second, what it left behind would take a minute."""
    async with listening(MqttLimits(leave_s=0.1, leave_held_s=0.3, look_s=0.05)) as parts:
        parts.intake.open.clear()
        many = [wire.publish(TOPIC, b"%d" % n, 1, n) for n in range(1, 201)]
        async with opened(parts.port, wire.connect(), b"".join(many), source=NEIGHBOUR) as client:
            await client.hears(WELCOME)
            await wait_for(lambda: parts.stats.mqtt.held)
            client.reset()
        await asyncio.sleep(0.05)
        parts.intake.open.set()  # only a PUBACK tells the listener that it has gone
        await wait_for(lambda: parts.stats.mqtt.connections == 0)
    assert 58 <= len(parts.intake.payloads) < 75


async def test_a_flood_of_pings_has_a_rate() -> None:
    async with listening() as parts:
        async with opened(parts.port, wire.connect() + wire.PING * 4_000, source=NEIGHBOUR) as client:
            await wait_for(lambda: parts.stats.mqtt.held)
            await client.hears(WELCOME + wire.PONG * 2_900)
        async with opened(parts.port, wire.connect(), source=OTHER) as other:
            await other.hears(WELCOME)
            await other.ping()


async def test_a_burst_within_the_rate_of_a_device_that_leaves_is_taken_whole() -> None:
    async with listening() as parts:
        sent = [wire.publish(TOPIC, b"%d" % n) for n in range(58)]
        async with opened(parts.port, wire.connect(), *sent, wire.GOODBYE, source=NEIGHBOUR):
            pass
        await wait_for(lambda: len(parts.intake.payloads) == 58)


async def test_unfinished_packets_of_all_clients_are_bounded() -> None:
    limits = MqttLimits(unfinished_bytes=200_000)
    part = wire.publish(TOPIC, bytes(60_000), level=wire.MQTT_5)[:50_000]
    device = wire.publish(TOPIC, bytes(3_000))
    async with listening(limits) as parts, AsyncExitStack() as stack:
        small = await stack.enter_async_context(opened(parts.port, wire.connect() + device[:2_000]))
        clients = []
        for _ in range(8):
            client = await stack.enter_async_context(opened(parts.port, wire.connect(wire.MQTT_5)))
            await client.packet()
            await client.send(part)
            clients.append(client)
        await wait_for(lambda: parts.stats.mqtt.refused["too_much"] >= 3)
        assert parts.bridge.buffered <= 300_000
        await small.send(device[2_000:])
        await wait_for(lambda: parts.intake.payloads)


async def test_ids_of_qos_2_without_pubrel_are_bounded() -> None:
    async with listening(MqttLimits(open_ids=50)) as parts:
        number = OPEN_IDS + 1
        sent = [wire.publish(TOPIC, b"%d" % mid, 2, mid, level=wire.MQTT_5) for mid in range(1, number)]
        async with opened(parts.port, wire.connect(wire.MQTT_5), *sent) as client:
            assert (await client.rest())[-3:] == b"\xe0\x01\x93"


async def test_kept_sessions_are_bounded() -> None:
    async with listening() as parts:
        for n in range(40):
            async with opened(parts.port, wire.connect(client_id=f"s{n}", clean=False)) as client:
                await client.hears(WELCOME)
        await wait_for(lambda: parts.stats.mqtt.connections == 0)
        assert len(parts.bridge._memory) == 32


async def test_a_store_without_room_ends_the_connection_at_once() -> None:
    async with listening() as parts:
        for qos, answer in ((1, b"\x40\x02\x00\x07"), (2, b"\x50\x02\x00\x07")):
            parts.intake.refusal, parts.intake.refusals = QuotaFull, 1
            connect = wire.connect(client_id=f"full{qos}", clean=False)
            packet = wire.publish(TOPIC, b"%d" % qos, qos, 7)
            async with opened(parts.port, connect, packet) as client:
                assert await client.rest() == WELCOME
            async with opened(parts.port, connect, packet) as client:
                await client.packet()
                await client.hears(answer)
        assert parts.bridge.in_flight == 0
        assert [payload.body for payload in parts.intake.stored] == [b"1", b"2"]


@pytest.fixture
async def access(tmp_path: Path) -> AsyncIterator[Access]:
    store = SqliteStore(tmp_path)
    await store.open()
    access = build_services(store, tmp_path, SystemClock()).access
    await access.start()
    yield access
    await store.close()


REFUSED = b"\x20\x02\x00\x04"


async def test_who_may_come_and_with_which_key(access: Access) -> None:
    key = await access.add("red", frozenset({"ingest"}), device="red")
    reader = await access.add("phone", frozenset({"read"}))
    rows = (
        (None, WELCOME, REFUSED),
        ("", WELCOME, REFUSED),
        ("anything", WELCOME, REFUSED),
        ("hg_wrong", REFUSED, REFUSED),
        (reader, REFUSED, REFUSED),
        (key, WELCOME, WELCOME),
    )
    for require_key in (False, True):
        async with listening(access=access, require_key=require_key) as parts:
            for password, *expected in rows:
                user = None if password is None else ""
                packets = wire.connect(user=user, password=password), wire.publish(TOPIC, b"{}")
                async with opened(parts.port, *packets) as client:
                    await client.hears(expected[require_key])
                    if expected[require_key] == REFUSED:
                        assert await client.rest() == b""
                    else:
                        await client.ping()
            assert [payload.key.name for payload in parts.intake.payloads if payload.key] == ["red"]
            assert {payload.source for payload in parts.intake.payloads} == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("wrong", "require_key"), [("hg_wrong", False), ("hg_wrong", True), ("geheim", True)]
)
async def test_many_wrong_keys_are_bounded_and_lock_no_right_key_out(
    access: Access, wrong: str, *, require_key: bool
) -> None:
    key = await access.add("red", frozenset({"ingest"}))
    async with listening(access=access, require_key=require_key) as parts:
        answers = []
        for password in [wrong] * 12 + [key]:
            packet = wire.connect(user="", password=password)
            async with opened(parts.port, packet, source=NEIGHBOUR) as client:
                answers.append((await client.packet())[3])
    assert answers == [4] * 10 + [3] * 2 + [0]


async def test_a_key_that_is_revoked_or_has_ended_ends_its_connections(access: Access) -> None:
    key = await access.add("red", frozenset({"ingest"}))
    async with listening(MqttLimits(look_s=0.02), access) as parts:
        with_key = wire.connect(wire.MQTT_5, user="", password=key)
        async with opened(parts.port, with_key) as client, opened(parts.port, wire.connect()) as other:
            assert (await client.packet())[0] == 0x20
            await other.hears(WELCOME)
            await access.revoke("red")
            assert await client.rest() == b"\xe0\x01\x87"
            await other.ping()


@pytest.fixture
def context(tmp_path: Path) -> ssl.SSLContext:
    made = made_in(tmp_path, "brew.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    return context


@asynccontextmanager
async def secured(port: int, *writes: bytes) -> AsyncIterator[Client]:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
    client = Client(reader, writer)
    await client.send(*writes)
    yield client
    writer.transport.abort()


async def test_tls(
    access: Access, context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = await access.add("red", frozenset({"ingest"}))
    limits = MqttLimits(tls_connections=2, silent_s=60, connect_s=0.3, look_s=0.05)
    async with listening(limits, access) as parts:
        port = await open_port(parts.bridge, lambda: context)
        large = [wire.publish(TOPIC, bytes([n]) * 60_000, 1, n) for n in range(1, 21)]
        async with secured(port, wire.connect(), *large, wire.PING) as client:
            await client.hears(WELCOME)
            heard = {(await client.packet())[:4] for _ in range(21)}
            assert len(heard) == 21
            async with secured(port, wire.connect(), wire.publish(TOPIC, b"x"), wire.GOODBYE) as second:
                assert await second.rest() == WELCOME
                async with opened(port) as probe:
                    await wait_for(lambda: parts.stats.mqtt.connections == 2)
                    async with opened(port) as third:
                        assert await third.rest() == b""
                    await probe.send(b"GET / HTTP/1.1\r\n\r\n")
                    await probe.rest()
            async with opened(port) as silent:
                assert await silent.rest() == b""  # the handshake is part of the 10 s
            await client.ping()
        await wait_for(lambda: len(parts.intake.payloads) == 21)
        monkeypatch.setattr("gateway.network.is_local", lambda _: False)
        for password, expected in ((None, REFUSED), (key, WELCOME)):
            user = None if password is None else ""
            async with secured(port, wire.connect(user=user, password=password)) as client:
                await client.hears(expected)
        async with opened(parts.port, wire.connect(user="", password=key)) as client:
            assert await client.rest() == b""
    assert {record.getMessage() for record in caplog.records} == {
        "mqtt: connections of 127.0.0.1 are refused: too many are open",
        "mqtt: 127.0.0.1 is refused: not an address of the local network",
    }
