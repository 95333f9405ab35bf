"""The time line of a brew: what happened in it, newest first, and the page that shows all of it."""

from functools import partial
from typing import NamedTuple

from gateway.domain.brew_event import HAND_READING, BrewEvent
from gateway.domain.brewsession import BrewSession
from gateway.domain.texts import decimal_digits
from gateway.errors import NotFound
from gateway.services.series import AlarmMark
from gateway.services.timeline import WITH_AMOUNT
from gateway.ui.charts.plot import anchor_of
from gateway.ui.pages import Page, Part, Row, Visit

SHOWN = 20
"""Events on the page of a brew; the others are behind a link."""

PAGE = 100
"""Events on a page of all."""

SEPARATOR = ", "


class Entry(NamedTuple):
    """An entry of the time line: its mark as in the chart, and links for who may change it."""

    anchor: str
    at: int
    mark: str
    is_ring: bool
    is_quiet: bool
    title: str
    detail: str
    text: str
    moment: str
    author: str
    edit: str
    delete: str
    photo: str = ""
    is_english: bool = False


async def own_brew(visit: Visit) -> BrewSession:
    """Return the brew that the path names; `NotFound` if the viewer's account has none with that id."""
    number = visit.path_id("id")
    session = await visit.store.sessions.get(number)
    if session is None or session.account_id != visit.viewer.account_id:
        raise NotFound(visit.t("timeline.no_brew", id=str(number)))
    return session


def address_of(visit: Visit, session_id: int) -> str:
    """Return the address of a brew's page."""
    return visit.url("brew" if visit.has("brew") else "brew.events", id=session_id)


async def part(visit: Visit) -> Part:
    """Show the newest events of a brew."""
    session = await own_brew(visit)
    entries = await _entries(visit, session)
    values = {
        "id": session.id,
        "entries": entries[:SHOWN],
        "more": visit.t("timeline.more", n=len(entries)) if len(entries) > SHOWN else "",
    }
    return Part("parts/timeline.html", (f"brew:{session.id}",), values)


async def show(visit: Visit) -> Page:
    """Show all events of a brew, a page at a time."""
    session = await own_brew(visit)
    entries = await _entries(visit, session)
    asked = visit.query.get("page", "")
    page = max(1, int(asked)) if decimal_digits(asked) else 1
    first = (page - 1) * PAGE
    values = {
        "id": session.id,
        "entries": entries[first : first + PAGE],
        "newer": visit.url("brew.events", {"page": page - 1}, id=session.id) if page > 1 else "",
        "older": visit.url("brew.events", {"page": page + 1}, id=session.id)
        if first + PAGE < len(entries)
        else "",
        "back": address_of(visit, session.id),
        "brew": session.batchcode,
    }
    title = visit.t("timeline.title_of", brew=session.batchcode)
    return Page("brew_events.html", title, values, menu="brews")


async def _entries(visit: Visit, session: BrewSession) -> list[Entry]:
    """Return all that happened in a brew, newest first: events, and alarms that fired."""
    entries = [entry_of(visit, event) for event in await visit.services.timeline.events(session)]
    entries += [_alarm(visit, mark) for mark in await visit.services.series.alarms_of(session)]
    return sorted(entries, key=lambda entry: -entry.at)


def _alarm(visit: Visit, mark: AlarmMark) -> Entry:
    return Entry(
        anchor=anchor_of(mark),
        at=mark.at,
        mark=visit.t("chart.letter.alarm"),
        is_ring=False,
        is_quiet=False,
        title=visit.t("alarms.chart", title=visit.t(f"alarms.rule.{mark.rule}")),
        detail="",
        text=mark.text,
        moment=visit.words.moment(mark.at),
        author="",
        edit="",
        delete="",
        is_english=True,
    )


def entry_of(visit: Visit, event: BrewEvent) -> Entry:
    """Return an event as the time line shows it."""
    address = partial(visit.url, id=event.session_id, event=event.id)
    changeable = event.is_by_hand and visit.viewer.may_change
    return Entry(
        anchor=f"event-{event.id}",
        at=event.at,
        mark=visit.t(f"chart.letter.{event.kind}"),
        is_ring=event.kind == HAND_READING,
        is_quiet=not event.is_by_hand,
        title=visit.t(f"chart.event.{event.kind}"),
        detail=_detail(visit, event),
        text="" if event.kind in WITH_AMOUNT else event.text,
        moment=visit.words.moment(event.at),
        author=event.author,
        edit=address("brew.event") if changeable and event.kind != "photo" else "",
        delete=address("brew.event.ask_delete") if changeable else "",
        photo=visit.url("brew.photo", id=event.session_id, uuid=event.facts.get("uuid", ""))
        if event.kind == "photo"
        else "",
    )


def _detail(visit: Visit, event: BrewEvent) -> str:
    """Return the facts of an event in words: the measured values, the amount, the device, the phase."""
    facts, words = event.facts, visit.words
    if event.kind == HAND_READING:
        measured = [str(words.gravity(event.sg))] if event.sg is not None else []
        measured += [str(words.temp(event.celsius))] if event.celsius is not None else []
        return SEPARATOR.join([*measured, str(facts.get("instrument", ""))]).removesuffix(SEPARATOR)
    if event.kind in {"device_in", "device_out"}:
        came = facts.get("readings")
        name = str(facts.get("name", ""))
        return SEPARATOR.join([name, visit.t("timeline.came", n=came)]) if came else name
    if event.kind in WITH_AMOUNT:
        return SEPARATOR.join(filter(None, (event.text, str(facts.get("amount", "")))))
    return str(facts.get("phase", ""))


ROWS = (
    Row("GET", "/brews/{id}/timeline", part, "brew.timeline", "The newest events of a brew"),
    Row("GET", "/brews/{id}/events", show, "brew.events", "All events of a brew"),
)
