"""A data directory with a gateway of its own process or without one, for commands that are processes, too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.program.program import HTTP_ONLY, Server, post, serving
from tests.system.cli.conftest import nothing_is_set as nothing_is_set  # the fixture


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
