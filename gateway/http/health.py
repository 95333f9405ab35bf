"""The health page: `GET /healthz`, in words without a key.

Other programs ask for it all the time. So it needs no models: an idle gateway has none.
"""

import asyncio
import dataclasses
from typing import Any

from aiohttp import hdrs, web

from gateway import __version__
from gateway.domain.account import OWNER_ID
from gateway.errors import StoreUnavailable
from gateway.http.middleware import CALLER, SERVICES, Handler
from gateway.stats import Stats

STORE_ANSWERS_S = 5.0
"""Seconds that the store may take for one small read before it counts as unavailable."""

NO_SESSION = 0
"""An id that no brew session has: looking it up reads the file and moves one row at most."""


def handler(started: float) -> Handler:
    """Return the handler; `started` is the clock's monotonic time at the start, in seconds."""

    async def health(request: web.Request) -> web.Response:
        services = request.app[SERVICES]
        stats, works = services.stats, await _store_reads(request)
        status = "unavailable" if not works else "trouble" if stats.in_trouble else "ok"
        page: dict[str, Any] = {"status": status, "parts": part_words(stats)}
        caller = request.get(CALLER)
        if caller is not None and (caller.everywhere or caller.account_id == OWNER_ID):
            page |= {
                "version": __version__,
                "page": services.page.address,
                "uptime_s": int(services.clock.monotonic() - started),
                "sqlite_version": services.store.upkeep.engine().version,
                **{
                    name: value
                    for name, value in dataclasses.asdict(stats).items()
                    if name not in {"targets", "backed_up_at"}
                },
                "in_trouble": sorted(stats.in_trouble),
            }
        headers = {hdrs.CACHE_CONTROL: "no-store"}
        return web.json_response(page, status=200 if works else 503, headers=headers)

    return health


def part_words(stats: Stats) -> dict[str, str]:
    """Return each part with `ok` or `trouble`, by the first word of its name.

    The rest of a name is a port, or the address of an upstream, which is nobody else's business.
    """
    words: dict[str, str] = {}
    for part in stats.parts:
        name = part.partition(" ")[0]
        words[name] = "trouble" if part in stats.in_trouble else words.get(name, "ok")
    return words


async def _store_reads(request: web.Request) -> bool:
    try:
        async with asyncio.timeout(STORE_ANSWERS_S):
            await request.app[SERVICES].store.sessions.get(NO_SESSION)
    except (StoreUnavailable, TimeoutError):
        return False
    return True
