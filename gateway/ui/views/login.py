"""The door: log in with a key, log out, and the question of a script whether the browser is logged in."""

import asyncio
import math
import re
from dataclasses import replace

from aiohttp import hdrs, web

from gateway.errors import Forbidden, RateLimited, Unauthorized
from gateway.http.middleware import REFUSAL_S, peer_of
from gateway.ui.middleware import give_cookie, take_cookie
from gateway.ui.pages import ROOT, Answer, Page, Row, Visit
from gateway.ui.viewer import zone_named

NEXT = re.compile(r"/ui/(?!login)[!-\[\]-~]{0,2000}")
"""A page of ours to go on to, as a browser writes it. It begins with `/ui/`, so it is on this host.

Inside Home Assistant the base path stands in front of it.
"""


async def show(visit: Visit) -> Answer:
    """Show the form for a key."""
    return _page(visit, visit.query.get("next", ""))


async def log_in(visit: Visit) -> Answer:
    """Log the browser in, and go on to the page that it came for."""
    request, target = visit.request, visit.fields.get("next", "")
    peer, agent = peer_of(request), request.headers.get(hdrs.USER_AGENT, "")
    zone = visit.fields.get("zone", "")
    choices = {"zone": zone} if zone_named(zone) is not None else {}
    try:
        key = visit.fields.get("key", "")
        secret, _ = await visit.services.logins.log_in(key, peer, agent, **choices)
    except Unauthorized:
        return _page(visit, target, 401, visit.t("login.unknown"))
    except Forbidden:
        return _page(visit, target, 403, visit.t("login.devices_only"))
    except RateLimited as error:
        # With its connection held, as the middleware does it.
        await asyncio.sleep(REFUSAL_S)
        seconds = max(1, math.ceil(error.retry_after_s))
        page = _page(visit, target, 429, visit.t("login.too_often", n=seconds))
        return replace(page, headers={hdrs.RETRY_AFTER: str(seconds)})
    answer = web.Response(status=303, headers={hdrs.LOCATION: checked_target(visit, target)})
    give_cookie(answer, secret, request)
    return answer


async def log_out(visit: Visit) -> Answer:
    """Log this browser out."""
    login = visit.viewer.login
    if login is not None:
        await visit.services.logins.log_out(login.id)
    answer = web.Response(status=303, headers={hdrs.LOCATION: visit.url("login")})
    take_cookie(answer, visit.request)
    return answer


async def me(visit: Visit) -> Answer:
    """Tell a script whether this browser is logged in: a link from another site came without the cookie."""
    login, headers = visit.viewer.login, {hdrs.CACHE_CONTROL: "no-store"}
    if login is None:
        # Not 401, because browsers write each refusal into their log of errors.
        return web.Response(status=204, headers=headers)
    return web.json_response({"key": login.key.name}, headers=headers)


def _page(visit: Visit, target: str, status: int = 200, wrong: str = "") -> Page:
    values = {"next": checked_target(visit, target), "wrong": wrong}
    return Page("login.html", visit.t("login.title"), values, status=status)


def checked_target(visit: Visit, target: str) -> str:
    """Return the page of ours to go on to; the first page if the text names none."""
    if target.startswith(visit.base) and NEXT.fullmatch(target.removeprefix(visit.base)):
        return target
    return visit.url("brews") if visit.has("brews") else f"{visit.base}{ROOT}/more"


ROWS = (
    Row("GET", "/login", show, "login", "The form for a key", public=True, no_store=True),
    Row("POST", "/login", log_in, "login.send", "Log in", public=True, no_store=True),
    Row("POST", "/logout", log_out, "logout", "Log out"),
    Row("GET", "/me", me, "me", "Whether the browser is logged in", public=True),
)
