"""A guard in front of aiohttp: it mends odd requests of devices, limits connections, and words refusals.

The guard reads only the first request of a connection. Then aiohttp has the connection, at no further cost.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from gateway.clock import Clock
from gateway.http import request_head
from gateway.http.connections import TOO_SLOW, Activity, Connection, ConnectionLimiter, Phase
from gateway.http.hardening import HardenedResponse
from gateway.http.middleware import error_response
from gateway.http.peers import address_of, connected_address
from gateway.http.request_head import look
from gateway.http.short_way import PostHandler, ShortWay
from gateway.logs import MINUTE_S, RareLines
from gateway.services.knocks import TLS_RECORD, KnockKind, Knocks
from gateway.stats import Stats
from gateway.tls.server import TlsServer

log = logging.getLogger(__name__)

SERVER: dict[str, Any] = {"access_log": None, "auto_decompress": False}
"""Options of aiohttp's server: an access log would print keys in paths, and gzip can fill the memory."""

ACCEPTED_AT_ONCE, BACKLOG = 8, 512
"""Connections that are accepted in one go, and that the system queues meanwhile."""

LIFE_S = 30.0
"""Seconds that a connection may last where its phases cannot be told apart."""

REASON_CHARACTERS = 80

SHAKING_HANDS = Activity(Phase.HANDSHAKE, 0, 0)

WENT_AWAY = "the client went away in the midst of it"
GARBLED = "a body that is no HTTP"

REFUSAL = (
    "this is no HTTP request that can be read; check the server, port and path that the device is set to"
)


class MalformedRequest(ConnectionError):
    """The body cannot be read, nor anything after it in the connection."""


class Refusals:
    """A count of requests that cannot be read, with one log line a minute at most."""

    def __init__(self, clock: Clock, stats: Stats | None = None, knocks: Knocks | None = None) -> None:
        self._knocks = knocks
        self.lines = RareLines(clock.monotonic, MINUTE_S)
        self._stats = stats or Stats()

    def note(self, address: str, reason: str, first_byte: int | None = None) -> None:
        """Count an unreadable request from this address; `reason` is aiohttp's message.

        `first_byte` is the first byte of the connection, which tells TLS from all else.
        """
        self._stats.unreadable += 1
        if self._knocks is not None:
            kind = KnockKind.HTTPS if first_byte == TLS_RECORD else KnockKind.NO_HTTP
            self._knocks.add(kind, address)
        if count := self.lines.due(""):
            why = (reason.splitlines() or [""])[0][:REASON_CHARACTERS].rstrip(":")
            log.warning(
                "http: requests that nobody could read: %d, the last from %s: %s", count, address or "?", why
            )


class Handler(PostHandler):
    """A connection of aiohttp, whose refusals have our error body and no traceback in the log.

    `in_front` is the phase while the guard has the connection, else None. `place` is its entry in the
    limiter. `is_streaming` is True while a stream of events is being sent.
    """

    __slots__ = (
        "_gate", "_heard", "_received", "_refusals", "_was_cut", "first_byte", "in_front", "is_streaming",
        "place",
    )  # fmt: skip

    def __init__(
        self,
        server: web.Server,
        refusals: Refusals,
        gate: ConnectionLimiter,
        transport: asyncio.Transport,
        way: ShortWay | None = None,
    ) -> None:
        super().__init__(server, transport, way, **SERVER)
        self.is_streaming = False
        self._refusals = refusals
        self._gate = gate
        self._received = 0
        self._heard = False
        self._was_cut = False
        self.in_front: Phase | None = Phase.FIRST_BYTE
        self.first_byte: int | None = None
        self.place: Connection | None = None

    def data_received(self, data: bytes) -> None:
        """Take a plain post, or pass bytes to aiohttp.

        A body that turns out to be garbage ends the request that waits for it.
        """
        if self.take(data):
            return
        super().data_received(data)
        self._received += len(data)
        waiter = self._waiter
        self._heard = waiter is not None and not waiter.done()
        if self._messages and self._current_request is not None:
            self._give_up_body(self._current_request)

    def _give_up_body(self, request: web.BaseRequest) -> None:
        """End the wait for a broken body: aiohttp queues the parser's error behind the waiting request."""
        broken = not isinstance(self._messages[-1][0], RawRequestMessage)
        if broken and not request.content.is_eof():
            request.content.set_exception(MalformedRequest(GARBLED))

    def connection_lost(self, exc: BaseException | None) -> None:
        """Free the place of the connection."""
        if self.place is not None:
            self._gate.leave(self.place)
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer an unreadable request in our words; leave every other error to aiohttp."""
        if isinstance(exc, ConnectionError):
            # Nobody gets the answer then.
            message = GARBLED if isinstance(exc, MalformedRequest) else WENT_AWAY
        elif status != 400:
            return _hardened(super().handle_error(request, status, exc, message))
        if not self._was_cut:
            self._refusals.note(connected_address(request), message or "", self.first_byte)
        return _hardened(error_response(400, "failure", REFUSAL))

    def doing(self) -> Activity:
        """Return the activity for the limiter. While an answer waits, its bytes are the bytes sent out."""
        moved = -self.line.get_write_buffer_size() if self._paused else self._received
        return Activity(self._phase(), self._request_count, moved)

    def _phase(self) -> Phase:
        if self.line.is_closing():
            return Phase.CLOSING
        if self.in_front is not None:
            return self.in_front
        if self.is_streaming:
            return Phase.STREAM
        if self.is_posting:
            return Phase.HANDLING
        if self._waiter is not None and not self._waiter.done():
            if self._heard:
                return Phase.HEAD
            return Phase.IDLE if self._request_count else Phase.FIRST_BYTE
        if self._paused:
            return Phase.ANSWER
        request = self._current_request
        if request is not None and not request.content.is_eof() and not self._reading_paused:
            return Phase.BODY
        return Phase.HANDLING

    def cut(self, phase: Phase) -> None:
        """End the connection. A request that has partly arrived gets a 408 if no answer has begun."""
        self._was_cut = True
        if phase in {Phase.ANSWER, Phase.STREAM, Phase.CLOSING}:
            self.line.abort()
            return
        request = self._current_request
        answering = request is not None and request.writer.output_size > 0
        if phase in {Phase.HEAD, Phase.BODY} and not answering:
            self.line.write(TOO_SLOW)
        self.line.close()


def _hardened(answer: web.StreamResponse) -> HardenedResponse:
    """Return the last answer of a connection, with the headers of every answer."""
    body = answer.body if isinstance(answer, web.Response) else None
    last = HardenedResponse(body=body, status=answer.status, headers=answer.headers)
    last.force_close()
    return last


class PlainHandler(RequestHandler):
    """A connection of aiohttp that uses none of its private names, with one deadline for its whole life.

    It stands in for `Handler` where an aiohttp of another version works in another way.
    """

    __slots__ = ("_end", "_gate", "_line", "first_byte", "in_front", "place")

    def __init__(
        self,
        server: web.Server,
        _: Refusals,
        gate: ConnectionLimiter,
        transport: asyncio.Transport,
        _way: ShortWay | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, **SERVER)
        self._gate = gate
        self._line = transport
        self._end = loop.call_later(LIFE_S, transport.abort)
        self.in_front: Phase | None = None
        self.first_byte: int | None = None
        self.place: Connection | None = None

    def connection_lost(self, exc: BaseException | None) -> None:
        """Free the place of the connection."""
        self._end.cancel()
        if self.place is not None:
            self._gate.leave(self.place)
        super().connection_lost(exc)

    def doing(self) -> Activity:
        """Return an activity without a deadline."""
        return Activity(Phase.HANDLING, 0, 0)

    def cut(self, _: Phase) -> None:
        """End the connection."""
        self._line.abort()


class Guard(asyncio.Protocol):
    """The guard of one connection, until the first request is known and aiohttp has the connection.

    `place` is the connection's entry in the limiter, if it was admitted before its TLS handshake. Without
    `deadlines` its phases have none.
    """

    def __init__(
        self,
        server: web.Server,
        refusals: Refusals,
        gate: ConnectionLimiter,
        place: Connection | None = None,
        *,
        deadlines: bool = True,
        way: ShortWay | None = None,
    ) -> None:
        self._server = server
        self._way = way
        self._refusals = refusals
        self._gate = gate
        self._place = place
        self._kind: type[Handler | PlainHandler] = Handler if deadlines else PlainHandler
        self._behind: Handler | PlainHandler | None = None
        self._received = b""
        self._waiting_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Prepare aiohttp's handler for the connection, if there is room; else abort the connection."""
        self._transport = cast(asyncio.Transport, transport)
        behind = self._kind(self._server, self._refusals, self._gate, self._transport, self._way)
        if self._place is None:
            self._place = self._gate.admit(address_of(transport), behind.doing, behind.cut)
        else:
            self._place.look, self._place.cut = behind.doing, behind.cut
        behind.place = self._place
        if behind.place is None:
            self._transport.abort()
            return
        self._behind = behind
        behind.connection_made(transport)

    def doing(self) -> Activity | None:
        """Return the activity of the connection; None if there was no room for it."""
        return None if self._behind is None else self._behind.doing()

    def data_received(self, data: bytes) -> None:
        """Gather bytes until the first request is known."""
        self._received += data
        self._look()

    def eof_received(self) -> None:
        """Pass the bytes so far to aiohttp, because no more will arrive."""
        self._look(waited=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting: the connection ended before its first request was complete."""
        self._stop_waiting()
        # Taken away, because a failed TLS handshake may be reported twice.
        behind, self._behind = self._behind, None
        if behind is not None:
            behind.connection_lost(exc)
        elif self._place is not None:
            self._gate.leave(self._place)

    def _look(self, *, waited: bool = False) -> None:
        found = look(self._received, waited=waited)
        if self._behind is None or self._transport.is_closing():
            return
        if isinstance(found, bytes):
            self._stop_waiting()
            self._behind.in_front = None
            self._behind.first_byte = found[0] if found else None
            self._transport.set_protocol(self._behind)
            self._behind.data_received(found)
        elif found != self._waiting_s:
            self._behind.in_front = Phase.HEAD if found == request_head.HEAD_WAIT_S else Phase.BODY
            self._stop_waiting()
            self._waiting_s = found
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(found, lambda: self._look(waited=True))

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class GuardedSite(web.BaseSite):
    """An application on a listening socket, with a guard in front of every connection.

    `tls` returns the TLS context of the next connection; without it the site speaks plain HTTP. Without
    `deadlines`, each connection has one for its whole life and none for its phases.
    """

    __slots__ = ("_deadlines", "_gate", "_listener", "_of", "_refusals", "_tls", "_way")

    def __init__(
        self,
        runner: web.BaseRunner,
        listener: socket.socket,
        refusals: Refusals,
        gate: ConnectionLimiter | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
        *,
        deadlines: bool = True,
        way: ShortWay | None = None,
    ) -> None:
        super().__init__(runner)
        self._way = way
        self._of = runner
        self._deadlines = deadlines
        self._listener = listener
        self._refusals = refusals
        self._gate = gate or ConnectionLimiter(Stats())
        self._tls = tls

    @property
    def name(self) -> str:
        """The site's name for aiohttp."""
        name = self._listener.getsockname()
        return f"unix://{name}" if isinstance(name, str) else f"http://{name[0]}:{name[1]}"

    async def start(self) -> None:
        """Start listening."""
        await super().start()
        loop = asyncio.get_running_loop()
        if self._tls is not None:
            self._listener.listen(BACKLOG)
            server = TlsServer(self._listener, self._tls, self._admit)
            self._server = cast(asyncio.AbstractServer, server)  # aiohttp closes it, and asks no more of it
            return
        # asyncio would take a whole backlog of connections before it looks at one of them.
        self._server = await loop.create_server(self._guard, sock=self._listener, backlog=ACCEPTED_AT_ONCE)
        self._listener.listen(BACKLOG)

    def _guard(self, place: Connection | None = None) -> Guard:
        server = self._of.server
        assert server is not None  # noqa: S101  (the base class has seen to it)
        return Guard(server, self._refusals, self._gate, place, deadlines=self._deadlines, way=self._way)

    def _admit(self, address: str, end: Callable[[], object]) -> Guard | None:
        """Give a connection its place before its TLS handshake, or return None if there is no room."""

        def cut(_: Phase) -> None:
            end()

        place = self._gate.admit(address, lambda: SHAKING_HANDS, cut, tls=True)
        return None if place is None else self._guard(place)
