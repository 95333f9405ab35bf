"""Forms of the time line: a note, a hop addition, a reading by hand; change and delete them."""

from collections.abc import Mapping
from typing import Annotated, Any

from gateway.domain.brew_event import HAND_READING, BrewEvent
from gateway.domain.brewsession import BrewSession
from gateway.domain.texts import LABEL_CHARACTERS
from gateway.domain.units import to_celsius
from gateway.errors import AlreadySent, NotFound
from gateway.http.middleware import peer_of
from gateway.services.timeline import (
    EVENT_CHARACTERS,
    FUTURE_S,
    PLAUSIBLE_C,
    TYPED_KINDS,
    WITH_AMOUNT,
    EventContent,
)
from gateway.ui.forms import Filled, Form, at_most, decimal, gravity, local_input, moment
from gateway.ui.pages import Answer, Moved, Page, Row, Visit
from gateway.ui.views.timeline import address_of, own_brew

WRITTEN_KINDS = tuple(kind for kind in TYPED_KINDS if kind != HAND_READING)
"""Kinds of the form for notes; a reading has a form of its own."""

DIGITS = 12
"""Digits of a time (Unix seconds) at most."""


class EventForm(Form):
    """An event as it was typed. `send` is the answer what to do with a reading that was sent already.

    `opened` is the time (Unix seconds) at which the form of a new event was opened.
    """

    at: str
    opened: str = ""
    text: Annotated[str, at_most(EVENT_CHARACTERS)] = ""
    amount: Annotated[str, at_most(LABEL_CHARACTERS)] = ""
    gravity: str = ""
    gravity_unit: str = "SG"
    temp: str = ""
    temp_unit: str = "C"
    instrument: Annotated[str, at_most(LABEL_CHARACTERS)] = ""
    send: str = ""


async def ask_note(visit: Visit) -> Page:
    """Show the form for a note or another event, of the kind that the address names."""
    kind = visit.query.get("kind", "note")
    if kind not in WRITTEN_KINDS:
        raise NotFound(visit.t("timeline.no_kind"))
    return _form(visit, await own_brew(visit), kind, Filled())


async def ask_hand(visit: Visit) -> Page:
    """Show the form for a reading by hand."""
    return _form(visit, await own_brew(visit), HAND_READING, Filled())


async def add_note(visit: Visit) -> Answer:
    """Add a note or another event."""
    kind = visit.fields.get("kind", "note")
    return await _add(visit, kind if kind in WRITTEN_KINDS else "note")


async def add_hand(visit: Visit) -> Answer:
    """Add a reading by hand."""
    return await _add(visit, HAND_READING)


async def _add(visit: Visit, kind: str) -> Answer:
    session, filled = await own_brew(visit), visit.read(EventForm)
    given = _given(visit, kind, filled)
    if given is None:
        return _form(visit, session, kind, filled)
    opened = filled.given.get("opened", "")
    if opened.isdecimal() and len(opened) <= DIGITS and int(opened) // 60 == given["at"] // 60:
        # The field has no seconds, and a reading by hand must not fall behind one of the same minute.
        given["at"] = int(opened)
    content = EventContent(kind, **given)
    author = visit.viewer.key_name
    await visit.services.timeline.add(session, content, author, peer_of(visit.request).address)
    return Moved(address_of(visit, session.id), visit.t("timeline.added", kind=_name(visit, kind)))


async def ask_change(visit: Visit) -> Page:
    """Show an event in its form."""
    session, event = await _own_event(visit)
    facts = event.facts
    at_first = {
        "at": local_input(event.at, visit.viewer.zone),
        "text": event.text,
        "amount": facts.get("amount", ""),
        "gravity": facts.get("gravity", ""),
        "gravity_unit": "P" if facts.get("gravity_unit") == "P" else "SG",
        "temp": facts.get("temp", ""),
        "temp_unit": facts.get("temp_unit", visit.viewer.temp_unit),
        "instrument": facts.get("instrument", ""),
    }
    return _form(visit, session, event.kind, Filled(at_first), event)


async def change(visit: Visit) -> Answer:
    """Write the changes of an event."""
    session, event = await _own_event(visit)
    filled = visit.read(EventForm)
    given = _given(visit, event.kind, filled)
    if given is None:
        return _form(visit, session, event.kind, filled, event)
    if given["at"] // 60 == event.at // 60:
        # The field has no seconds, and a reading must not move because somebody mended a word.
        given = {**given, "at": event.at}
    send = filled.value.send if filled.value else ""
    again = {"again": True, "here": False}.get(send)
    try:
        await visit.services.timeline.change(session, event.id, given, send_again=again)
    except AlreadySent:
        filled.wrong("", "timeline.wrong.sent")
        _, event = await _own_event(visit)
        return _form(visit, session, event.kind, filled, event)
    notice = "timeline.sent_again" if again and event.was_sent else "timeline.changed"
    return Moved(address_of(visit, session.id), visit.t(notice, kind=_name(visit, event.kind)))


async def ask_delete(visit: Visit) -> Page:
    """Ask before an event is deleted."""
    session, event = await _own_event(visit)
    name = _name(visit, event.kind)
    when = visit.words.moment(event.at)
    explain = [visit.t("timeline.delete.reading")] if event.kind == HAND_READING else []
    explain += [visit.t("timeline.delete.stays")] if event.was_sent else []
    values = {
        "question": visit.t("timeline.delete.question", kind=name, when=when, brew=session.batchcode),
        "explain": " ".join(explain),
        "action": visit.url("brew.event.delete", id=session.id, event=event.id),
        "button": visit.t("timeline.delete.button"),
        "back": address_of(visit, session.id),
    }
    return Page("confirm.html", visit.t("timeline.delete.title", kind=name), values, menu="brews")


async def delete(visit: Visit) -> Moved:
    """Delete an event."""
    session, event = await _own_event(visit)
    await visit.services.timeline.remove(session, event.id)
    notice = "timeline.delete.done_stays" if event.was_sent else "timeline.delete.done"
    return Moved(address_of(visit, session.id), visit.t(notice, kind=_name(visit, event.kind)))


def _given(visit: Visit, kind: str, filled: Filled[EventForm]) -> dict[str, Any] | None:
    """Return what was typed as members of an `EventContent`; None after noting what is wrong."""
    form = filled.value
    if form is None:
        return None
    given: dict[str, Any] = {"text": form.text}
    try:
        given["at"] = moment(form.at, visit.viewer.zone)
        if given["at"] > visit.now + FUTURE_S:
            filled.wrong("at", "timeline.wrong.future")
    except ValueError as error:
        filled.wrong("at", str(error))
    if kind == "note" and not form.text:
        filled.wrong("text", "timeline.wrong.no_text")
    if kind in WITH_AMOUNT:
        given["amount"] = form.amount
        if not form.text and not form.amount:
            filled.wrong("text", "timeline.wrong.nothing_added")
    if kind == HAND_READING:
        given |= _measured(visit, form, filled)
    return None if filled.errors else given


def _measured(visit: Visit, form: EventForm, filled: Filled[EventForm]) -> dict[str, str]:
    """Return the members of a reading by hand."""
    measured = {"gravity": "", "temp": "", "temp_unit": "F" if form.temp_unit == "F" else "C"}
    measured["instrument"] = form.instrument or visit.t("timeline.instrument")
    if not form.gravity and not form.temp:
        filled.wrong("gravity", "timeline.wrong.nothing_measured")
    try:
        if form.gravity:
            typed = gravity(form.gravity, form.gravity_unit)
            measured |= {"gravity": typed.text, "gravity_unit": typed.unit}
    except ValueError as error:
        filled.wrong("gravity", str(error))
    try:
        if form.temp:
            value = to_celsius(decimal(form.temp), measured["temp_unit"])
            measured["temp"] = form.temp.replace(",", ".").replace("\u2212", "-").lstrip("+")
            if not PLAUSIBLE_C[0] <= value <= PLAUSIBLE_C[1]:
                filled.wrong("temp", "timeline.wrong.temp")
    except ValueError as error:
        filled.wrong("temp", str(error))
    return measured


def _form(
    visit: Visit, session: BrewSession, kind: str, filled: Filled[EventForm], event: BrewEvent | None = None
) -> Page:
    """Return the page with the form of an event; `event` is the one that is changed."""
    name = _name(visit, kind)
    kinds = [
        (visit.url("brew.note", {"kind": each}, id=session.id), _name(visit, each), each == kind)
        for each in WRITTEN_KINDS
    ]
    kinds.append((visit.url("brew.hand", id=session.id), _name(visit, HAND_READING), kind == HAND_READING))
    post = "brew.hand.add" if kind == HAND_READING else "brew.note.add"
    values: Mapping[str, Any] = {
        "filled": filled,
        "kind": kind,
        "kinds": [] if event else kinds,
        "brew": session.batchcode,
        "default_at": local_input(visit.now, visit.viewer.zone),
        "opened": "" if event else int(visit.now),
        "temp_unit": filled.given.get("temp_unit") or visit.viewer.temp_unit,
        "instruments": (visit.t("timeline.instrument"), visit.t("timeline.refractometer")),
        "has_amount": kind in WITH_AMOUNT,
        "is_reading": kind == HAND_READING,
        "was_sent": event is not None and event.was_sent,
        "sends_notes": kind == "note" and session.send_notes and event is None,
        "action": visit.url("brew.event.save", id=session.id, event=event.id)
        if event
        else visit.url(post, id=session.id),
        "back": address_of(visit, session.id),
    }
    title = visit.t("timeline.change", kind=name) if event else name
    return Page("brew_event.html", title, values, menu="brews", status=422 if filled.errors else 200)


async def _own_event(visit: Visit) -> tuple[BrewSession, BrewEvent]:
    """Return the brew and the event by hand that the path names."""
    session = await own_brew(visit)
    event = await visit.store.events.get(session.id, visit.path_id("event"))
    if event is None or not event.is_by_hand:
        raise NotFound(visit.t("timeline.no_event"))
    return session, event


def _name(visit: Visit, kind: str) -> str:
    return visit.t("timeline.hand" if kind == HAND_READING else f"chart.event.{kind}")


EVENT = "/brews/{id}/events/{event}"

ROWS = (
    Row("GET", "/brews/{id}/note", ask_note, "brew.note", "The form for a note", scope="admin"),
    Row("POST", "/brews/{id}/note", add_note, "brew.note.add", "Add a note", scope="admin"),
    Row("GET", "/brews/{id}/hand", ask_hand, "brew.hand", "The form for a reading by hand", scope="admin"),
    Row("POST", "/brews/{id}/hand", add_hand, "brew.hand.add", "Add a reading by hand", scope="admin"),
    Row("GET", EVENT, ask_change, "brew.event", "An event in its form", scope="admin"),
    Row("POST", EVENT, change, "brew.event.save", "Change an event", scope="admin"),
    Row("GET", f"{EVENT}/delete", ask_delete, "brew.event.ask_delete", "Ask before deleting", scope="admin"),
    Row("POST", f"{EVENT}/delete", delete, "brew.event.delete", "Delete an event", scope="admin"),
)
