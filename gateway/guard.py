"""In front of aiohttp: mends what devices ask oddly, and puts aiohttp's refusals into our words.

Only the first request of a connection is looked at; then the connection is aiohttp's, at no further cost.
"""

import asyncio
import logging
import socket
from typing import Any, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from gateway.clock import Clock
from gateway.request_head import look
from gateway.web import error_response

log = logging.getLogger(__name__)

SERVER: dict[str, Any] = {"access_log": None, "auto_decompress": False}
"""How aiohttp serves: an access log would print keys that are part of a path; gzip can fill the memory."""

LOG_EVERY_S = 60.0
"""Between two lines about requests that cannot be read."""

REASON_CHARACTERS = 80

WENT_AWAY = "the client went away in the midst of it"

REFUSAL = (
    "this is no HTTP request that can be read; check the server, port and path that the device is set to"
)


class Refusals:
    """Requests that nobody could read: one line in the log a minute, however many there are."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = 0
        self._quiet_until = float("-inf")

    def note(self, source: str | None, reason: str) -> None:
        """Count one from this address; `reason` is aiohttp's message."""
        self._count += 1
        now = self._clock.monotonic()
        if now < self._quiet_until:
            return
        why = (reason.splitlines() or [""])[0][:REASON_CHARACTERS].rstrip(":")
        log.warning(
            "http: requests that nobody could read: %d, the last from %s: %s", self._count, source or "?", why
        )
        self._count, self._quiet_until = 0, now + LOG_EVERY_S


class Handler(RequestHandler):
    """aiohttp's connection, whose refusals have our error body and no traceback in the log."""

    __slots__ = ("_refusals",)

    def __init__(self, server: web.Server, refusals: Refusals) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **SERVER)
        self._refusals = refusals

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what could not be read; anything else is aiohttp's to say."""
        if isinstance(exc, ConnectionError):
            message = WENT_AWAY  # nobody gets the answer
        elif status != 400:
            return super().handle_error(request, status, exc, message)
        self._refusals.note(request.remote, message or "")
        answer = error_response(400, "failure", REFUSAL)
        answer.force_close()
        return answer


class Guard(asyncio.Protocol):
    """Stands in front of aiohttp until the first request is known, then leaves the connection to it."""

    def __init__(self, behind: RequestHandler) -> None:
        self._behind = behind
        self._received = b""
        self._waiting_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Both know the connection from the start: aiohttp closes it when it is idle for too long."""
        self._transport = cast(asyncio.Transport, transport)
        self._behind.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Gather until the first request is known."""
        self._received += data
        self._look()

    def eof_received(self) -> None:
        """Nothing more will come."""
        self._look(waited=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """It ended before the first request was there."""
        self._stop_waiting()
        self._behind.connection_lost(exc)

    def _look(self, *, waited: bool = False) -> None:
        found = look(self._received, waited=waited)
        if isinstance(found, bytes):
            self._stop_waiting()
            self._transport.set_protocol(self._behind)
            self._behind.data_received(found)
        elif found != self._waiting_s:
            self._stop_waiting()
            self._waiting_s = found
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(found, lambda: self._look(waited=True))

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class GuardedSite(web.BaseSite):
    """Serves an application on a listening socket, with a guard in front of every connection."""

    __slots__ = ("_listener", "_refusals")

    def __init__(self, runner: web.BaseRunner, listener: socket.socket, refusals: Refusals) -> None:
        super().__init__(runner)
        self._listener = listener
        self._refusals = refusals

    @property
    def name(self) -> str:
        """What aiohttp calls it."""
        return "http://{}:{}".format(*self._listener.getsockname()[:2])

    async def start(self) -> None:
        """Listen."""
        await super().start()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, sock=self._listener, backlog=self._backlog)

    def _accept(self) -> Guard:
        server = self._runner.server
        assert server is not None  # noqa: S101  (the base class has seen to it)
        return Guard(Handler(server, self._refusals))
