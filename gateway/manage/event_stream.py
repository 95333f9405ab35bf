"""`/manage/events`: what changes in the gateway, as it changes, for programs; the page has the same."""

from aiohttp import web

from gateway.http.endpoint import Call, Endpoint, Media, Query
from gateway.http.event_streams import EVENT_STREAMS, MEDIA, Sight
from gateway.http.middleware import KEY_HEADER


async def follow_changes(call: Call[Query, None]) -> web.StreamResponse:
    """Send what changes as server-sent events, until the client leaves or its key ends."""
    caller, access = call.caller, call.services.access
    presented = call.request.headers.get(KEY_HEADER, "")

    def holds() -> bool:
        return caller.everywhere or access.find(presented) is not None

    sight = Sight(call.store, caller.account_id, everywhere=caller.everywhere, holds=holds)
    return await call.request.app[EVENT_STREAMS].send(call.request, sight)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/manage/events",
        follow_changes,
        "What changes, as server-sent events: `reading`, `device`, `brew`, `quarantine`, `sending`, `alarm`, "
        "`gateway` or `everything`, with the ids of brew and device",
        Query,
        Media((MEDIA,)),
        scope="read",
    ),
)
"""Changes as they happen."""
