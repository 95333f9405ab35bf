"""The whole HTTP side: every endpoint, the device paths, and the API's own description."""

from collections.abc import Sequence
from typing import Literal

from aiohttp import web

from gateway.http import cors, health
from gateway.http.browsers import OwnHosts
from gateway.http.event_streams import EVENT_STREAMS, EventStreams
from gateway.http.hardening import Doorkeeper, protect
from gateway.http.late_routes import LateRoutes
from gateway.http.middleware import (
    HEALTH_PATH,
    KNOCKS,
    PAGE,
    PROXIES,
    SERVICES,
    errors_middleware,
    key_middleware,
)
from gateway.http.owner import owner_middleware
from gateway.http.peers import Proxies
from gateway.services.build import Services

LATE_SEGMENTS = ("v1", "manage", "metrics", "openapi.json", "docs")
"""First segments of the paths of all endpoints but the health page."""

PAGE_SEGMENTS = ("ui",)
"""The first segment of the paths of all pages."""

PAGE_ROOT = "/ui/"

Door = Literal["tcp", "socket"]

# Chosen by the application, not by a header or an address, because a stranger can forge both.
MIDDLEWARE = {"tcp": key_middleware, "socket": owner_middleware}


def build(
    services: Services,
    device_routes: Sequence[web.RouteDef] = (),
    alias_routes: Sequence[web.RouteDef] = (),
    *,
    allowed_origins: Sequence[str] = (),
    hosts: OwnHosts | None = None,
    door: Door = "tcp",
    proxies: Proxies | None = None,
    page: bool = True,
) -> web.Application:
    """Build the application, for a runner that does not decompress bodies.

    The API's description leaves the `alias_routes` out: there are hundreds; docs/devices.md has them.
    Pages of `allowed_origins` may report and use the API. `hosts` are the names of this machine, `proxies`
    name the senders of requests. Through the door `socket` every caller is the owner; through `tcp` the key
    decides the caller's account and rights. Without `page` there is nothing below `/ui`.
    """
    app = web.Application(middlewares=[errors_middleware, MIDDLEWARE[door]])
    app[SERVICES] = services
    app[EVENT_STREAMS] = EventStreams()
    app.on_shutdown.append(app[EVENT_STREAMS].end)
    if proxies is not None:
        app[PROXIES] = proxies
    started = services.clock.monotonic()
    app.add_routes([web.get(HEALTH_PATH, health.handler(started))])
    app.router.register_resource(LateRoutes(LATE_SEGMENTS, lambda: _late_routes(started, device_routes)))
    if page and door == "tcp":
        app[PAGE] = PAGE_ROOT
        app.router.register_resource(LateRoutes(PAGE_SEGMENTS, _page_routes))
    reports = app.add_routes([*device_routes, *alias_routes])
    protect(app)
    if door == "tcp":
        app[KNOCKS] = services.knocks
        app.middlewares.insert(1, Doorkeeper(hosts or OwnHosts(), reports).admit)
    if allowed_origins:
        cors.allow(app, allowed_origins, reports)
    return app


def _late_routes(started: float, device_routes: Sequence[web.RouteDef]) -> list[web.RouteDef]:
    """Return the routes of all endpoints but the health page."""
    # Imported here, because the endpoints with their models take 5 MB, and nobody asks an idle gateway.
    from gateway.endpoints import ENDPOINTS
    from gateway.http import openapi
    from gateway.manage import watch

    endpoints = (*ENDPOINTS, *watch.endpoints(started))
    described = (*endpoints, *openapi.endpoints(endpoints, device_routes))
    return [endpoint.route() for endpoint in described if endpoint.path != HEALTH_PATH]


def _page_routes() -> list[web.RouteDef]:
    """Return the routes of all pages."""
    # Imported here, because templates take memory, and nobody looks at an idle gateway.
    from gateway.ui.routes import routes

    return routes()
