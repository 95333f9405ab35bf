"""Watching the gateway: `GET /healthz`, in words without a key."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from aiohttp import hdrs, web
from pydantic import ConfigDict

from gateway import __version__
from gateway.domain.account import OWNER_ID
from gateway.errors import StoreUnavailable
from gateway.http.endpoint import AnswerModel, AnyEndpoint, Call, Endpoint, Query
from gateway.http.middleware import CALLER, HEALTH_PATH, SERVICES
from gateway.stats import Stats

STORE_ANSWERS_S = 5.0
"""Seconds that the store may take for one small read before it counts as unavailable."""

NO_SESSION = 0
"""An id that no brew session has: looking it up reads the file and moves one row at most."""


class Health(AnswerModel):
    """State of the gateway and of each part: `ok`, or `trouble` for a part that does not do its work.

    `unavailable` is a gateway whose store does not answer. With a key of the owner's account there are the
    version, counters since the start, the parts in trouble, and each part in a sentence instead of a word.
    """

    model_config = ConfigDict(extra="allow")

    status: Literal["ok", "trouble", "unavailable"]
    parts: dict[str, str]


def page(started: float) -> AnyEndpoint:
    """Return the endpoint; `started` is the clock's monotonic time at the start, in seconds."""
    return Endpoint(
        "GET",
        HEALTH_PATH,
        _health_handler(started),
        "Whether the gateway works; with a key also its figures",
        Query,
        Health,
        refusals=(401,),
        unavailable=Health,
    )


def _health_handler(started: float) -> Callable[[Call[Query, None]], Awaitable[web.Response]]:
    async def health(call: Call[Query, None]) -> web.Response:
        works = await _store_reads(call.request)
        stats = call.services.stats
        status = "unavailable" if not works else "trouble" if stats.in_trouble else "ok"
        page: dict[str, Any] = {"status": status, "parts": part_words(stats)}
        caller = call.request.get(CALLER)
        if caller is not None and (caller.everywhere or caller.account_id == OWNER_ID):
            page |= {
                "version": __version__,
                "uptime_s": int(call.services.clock.monotonic() - started),
                "sqlite_version": call.store.upkeep.engine().version,
                **{name: value for name, value in dataclasses.asdict(stats).items() if name != "targets"},
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
