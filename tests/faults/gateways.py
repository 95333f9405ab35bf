"""The gateway as a process that is started, killed and started again."""

import asyncio
import itertools
import os
import random
import re
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from gateway.http.both_ends import short_path
from gateway.store.sqlite.engine.database import DATABASE_NAME
from tests.cloud import KEY
from tests.faults.cloud import Upstream
from tests.faults.frame import TRACEBACKS
from tests.faults.launcher import VARIABLE
from tests.faults.prepared import prepare
from tests.program.program import PROJECT, environment

READY_S = 30.0
"""How long a start may take before it counts as failed."""

STOP_S = 15.0

TAKEN = "already in use"
"""In what a gateway says of a port."""

PORTS = range(20_000, 32_000)
"""Below those that Linux gives to clients, so that a port stays ours while the gateway is down."""

WORKERS = 8
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
"""Tests side by side draw from ports of their own: a gateway that is down for a moment holds none."""

_RANDOM = random.SystemRandom()
_PORTS = list(PORTS[_WORKER % WORKERS :: WORKERS])
_RANDOM.shuffle(_PORTS)
_DRAWN = itertools.cycle(_PORTS)
"""None comes again soon: two that are drawn before either is listened on could else be the same."""


def free_port() -> int:
    """A port that nobody listens on, and that nobody else here was given of late."""
    while True:
        port = next(_DRAWN)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@dataclass
class Gateway:
    """One data directory, its ports, and the process on it while there is one.

    `weak` names an entry of `launcher.WEAK`; `prefix` is a command to run it by, such as strace.
    """

    data: Path
    upstream: Upstream | None = None
    options: Sequence[str] = ()
    weak: str = ""
    prefix: Sequence[str] = ()
    forward_readings: int = 200
    forward_seconds: float = 0.5
    key_file: Path | None = None
    """The upstream's key; beside the data directory without."""
    env: dict[str, str] = field(default_factory=dict)
    http_port: int = field(default_factory=free_port)
    mqtt_port: int = field(default_factory=free_port)
    process: Process | None = None
    lines: list[str] = field(default_factory=list)
    """Of standard output and the log, of this process."""
    log_lines: int = 0
    """Of all processes so far."""
    starts: list[float] = field(default_factory=list)
    """Seconds from each start to `Ready.`"""
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _reader: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def pid(self) -> int:
        """Of the gateway itself: below a prefix it is the prefix's child, if it has one."""
        assert self.process is not None
        if not self.prefix:
            return self.process.pid
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii")
        return int(children.split()[0]) if children else self.process.pid

    def command(self) -> list[str]:
        """What is run."""
        upstream: list[str] = []
        if self.upstream is not None:
            key_file = self.key_file or self.data.with_name(f"{self.data.name}.key")
            key_file.write_text(KEY)
            upstream = [
                *("--upstream-url", self.upstream.url, "--upstream-key-file", str(key_file)),
                *("--forward-readings", str(self.forward_readings)),
                *("--forward-seconds", str(self.forward_seconds)),
            ]
        return [
            *(*self.prefix, sys.executable, "-m", "tests.faults.launcher", "serve"),
            *("--names-an-hour", "1000"),
            *("--config", os.devnull, "--data-dir", str(self.data), "--host", "127.0.0.1", "--no-tcp"),
            *("--port", str(self.http_port), "--mqtt-port", str(self.mqtt_port), *upstream, *self.options),
        ]

    async def start(self, patience_s: float = READY_S) -> bool:
        """Start it; whether it became ready. A port that is taken before the first start is drawn again."""
        if await self._start(patience_s) or self.starts or not any(TAKEN in line for line in self.lines):
            return self.is_ready
        await self.kill()
        self.http_port, self.mqtt_port = free_port(), free_port()
        return await self._start(patience_s)

    async def _start(self, patience_s: float) -> bool:
        assert self.process is None
        self._ready, self.lines = asyncio.Event(), []
        began = time.monotonic()
        self.process = await asyncio.create_subprocess_exec(
            *self.command(),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=PROJECT,
            env=environment({**self.env, **({VARIABLE: self.weak} if self.weak else {})}),
            limit=16 * 1024 * 1024,
        )
        self._reader = asyncio.create_task(self._follow(self.process))
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._ready.wait()
        if not self.is_ready:
            return False
        self.starts.append(time.monotonic() - began)
        return True

    @property
    def is_ready(self) -> bool:
        return any(line.startswith("Ready") for line in self.lines)

    async def _follow(self, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))
            self.log_lines += 1
            if "Traceback (most recent call last)" in self.lines[-1]:
                TRACEBACKS.append(f"a traceback in the log, behind: {self.lines[-2:-1]}")
            if self.lines[-1].startswith("Ready"):
                self._ready.set()
        self._ready.set()

    async def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        if self.process is not None:
            with suppress(ProcessLookupError, IndexError, OSError):
                os.kill(self.pid, signal.SIGKILL)
            await self.ended(STOP_S)

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int | None, float]:
        """Send a signal: exit code, None where it had to be killed, and how many seconds it took."""
        began = time.monotonic()
        os.kill(self.pid, number)
        return await self.ended(STOP_S), time.monotonic() - began

    async def ended(self, patience_s: float) -> int | None:
        """Wait until it ends by itself; its exit code, None where it had to be killed."""
        process, status = self.process, None
        assert process is not None
        try:
            async with asyncio.timeout(patience_s):
                status = await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError, IndexError, OSError):
                os.kill(self.pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._reader is not None:
            await self._reader
        self.process = None
        return status

    async def get(self, path: str, key: str = "") -> tuple[int, Any]:
        """Status and JSON of an endpoint; 0 and None where nobody answers. Without a key, as the owner."""
        headers = {"X-API-KEY": key} if key else {}
        timeout = aiohttp.ClientTimeout(total=15)
        try:
            with ExitStack() as stack:
                unix = None if key else aiohttp.UnixConnector(stack.enter_context(short_path(self.data)))
                async with (
                    aiohttp.ClientSession(timeout=timeout, headers=headers, connector=unix) as http,
                    http.get((self.url if key else "http://localhost") + path) as answer,
                ):
                    return answer.status, await answer.json()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return 0, None

    def memory_kb(self, name: str = "VmRSS") -> int:
        """Of /proc/PID/status: `VmRSS` now, `VmHWM` at most."""
        found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text("ascii"), re.M)
        assert found is not None
        return int(found[1])

    def descriptors(self) -> int:
        """Open files and sockets."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def wal_bytes(self) -> int:
        """Size of the write-ahead log."""
        return (self.data / f"{DATABASE_NAME}-wal").stat().st_size

    def threads(self) -> int:
        """Of the process."""
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))


@asynccontextmanager
async def running(gateway: Gateway) -> AsyncIterator[Gateway]:
    """A gateway that is ready; killed in the end where the scenario has not ended it."""
    try:
        if not await gateway.start():
            raise AssertionError(f"it did not start: {gateway.lines}")
        yield gateway
    finally:
        await gateway.kill()


__all__ = ["Gateway", "free_port", "prepare", "running"]
