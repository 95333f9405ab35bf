"""Forms for a new brew, and for the next beer in a tank whose hydrometer stays."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gateway.domain.brewsession import PHASE_AFTER_FERMENTING, PHASES, BrewSession
from gateway.domain.device import Device
from gateway.domain.reading import Reading
from gateway.domain.texts import decimal_digits
from gateway.errors import NotFound
from gateway.services.brewsessions import SessionChange, local_day
from gateway.services.timeline import FUTURE_S
from gateway.store.queries import RecipeSearch
from gateway.ui.forms import Filled, Form, moment
from gateway.ui.pages import Answer, Moved, Page, Row, Visit
from gateway.ui.views.brew_edit import NAME_CHARACTERS, is_day
from gateway.ui.views.timeline import address_of, own_brew

RECIPES = 500
"""Recipes that the list of a form has at most, the newest first."""

LAST_READINGS = 12
"""Readings of the device among which one chooses the moment at which the new beer began."""

JUMP_SG = 0.01
"""A rise of gravity between two readings that looks like new wort: no beer ferments upwards."""


class NewForm(Form):
    """A new brew: from a recipe or with a name, with a device and its readings since a moment."""

    recipe: str = ""
    batchcode: str = ""
    userdate: str = ""
    device: str = ""
    since: str = ""
    phase: str = ""


class LastReading(NamedTuple):
    """A reading that can be chosen as the first of the new beer. `value` is Unix seconds."""

    value: str
    moment: str
    words: str
    device: str
    looks_new: bool


async def ask_new(visit: Visit) -> Page:
    """Show the form for a new brew; the address may name a recipe and a device."""
    at_first = {name: visit.query[name] for name in ("recipe", "device") if name in visit.query}
    return await _new_page(visit, Filled(at_first))


async def add(visit: Visit) -> Answer:
    """Make a new brew."""
    filled = visit.read(NewForm)
    given = _given(visit, filled)
    devices = {device.id: device for device in await _devices(visit)}
    since: float | None = None
    device = None
    form = filled.value
    if form is not None and form.device:
        device = devices.get(int(form.device)) if decimal_digits(form.device) else None
        if device is None:
            filled.wrong("device", "brew_new.wrong.device")
    if form is not None and form.since:
        try:
            since = moment(form.since, visit.viewer.zone)
            if since > visit.now + FUTURE_S:
                filled.wrong("since", "timeline.wrong.future")
        except ValueError as error:
            filled.wrong("since", str(error))
    if filled.value is None:
        return await _new_page(visit, filled)
    made = await visit.services.brewsessions.add_session(
        visit.viewer.account_id,
        await _checked_recipe(visit, given),
        device_id=None if device is None else device.id,
        since=None if device is None else since,
    )
    return Moved(address_of(visit, made.id), visit.t("brew_new.made", brew=made.batchcode))


async def ask_next(visit: Visit) -> Page:
    """Show the form for the next beer."""
    return await _next_page(visit, await own_brew(visit), Filled())


async def add_next(visit: Visit) -> Answer:
    """End a brew, and begin the next one with its devices."""
    old, filled = await own_brew(visit), visit.read(NewForm)
    given = _given(visit, filled)
    since: int | None = None
    form = filled.value
    if form is not None and form.since:
        if decimal_digits(form.since) and int(form.since) <= visit.now + FUTURE_S:
            since = int(form.since)
        else:
            filled.wrong("since", "brew_new.wrong.since")
    if form is None or filled.errors:
        return await _next_page(visit, old, filled)
    phase = form.phase[:NAME_CHARACTERS] or PHASE_AFTER_FERMENTING
    done = await visit.services.brewsessions.next_session(
        old, phase, await _checked_recipe(visit, given), since
    )
    notice = visit.t("brew_new.next_made", brew=done.session.batchcode, old=old.batchcode)
    return Moved(address_of(visit, done.session.id), notice)


def _given(visit: Visit, filled: Filled[NewForm]) -> SessionChange:
    """Return what was typed as members of the new brew, after noting what is wrong."""
    form = filled.value
    if form is None:
        return SessionChange()
    recipe_id = int(form.recipe) if decimal_digits(form.recipe) else None
    if not recipe_id and not form.batchcode:
        filled.wrong("batchcode", "brew_new.wrong.no_name")
    if len(form.batchcode) > NAME_CHARACTERS:
        filled.wrong("batchcode", "form.long")
    if form.userdate and not is_day(form.userdate):
        filled.wrong("userdate", "brew_edit.wrong.day")
    return SessionChange(
        recipe_id=recipe_id, batchcode=form.batchcode or None, userdate=form.userdate or None
    )


async def _checked_recipe(visit: Visit, given: SessionChange) -> SessionChange:
    """Return the members as they are; `NotFound` in the viewer's words if there is no such recipe."""
    recipe = await visit.store.recipes.get(given.recipe_id) if given.recipe_id else None
    if given.recipe_id and (recipe is None or recipe.account_id != visit.viewer.account_id):
        raise NotFound(visit.t("brew_new.no_recipe"))
    return given


async def _devices(visit: Visit) -> Sequence[Device]:
    """Return the devices that the viewer may put into a brew: all of the owner's, else none."""
    return await visit.store.devices.all() if visit.viewer.is_owner else ()


async def _new_page(visit: Visit, filled: Filled[NewForm]) -> Page:
    brews = {session.id: session.batchcode for session in await visit.store.sessions.all()}
    devices = [
        (str(device.id), visit.t("brew_new.device.in", device=device.title, brew=brews[device.session_id]))
        if device.session_id in brews
        else (str(device.id), device.title)
        for device in await _devices(visit)
    ]
    values = {
        **await _common(visit, filled),
        "devices": [("", visit.t("brew_new.device.none")), *devices] if devices else [],
        "action": visit.url("brews.new"),
        "back": visit.url("brews") if visit.has("brews") else visit.url("more"),
    }
    title = visit.t("brew_new.title")
    return Page("brew_new.html", title, values, menu="brews", status=422 if filled.errors else 200)


async def _next_page(visit: Visit, old: BrewSession, filled: Filled[NewForm]) -> Page:
    readings = _choices(visit, await visit.services.brewsessions.last_readings(old, LAST_READINGS))
    likely = next((reading.value for reading in readings if reading.looks_new), "")
    values = {
        **await _common(visit, filled),
        "old": old.batchcode,
        "phase": PHASE_AFTER_FERMENTING,
        "phases": PHASES,
        "readings": readings,
        "is_sent": any(each.sent for each in await visit.services.sending.sending_of(old)),
        "chosen": filled.given.get("since", likely),
        "action": visit.url("brew.next", id=old.id),
        "back": address_of(visit, old.id),
    }
    title = visit.t("brew_new.next_title", brew=old.batchcode)
    return Page("brew_next.html", title, values, menu="brews", status=422 if filled.errors else 200)


async def _common(visit: Visit, filled: Filled[NewForm]) -> Mapping[str, Any]:
    """Return what both forms need."""
    search = RecipeSearch(account_id=visit.viewer.account_id, limit=RECIPES, whole=False)
    _, recipes = await visit.store.recipes.search(search)
    titles = [(str(recipe.id), recipe.content.title) for recipe in recipes]
    return {
        "filled": filled,
        "recipes": [("", visit.t("brew_new.recipe.none")), *titles] if titles else [],
        "today": local_day(visit.now),
    }


def _choices(visit: Visit, found: Sequence[tuple[Device, Reading]]) -> list[LastReading]:
    """Return the last readings, newest first, and mark the newest that looks like the first of a new beer."""
    words, choices = visit.words, []
    several = len({device.id for device, _ in found}) > 1
    marked = False
    for place, (device, reading) in enumerate(found):
        before = next((r.sg for d, r in found[place + 1 :] if d.id == device.id and r.sg is not None), None)
        looks_new = (
            not marked and reading.sg is not None and before is not None and reading.sg - before > JUMP_SG
        )
        marked = marked or looks_new
        values = [str(words.gravity(reading.sg))] if reading.sg is not None else []
        values += [str(words.temp(reading.celsius))] if reading.celsius is not None else []
        choices.append(
            LastReading(
                value=str(reading.created_at),
                moment=words.moment(reading.created_at),
                words=", ".join(values),
                device=device.title if several else "",
                looks_new=looks_new,
            )
        )
    return choices


ROWS = (
    Row("GET", "/brews/new", ask_new, "brews.new", "The form for a new brew", scope="admin"),
    Row("POST", "/brews/new", add, "brews.add", "Make a brew", scope="admin"),
    Row("GET", "/brews/{id}/next", ask_next, "brew.next", "The form for the next beer", scope="admin"),
    Row("POST", "/brews/{id}/next", add_next, "brew.next.add", "Begin the next beer", scope="admin"),
)
