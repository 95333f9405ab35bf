"""The page for a screen on the wall: large figures of the brews that run, and nothing to touch."""

from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import web
from markupsafe import Markup

from gateway.domain.alarm import Alarm
from gateway.domain.brewsession import SessionEntry
from gateway.domain.device import Device
from gateway.domain.view_link import ViewLink
from gateway.errors import NotFound
from gateway.insight.silence import silent_after_s
from gateway.services.alarm_subjects import of_brew
from gateway.services.figures import Figures
from gateway.services.series import Line, Series, interval_of
from gateway.ui import charts
from gateway.ui.alarm_words import SIGNS, own_alarms, title_of
from gateway.ui.brew_words import day_of, is_silent, name_of
from gateway.ui.pages import Answer, Page, Part, Row, Visit
from gateway.ui.views.link_viewer import viewer_of_link
from gateway.ui.views.streaming import follow
from gateway.ui.words import Ago, Quantity, Words

SCHEMES = ("light", "dark")

SHOWN_ALARMS = 3
"""Alarms of a brew on the screen at most, the worst ones."""


class Tile(NamedTuple):
    """A brew on the screen: `states` are words with their kinds, `facts` figures with their names."""

    name: str
    day: str
    gravity: Quantity
    temp: Quantity
    ago: Ago | None
    is_old: bool
    spark: Markup
    facts: list[tuple[str, str]]
    states: list[tuple[str, str]]


async def show(visit: Visit) -> Answer:
    """Show the viewer's own screen."""
    return await _page(visit, None, visit.url("tv.brews"), visit.url("events"))


async def show_link(visit: Visit) -> Answer:
    """Show the screen of a link."""
    link, token = _link(visit), visit.path_text("token")
    return await _page(
        visit, link, visit.url("tv.link.brews", token=token), visit.url("tv.link.events", token=token)
    )


async def brews(visit: Visit) -> Part:
    """Show the brews on the viewer's own screen."""
    return await _part(visit, None)


async def brews_of_link(visit: Visit) -> Part:
    """Show the brews on the screen of a link."""
    return await _part(visit, _link(visit))


async def events(visit: Visit) -> web.StreamResponse:
    """Say what changes in the brews of a link, until the link is revoked."""
    token, link = visit.path_text("token"), _link(visit)
    ids = frozenset(session.id for session in await visit.services.links.brews(link))
    return await follow(
        visit,
        link.account_id,
        lambda: visit.services.links.find(token, "tv") is not None,
        lambda: ids,
    )


def _link(visit: Visit) -> ViewLink:
    link = visit.services.links.find(visit.path_text("token"), "tv")
    if link is None:
        raise NotFound(visit.t("tv.gone"))
    visit.viewer = viewer_of_link(visit, link)
    visit.words = visit.viewer.words(visit.now)
    return link


async def _page(visit: Visit, link: ViewLink | None, source: str, stream: str) -> Page:
    scheme = visit.query.get("scheme", "")
    values = {
        "source": source,
        "stream": stream,
        "tiles": await _tiles(visit, link),
        "clock": visit.words.clock(visit.now),
        "scheme": scheme if scheme in SCHEMES else visit.viewer.scheme,
    }
    return Page("tv.html", visit.t("tv.title"), values)


async def _part(visit: Visit, link: ViewLink | None) -> Part:
    values = {"tiles": await _tiles(visit, link), "clock": visit.words.clock(visit.now)}
    return Part("parts/tv.html", ("reading", "brew", "alarm", "insight"), values)


async def _tiles(visit: Visit, link: ViewLink | None) -> list[Tile]:
    links, zone = visit.services.links, visit.viewer.zone
    sessions = await (links.running(visit.viewer.account_id) if link is None else links.brews(link))
    figures = await visit.services.figures.of_all(sessions, zone)
    ids = [session.id for session in sessions]
    alarms = own_alarms(visit)
    devices, sparks = await visit.store.devices.all(), await visit.services.series.sparklines(ids)
    return [
        _tile(visit, entry, figures[entry.session.id], devices, sparks[entry.session.id], alarms)
        for entry in await visit.store.sessions.entries(ids)
    ]


def _tile(
    visit: Visit,
    entry: SessionEntry,
    figures: Figures,
    devices: Sequence[Device],
    lines: list[Line],
    alarms: Sequence[Alarm],
) -> Tile:
    words, session, last_at = visit.words, entry.session, figures.last_at
    inside = [device for device in devices if device.session_id == session.id]
    silent = last_at is not None and visit.now - last_at > silent_after_s(None)
    if silent and last_at is not None and inside:
        silent = all(is_silent(device, last_at, visit.now) for device in inside)
    states = [
        (title_of(visit, alarm.rule), SIGNS[alarm.severity])
        for alarm in of_brew(alarms, session.id, inside)
        # How long it has been silent says more.
        if not (silent and alarm.rule == "silent")
    ][:SHOWN_ALARMS]
    if silent or not states:
        states.insert(0, _state(figures, words, visit.now, silent=silent))
    return Tile(
        name=name_of(entry),
        day=day_of(figures, session, words),
        gravity=words.gravity(figures.gravity.value if figures.gravity else None),
        temp=words.temp(figures.temp.value if figures.temp else None),
        ago=None if last_at is None else words.ago(last_at),
        is_old=silent,
        spark=charts.sparkline(_series(lines), words),
        facts=[
            (words.t("tv.abv"), str(words.percent(figures.abv, 1))),
            (words.t("tv.attenuation"), str(words.percent(figures.attenuation))),
            (words.t("tv.per_day"), words.rate(figures.per_day).number),
        ],
        states=states,
    )


def _state(figures: Figures, words: Words, now: float, *, silent: bool) -> tuple[str, str]:
    """Return the state of a brew as a word, and its kind."""
    if figures.last_at is None:
        return words.t("tv.state.none"), "quiet"
    if silent:
        return words.t("tv.state.silent", span=words.span(now - figures.last_at)), "bad"
    if figures.seems_done:
        return words.t("tv.state.done"), "good"
    if figures.insight.phase == "stuck":
        return words.t("ferment.phase.stuck"), "warn"
    return words.t("tv.state.well"), "good"


def _series(lines: list[Line]) -> Series:
    times = [at for line in lines for at in line.t] or [0]
    width = (max(times) - min(times)) // charts.BUCKETS["spark"]
    return Series(min(times), max(times), width, interval_of(lines), lines, [], [], None, None)


ROWS = (
    Row("GET", "/tv", show, "tv", "The running brews for a screen on the wall"),
    Row("GET", "/tv/brews", brews, "tv.brews", "The brews on the screen"),
    Row("GET", "/tv/{token}", show_link, "tv.link", "The same by a link, without a login", public=True),
    Row(
        "GET",
        "/tv/{token}/brews",
        brews_of_link,
        "tv.link.brews",
        "The brews on a link's screen",
        public=True,
    ),
    Row("GET", "/tv/{token}/events", events, "tv.link.events", "The stream of a link's brews", public=True),
)
"""The pages for a screen on the wall."""
