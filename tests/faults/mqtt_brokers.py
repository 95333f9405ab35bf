"""Brokers in front of the gateway: Mosquitto, with the settings we ship or its own, and a hostile one."""

import asyncio
import os
import shutil
import struct
import subprocess
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sample_devices.transports.mqtt import connect_packet, publish_packet
from sample_devices.wire.report import Login, Message
from tests.faults.cloud import Upstream
from tests.faults.drain import until
from tests.faults.frame import Run
from tests.faults.gateways import Gateway, free_port, prepare
from tests.faults.ledger import Ledger

SHIPPED_CONF = Path(__file__).parents[2] / "deploy" / "mosquitto" / "mosquitto.conf"

PACKAGE = "tests.faults"

START_S = 10.0

STOCK = ("autosave_on_changes", "autosave_interval", "max_queued_messages")
"""Settings that lose messages as Mosquitto has them by itself."""

CONNACK, SUBACK_HEAD = b"\x20\x02\x00\x00", 0x90
SUBSCRIBE = 8


class Mosquitto:
    """A process with the shipped configuration and no password; `stock` without its `STOCK` settings."""

    def __init__(self, folder: Path, *, stock: bool = False) -> None:
        self.port = free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._conf = folder / "mosquitto.conf"
        changed = {
            "listener": f"listener {self.port} 127.0.0.1",
            "allow_anonymous": "allow_anonymous true",
            "password_file": "",
            "persistence_location": f"persistence_location {folder}/",
            "connection_messages": "connection_messages true",
            **({name: "" for name in STOCK} if stock else {}),
        }
        lines = [changed.get(line.split(" ")[0], line) for line in SHIPPED_CONF.read_text().splitlines()]
        self._conf.write_text("\n".join([*lines, *(["user root"] if os.geteuid() == 0 else []), ""]))
        self._log = folder / "log"
        self._process: Process | None = None

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    async def start(self) -> None:
        """Returns when it listens."""
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        with self._log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *(program, "-c", str(self._conf)), stdin=DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        async with asyncio.timeout(START_S):
            while not await self._listens():  # noqa: ASYNC110 - another process'
                await asyncio.sleep(0.02)

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def kill(self) -> None:
        """As a power cut of the broker would end it."""
        await self._end(kill=True)

    async def stop(self) -> None:
        """SIGTERM: it saves all it has."""
        await self._end(kill=False)

    async def _end(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill() if kill else process.terminate()
            await process.wait()


class MqttGateway(Gateway):
    """Knows the weaknesses of `mqtt_launcher`, too."""

    def command(self) -> list[str]:
        """What is run."""
        words = super().command()
        return (
            [f"{PACKAGE}.mqtt_launcher" if word == f"{PACKAGE}.launcher" else word for word in words]
            if self.weak
            else words
        )


async def is_connected(gateway: Gateway) -> bool:
    """Whether the gateway says that it has its broker."""
    _, page = await gateway.get("/healthz")
    return page is not None and str(page["parts"].get("mqtt")).startswith("connected")


async def connected_within(gateway: Gateway, patience_s: float) -> float | None:
    """Seconds until the gateway has its broker; None where it takes longer."""
    began = asyncio.get_running_loop().time()
    while not await is_connected(gateway):
        if asyncio.get_running_loop().time() - began > patience_s:
            return None
        await asyncio.sleep(0.05)
    return asyncio.get_running_loop().time() - began


async def publish_all(port: int, messages: Sequence[Message], at_once: int = 500) -> None:
    """At QoS 1, so many unacknowledged at a time; returns with the last PUBACK."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(connect_packet(Login(client_id=f"faults-all-{port}", keep_alive_s=60)))
        await reader.readexactly(len(CONNACK))
        for first in range(0, len(messages), at_once):
            part = messages[first : first + at_once]
            writer.writelines(publish_packet(one, mid) for mid, one in enumerate(part, 1))
            await reader.readexactly(4 * len(part))
    finally:
        writer.close()


async def bench(
    run: Run, stack: AsyncExitStack, name: str, mosquitto: Mosquitto | None
) -> tuple[Gateway, Upstream, Ledger]:
    """A gateway that is not running, with its upstream and ledger; all of it ends with the stack."""
    upstream = Upstream(keeps_ids=run.seed % 2 == 0)
    await upstream.start()
    stack.push_async_callback(upstream.stop)
    data, ledger = run.sub(name), Ledger(run.ledgers / name)
    stack.callback(ledger.close)
    await prepare(data)
    options = () if mosquitto is None else ("--mqtt-url", mosquitto.url)
    gateway = MqttGateway(data, upstream, options=options)
    stack.push_async_callback(gateway.kill)
    return gateway, upstream, ledger


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
