"""The table of all pages, and the routes that are made of it."""

from functools import partial

from aiohttp import hdrs, web

from gateway.errors import NotFound
from gateway.http.middleware import base_path_of
from gateway.ui import static
from gateway.ui.middleware import Desk
from gateway.ui.pages import ROOT, Answer, Row, Visit
from gateway.ui.views import (
    adding,
    alarm_rules,
    alarms,
    banner,
    brew,
    brew_edit,
    brew_event,
    brew_new,
    brews,
    calibrate,
    channels,
    compare,
    device,
    devices,
    exclude,
    help,
    keys,
    label,
    links,
    login,
    more,
    photos,
    picture,
    quarantine,
    readings,
    recipe,
    recipes,
    sending,
    settings,
    streaming,
    timeline,
    tv,
)

ROWS: tuple[Row, ...] = (
    *adding.ROWS,
    *alarm_rules.ROWS,
    *alarms.ROWS,
    *banner.ROWS,
    *brew.ROWS,
    *brew_edit.ROWS,
    *brew_event.ROWS,
    *brew_new.ROWS,
    *brews.ROWS,
    *calibrate.ROWS,
    *channels.ROWS,
    *compare.ROWS,
    *device.ROWS,
    *devices.ROWS,
    *exclude.ROWS,
    *help.ROWS,
    *keys.ROWS,
    *label.ROWS,
    *links.ROWS,
    *login.ROWS,
    *more.ROWS,
    *photos.ROWS,
    *picture.ROWS,
    *quarantine.ROWS,
    *readings.ROWS,
    *recipe.ROWS,
    *recipes.ROWS,
    *sending.ROWS,
    *settings.ROWS,
    *streaming.ROWS,
    *timeline.ROWS,
    *tv.ROWS,
)
"""All pages, forms and parts."""


async def _unknown(visit: Visit) -> Answer:
    raise NotFound(visit.t("error.no_page"))


UNKNOWN = Row("GET", "/{path:.*}", _unknown, "unknown", "Say that there is no such page", public=True)


def routes() -> list[web.RouteDef]:
    """Return the routes of all pages, of the static files, and of everything else below `/ui`."""
    desk = Desk({row.name: row for row in (*ROWS, UNKNOWN)})
    made = [web.get(f"{ROOT}/static/{{version}}/{{name}}", static.serve)]
    for row in ROWS:
        handler = partial(desk.serve, row)
        path = ROOT + row.path
        made.append(web.get(path, handler) if row.method == hdrs.METH_GET else web.post(path, handler))
    made.append(web.get(ROOT, _to_root))
    made.append(web.get(ROOT + UNKNOWN.path, partial(desk.serve, UNKNOWN)))
    return made


async def _to_root(request: web.Request) -> web.Response:
    return web.Response(status=308, headers={hdrs.LOCATION: f"{base_path_of(request)}{ROOT}/"})
