"""M7: a broker, and clients of our listener, that send what they may not."""

import asyncio
import struct
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

from sample_devices.transports.mqtt import publish_packet
from sample_devices.wire.report import Message
from tests.faults.devices import connected
from tests.faults.drain import until
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import prepare, running
from tests.faults.mqtt_brokers import MqttGateway
from tests.faults.mqtt_crowd import Crowd
from tests.faults.readings import body_of, mark_of
from tests.mqtt_client import opened
from tests.mqtt_wire import connect

MEMORY_KB = 20 * 1024
"""More than before, at most."""

PATIENCE_S = 60.0

CONNACK, SUBACK_HEAD = b"\x20\x02\x00\x00", 0x90
SUBSCRIBE = 8

LONGEST = 65_535
"""Bytes of a topic (MQTT 3.1.1, section 1.5.3)."""

CHUNK = bytes(1 << 20)
LONG_PACKET = 256
"""Megabytes that a remaining length can say, less one byte."""


@dataclass
class Hostile:
    """Accepts the gateway and sends what it is told to; `acknowledged` are packet ids."""

    port: int = 0
    connections: int = 0
    subscriptions: int = 0
    acknowledged: list[int] = field(default_factory=list)
    connack: bytes = CONNACK
    _writer: asyncio.StreamWriter | None = None
    _server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        if self._writer is not None:
            self._writer.close()

    async def send(self, *parts: bytes) -> None:
        """One packet in parts; that the other side goes in the middle of it is its answer."""
        assert self._writer is not None
        try:
            for part in parts:
                self._writer.write(part)
                await self._writer.drain()
        except OSError:
            pass

    async def drop(self) -> None:
        """End the connection, and wait for the next one."""
        assert self._writer is not None
        before = self.subscriptions
        self._writer.close()
        await until(lambda: self.subscriptions > before, 60.0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.connections += 1
        try:
            while True:
                kind, body = await _packet(reader)
                self._answer(kind, body, writer)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    def _answer(self, kind: int, body: bytes, writer: asyncio.StreamWriter) -> None:
        if kind == 1:
            writer.write(self.connack)
        elif kind == SUBSCRIBE:
            topics, at = 0, 2
            while at < len(body):
                at += struct.unpack_from(">H", body, at)[0] + 3
                topics += 1
            writer.write(bytes([SUBACK_HEAD, 2 + topics]) + body[:2] + b"\x01" * topics)
            self.subscriptions += 1
        elif kind == 4:
            self.acknowledged.append(int.from_bytes(body, "big"))


async def _packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head, length, shift = (await reader.readexactly(1))[0], 0, 0
    while True:
        byte = (await reader.readexactly(1))[0]
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return head >> 4, await reader.readexactly(length)


def odd_packets(megabytes: int) -> dict[str, tuple[bytes, ...]]:
    """What a broker may not send, by what is wrong with it."""
    length = megabytes * len(CHUNK) - 1
    topic = b"\x00\x0ehydrometer/big\x00\x09"
    long = bytes([0x32, *(length >> shift & 0x7F | (0x80 if shift < 21 else 0) for shift in (0, 7, 14, 21))])
    names = {
        "a topic that is no text": b"hydrometer/\xff\xfe",
        "a topic with NUL": b"hydrometer/a\x00b",
        "a topic that looks like a path": b"hydrometer/../../etc",
        "a topic of the greatest length": b"hydrometer/" + b"x" * (LONGEST - 11),
        "a topic with a wildcard": b"hydrometer/+",
        "no topic": b"",
    }
    return {
        "shorter than its topic length": (b"\x32\x01\x00",),
        "a topic longer than the packet": (b"\x32\x05\xff\xffabc",),
        "nothing in it": (b"\x30\x00",),
        "a length of five bytes": (b"\x32\xff\xff\xff\xff\x7f",),
        "a type that does not exist": (b"\xf0\x00",),
        "SUBACK with an unknown code": (b"\x90\x03\x00\x01\x55",),
        "PUBACK of nothing": (b"\x40\x02\xff\xff",),
        "noise": (bytes(range(255, 0, -1)) * 4,),
        "a packet that is too long": (long, topic, *[CHUNK] * (megabytes - 1), CHUNK[len(topic) + 1 :]),
        **{what: (_publish(name),) for what, name in names.items()},
    }


def _publish(topic: bytes) -> bytes:
    """QoS 1, packet id 9, with a reading in it."""
    rest = len(topic).to_bytes(2, "big") + topic + b"\x00\x09" + b'{"angle":45,"temperature":20}'
    head, length = bytearray([0x32]), len(rest)
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*head, length]) + rest


async def play_m7(run: Run) -> None:
    """All that is odd, `n` times, by a broker and by clients; after each a good reading has to pass."""
    await _hostile_broker(run)
    if not run.mutated:
        await _hostile_clients(run)


async def _hostile_broker(run: Run) -> None:
    async with AsyncExitStack() as stack:
        broker = Hostile()
        await broker.start()
        stack.push_async_callback(broker.stop)
        data = run.sub("broker")
        await prepare(data)
        options = ("--mqtt-url", f"mqtt://127.0.0.1:{broker.port}")
        gateway = MqttGateway(data, options=options, weak="greedy" if run.mutated else "")
        await stack.enter_async_context(running(gateway))
        await until(lambda: broker.subscriptions == 1, PATIENCE_S)
        before = gateway.memory_kb()
        for number in range(run.n):
            for what, parts in odd_packets(LONG_PACKET if run.n > 1 else LONG_PACKET // 4).items():
                await broker.send(*parts)
                run.expect(await _passes(broker, number), f"nothing passes after {what}")
            run.step()
        run.figure("connections", broker.connections)
        await _unharmed(run, gateway, before)


async def _unharmed(run: Run, gateway: MqttGateway, before: int) -> None:
    grown = gateway.memory_kb("VmHWM") - before
    run.highest("grown_mb", round(grown / 1024, 1))
    run.expect(grown <= MEMORY_KB, f"{grown} kB more memory")
    run.expect(not any("Traceback" in line for line in gateway.lines), "a traceback in the log")
    run.expect((await gateway.get("/healthz"))[0] == 200, "the gateway is gone")


async def _hostile_clients(run: Run) -> None:
    """The same packets from clients, in a crowd of subscribers that do not read, filters and silence."""
    data = run.sub("listener")
    await prepare(data)
    gateway = MqttGateway(data)
    async with running(gateway), connected(gateway.mqtt_port, "m0") as line:
        await line.publish("m0", mark_of("m0", 0))
        before, descriptors, number = gateway.memory_kb(), gateway.descriptors(), 0
        async with Crowd(gateway.mqtt_port) as crowd:
            for _ in range(run.n):
                for what, parts in odd_packets(LONG_PACKET // 4).items():
                    number += 1
                    await _send_oddly(gateway.mqtt_port, parts)
                    with suppress(OSError, EOFError, TimeoutError):
                        await line.publish("m0", mark_of("m0", number))
                        continue
                    run.expect(False, f"nothing passes after {what}")
            await until(lambda: crowd.filters > 0 and crowd.sessions > 0, PATIENCE_S)
            run.expect(crowd.filters > 0 and crowd.sessions > 0, "the crowd was not let in at all")
        if run.n > 1:  # at full size alone: what is held of the crowd is read on for a minute
            gone = await until(lambda: gateway.descriptors() <= descriptors, 2 * PATIENCE_S)
            run.expect(gone is not None, f"{gateway.descriptors() - descriptors} descriptors are left behind")
        await _unharmed(run, gateway, before)


async def _send_oddly(port: int, parts: Sequence[bytes]) -> None:
    """Send a packet in parts; that the other side goes in the middle of it is its answer."""
    with suppress(OSError):
        async with opened(port, connect(client_id="odd"), *parts) as client:
            client.writer.write_eof()
            await client.rest()


async def _passes(broker: Hostile, number: int) -> bool:
    """Whether a good message is acknowledged, on this connection or on the next."""
    broker.acknowledged.clear()
    mid, body = 1000 + number, body_of(mark_of("m0", number + 1), "m0")
    sent = 0

    def answered() -> bool:
        return mid in broker.acknowledged

    for _ in range(int(PATIENCE_S)):
        if broker.subscriptions > sent:  # what was sent to a connection that is gone has to be sent again
            sent = broker.subscriptions
            await broker.send(publish_packet(Message("hydrometer/m0", body, qos=1), mid))
        if await until(answered, 1.0) is not None:
            return True
    return False


SCENARIOS = (
    Scenario(
        "M7",
        "a broker, and clients in a crowd, that send what they may not",
        unit="rounds",
        full=5,
        small=1,
        play=play_m7,
        mutation="no bound for a packet",
        mutation_n=1,
    ),
)
