"""A check at the start: does the guard still see what aiohttp does with a connection?

The guard's deadlines rest on private names of aiohttp, which any release may change. So a connection of our
own goes through the guard once, and each phase has to show.
"""

import asyncio
import socket
from contextlib import suppress

from aiohttp import __version__ as aiohttp_version
from aiohttp import web

from gateway.clock import SystemClock
from gateway.http.connections import Activity, ConnectionLimiter, Phase
from gateway.http.guard import Guard, Refusals
from gateway.stats import Stats

WAIT_S = 5.0
"""Seconds that a phase may take to show. A millisecond is usual; a busy machine must not fail the check."""

STEP_S = 0.0005

PRIVATE_NAMES = ("_waiter", "_messages", "_current_request", "_paused", "_request_count", "_reading_paused")
"""Names of aiohttp's connection that the guard reads."""

REMEDY = "pip install 'aiohttp>=3.14.4,<3.15'"

_HEAD = b"POST /v1 HTTP/1.1\r\nHost: localhost\r\n"
_WHOLE = b"GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n"

STEPS: tuple[tuple[bytes, Phase, int], ...] = (
    (b"", Phase.FIRST_BYTE, 0),
    (_HEAD, Phase.HEAD, 0),
    (b"Content-Length: 4\r\n\r\nab", Phase.BODY, 1),
    (b"cd", Phase.IDLE, 1),
    (_WHOLE + _WHOLE, Phase.IDLE, 3),
)
"""Bytes to send, then the phase and the number of requests that have to show."""


async def trouble() -> str | None:
    """Return None if the guard sees every phase, else the reason why its deadlines are off."""
    try:
        found = await _walk()
    except Exception as error:  # of any kind, because a changed library can fail in any way
        found = f"{type(error).__name__} {error}".strip()
    return f"aiohttp {aiohttp_version} works in another way: {found}" if found else None


async def _walk() -> str | None:
    async def answer(request: web.BaseRequest) -> web.Response:
        await request.read()
        return web.Response()

    loop, server = asyncio.get_running_loop(), web.Server(answer)
    theirs, ours = socket.socketpair()
    ours.setblocking(False)
    guard = Guard(server, Refusals(SystemClock()), ConnectionLimiter(Stats()))
    transport, _ = await loop.connect_accepted_socket(lambda: guard, theirs)
    doing: Activity | None = None
    try:
        for data, phase, requests in STEPS:
            await loop.sock_sendall(ours, data)
            deadline = loop.time() + WAIT_S
            while (doing := guard.doing()) is None or (doing.phase, doing.request) != (phase, requests):
                if loop.time() > deadline:
                    shown = (
                        "no connection" if doing is None else f"{doing.phase.name}, request {doing.request}"
                    )
                    return f"{phase.name}, request {requests}, shows as {shown}"
                await asyncio.sleep(STEP_S)
    finally:
        ours.close()
        transport.abort()
        with suppress(Exception):
            await server.shutdown(0)
    return None
