"""`GET /healthz`: whether the gateway works, without a key; counters and states, no secrets."""

import asyncio
import dataclasses
import sqlite3

from aiohttp import hdrs, web

from gateway import __version__
from gateway.errors import StoreUnavailable
from gateway.web import CLOCK, STATS, STORE, Handler

STORE_ANSWERS_S = 5.0
"""Seconds that the store may take for one small read before it counts as unavailable."""

NO_SESSION = 0
"""An id that no brew session has: looking it up reads the file and moves one row at most."""


def routes(started: float) -> list[web.RouteDef]:
    """The health page; `started` is the clock's monotonic time at the start."""
    return [web.get("/healthz", _health_handler(started))]


def _health_handler(started: float) -> Handler:
    async def health(request: web.Request) -> web.Response:
        works = await _store_reads(request)
        stats = request.app[STATS]
        page = {
            "status": "ok" if works else "store unavailable",
            "version": __version__,
            "uptime_s": int(request.app[CLOCK].monotonic() - started),
            "sqlite_version": sqlite3.sqlite_version,
            **dataclasses.asdict(stats),
        }
        headers = {hdrs.CACHE_CONTROL: "no-store"}
        return web.json_response(page, status=200 if works else 503, headers=headers)

    return health


async def _store_reads(request: web.Request) -> bool:
    try:
        async with asyncio.timeout(STORE_ANSWERS_S):
            await request.app[STORE].sessions.get(NO_SESSION)
    except (StoreUnavailable, TimeoutError):
        return False
    return True
