"""Forms about one brew as a whole: its original gravity, its end, its name, phase and notes."""

from datetime import date
from typing import Annotated

from gateway.domain.audit import current_actor
from gateway.domain.brewsession import PHASE_AFTER_FERMENTING, PHASES, BrewSession
from gateway.domain.texts import decimal_digits
from gateway.domain.units import TYPICAL_SG
from gateway.services.brewsessions import NOTES_CHARACTERS, SessionChange
from gateway.ui.alarm_words import ASKS, SEEN, own_alarms
from gateway.ui.forms import Filled, Form, at_most, gravity
from gateway.ui.pages import Answer, Moved, Page, Row, Visit
from gateway.ui.views.timeline import address_of, own_brew

NUMBER_DIGITS = 12
"""Digits that the id of a device is shorter than."""

NAME_CHARACTERS = 100
"""Characters of a brew's name, or of a phase, that a form takes."""


class OriginalForm(Form):
    """The original gravity; empty takes it back."""

    og: str = ""
    og_unit: str = "SG"


class DoneForm(Form):
    """The answer to the question whether a brew is done: `yes`, `not_yet`, or `back` to take it back."""

    answer: str = "yes"
    phase: str = ""


class EditForm(Form):
    """Name, brewing day, phase and notes of a brew."""

    batchcode: Annotated[str, at_most(NAME_CHARACTERS)]
    phase: Annotated[str, at_most(NAME_CHARACTERS)]
    userdate: str = ""
    notes: Annotated[str, at_most(NOTES_CHARACTERS)] = ""
    send_notes: str = ""
    lead: str | None = None


class SugarForm(Form):
    """The answer to the question whether sugar was added: `yes` or `no`."""

    answer: str = "no"


async def ask_original(visit: Visit) -> Page:
    """Show the form for the original gravity."""
    session = await own_brew(visit)
    at_first = {"og": session.og or ""}
    if session.og:
        at_first["og_unit"] = "P" if session.og_unit == "P" else "SG"
    return await _original_page(visit, session, Filled(at_first))


async def set_original(visit: Visit) -> Answer:
    """Set the original gravity, or take it back."""
    session, filled = await own_brew(visit), visit.read(OriginalForm)
    change = SessionChange(og="")
    if filled.value is not None and filled.value.og:
        try:
            typed = gravity(filled.value.og, filled.value.og_unit)
            change = SessionChange(og=typed.text, og_unit=typed.unit)
            if not TYPICAL_SG[0] <= typed.sg <= TYPICAL_SG[1]:
                filled.wrong("og", "brew_edit.wrong.og")
        except ValueError as error:
            filled.wrong("og", str(error))
    if filled.value is None:
        return await _original_page(visit, session, filled)
    await visit.services.brewsessions.update_session(session, change)
    notice = "brew_edit.og.done" if change.og else "brew_edit.og.taken_back"
    return Moved(address_of(visit, session.id), visit.t(notice, brew=session.batchcode))


async def _original_page(visit: Visit, session: BrewSession, filled: Filled[OriginalForm]) -> Page:
    figures = await visit.services.figures.of(session)
    measured = figures.original if figures.original and figures.original.origin != "hand" else None
    values = {
        "filled": filled,
        "measured": visit.t("brew_edit.og.measured", og=str(visit.words.gravity(measured.sg)))
        if measured
        else "",
        "is_set": session.og is not None,
        "action": visit.url("brew.og", id=session.id),
        "back": address_of(visit, session.id),
    }
    title = visit.t("brew_edit.og.title", brew=session.batchcode)
    return Page("brew_og.html", title, values, menu="brews", status=422 if filled.errors else 200)


async def ask_done(visit: Visit) -> Page:
    """Ask whether a brew is done, or show that it is."""
    session = await own_brew(visit)
    inside = [device.title for device in await visit.store.devices.all() if device.session_id == session.id]
    ended_at = session.ended_at
    values = {
        "action": visit.url("brew.done", id=session.id),
        "phase": PHASE_AFTER_FERMENTING,
        "phases": PHASES,
        "frees": visit.t("brew_edit.done.frees", devices=", ".join(inside)) if inside else "",
        "ended": "" if ended_at is None else visit.t("brew_edit.done.since", at=visit.words.moment(ended_at)),
        "back": address_of(visit, session.id),
    }
    title = "brew_edit.done.title" if ended_at is None else "brew_edit.done.title_ended"
    return Page("brew_done.html", visit.t(title, brew=session.batchcode), values, menu="brews")


async def answer_done(visit: Visit) -> Moved:
    """End a brew, take that back, or remember that it is not done yet."""
    session, given = await own_brew(visit), visit.read(DoneForm).value or DoneForm()
    brews = visit.services.brewsessions
    if given.answer == "not_yet":
        await brews.not_yet(session)
        # The question is answered: nobody is reminded of it.
        for alarm in own_alarms(visit, SEEN):
            if alarm.rule in ASKS and alarm.subject == str(session.id):
                await visit.services.alarms.acknowledge(alarm.id, current_actor().name, session.account_id)
        notice = "brew_edit.done.not_yet"
    elif given.answer == "back":
        await brews.update_session(session, SessionChange(ended=False))
        notice = "brew_edit.done.taken_back"
    else:
        phase = given.phase[:NAME_CHARACTERS] or None
        await brews.update_session(session, SessionChange(ended=True, phase=phase))
        notice = "brew_edit.done.done"
    return Moved(address_of(visit, session.id), visit.t(notice, brew=session.batchcode))


async def answer_sugar(visit: Visit) -> Moved:
    """Keep the answer whether a rise of gravity was sugar."""
    session, given = await own_brew(visit), visit.read(SugarForm).value or SugarForm()
    rise = (await visit.services.insight.of(session)).rise
    if rise is None:  # answered before, or in another window
        return Moved(address_of(visit, session.id))
    sugar = given.answer == "yes"
    await visit.services.timeline.answer_rise(session, rise, sugar=sugar, author=visit.viewer.key_name)
    notice = "brew_edit.sugar.done" if sugar else "brew_edit.sugar.none"
    return Moved(address_of(visit, session.id), visit.t(notice))


async def ask_edit(visit: Visit) -> Page:
    """Show the form with name, phase, brewing day and notes."""
    return await _edit_page(visit, await own_brew(visit), Filled())


async def edit(visit: Visit) -> Answer:
    """Write name, phase, brewing day and notes."""
    session, filled = await own_brew(visit), visit.read(EditForm)
    form = filled.value
    if form is not None and form.userdate and not is_day(form.userdate):
        filled.wrong("userdate", "brew_edit.wrong.day")
    if form is None or filled.errors:
        return await _edit_page(visit, session, filled)
    lead = None
    if form.lead is not None:
        lead = int(form.lead) if decimal_digits(form.lead) and len(form.lead) < NUMBER_DIGITS else 0
    change = SessionChange(
        batchcode=form.batchcode,
        phase=form.phase,
        userdate=form.userdate or None,
        notes=form.notes,
        send_notes=bool(form.send_notes),
        lead_device=lead,
    )
    changed = await visit.services.brewsessions.update_session(session, change)
    return Moved(address_of(visit, session.id), visit.t("brew_edit.done_edit", brew=changed.batchcode))


async def _edit_page(visit: Visit, session: BrewSession, filled: Filled[EditForm]) -> Page:
    targets = []
    if visit.viewer.is_owner and visit.has("sending.number"):
        at = {each.target: each for each in await visit.services.sending.sending_of(session)}
        targets = [
            (
                target.name,
                _number(visit, at[target.name].number if target.name in at else None),
                visit.url("sending.number", name=target.name, id=session.id),
            )
            for target in await visit.store.targets.all()
        ]
    values = {
        "filled": filled,
        "session": session,
        "phases": PHASES,
        "targets": targets,
        "leads": await _leads(visit, session),
        "action": visit.url("brew.edit", id=session.id),
        "back": address_of(visit, session.id),
    }
    title = visit.t("brew_edit.title", brew=session.batchcode)
    return Page("brew_edit.html", title, values, menu="brews", status=422 if filled.errors else 200)


async def _leads(visit: Visit, session: BrewSession) -> list[tuple[str, str]]:
    """Return the choices of the device whose gravity the figures follow; none for a single device."""
    devices = {
        device.id: device.title
        for device in await visit.store.devices.all()
        if device.session_id == session.id
    }
    for event in await visit.services.timeline.events(session):
        if event.kind == "device_in" and event.facts.get("readings"):
            devices.setdefault(int(event.facts["device_id"]), str(event.facts.get("name", "")))
    if session.lead_device is not None:
        devices.setdefault(session.lead_device, f"#{session.lead_device}")
    if len(devices) < 2:
        return []
    return [
        ("0", visit.t("brew_edit.lead.auto")),
        *((str(number), title) for number, title in devices.items()),
    ]


def _number(visit: Visit, number: int | None) -> str:
    if number is None:
        return visit.t("brew_edit.target.none")
    return visit.t("brew_edit.target.number", number=str(number))


def is_day(text: str) -> bool:
    """Return whether the text is a day of the calendar, YYYY-MM-DD."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


ROWS = (
    Row("GET", "/brews/{id}/og", ask_original, "brew.og", "The form for the original gravity", scope="admin"),
    Row("POST", "/brews/{id}/og", set_original, "brew.og.set", "Set the original gravity", scope="admin"),
    Row("GET", "/brews/{id}/done", ask_done, "brew.done", "Ask whether a brew is done", scope="admin"),
    Row("POST", "/brews/{id}/done", answer_done, "brew.done.answer", "End a brew or not", scope="admin"),
    Row("POST", "/brews/{id}/sugar", answer_sugar, "brew.sugar", "Say what made gravity rise", scope="admin"),
    Row("GET", "/brews/{id}/edit", ask_edit, "brew.edit", "Name, phase and notes of a brew", scope="admin"),
    Row("POST", "/brews/{id}/edit", edit, "brew.edit.save", "Change a brew", scope="admin"),
)
