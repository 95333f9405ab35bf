"""Watching the gateway: the health page in the description, `/manage/status` and `/metrics`."""

from typing import Literal

from aiohttp import web
from pydantic import ConfigDict

from gateway.http import health as health_page
from gateway.http.endpoint import AnswerModel, AnyEndpoint, Call, Endpoint, Media, Query
from gateway.http.middleware import HEALTH_PATH, METRICS_PATH
from gateway.manage.metrics import metrics
from gateway.manage.status import Status, Watch


class Health(AnswerModel):
    """State of the gateway and of each part: `ok`, or `trouble` for a part that does not do its work.

    `unavailable` is a gateway whose store does not answer. With a key of the owner's account there are the
    version, counters since the start, the parts in trouble, and each part in a sentence instead of a word.
    """

    model_config = ConfigDict(extra="allow")

    status: Literal["ok", "trouble", "unavailable"]
    parts: dict[str, str]


def endpoints(started: float) -> tuple[AnyEndpoint, ...]:
    """Return the endpoints. `started` is the clock's monotonic time at the start, in seconds."""
    watch, page = Watch(started), health_page.handler(started)

    async def health(call: Call[Query, None]) -> web.StreamResponse:
        return await page(call.request)

    async def status(call: Call[Query, None]) -> Status:
        return await watch.status(call)

    async def prometheus(call: Call[Query, None]) -> web.Response:
        return await metrics(watch, call)

    return (
        Endpoint(
            "GET",
            HEALTH_PATH,
            health,
            "Whether the gateway works; with a key also its figures",
            Query,
            Health,
            refusals=(401,),
            unavailable=Health,
        ),
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
            "The same and the beer for Prometheus, which may send the key as `Authorization: Bearer`; "
            "keys of other accounts see their own beer",
            Query,
            Media(("text/plain",)),
        ),
    )
