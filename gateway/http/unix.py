"""The Unix socket of a data directory, through which the command line reaches the application.

The socket needs no key: a user who may open it owns the data.
"""

import socket
from contextlib import ExitStack
from pathlib import Path

from aiohttp import web

from gateway.http.both_ends import SOCKET_NAME, short_path
from gateway.http.guard import SERVER

END_S = 0.3
"""Seconds that calls under way may go on once the socket closes; aiohttp waits this long twice."""

CONNECT_S = 1.0
"""Seconds for a connection to the socket. Only a gateway that hangs takes longer."""


def is_served(directory: Path) -> bool:
    """Return whether a gateway listens on a directory's socket; one that was killed leaves it behind."""
    try:
        with short_path(directory) as path, socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(CONNECT_S)
            connection.connect(path)
    except OSError:
        return False
    return True


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
