"""Watching the gateway: `GET /healthz` without a key and without secrets, `/manage/status` and `/metrics`."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Literal

from aiohttp import hdrs, web
from pydantic import ConfigDict

from gateway import __version__
from gateway.errors import StoreUnavailable
from gateway.http.endpoint import AnswerModel, AnyEndpoint, Call, Endpoint, Media, Query
from gateway.http.middleware import SERVICES
from gateway.manage.metrics import metrics
from gateway.manage.status import Status, Watch

STORE_ANSWERS_S = 5.0
"""Seconds that the store may take for one small read before it counts as unavailable."""

NO_SESSION = 0
"""An id that no brew session has: looking it up reads the file and moves one row at most."""


class Health(AnswerModel):
    """State of the gateway: counters since the start, each part in words, and the parts in trouble."""

    model_config = ConfigDict(extra="allow")

    status: Literal["ok", "store unavailable"]
    version: str
    uptime_s: int
    sqlite_version: str
    parts: dict[str, str]
    in_trouble: list[str]


def endpoints(started: float) -> tuple[AnyEndpoint, ...]:
    """Return the endpoints. `started` is the clock's monotonic time at the start, in seconds."""
    watch = Watch(started)

    async def status(call: Call[Query, None]) -> Status:
        return await watch.status(call)

    async def prometheus(call: Call[Query, None]) -> web.Response:
        return await metrics(watch, call)

    handler = _health_handler(started)
    return (
        Endpoint("GET", "/healthz", handler, "Whether the gateway works", Query, Health, unavailable=Health),
        Endpoint(
            "GET",
            "/manage/status",
            status,
            "State and counters; any key of the owner's",
            Query,
            Status,
            owner_only=True,
        ),
        Endpoint(
            "GET",
            "/metrics",
            prometheus,
            "The same for Prometheus; it may send the key as `Authorization: Bearer`",
            Query,
            Media(("text/plain",)),
            owner_only=True,
        ),
    )


def _health_handler(started: float) -> Callable[[Call[Query, None]], Awaitable[web.Response]]:
    async def health(call: Call[Query, None]) -> web.Response:
        request = call.request
        works = await _store_reads(request)
        stats = request.app[SERVICES].stats
        page = {
            "status": "ok" if works else "store unavailable",
            "version": __version__,
            "uptime_s": int(request.app[SERVICES].clock.monotonic() - started),
            "sqlite_version": request.app[SERVICES].store.upkeep.engine().version,
            **{name: value for name, value in dataclasses.asdict(stats).items() if name != "targets"},
            "in_trouble": sorted(stats.in_trouble),
        }
        headers = {hdrs.CACHE_CONTROL: "no-store"}
        return web.json_response(page, status=200 if works else 503, headers=headers)

    return health


async def _store_reads(request: web.Request) -> bool:
    try:
        async with asyncio.timeout(STORE_ANSWERS_S):
            await request.app[SERVICES].store.sessions.get(NO_SESSION)
    except (StoreUnavailable, TimeoutError):
        return False
    return True
