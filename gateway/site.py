"""The whole HTTP side: every endpoint, the device paths, and the API's own description."""

from collections.abc import Sequence
from typing import Literal

from aiohttp import web

from gateway.api import brewsessions, fermentation, photos, recipes
from gateway.http import cors, openapi
from gateway.http.browsers import OwnHosts
from gateway.http.endpoint import AnyEndpoint
from gateway.http.hardening import Doorkeeper, protect
from gateway.http.middleware import (
    PROXIES,
    SERVICES,
    errors_middleware,
    key_middleware,
)
from gateway.http.owner import owner_middleware
from gateway.http.peers import Proxies
from gateway.manage import (
    accounts,
    audit,
    backup,
    brewsession_list,
    capture,
    delivery,
    device_trust,
    devices,
    folders,
    health,
    inbox,
    keys,
    mirror,
    quarantine,
    readings,
    samples,
    targets,
)
from gateway.manage import brewsessions as manage_brewsessions
from gateway.manage import photos as manage_photos
from gateway.manage import recipes as manage_recipes
from gateway.services.build import Services

ENDPOINTS: tuple[AnyEndpoint, ...] = (
    *fermentation.ENDPOINTS,
    *recipes.ENDPOINTS,
    *photos.ENDPOINTS,
    *brewsessions.ENDPOINTS,
    *manage_recipes.ENDPOINTS,
    *manage_photos.ENDPOINTS,
    *folders.ENDPOINTS,
    *manage_brewsessions.ENDPOINTS,
    *brewsession_list.ENDPOINTS,
    *readings.ENDPOINTS,
    *delivery.ENDPOINTS,
    *devices.ENDPOINTS,
    *device_trust.ENDPOINTS,
    *accounts.ENDPOINTS,
    *keys.ENDPOINTS,
    *audit.ENDPOINTS,
    *targets.ENDPOINTS,
    *quarantine.ENDPOINTS,
    *inbox.ENDPOINTS,
    *capture.ENDPOINTS,
    *mirror.ENDPOINTS,
    *samples.ENDPOINTS,
    *backup.ENDPOINTS,
)
"""All endpoints, except the ones that describe or watch the gateway itself: `build` adds these."""


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
) -> web.Application:
    """Build the application, for a runner that does not decompress bodies.

    The API's description leaves the `alias_routes` out: there are hundreds, and drivers/README.md lists them.
    Pages of `allowed_origins` may report and use the API. `hosts` are the names of this machine, `proxies`
    name the senders of requests. Through the door `socket` every caller is the owner; through `tcp` the key
    decides the caller's account and rights.
    """
    app = web.Application(middlewares=[errors_middleware, MIDDLEWARE[door]])
    app[SERVICES] = services
    if proxies is not None:
        app[PROXIES] = proxies
    endpoints = (*ENDPOINTS, *health.endpoints(services.clock.monotonic()))
    described = (*endpoints, *openapi.endpoints(endpoints, device_routes))
    app.add_routes([endpoint.route() for endpoint in described])
    reports = app.add_routes([*device_routes, *alias_routes])
    protect(app)
    if door == "tcp":
        app.middlewares.insert(1, Doorkeeper(hosts or OwnHosts(), reports).admit)
    if allowed_origins:
        cors.allow(app, allowed_origins, reports)
    return app
