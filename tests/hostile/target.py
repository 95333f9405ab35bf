"""The gateway under attack, as a process, and its honest devices, each a neighbour with its own address."""

import asyncio
import json
import re
import signal
import socket
import sqlite3
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests import mqtt_wire

HOST = "127.0.0.1"
HONEST_HTTP, HONEST_MQTT = "127.0.0.201", "127.0.0.202"
"""The addresses of the honest devices. Attackers have others."""

EVERY_S = 0.55
"""Seconds between two readings of an honest device: just below the rate of a source."""

PATIENCE_S = 20.0
"""The longest that an honest device waits for its yes, in seconds."""

START_S, STOP_S, LOOK_S = 60.0, 15.0, 0.05

PORTS = {
    "http": r"HTTP on http://[^ ]*:(\d+)",
    "mqtt": r"MQTT (?:broker )?on mqtt://[^ ]*:(\d+)",
    "tcp": r"TCP on [^ ]*:(\d+)",
}
"""The line of the log that names a listener's port."""


@dataclass
class Target:
    """One gateway: its data, its process, its ports, and the most memory that it had, in bytes."""

    data: Path
    process: Process
    ports: dict[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    peak: int = 0

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.returncode is None

    def memory(self) -> int:
        """The resident memory of the process in bytes; 0 after its end."""
        with suppress(OSError):
            found = re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
            return int(found[1]) * 1024 if found else 0
        return 0

    async def watch(self) -> None:
        """Note the most memory, until cancelled."""
        while True:
            self.peak = max(self.peak, self.memory())
            await asyncio.sleep(LOOK_S)

    def tracebacks(self) -> int:
        """The number of tracebacks in the log."""
        return sum("Traceback" in line for line in self.lines)


@asynccontextmanager
async def serving(
    data: Path, options: Sequence[str] = (), prefix: Sequence[str] = ()
) -> AsyncIterator[Target]:
    """Run a gateway on free ports; `prefix` is a command to run it by."""
    words = ("--host", HOST, *(word for part in ("", "mqtt-", "tcp-") for word in (f"--{part}port", "0")))
    process = await asyncio.create_subprocess_exec(
        *prefix, sys.executable, "-m", "gateway", "serve", "--data-dir", str(data), *words,
        stdin=DEVNULL, stdout=PIPE, stderr=PIPE, limit=1 << 20,
    )  # fmt: skip
    target = Target(data, process)
    readers = [asyncio.create_task(_follow(target, stream)) for stream in (process.stdout, process.stderr)]
    watching = None
    try:
        async with asyncio.timeout(START_S):
            while not any(line.startswith("Ready") for line in target.lines):
                if not target.is_alive:
                    raise RuntimeError("\n".join(target.lines))
                await asyncio.sleep(LOOK_S)
        for part, pattern in PORTS.items():
            found = filter(None, (re.match(pattern, line) for line in target.lines))
            target.ports[part] = int(next(found)[1])
        watching = asyncio.create_task(target.watch())
        yield target
    finally:
        if watching is not None:
            watching.cancel()
        if target.is_alive:
            process.send_signal(signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await process.wait()
        if target.is_alive:
            process.kill()
            await process.wait()
        for task in readers:
            await task


async def _follow(target: Target, stream: asyncio.StreamReader | None) -> None:
    assert stream is not None
    async for line in stream:
        target.lines.append(line.decode("utf-8", "replace").rstrip())


@dataclass
class Device:
    """An honest device: how often it reported, was told yes, and how long each yes took (seconds)."""

    name: str
    sent: int = 0
    taken: list[int] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """The time that this share of the yeses took at most, in seconds; infinite without any."""
        ordered = sorted(self.took_s)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")

    def body(self) -> bytes:
        """Make the next reading, which its battery tells from all others."""
        self.sent += 1
        reading = {
            "name": self.name, "ID": sum(self.name.encode()), "angle": 25.5, "temperature": 20.1,
            "temp_units": "C", "battery": 3 + self.sent / 10_000, "gravity": 12.5, "interval": 900,
        }  # fmt: skip
        return json.dumps(reading).encode()


async def report_by_http(target: Target, device: Device) -> None:
    """Report by HTTP, a connection each time, as firmware does; until cancelled."""
    while True:
        body, began = device.body(), time.monotonic()
        number = device.sent
        try:
            async with asyncio.timeout(PATIENCE_S):
                answer = await _post(target.ports["http"], HONEST_HTTP, body)
            if answer.startswith(b"HTTP/1.1 200"):
                device.taken.append(number)
                device.took_s.append(time.monotonic() - began)
            else:
                device.troubles.append(answer[:60].decode("latin-1"))
        except (OSError, TimeoutError) as error:
            device.troubles.append(repr(error))
        await asyncio.sleep(max(0.0, EVERY_S - (time.monotonic() - began)))


async def _post(port: int, address: str, body: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port, local_addr=(address, 0))
    try:
        head = b"POST /ingest HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        return await reader.read(4096)
    finally:
        writer.close()


async def report_by_mqtt(target: Target, device: Device) -> None:
    """Report by MQTT at QoS 1, a connection each time; until cancelled."""
    while True:
        body, began = device.body(), time.monotonic()
        number = device.sent
        try:
            async with asyncio.timeout(PATIENCE_S):
                await _publish(target.ports["mqtt"], HONEST_MQTT, device.name, body)
            device.taken.append(number)
            device.took_s.append(time.monotonic() - began)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            device.troubles.append(repr(error))
        await asyncio.sleep(max(0.0, EVERY_S - (time.monotonic() - began)))


async def _publish(port: int, address: str, name: str, body: bytes) -> None:
    reader, writer = await asyncio.open_connection(HOST, port, local_addr=(address, 0))
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        writer.write(mqtt_wire.connect(client_id=name, keep_alive=15))
        writer.write(mqtt_wire.publish(f"hydrometer/{name}", body, 1, 1))
        await reader.readexactly(4 + 4)  # CONNACK and PUBACK
        writer.write(mqtt_wire.GOODBYE)
    finally:
        writer.close()


def stored(data: Path, name: str) -> int:
    """The number of stored readings of this name."""
    with sqlite3.connect(data / "gateway.sqlite3") as connection:
        [(number,)] = connection.execute("SELECT count(*) FROM readings WHERE name = ?", (name,)).fetchall()
    return int(number)
