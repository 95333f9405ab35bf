"""Mosquitto in front of the gateway, with the settings we ship or its own."""

import asyncio
import os
import shutil
import subprocess
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from sample_devices.transports.mqtt import connect_packet, publish_packet
from sample_devices.wire.report import Login, Message
from tests.faults.cloud import Upstream
from tests.faults.frame import Run
from tests.faults.gateways import Gateway, free_port, prepare
from tests.faults.ledger import Ledger

SHIPPED_CONF = Path(__file__).parents[2] / "deploy" / "mosquitto" / "mosquitto.conf"

PACKAGE = "tests.faults"

START_S = 10.0

STOCK = ("autosave_on_changes", "autosave_interval", "max_queued_messages")
"""Settings that lose messages as Mosquitto has them by itself."""

AT_EACH_CHANGE = ("autosave_on_changes",)
"""Without it Mosquitto takes thousands of messages a second, and writes them down once in each."""

CONNACK_BYTES = 4


class Mosquitto:
    """A process with the shipped configuration, no password, and `without` some of its settings."""

    def __init__(self, folder: Path, without: Sequence[str] = ()) -> None:
        self.port = free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._conf = folder / "mosquitto.conf"
        changed = {
            "listener": f"listener {self.port} 127.0.0.1",
            "allow_anonymous": "allow_anonymous true",
            "password_file": "",
            "persistence_location": f"persistence_location {folder}/",
            "connection_messages": "connection_messages true",
            **dict.fromkeys(without, ""),
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
    """Whether the gateway says that it has its broker, or that it listens itself."""
    _, page = await gateway.get("/healthz")
    return page is not None and str(page["parts"].get("mqtt")).startswith(("connected", "listening"))


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
        await reader.readexactly(CONNACK_BYTES)
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
