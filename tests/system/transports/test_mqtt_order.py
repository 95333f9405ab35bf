"""The MQTT listener's promise: PUBACK means stored, for each client in its order, in bounded memory."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.clock import SystemClock
from gateway.domain.payload import Payload
from gateway.intake.intake import Intake
from gateway.intake.ordinary import Taken
from gateway.network import Admission
from gateway.services.build import build_services
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from gateway.transports import mqtt_link
from gateway.transports.mqtt import MqttIngest
from gateway.transports.mqtt_listener import MqttListener
from gateway.transports.topics import TopicMap
from sample_devices.transports.mqtt import connect_packet, publish_packet
from sample_devices.wire.report import Login, Message
from tests.system.transports.conftest import FakeIntake, open_port, wait_for

PUBACK, PUBREC, PUBCOMP = 0x40, 0x50, 0x70
DUP = 0x08

WINDOW = 10


@dataclass
class Client:
    """One MQTT 3.1.1 connection that notes what it is told: packet type and packet id."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    heard: list[tuple[int, int]] = field(default_factory=list)

    def publish(
        self, text: str, mid: int, *, topic: str = "hydrometer/red", qos: int = 1, flags: int = 0
    ) -> None:
        packet = publish_packet(Message(topic, text.encode(), qos=qos), mid if qos else None)
        self.writer.write(bytes([packet[0] | flags]) + packet[1:])

    def release(self, mid: int) -> None:
        """PUBREL."""
        self.writer.write(b"\x62\x02" + mid.to_bytes(2, "big"))

    async def listen(self) -> None:
        while True:
            packet = await self.reader.readexactly(4)
            self.heard.append((packet[0], int.from_bytes(packet[2:], "big")))

    @property
    def acknowledged(self) -> list[int]:
        return [mid for kind, mid in self.heard if kind in (PUBACK, PUBCOMP)]


class Keyed(FakeIntake):
    """Holds the payloads whose body is in `delayed`."""

    def __init__(self) -> None:
        super().__init__()
        self.delayed: set[bytes] = set()
        self.opened = asyncio.Condition()

    async def take_in_steps(self, payload: Payload) -> Taken:
        async with self.opened:
            await self.opened.wait_for(lambda: payload.body not in self.delayed)
        return await super().take_in_steps(payload)

    async def let(self, *bodies: bytes) -> None:
        async with self.opened:
            self.delayed -= set(bodies)
            self.opened.notify_all()


class Parts:
    """Listener, what takes its messages, and a store; the intake is a fake unless told."""

    def __init__(self, store: SqliteStore) -> None:
        self.topics = TopicMap(["brewery/+/+=brewpiless"])
        self.store = store
        self.bridge = MqttListener(self.topics, SystemClock(), Admission(SystemClock()), Stats())
        self.port = 0
        self.intake = Keyed()

    @asynccontextmanager
    async def listening(self, intake: Intake) -> AsyncIterator[None]:
        listener = MqttIngest(self.bridge, self.topics, intake, self.store, Stats(), SystemClock())
        task = asyncio.create_task(listener.run())
        yield
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def client(self, name: str = "red", keep_alive_s: int = 60) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(connect_packet(Login(client_id=name, keep_alive_s=keep_alive_s)))
        assert await reader.readexactly(4) == b"\x20\x02\x00\x00"
        client = Client(reader, writer)
        task = asyncio.create_task(client.listen())
        yield client
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        writer.close()


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    store = SqliteStore(tmp_path)
    await store.open()
    parts = Parts(store)
    parts.port = await open_port(parts.bridge)
    yield parts
    await parts.bridge.stop()
    await store.close()


@pytest.fixture
async def fake(parts: Parts) -> AsyncIterator[Keyed]:
    async with parts.listening(parts.intake):
        yield parts.intake


async def test_puback_comes_after_the_commit(parts: Parts, fake: Keyed) -> None:
    fake.delayed = {b"one"}
    async with parts.client() as device, parts.client("blue") as other:
        device.publish("one", 7)
        await wait_for(lambda: parts.bridge.in_flight)
        other.publish("two", 8)
        await wait_for(lambda: other.acknowledged)  # a slow commit holds nobody else's
        assert device.heard == []
        await fake.let(b"one")
        await wait_for(lambda: device.acknowledged)
        assert device.heard == [(PUBACK, 7)]
    assert parts.bridge.in_flight == 0


async def test_pubrec_comes_after_the_commit_and_pubcomp_at_once(parts: Parts, fake: Keyed) -> None:
    fake.delayed = {b"one"}
    async with parts.client() as device:
        device.publish("one", 7, qos=2)
        await wait_for(lambda: parts.bridge.in_flight)
        assert device.heard == []
        await fake.let(b"one")
        await wait_for(lambda: device.heard == [(PUBREC, 7)])
        device.release(7)
        await wait_for(lambda: device.heard == [(PUBREC, 7), (PUBCOMP, 7)])


async def test_pubacks_keep_the_order_of_the_messages(parts: Parts, fake: Keyed) -> None:
    fake.delayed = {b"one"}
    async with parts.client() as device:
        device.publish("one", 7)
        device.publish("1.050", 5, topic="brewery/bpl1/gravity")  # asks for no commit, but has its place
        device.publish("two", 3)
        device.publish("{}", 9, topic="nobody/hears/this")
        await wait_for(lambda: [payload.body for payload in fake.stored] == [b"two"])
        assert device.heard == []
        await fake.let(b"one")
        await wait_for(lambda: len(device.heard) == 4)
        assert device.acknowledged == [7, 5, 3, 9]


async def test_a_device_that_waits_for_each_puback_completes_its_reading(parts: Parts, fake: Keyed) -> None:
    async with parts.client() as device:
        for mid, key in enumerate(("tilt", "temperature", "temp_units", "gravity", "RSSI"), 1):
            device.publish("1", mid, topic=f"ispindel/red/{key}")
            await wait_for(lambda: len(device.acknowledged) == mid)  # noqa: B023 - called at once
        await wait_for(lambda: fake.stored)
    assert len(json.loads(fake.stored[0].body)) == 5


async def test_who_leaves_before_the_commit_is_stored_all_the_same(parts: Parts, fake: Keyed) -> None:
    fake.delayed = {b"one"}
    async with parts.client() as device:
        device.publish("one", 7)
        await wait_for(lambda: parts.bridge.in_flight)
    await fake.let(b"one")
    await wait_for(lambda: parts.bridge.in_flight == 0)
    assert [payload.body for payload in fake.stored] == [b"one"]


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_a_full_window_holds_the_clients_back_and_loses_nothing(
    parts: Parts, fake: Keyed, monkeypatch: pytest.MonkeyPatch, qos: int
) -> None:
    monkeypatch.setattr(mqtt_link, "IN_FLIGHT_MESSAGES", WINDOW)
    fake.open.clear()
    most, names = 0, ("a", "b", "c")
    async with parts.client("a") as a, parts.client("b") as b, parts.client("c") as c:
        for mid in range(1, 101):
            for name, client in zip(names, (a, b, c), strict=True):
                client.publish(f"{name}{mid}", mid, topic=f"hydrometer/{name}", qos=qos)
                if qos == 2:
                    client.release(mid)
        await wait_for(parts.bridge.is_full)
        async with parts.client("d"):
            most = parts.bridge.in_flight
        fake.open.set()

        def done() -> bool:
            nonlocal most
            most = max(most, parts.bridge.in_flight)
            return len(fake.stored) == 300 and (not qos or len(c.acknowledged) == 100)

        await wait_for(done)
        await wait_for(lambda: parts.bridge.in_flight == 0)
    assert WINDOW <= most <= WINDOW + (len(names) if qos == 0 else 0)
    for name in names:
        mine = [payload.body.decode() for payload in fake.stored if payload.label == name]
        assert sorted(mine) == sorted(f"{name}{mid}" for mid in range(1, 101))


async def test_the_window_is_bounded_in_bytes_too(
    parts: Parts, fake: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_link, "IN_FLIGHT_BYTES", 100_000)
    fake.open.clear()
    async with parts.client() as device:
        for mid in range(1, 21):
            device.publish("x" * 30_000, mid)
        await wait_for(parts.bridge.is_full)
        async with parts.client("blue"):
            assert parts.bridge.in_flight == 4
        fake.open.set()
        await wait_for(lambda: len(device.acknowledged) == 20)


async def test_a_keep_alive_that_ends_while_the_client_is_held_costs_nothing(
    parts: Parts, fake: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_link, "IN_FLIGHT_MESSAGES", 1)
    fake.open.clear()
    async with parts.client(keep_alive_s=1) as device:
        for mid in range(1, 6):
            device.publish(str(mid), mid)
        asyncio.get_running_loop().call_later(1.3, fake.open.set)
        await wait_for(lambda: len(device.acknowledged) == 5)
    assert [payload.body for payload in fake.stored] == [b"1", b"2", b"3", b"4", b"5"]


async def test_what_is_sent_again_and_again_is_one_reading(parts: Parts) -> None:
    """With DUP and without, by the same connection and by others; every copy gets its PUBACK."""
    made = build_services(parts.store, Path(), SystemClock())
    await made.access.start()
    await made.intake.start()
    async with parts.listening(made.intake):
        for connection in range(4):
            async with parts.client() as device:
                for copy in range(250):
                    device.publish(
                        '{"name":"red","angle":45,"temperature":20,"gravity":1.05,"interval":900}',
                        copy + 1 if copy % 2 else 7,
                        flags=0 if copy % 2 and connection % 2 == 0 else DUP,
                    )
                await wait_for(lambda: len(device.acknowledged) == 250)
    assert (made.stats.stored, made.stats.duplicates, made.stats.quarantined) == (1, 999, 0)
