"""A data directory with a running gateway or without one: every command works with both."""

import asyncio
import os
import signal
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from gateway.app import Gateway
from gateway.settings import Settings
from tests.program.program import PATIENCE_S, Server, post, until


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("GATEWAY_"):
            monkeypatch.delenv(name)


class Inside(Server):
    """A gateway in this process and loop, in the words of a `Server`: a tenth of the time of a process.

    Commands reach it over its socket, from a thread of their own. What needs signals or an end without
    a goodbye takes `serving` instead, among the tests of the program.
    """

    def __init__(self, data: Path, **options: Any) -> None:
        super().__init__(cast(Process, self), data)
        self._options = options
        self._stopped = asyncio.Event()
        self._run: asyncio.Task[None] | None = None

    @property
    def returncode(self) -> int | None:
        """The exit code once it has ended, as a process has it."""
        return 0 if self._over else None

    async def start(self) -> None:
        settings = Settings(
            data_dir=self.data, host="127.0.0.1", port=0, tcp_port=0, no_mqtt=True, **self._options
        )
        self._run = asyncio.create_task(Gateway(settings, self.lines.append).run(self._stopped))
        await until(lambda: self._ready or self._over)
        if self._over:
            await self._run  # raises what ended it
        self.ready = True
        self.fetch_first_key()

    @property
    def _ready(self) -> bool:
        return bool(self.lines) and self.lines[-1].startswith("Ready")

    @property
    def _over(self) -> bool:
        return self._run is None or self._run.done()

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Let it end as after a signal; exit code, and how many seconds it took."""
        assert number == signal.SIGTERM, "a gateway in this process gets no other signal"
        began = time.monotonic()
        self._stopped.set()
        return await self.wait(), time.monotonic() - began

    async def wait(self) -> int:
        assert self._run is not None
        async with asyncio.timeout(PATIENCE_S):
            await self._run
        return 0


@asynccontextmanager
async def inside(data: Path, **options: Any) -> AsyncIterator[Inside]:
    """A gateway that is ready; ended in the end, if the test has not done so."""
    server = Inside(data, **options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@pytest.fixture(params=["served", "at rest"])
async def data(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Path]:
    """A data directory; the gateway, where there is one, is of no further interest."""
    folder = tmp_path / "data"
    if request.param == "at rest":
        yield folder
        return
    async with inside(folder):
        yield folder


@asynccontextmanager
async def gateway(data: Path, **options: Any) -> AsyncIterator[tuple[Server, aiohttp.ClientSession]]:
    """A gateway, and a client for it."""
    async with inside(data, **options) as server, aiohttp.ClientSession() as http:
        yield server, http


async def stored(data: Path, *bodies: str) -> None:
    """Have these readings stored, by a gateway that ends again."""
    async with gateway(data) as (server, http):
        for body in bodies:
            assert await post(http, server, body) == 200
        assert (await server.stop())[0] == 0


def texts_in(data: Path) -> list[bytes]:
    """What every file holds."""
    return [path.read_bytes() for path in data.iterdir() if path.is_file()]
