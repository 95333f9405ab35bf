"""`/manage/targets/{name}/routes`: what goes to a target that is no Brewing Data Service; for the owner."""

from typing import Any, Literal

from pydantic import Field

from gateway.domain.target import Route, RouteKind
from gateway.errors import NotFound
from gateway.http.endpoint import AnswerModel, Body, Call, Done, Endpoint, Query
from gateway.http.parameters import Moment
from gateway.manage.targets import NAMED, target_name

ROUTE = f"{NAMED}/routes/{{what:all|device|brew}}/{{route_id}}"


class NewRoute(Body):
    """What goes to the target from now on."""

    since: Moment | None = Field(
        default=None,
        description="ISO 8601, UTC where no zone is given: earlier readings go there, too, from then on.",
    )


class RouteRecord(AnswerModel):
    """What goes to a target: the readings of a device or a brew session by its id, or all (id 0)."""

    what: Literal["all", "device", "brew"]
    id: int


class Routed(Done):
    """All that goes to the target now."""

    routes: list[RouteRecord]


async def add_route(call: Call[Query, NewRoute]) -> Routed:
    """Let readings go to a target. Without `since` only those that come from now on."""
    route = await _route(call)
    since = None if call.body.since is None else int(call.body.since)
    await call.services.mapped.add_route(target_name(call), route, since)
    return await _routed(call)


async def remove_route(call: Call[Query, None]) -> Routed:
    """Let them go there no longer. What is there stays there."""
    what: Any = call.request.match_info["what"]
    await call.services.mapped.remove_route(target_name(call), Route(what, call.path_id("route_id")))
    return await _routed(call)


async def _route(call: Call[Any, Any]) -> Route:
    """Return the route that the path names; `NotFound` for a device or brew session that is not there."""
    what: RouteKind = call.request.match_info["what"]  # type: ignore[assignment]
    number = call.path_id("route_id")
    if what == "all":
        return Route("all")
    if what == "device":
        return Route("device", (await call.services.devices.find(number)).id)
    session = await call.store.sessions.get(number)
    if session is None or not call.caller.may_see(session.account_id):
        raise NotFound
    return Route("brew", session.id)


async def _routed(call: Call[Any, Any]) -> Routed:
    target = await call.services.targets.named(target_name(call))
    routes = await call.services.mapped.routes(target)
    return Routed(routes=[RouteRecord(what=route.what, id=route.id) for route in routes])


ENDPOINTS = (
    Endpoint(
        "PUT",
        ROUTE,
        add_route,
        "Let readings go to a target",
        Query,
        Routed,
        body=NewRoute,
        owner_only=True,
    ),
    Endpoint(
        "DELETE",
        ROUTE,
        remove_route,
        "Let readings go to a target no longer",
        Query,
        Routed,
        owner_only=True,
    ),
)
"""What goes to targets."""
