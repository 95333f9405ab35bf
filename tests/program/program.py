"""The program as users run it: subprocesses with free ports, real signals and nothing of our environment."""

import asyncio
import io
import json
import os
import re
import signal
import sys
import threading
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from gateway.cli.main import main
from tests.patience import PATIENCE_S as PATIENCE_S
from tests.payloads import ispindel as ispindel

PROJECT = Path(__file__).parents[2]
STEP_S = 0.02

LOCAL = ("--host", "127.0.0.1", "--port", "0", "--tcp-port", "0")
FREE_PORTS = (*LOCAL, "--mqtt-port", "0")
MANY_NAMES = ("--names-an-hour", "1000")
"""All devices of a test are on this machine: for a gateway they are one source."""

HTTP_ONLY = (*LOCAL, "--no-mqtt")

_ONE_AT_A_TIME = threading.Lock()
_OURS = ("GATEWAY_", "XDG_", "STATE_DIRECTORY")


OWN_NAME = Path("/proc/self/comm").read_text("utf-8").strip()
"""The name of this process, as others see it."""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without anything that configures the program, and what the test sets."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return {**clean, "PYTHONUNBUFFERED": "1", "COLUMNS": "100", **(extra or {})}


async def until(true: Callable[[], object | Awaitable[object]], patience_s: float = PATIENCE_S) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + patience_s
    while True:
        result = true()
        if isinstance(result, Awaitable):
            result = await result
        if result:
            return
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(STEP_S)


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


async def launch(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    module: str = "gateway",
    stdout: int = PIPE,
    new_session: bool = False,
) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        stdin=DEVNULL,
        stdout=stdout,
        stderr=PIPE,
        cwd=PROJECT,
        env=environment(env),
        limit=16 * 1024 * 1024,
        start_new_session=new_session,
    )


async def ended(child: Process, patience_s: float = 2 * PATIENCE_S) -> Finished:
    """Wait for the end; killed where it takes too long. Nobody ever sees a traceback."""
    try:
        async with asyncio.timeout(patience_s):
            out, err = await child.communicate()
    except BaseException:
        if child.returncode is None:
            child.kill()
            await child.communicate()
        raise
    assert child.returncode is not None
    finished = Finished(child.returncode, (out or b"").decode(), (err or b"").decode())
    assert "Traceback" not in finished.err + finished.out
    return finished


async def run(*arguments: str, env: Mapping[str, str] | None = None) -> Finished:
    """Run a command exactly as given."""
    return await ended(await launch(*arguments, env=env))


def _words(command: str | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(command.split()) if isinstance(command, str) else command


def _inside(arguments: tuple[str, ...]) -> Finished:
    """The command in this process, as its script would run it: a tenth of the time of a process."""
    # With a buffer, as a process has it: exports write bytes.
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
    with _ONE_AT_A_TIME, redirect_stdout(out), redirect_stderr(err):
        sys.argv, before = ["hydrometer-gateway", *arguments], sys.argv
        try:
            main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            sys.argv = before
    out.flush()
    return Finished(status, out.buffer.getvalue().decode(), err.getvalue())


async def command(data: Path, words: str | tuple[str, ...], *more: str) -> Finished:
    """Run a command on a data directory, with no configuration file, inside this process."""
    return await asyncio.to_thread(_inside, (*_words(words), *more, *_on(data)))


async def process(data: Path, words: str | tuple[str, ...], *more: str) -> Finished:
    """The same as a process of its own."""
    return await run(*_words(words), *more, *_on(data))


def _on(data: Path) -> tuple[str, ...]:
    return "--config", os.devnull, "--data-dir", str(data)


async def answer(data: Path, words: str | tuple[str, ...], *more: str) -> Finished:
    """The same, for a command that works."""
    finished = await command(data, words, *more)
    assert finished.status == 0, finished.err
    return finished


async def refusal(data: Path, words: str | tuple[str, ...], *more: str, status: int = 1) -> str:
    """The one line that a command says which cannot do it; its exit code is 75 if it may work later."""
    finished = await command(data, words, *more)
    assert (finished.status, finished.out) == (status, ""), finished
    assert len(finished.err.splitlines()) == 1, finished.err
    assert finished.err.startswith("hydrometer-gateway: ")
    return finished.err.removeprefix("hydrometer-gateway: ").strip()


@dataclass
class Server:
    """A running `serve`: what it printed, and where it listens."""

    process: Process
    data: Path
    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    ready: bool = False
    first_key: str | None = None
    _readers: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        """Returns when it is ready, or has ended."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        started = asyncio.Event()
        self._readers = [
            asyncio.create_task(self._follow(self.process.stdout, self.lines, started)),
            asyncio.create_task(self._follow(self.process.stderr, self.errors, None)),
        ]
        async with asyncio.timeout(PATIENCE_S):
            await started.wait()
        if self.ready:
            self.fetch_first_key()

    def fetch_first_key(self) -> None:
        """Take the first key, if this was the first start, and remove its file, as `keys first` does."""
        path = self.data / "first-key"
        if path.exists():
            self.first_key = path.read_text().strip()
            path.unlink()

    async def _follow(
        self, stream: asyncio.StreamReader, lines: list[str], started: asyncio.Event | None
    ) -> None:
        async for line in stream:
            lines.append(line.decode().rstrip("\n"))
            if started is not None and lines[-1].startswith("Ready"):
                self.ready = True
                started.set()
        if started is not None:
            started.set()

    def found(self, pattern: str) -> str | None:
        """The first group of the first line that has it."""
        matches = (re.search(pattern, line) for line in self.lines)
        return next((match[1] for match in matches if match), None)

    @property
    def url(self) -> str:
        url = self.found(r"^HTTP on (http://\S+)")
        assert url, (self.lines, self.errors)
        return url

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def mqtt_port(self) -> int:
        port = self.found(r"^MQTT on mqtt://\S+:(\d+) ")
        assert port, self.lines
        return int(port)

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Send the signal; exit code, and how many seconds it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        status = await self.wait()
        return status, time.monotonic() - began

    async def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        await self.wait()

    async def wait(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            status = await self.process.wait()
        await asyncio.gather(*self._readers)
        assert not any("Traceback" in line for line in [*self.lines, *self.errors]), self.errors
        return status


async def start(data: Path, *options: str, module: str = "gateway") -> Server:
    """Start `serve` without a configuration file; returns when it is ready, or has ended."""
    server = Server(await launch("serve", *_on(data), *options, module=module), data)
    await server.start()
    return server


@asynccontextmanager
async def serving(data: Path, *options: str, module: str = "gateway") -> AsyncIterator[Server]:
    """A server that is ready; ended in the end, if the test has not done so."""
    server = await start(data, *options, module=module)
    try:
        assert server.ready, (server.lines, server.errors)
        yield server
    finally:
        if server.process.returncode is None:
            server.process.kill()
        await server.wait()


async def post(http: aiohttp.ClientSession, server: Server, body: str, path: str = "/ingest") -> int:
    """Send what a device would; the status."""
    async with http.post(server.url + path, data=body.encode()) as response:
        await response.read()
        return response.status
