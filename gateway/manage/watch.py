"""Watching the gateway in figures: `/manage/status` and `/metrics`."""

from aiohttp import web

from gateway.http.endpoint import AnyEndpoint, Call, Endpoint, Media, Query
from gateway.http.middleware import METRICS_PATH
from gateway.manage.metrics import metrics
from gateway.manage.status import Status, Watch


def endpoints(started: float) -> tuple[AnyEndpoint, ...]:
    """Return the endpoints. `started` is the clock's monotonic time at the start, in seconds."""
    watch = Watch(started)

    async def status(call: Call[Query, None]) -> Status:
        return await watch.status(call)

    async def prometheus(call: Call[Query, None]) -> web.Response:
        return await metrics(watch, call)

    return (
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
            METRICS_PATH,
            prometheus,
            "The same for Prometheus; it may send the key as `Authorization: Bearer`",
            Query,
            Media(("text/plain",)),
            owner_only=True,
        ),
    )
