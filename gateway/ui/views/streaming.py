"""`/ui/events`: what changes, for pages that are open. A page asks again for the parts that it concerns."""

from collections.abc import Callable, Collection

from aiohttp import web

from gateway.http.event_streams import EVENT_STREAMS, Sight
from gateway.ui.pages import Row, Visit


async def events(visit: Visit) -> web.StreamResponse:
    """Send what the viewer may see, until the page is left or the login ends."""
    login, services = visit.viewer.login, visit.services

    def holds() -> bool:
        return services.page.lan_view if login is None else services.logins.get(login.id) is not None

    return await follow(visit, visit.viewer.account_id, holds)


async def follow(
    visit: Visit,
    account_id: int,
    holds: Callable[[], bool],
    brews: Callable[[], Collection[int]] | None = None,
) -> web.StreamResponse:
    """Send what changes for an account, or only in its brews of these ids, while `holds` is true."""
    sight = Sight(visit.store, account_id, brews=brews, holds=holds)
    return await visit.request.app[EVENT_STREAMS].send(visit.request, sight)


ROWS = (Row("GET", "/events", events, "events", "Say what changes, as it changes"),)
"""The stream of events."""
