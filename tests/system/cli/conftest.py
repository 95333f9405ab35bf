"""A data directory with a running server or without one: every command works with both."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.program.program import HTTP_ONLY, Server, post, serving


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("GATEWAY_"):
            monkeypatch.delenv(name)


@pytest.fixture(params=["served", "at rest"])
async def data(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Path]:
    """A data directory; the server, where there is one, is of no further interest."""
    folder = tmp_path / "data"
    if request.param == "at rest":
        yield folder
        return
    async with serving(folder, *HTTP_ONLY):
        yield folder


@asynccontextmanager
async def gateway(data: Path) -> AsyncIterator[tuple[Server, aiohttp.ClientSession]]:
    """A server, and a client for it."""
    async with serving(data, *HTTP_ONLY) as server, aiohttp.ClientSession() as http:
        yield server, http


async def stored(data: Path, *bodies: str) -> None:
    """Have these readings stored, by a server that ends again."""
    async with gateway(data) as (server, http):
        for body in bodies:
            assert await post(http, server, body) == 200
        assert (await server.stop())[0] == 0


def texts_in(data: Path) -> list[bytes]:
    """What every file holds."""
    return [path.read_bytes() for path in data.iterdir() if path.is_file()]
