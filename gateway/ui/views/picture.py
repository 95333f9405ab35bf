"""Picture links: a brew's chart as an image for other pages, small screens and electronic paper."""

import asyncio
import hashlib
from collections import OrderedDict
from typing import NamedTuple

from aiohttp import hdrs, web

from gateway.domain.view_link import ViewLink
from gateway.errors import InvalidInput, NotFound
from gateway.services.series import Series
from gateway.ui.brew_words import name_of
from gateway.ui.charts.looks import PALETTES
from gateway.ui.charts.picture import Drawing, picture
from gateway.ui.pages import Answer, Row, Visit
from gateway.ui.views.link_viewer import viewer_of_link
from gateway.ui.words import DAY_S, Words

WIDTHS, HEIGHTS = (200, 2000), (120, 1200)
"""The least and the greatest width and height of a picture in pixels."""

USUAL = (800, 480)
"""Width and height of a picture that asks for none: those of many small screens."""

KEPT_S = 60
"""Seconds that others may keep a picture."""

DRAWING_S = 1.0
"""Seconds between two drawings for one link: who asks more often gets the last picture."""

KEPT_PICTURES = 32
KEPT_BYTES = 1024 * 1024
"""Pictures in memory at most, and their bytes together."""

TYPES = {"svg": "image/svg+xml", "png": "image/png"}


class Wanted(NamedTuple):
    """The picture that is asked for."""

    link_id: int
    suffix: str
    width: int
    height: int
    scheme: str


class Picture(NamedTuple):
    """A drawn picture: its bytes, its tag, and when it was drawn (seconds of the monotonic clock)."""

    data: bytes
    tag: str
    drawn_at: float


class Pictures:
    """The pictures drawn last, and a turn for each link, so that its pictures are drawn one by one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Wanted, Picture] = OrderedDict()
        self._turns: dict[int, asyncio.Lock] = {}

    async def get(self, visit: Visit, link: ViewLink, wanted: Wanted) -> Picture:
        """Return the picture, drawn anew if it has changed and the last drawing is a second ago."""
        async with self._turns.setdefault(link.id, asyncio.Lock()):
            now = visit.services.clock.monotonic()
            kept = self._kept.get(wanted)
            if kept is not None and now - kept.drawn_at < DRAWING_S:
                return kept
            times = [each.drawn_at for key, each in self._kept.items() if key.link_id == link.id]
            if times and now - max(times) < DRAWING_S:
                # Another size of the same link: it waits its second.
                await visit.services.clock.sleep(DRAWING_S - (now - max(times)))
            drawn = await _drawn(visit, link, wanted, kept)
            self._keep(wanted, drawn)
            return drawn

    def _keep(self, wanted: Wanted, drawn: Picture) -> None:
        self._kept[wanted] = drawn
        self._kept.move_to_end(wanted)
        while len(self._kept) > KEPT_PICTURES or self._bytes() > KEPT_BYTES:
            self._kept.popitem(last=False)

    def _bytes(self) -> int:
        return sum(len(each.data) for each in self._kept.values())


PICTURES = Pictures()


async def show(visit: Visit) -> Answer:
    """Answer with the picture of a link."""
    token, _, suffix = visit.path_text("file").rpartition(".")
    link = visit.services.links.find(token, "picture") if suffix in TYPES else None
    if link is None:
        raise NotFound(visit.t("picture.gone"))
    wanted = Wanted(
        link.id,
        suffix,
        _pixels(visit, "w", USUAL[0], WIDTHS),
        _pixels(visit, "h", USUAL[1], HEIGHTS),
        visit.query.get("scheme", "light"),
    )
    if wanted.scheme not in PALETTES:
        raise InvalidInput(visit.t("picture.scheme", known=", ".join(PALETTES)))
    found = await PICTURES.get(visit, link, wanted)
    headers = {
        hdrs.ETAG: found.tag,
        hdrs.CACHE_CONTROL: f"max-age={KEPT_S}",
        hdrs.CONTENT_TYPE: TYPES[suffix],
        # For pages of others: that is the purpose of the link.
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    if found.tag in visit.request.headers.get(hdrs.IF_NONE_MATCH, ""):
        return web.Response(status=304, headers=headers)
    return web.Response(body=found.data, headers=headers)


def _pixels(visit: Visit, name: str, usual: int, bounds: tuple[int, int]) -> int:
    text = visit.query.get(name, "")
    if not text:
        return usual
    if not text.isascii() or not text.isdigit() or not bounds[0] <= int(text[:6]) <= bounds[1]:
        raise InvalidInput(visit.t("picture.size", name=name, least=str(bounds[0]), most=str(bounds[1])))
    return int(text)


async def _drawn(visit: Visit, link: ViewLink, wanted: Wanted, kept: Picture | None) -> Picture:
    """Draw the picture, unless the kept one is of the same readings."""
    words = viewer_of_link(visit, link).words(visit.now)
    found = await visit.services.links.brews(link)
    now = visit.services.clock.monotonic()
    if not found:
        if link.session_id is not None:
            raise NotFound(visit.t("picture.gone"))
        nothing = Series(int(visit.now) - DAY_S, int(visit.now), 0, 0, [], [], [], None, None)
        drawing = Drawing(visit.services.page.brewery, visit.t("tv.none"), nothing, None)
        return await _rendered(drawing, words, wanted, _tag(wanted, "none"), now)
    session = found[0]
    figures = await visit.services.figures.of(session, words.zone)
    alarms = [mark.event_id for mark in await visit.services.series.alarms_of(session)]
    state = session.id, session.updated_at, figures, alarms, words.language, words.gravity_unit
    tag = _tag(wanted, repr(state))
    if kept is not None and kept.tag == tag:
        return Picture(kept.data, tag, now)
    series = await visit.services.series.of_session(session, points=max(10, wanted.width * 2 // 3))
    entry = await visit.store.sessions.entry(session.id)
    name = name_of(entry) if entry is not None else session.batchcode
    return await _rendered(Drawing(name, "", series, figures), words, wanted, tag, now)


async def _rendered(drawing: Drawing, words: Words, wanted: Wanted, tag: str, now: float) -> Picture:
    # In a thread, because a large PNG takes a tenth of a second, on a Pi more.
    data = await asyncio.to_thread(
        picture, drawing, words, wanted.width, wanted.height, wanted.scheme, wanted.suffix
    )
    return Picture(data, tag, now)


def _tag(wanted: Wanted, state: str) -> str:
    return f'"{hashlib.sha256(f"{wanted} {state}".encode()).hexdigest()[:24]}"'


ROWS = (Row("GET", "/picture/{file}", show, "picture", "A brew's chart as an image", public=True),)
