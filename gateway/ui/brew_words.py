"""The figures of a brew in the viewer's words and units."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gateway.domain.brewsession import BrewSession, SessionEntry
from gateway.domain.device import Device
from gateway.errors import NotFound
from gateway.insight.silence import silent_after_s
from gateway.services.figures import BY_HAND, ESTIMATED, Figures, Latest
from gateway.ui.fermentation import Fermentation, fermentation_of
from gateway.ui.pages import Visit
from gateway.ui.words import Ago, Quantity, Words

USUAL_INTERVAL_S = 900
"""Seconds between two reports of a device that does not tell its interval: what most are set to."""

OLD_S = 86_400
"""Seconds after which a value is old that no device in the brew has reported."""

MEASURED_MARK = "*"
"""Stands behind an original gravity that nobody typed."""


class Shown(NamedTuple):
    """A value with its age. `origin` is a word if a person measured it; `old` greys it."""

    quantity: Quantity
    ago: Ago | None
    origin: str
    old: bool


class ShownFigures(NamedTuple):
    """The figures of a brew. `og_origin` says in words where `og` comes from; both are empty without one.

    `question` asks whether the brew is done; empty if there is nothing to ask.
    """

    gravity: Shown
    temp: Shown
    has_gravity: bool
    og: str
    og_origin: str
    final: str
    abv: Quantity
    attenuation: Quantity
    per_day: Quantity
    day: str
    question: str
    news: str
    og_note: str
    ferment: Fermentation


def shown_figures(
    figures: Figures, session: BrewSession, words: Words, *, now: float, devices: Iterable[Device] = ()
) -> ShownFigures:
    """Return the figures in words; `devices` are those in the brew, which make a silent one show."""
    inside = list(devices)
    still, original = figures.still_since, figures.original
    asked = ""
    gravity = words.gravity(figures.gravity.value if figures.gravity else None)
    temp = words.temp(figures.temp.value if figures.temp else None)
    if still is not None and figures.seems_done and session.may_be_asked(now):
        asked = words.t("brew.ask", gravity=str(gravity), span=words.span(now - still))
    og = origin = ""
    if original is not None:
        by_hand = original.origin == BY_HAND
        og = f"{words.gravity(original.sg).number}{'' if by_hand else MEASURED_MARK}"
        origin = words.t(f"brew.og.{original.origin}")
    return ShownFigures(
        gravity=_shown(figures.gravity, gravity, inside, words, now),
        temp=_shown(figures.temp, temp, inside, words, now),
        has_gravity=figures.gravity is not None,
        og=og,
        og_origin=origin,
        final="" if figures.final is None else str(words.gravity(figures.final)),
        abv=words.percent(figures.abv, 1),
        attenuation=words.percent(figures.attenuation),
        per_day=words.rate(figures.per_day),
        day=day_of(figures, session, words),
        question=asked,
        news=str(gravity) if figures.gravity else "",
        og_note=words.t("brew.og.estimated") if original and original.origin == ESTIMATED else "",
        ferment=fermentation_of(figures, session, words, now),
    )


def day_of(figures: Figures, session: BrewSession, words: Words) -> str:
    """Return the brew's day in words, or how many days it took."""
    if figures.day is None:
        return ""
    return words.t("brew.took" if session.ended_at is not None else "brew.day", n=figures.day)


def _shown(
    latest: Latest | None, quantity: Quantity, devices: list[Device], words: Words, now: float
) -> Shown:
    if latest is None:
        return Shown(quantity, None, "", old=False)
    source = next((device for device in devices if device.id == latest.device_id), None)
    old = is_silent(source, latest.at, now) if source is not None else now - latest.at > OLD_S
    return Shown(quantity, words.ago(latest.at), words.t("brew.by_hand") if latest.by_hand else "", old)


def is_silent(device: Device, last_at: int, now: float) -> bool:
    """Return whether a device has not reported for much longer than it usually does."""
    return now - last_at > silent_after_s(device.settings.interval_s or device.interval_s)


def name_of(entry: SessionEntry) -> str:
    """Return the name of a brew: its batch code, and the title of its recipe."""
    return " ".join(part for part in (entry.session.batchcode, entry.recipe_title) if part)


def link(visit: Visit, page: str, query: Mapping[str, Any] | None = None, **ids: Any) -> str:
    """Return the address of a page, empty if there is no such page."""
    return visit.url(page, query, **ids) if visit.has(page) else ""


async def own_brew(visit: Visit) -> SessionEntry:
    """Return the brew that the path names; `NotFound` if the viewer's account has none with that id."""
    number = visit.path_id("id")
    entry = await visit.store.sessions.entry(number)
    if entry is None or entry.session.account_id != visit.viewer.account_id:
        raise NotFound(visit.t("brew.none", id=str(number)))
    return entry
