"""The Unix socket of a data directory, through which the command line reaches the application.

The socket needs no key: a user who may open it owns the data.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from aiohttp import web

from gateway.http.guard import SERVER

SOCKET_NAME = "control.sock"

END_S = 0.3
"""Seconds that calls under way may go on once the socket closes; aiohttp waits this long twice."""


class UnixListener:
    """An application on the socket of a data directory."""

    def __init__(self, app: web.Application, directory: Path) -> None:
        self._directory = directory
        self._open = ExitStack()
        self._runner = web.AppRunner(app, shutdown_timeout=END_S, handler_cancellation=True, **SERVER)

    async def start(self) -> None:
        """Start listening. Only the owner of the socket may read and write it."""
        await self._runner.setup()
        # Open until `stop`, because asyncio removes the socket itself, by the path it was given.
        path = self._open.enter_context(short_path(self._directory))
        await web.UnixSite(self._runner, path).start()
        (self._directory / SOCKET_NAME).chmod(0o600)

    async def stop(self) -> None:
        """Stop listening, cancel the calls that go on for more than `END_S`, and remove the socket."""
        await self._runner.cleanup()
        self._open.close()
        (self._directory / SOCKET_NAME).unlink(missing_ok=True)


@contextmanager
def short_path(directory: Path) -> Iterator[str]:
    """Yield the socket's path by way of a descriptor, because a socket's path has 107 bytes at most."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{SOCKET_NAME}"
    finally:
        os.close(fd)
