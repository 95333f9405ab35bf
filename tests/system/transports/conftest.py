"""What the ingest tests share: waiting for a condition, a real mosquitto, a scripted broker, publishers."""

import asyncio
import os
import shutil
import socket
import ssl
import struct
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from gateway.domain.payload import Payload
from gateway.errors import StoreUnavailable
from gateway.intake.intake import Intake
from gateway.intake.ordinary import Done, Taken
from gateway.transports.mqtt_link import MqttUrl
from gateway.transports.mqtt_listener import MqttListener
from tests.patience import PATIENCE_S

SHIPPED_CONF = Path(__file__).parents[3] / "deploy" / "mosquitto" / "mosquitto.conf"
MOSQUITTO = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
USER, PASSWORD = "hydrometer", "correct horse"

RESETS = struct.pack("ii", 1, 0)
"""SO_LINGER: closing resets the connection at once, as it does where an answer is left unread."""


async def wait_for(predicate: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
    """Return as soon as the predicate holds; fail when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not predicate():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.01)


async def wait_until(predicate: Callable[[], Awaitable[object]], timeout_s: float = PATIENCE_S) -> None:
    """The same for what has to be awaited itself."""
    deadline = time.monotonic() + timeout_s
    while not await predicate():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def open_port(listener: MqttListener, tls: Callable[[], ssl.SSLContext] | None = None) -> int:
    """Let an MQTT listener take clients of this machine, its neighbours 127.0.0.2 and so on included."""
    accepting = socket.create_server(("127.0.0.1", 0))
    await listener.start(accepting, tls)
    port: int = accepting.getsockname()[1]
    return port


def publish(
    url: MqttUrl, messages: Sequence[tuple[str, str | bytes]], qos: int = 1, *, retain: bool = False
) -> None:
    """Connect, publish, wait for the broker's word, disconnect; blocks."""
    client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311)
    client.max_inflight_messages_set(1000)
    if url.user is not None:
        client.username_pw_set(url.user, url.password)
    client.connect(url.host, url.port)
    client.loop_start()
    for info in [client.publish(topic, payload, qos, retain) for topic, payload in messages]:
        info.wait_for_publish(10)
        assert info.is_published()
    client.disconnect()
    client.loop_stop()


class Mosquitto:
    """A broker process with the shipped configuration, on a port of its own."""

    def __init__(self, folder: Path) -> None:
        self.url = MqttUrl("127.0.0.1", free_port(), user=USER, password=PASSWORD)
        passwords, self._conf = folder / "passwords", folder / "mosquitto.conf"
        subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, USER, PASSWORD], check=True)
        text = SHIPPED_CONF.read_text()
        for shipped, ours in (
            ("listener 1883\n", f"listener {self.url.port} 127.0.0.1\n"),
            ("/etc/mosquitto/passwords\n", f"{passwords}\n"),
            ("persistence_location /var/lib/mosquitto/\n", f"persistence_location {folder}/\n"),
        ):
            assert shipped in text
            text = text.replace(shipped, ours)
        text += "log_type all\n" + ("user root\n" if os.geteuid() == 0 else "")
        self._conf.write_text(text)
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert MOSQUITTO is not None
        with self._log.open("ab") as output:
            self._process = subprocess.Popen([MOSQUITTO, "-c", self._conf], stderr=output)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                socket.create_connection((self.url.host, self.url.port), 1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        pytest.fail("mosquitto did not start")

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def saved(self) -> bytes:
        """Its file, which it replaces as a whole."""
        return (self._log.parent / "mosquitto.db").read_bytes()

    def kill(self) -> None:
        """As a power cut would: no goodbye, nothing saved at exit."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    if MOSQUITTO is None or shutil.which("mosquitto_passwd") is None:
        pytest.skip("mosquitto is not installed")
    broker = Mosquitto(tmp_path)
    broker.start()
    yield broker
    broker.kill()


class ScriptedBroker:
    """Accepts everybody, sends the bytes it is told to, and notes what is acknowledged."""

    def __init__(self) -> None:
        self.connections = 0
        self.subscriptions = 0
        self.acknowledged: list[int] = []
        self.heard: list[int] = []
        """First bytes of all packets that came."""
        self.drops_after_subscribe = False
        self.url = MqttUrl("127.0.0.1", 0)
        self._writer: asyncio.StreamWriter | None = None
        self._server: asyncio.Server | None = None

    async def start(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._server = await asyncio.start_server(self._serve, host, 0, ssl=tls, family=socket.AF_INET)
        self.url = MqttUrl(host, self._server.sockets[0].getsockname()[1], tls=tls is not None)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    def send(self, data: bytes) -> None:
        assert self._writer is not None
        self._writer.write(data)

    def drop(self) -> None:
        assert self._writer is not None
        self._writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        try:
            while True:
                kind, length = await reader.readexactly(2)
                body = await reader.readexactly(length)
                self.heard.append(kind)
                self._answer(kind >> 4, body, writer)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    def _answer(self, kind: int, body: bytes, writer: asyncio.StreamWriter) -> None:
        if kind == 1:
            self.connections += 1
            writer.write(b"\x20\x02\x00\x00")
        elif kind == 8:
            topics, place = 0, 2
            while place < len(body):
                place += struct.unpack_from(">H", body, place)[0] + 3
                topics += 1
            writer.write(bytes([0x90, 2 + topics]) + body[:2] + b"\x01" * topics)
            self.subscriptions += 1
            if self.drops_after_subscribe:
                writer.close()
        elif kind == 4:
            self.acknowledged.append(struct.unpack(">H", body)[0])


def publish_packet(
    topic: bytes, payload: bytes, mid: int, *, dup: bool = False, retain: bool = False
) -> bytes:
    """A PUBLISH at QoS 1."""
    body = struct.pack(">H", len(topic)) + topic + struct.pack(">H", mid) + payload
    assert len(body) < 128
    return bytes([0x32 | dup << 3 | retain, len(body)]) + body


@pytest.fixture
async def scripted_broker() -> AsyncIterator[ScriptedBroker]:
    broker = ScriptedBroker()
    await broker.start()
    yield broker
    await broker.stop()


class FakeIntake(Intake):
    """Notes payloads; `open` cleared holds them, `refusals` counts down `StoreUnavailable`.

    `is_ordinary` says whether payloads are taken by `take_now`, or go by `take_in_steps`.
    """

    def __init__(
        self,
        refusals: int = 0,
        refusal: type[StoreUnavailable] = StoreUnavailable,
        *,
        is_ordinary: bool = False,
    ) -> None:
        self.refusal = refusal
        self.payloads: list[Payload] = []
        self.stored: list[Payload] = []
        self.refusals = refusals
        self.is_ordinary = is_ordinary
        self.open = asyncio.Event()
        self.open.set()
        self._taking: set[asyncio.Task[None]] = set()

    def take_now(self, payload: Payload, done: Done) -> bool:
        if self.is_ordinary:
            task = asyncio.create_task(self._take(payload, done))
            self._taking.add(task)
            task.add_done_callback(self._taking.discard)
        return self.is_ordinary

    async def _take(self, payload: Payload, done: Done) -> None:
        try:
            result: Taken | Exception = await self.take_in_steps(payload)
        except StoreUnavailable as error:
            result = error
        done(result)

    async def take_in_steps(self, payload: Payload) -> Taken:
        self.payloads.append(payload)
        await self.open.wait()
        if self.refusals:
            self.refusals -= 1
            raise self.refusal
        self.stored.append(payload)
        return Taken()
