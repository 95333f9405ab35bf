"""The MQTT listener with bytes as firmware writes them, and with bytes that nobody should write."""

import asyncio
import re
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random

import pytest

from gateway.store.sqlite.engine.database import DATABASE_NAME
from tests import mqtt_wire as wire
from tests.cases import each
from tests.faults.readings import body_of, mark_of
from tests.hostile import mqtt_packets as fuzz
from tests.mqtt_client import opened
from tests.mqtt_wire import LEVELS, MQTT_3_1, MQTT_3_1_1, MQTT_5, Will, connect, packet, publish
from tests.payloads import ispindel_mqtt
from tests.program.program import FREE_PORTS, Server, serving, until

CONNACK, KEPT = b"\x20\x02\x00\x00", b"\x20\x02\x01\x00"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path / "data", *FREE_PORTS) as server:
        yield server


def rows(server: Server) -> int:
    with sqlite3.connect(server.data / DATABASE_NAME) as database:
        count: int = database.execute("SELECT count(*) FROM readings").fetchone()[0]
    database.close()
    return count


def values(name: str) -> list[bytes]:
    """The seven messages of an iSpindel at QoS 0."""
    return [publish(topic, text.encode()) for topic, text in ispindel_mqtt(name)]


def reading(device: str, qos: int, mid: int = 0, *, level: int = MQTT_3_1_1, padding: int = 0) -> bytes:
    body = body_of(mark_of(device, 1), device, padding)
    return publish(f"hydrometer/{device}", body, qos, mid, level=level, retain=qos == 2)


def acks(*mids: int) -> bytes:
    return b"".join(b"\x40\x02" + mid.to_bytes(2) for mid in mids)


async def pubsubclient(server: Server, level: int) -> None:
    """iSpindel: a write for each packet; user and password are empty and are sent."""
    async with opened(server.mqtt_port) as client:
        await client.send(connect(level, f"iSpindel{level}", keep_alive=15, user="", password=""))
        await client.hears(CONNACK)
        await client.send(*values(f"iSpindel{level}"), wire.GOODBYE)


async def hasty(server: Server) -> None:
    """iSpindel again: it waits for nothing, and resets."""
    async with opened(server.mqtt_port) as client:
        await client.send(connect(client_id="hasty", keep_alive=15, user="", password=""), *values("hasty"))
        client.reset()


async def arduino_mqtt(server: Server) -> None:
    """GravityMon: head and content of a PUBLISH are two writes."""
    async with opened(server.mqtt_port) as client:
        await client.send(connect(client_id="gravitymon1", keep_alive=10))
        await client.hears(CONNACK)
        for topic, text in ispindel_mqtt("gravitymon1"):
            whole = publish(topic, text.encode())
            await client.send(whole[: -len(text)], text.encode())
        await client.send(wire.GOODBYE)


async def esp_mqtt(server: Server) -> None:
    """TiltBridge 2: what is longer than its buffer goes in pieces of a kilobyte."""
    async with opened(server.mqtt_port) as client:
        await client.send(connect(client_id="tiltbridge", keep_alive=120))
        await client.hears(CONNACK)
        whole = reading("tiltbridge", 1, 7, padding=3_000)
        await client.send(*(whole[at : at + 1024] for at in range(0, len(whole), 1024)))
        await client.hears(acks(7))
        await client.send(publish("homeassistant/sensor/tilt/config", b"{}", retain=True))
        await client.ping()


async def async_mqtt_client(server: Server) -> None:
    """BrewPiLess: many packets in one write, QoS 1 and retained, and a command topic."""
    single = [publish(f"brewpiless/{mid}", b"20.5", 1, mid, retain=True) for mid in range(1, 16)]
    async with opened(server.mqtt_port) as client:
        await client.send(connect(client_id="ESP8266", keep_alive=15))
        await client.hears(CONNACK)
        await client.send(b"".join([*single, reading("brewpiless", 1, 16)]))
        await client.hears(acks(*range(1, 17)))
        await client.send(wire.subscribe(17, ["brewpiless/mode", "brewpiless/setpoint"]))
        await client.hears(b"\x90\x04\x00\x11\x00\x00")
        await client.ping()


async def esphome(server: Server) -> None:
    """ESPHome: a session that is kept, a will, log lines, and reports as messages."""
    will = Will("fermenter/status", b"offline", retain=True)
    hello = connect(client_id="fermenter-a1b2c3", clean=False, keep_alive=15, will=will)
    for connack in (CONNACK, KEPT):
        async with opened(server.mqtt_port) as client:
            await client.send(hello)
            await client.hears(connack)
            await client.send(
                publish("fermenter/status", b"online", retain=True),
                wire.subscribe(1, ["fermenter/switch/relay/command"]),
                publish("fermenter/debug", b"[D][sensor:094]: 'gravity': Sending state 1.05000"),
            )
            await client.hears(b"\x90\x03\x00\x01\x00")
            await client.ping()
            client.reset()
            await client.rest()
    async with opened(server.mqtt_port, hello) as client:
        await client.hears(KEPT)
        await client.send(reading("fermenter", 0))
        await client.ping()


async def paho_multiple(server: Server) -> None:
    """tilt2mqtt: no client id, QoS 2, retained, and gone."""
    async with opened(server.mqtt_port) as client:
        await client.send(connect(client_id=""))
        await client.hears(CONNACK)
        await client.send(reading("tilt2mqtt", 2, 1))
        await client.hears(b"\x50\x02\x00\x01")
        await client.send(wire.release(1))
        await client.hears(b"\x70\x02\x00\x01")
        await client.send(wire.GOODBYE)
        assert await client.rest() == b""


async def bridge(server: Server) -> None:
    """mosquitto: a bit in the level, and its own state under `$SYS`."""
    async with opened(server.mqtt_port) as client:
        state = "$SYS/broker/connection/host.gateway/state"
        will = Will(state, b"0", 1, retain=True)
        await client.send(connect(client_id="host.gateway", clean=False, bridge=True, will=will))
        await client.hears(CONNACK)
        await client.send(publish(state, b"1", 1, 1, retain=True), reading("bridged", 1, 2))
        await client.hears(acks(1, 2))
        await client.ping()


@each(
    "device",
    [
        lambda server: pubsubclient(server, MQTT_3_1_1),
        lambda server: pubsubclient(server, MQTT_3_1),
        hasty,
        arduino_mqtt,
        esp_mqtt,
        async_mqtt_client,
        esphome,
        paho_multiple,
        bridge,
    ],
)
async def test_a_device_and_its_one_reading(server: Server, device) -> None:  # type: ignore[no-untyped-def]
    before = rows(server)
    await device(server)
    await until(lambda: rows(server) == before + 1)


READING_TOPICS = ("#", "hydrometer/+", "hydrometer/red", "$SYS/#", "$share/a/hydrometer/red")


@each("level, no", [(MQTT_3_1, 0x00), (MQTT_3_1_1, 0x80), (MQTT_5, 0x87)])
async def test_who_wants_to_read_is_told_no_and_a_command_topic_is_welcome(
    server: Server, level: int, no: int
) -> None:
    async with opened(server.mqtt_port, connect(level, "reader")) as reader:
        await reader.packet()
        await reader.send(wire.subscribe(1, [*READING_TOPICS, "home/lamp/set"], level))
        answer = await reader.packet()
        assert list(answer[-6:]) == [*[no] * 5, 0]
        async with opened(server.mqtt_port, connect(client_id="writer")) as writer:
            await writer.hears(CONNACK)
            await writer.send(publish("home/lamp/set", b"on", 1, 1), publish("hydrometer/red", b"{}", 1, 2))
            await writer.hears(acks(1, 2))
        await reader.ping()  # it hears nothing else


async def test_arduino_mqtt_subscribes_to_its_own_topic_and_stays(server: Server) -> None:
    """A SUBACK that refuses makes this library close the connection (MQTTClient.cpp, subscribe)."""
    before = rows(server)
    async with opened(server.mqtt_port, connect(client_id="sketch", keep_alive=10)) as client:
        await client.hears(CONNACK)
        await client.send(wire.subscribe(1, ["sketch/set"]))
        suback = await client.packet()
        assert suback[:4] == b"\x90\x03\x00\x01"
        assert suback[4] < 0x80, "it would go now"
        await client.send(reading("sketch", 0), wire.unsubscribe(2, ["sketch/set"]))
        assert await client.packet() == b"\xb0\x02\x00\x02"
        await client.ping()
    await until(lambda: rows(server) == before + 1)


def malformed() -> Iterator[bytes]:
    """Streams that are wrong: every first byte, every flag, every property, every length, and prose."""
    for level in LEVELS:
        hello = connect(level, "odd")
        for first in range(256):
            yield bytes([first, 0]) if level == MQTT_3_1 else hello + bytes([first, 2, 0, 0])
        for flags in range(1, 256, 3):
            head = wire.text(wire.NAMES[level]) + bytes([level, flags]) + b"\0\x3c"
            yield packet(0x10, head + wire.properties(level) + wire.text("odd") * 4)
        yield hello * 2
        yield hello + b"\x30\xff\xff\xff\xff\x01"
        yield hello + publish(b"\xff\xfe", b"", level=level) + publish("a\0", b"", level=level)
    for name in range(256):
        for value in (b"", b"\0", b"\0\0\0\0"):
            props = bytes([name]) + value
            yield connect(MQTT_5, "odd", raw=props)
            yield connect(MQTT_5, "odd") + publish("nobody/odd", b"", 1, 1, level=MQTT_5, raw=props * 2)
    yield b""
    yield b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
    yield b"\x00" * 64
    yield bytes(range(255, 0, -1)) * 4


MUTANTS = 3_000
AT_ONCE = 8
PONG_S = 0.1


async def test_malformed_packets_harm_nobody(server: Server) -> None:
    chance = Random(29)  # noqa: S311 - no secrets
    good = [stream for level in LEVELS for stream in fuzz.streams(level, "nobody/red")]
    attacks = [*malformed(), *(fuzz.mutant(chance.choice(good), chance) for _ in range(MUTANTS))]
    assert len(attacks) > MUTANTS + 800
    process = Process(server)
    async with opened(server.mqtt_port, connect(client_id="well")) as well:
        await well.hears(CONNACK)
        lines, descriptors = len(server.lines) + len(server.errors), process.descriptors()
        left = iter(attacks)

        async def attack() -> None:
            for data in left:
                try:
                    async with opened(server.mqtt_port, data) as client:
                        client.writer.write_eof()
                        await client.rest()
                except OSError:
                    pass  # the listener's answer to what it does not like

        attackers = [asyncio.create_task(attack()) for _ in range(AT_ONCE)]
        waits_s = []
        while not all(attacker.done() for attacker in attackers):
            began = time.monotonic()
            await well.ping()
            waits_s.append(time.monotonic() - began)
            await asyncio.sleep(0.02)
        await asyncio.gather(*attackers)
        assert statistics.median(waits_s) < PONG_S
        await until(lambda: process.descriptors() <= descriptors)
        assert len(server.lines) + len(server.errors) == lines
        await well.send(reading("well", 1, 1))
        await well.hears(acks(1))


class Process:
    """What the kernel knows of the program."""

    def __init__(self, server: Server) -> None:
        self._folder = Path(f"/proc/{server.process.pid}")

    def descriptors(self) -> int:
        return len(list((self._folder / "fd").iterdir()))

    def memory_kb(self) -> int:
        found = re.search(r"^VmRSS:\s+(\d+) kB", (self._folder / "status").read_text("ascii"), re.M)
        assert found is not None
        return int(found[1])


GROWTH_KB = 1024

TOO_MUCH = {
    "256 MB, by its header": b"\x30\xff\xff\xff\x7f\x00\x0ehydrometer/red",
    "70 kB, by its header": b"\x32" + wire.length(70_000) + b"\x00\x0ehydrometer/red",
    "a message of 66 kB": publish("hydrometer/red", bytes(66_000), 1, 1),
    "a topic of 2,000 bytes": publish("x" * 2_000, b"", 1, 1),
    "65 filters": wire.subscribe(1, ["home/lamp/set"] * 65),
    "a SUBSCRIBE of 20 kB, by its header": b"\x82" + wire.length(20_000),
}


async def test_what_is_too_much_is_refused_at_once_and_costs_no_memory(server: Server) -> None:
    process = Process(server)
    before = 0
    for turn in range(20):
        for what, data in TOO_MUCH.items():
            async with opened(server.mqtt_port, connect(client_id="big") + data) as client:
                assert await client.rest() == CONNACK, what
        async with opened(server.mqtt_port, connect(client_id="x" * 300)) as client:
            assert await client.rest() == b"\x20\x02\x00\x02"
        before = before or process.memory_kb() if turn else 0
    assert process.memory_kb() - before <= GROWTH_KB
    assert rows(server) == 0


async def test_open_ids_of_qos_2_are_many_and_not_endless(server: Server) -> None:
    """paho sends all that it has at once after a reconnect; whoever leaves ids open has its end."""

    def messages(first: int, count: int) -> bytes:
        mids = range(first, first + count)
        return b"".join(publish("nobody/listens", b"x", 2, mid, level=MQTT_5) for mid in mids)

    async with opened(server.mqtt_port, connect(MQTT_5, "many")) as many:
        await many.packet()
        sending = asyncio.create_task(many.send(messages(1, 3_000)))
        for mid in range(1, 3_001):
            await many.hears(b"\x50\x03" + mid.to_bytes(2) + b"\x10")
        await sending
        sending = asyncio.create_task(many.send(messages(3_001, 28_000)))
        assert (await many.rest())[-3:] == b"\xe0\x01\x93"
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    async with opened(server.mqtt_port, connect(MQTT_5, "few")) as few:
        await few.packet()
        await few.send(messages(1, 90))
        await few.hears(b"".join(b"\x50\x03" + mid.to_bytes(2) + b"\x10" for mid in range(1, 91)))


async def test_a_client_of_version_5_is_told_why(server: Server) -> None:
    for data, code in (
        (publish("x" * 2_000, b"", 1, 1, level=MQTT_5), 0x90),
        (b"\x30\xff\xff\xff\x7f", 0x95),
    ):
        async with opened(server.mqtt_port, connect(MQTT_5, "why") + data) as client:
            assert (await client.packet())[:1] == b"\x20"
            assert await client.packet() == b"\xe0\x01" + bytes([code])
            assert await client.packet() == b""
