"""The first page: brews that run, devices in no brew, finished brews."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from gateway.domain.alarm import Alarm
from gateway.domain.brewsession import SessionEntry
from gateway.domain.device import Device
from gateway.domain.progress import no_progress
from gateway.domain.texts import decimal_digits
from gateway.errors import Forbidden, NameTaken, NotFound
from gateway.services.alarm_subjects import of_brew
from gateway.services.figures import Figures
from gateway.services.series import Line, Series
from gateway.ui import charts
from gateway.ui.alarm_words import SEEN, ShownAlarm, one, own_alarms
from gateway.ui.brew_words import ShownFigures, is_silent, link, name_of, shown_figures
from gateway.ui.forms import Filled, Form, moment
from gateway.ui.pages import Answer, Moved, Page, Part, Row, Visit
from gateway.ui.words import Ago, Quantity

FINISHED = 20
"""Finished brews on a page."""

SPARKS = 32
"""Drawn sparklines that are kept, 3 kB each."""

_sparks: dict[int, tuple[list[Line], object, Markup]] = {}
"""The lines of a brew, all else that its drawing is made of, and the drawing; the latest use comes last."""

SEARCHED_CHARACTERS = 100
"""Characters of a search at most."""


class Card(NamedTuple):
    """A brew that runs."""

    id: int
    name: str
    url: str
    devices: str
    figures: ShownFigures
    spark: Markup | None
    missing: str
    done: str
    alarms: list[ShownAlarm]


class Free(NamedTuple):
    """A device that is in no brew."""

    id: int
    name: str
    url: str
    gravity: Quantity
    temp: Quantity
    ago: Ago | None
    old: bool


class Finished(NamedTuple):
    """A row of the table of finished brews."""

    batchcode: str
    title: str
    url: str
    og: str
    fg: str
    abv: str
    days: str
    brewed: str


class UseForm(Form):
    """A device to be put into a brew, with its readings since a time, if one is given."""

    device: str
    brew: str
    since: str = ""


async def show(visit: Visit) -> Page:
    """Show the cards of running brews and the table of finished ones."""
    return await _page(visit, Filled())


async def _page(visit: Visit, filled: Filled[UseForm]) -> Page:
    account_id = visit.viewer.account_id
    searched = visit.query.get("q", "")[:SEARCHED_CHARACTERS]
    running = await visit.services.figures.running(account_id)
    finished = await visit.services.figures.finished(account_id, searched)
    asked = visit.query.get("page", "")
    pages = max(-(-len(finished) // FINISHED), 1)
    page = min(max(int(asked), 1), pages) if decimal_digits(asked) and len(asked) < 6 else 1
    values = {
        **await _free_values(visit, filled),
        "cards": await visit.include("brews.cards") if running else "",
        "free_part": await visit.include("brews.free"),
        "finished": await _rows(visit, finished[(page - 1) * FINISHED : page * FINISHED]),
        "count": visit.t("brews.finished", n=len(finished)),
        "searched": searched,
        "newer": visit.url("brews", {"q": searched, "page": page - 1}) if page > 1 else "",
        "older": visit.url("brews", {"q": searched, "page": page + 1}) if page < pages else "",
        "has_finished": bool(finished) or bool(searched),
    }
    status = 422 if filled.errors else 200
    return Page("brews.html", visit.t("brews.title"), values, "brews", status, await _news(visit, running))


async def free(visit: Visit) -> Part:
    """Show the devices that are in no brew, and what to do if there is nothing yet."""
    return Part("parts/free.html", ("device", "brew"), await _free_values(visit, Filled()))


async def _free_values(visit: Visit, filled: Filled[UseForm]) -> dict[str, Any]:
    viewer, figures = visit.viewer, visit.services.figures
    running = await figures.running(viewer.account_id)
    return {
        "free": await _in_no_brew(visit),
        "brews": [(each.session.id, name_of(each)) for each in await visit.store.sessions.entries(running)],
        "filled": filled,
        "nothing": not running and not await figures.finished(viewer.account_id),
        "has_device": viewer.is_owner and bool(await visit.store.devices.all()),
    }


async def _news(visit: Visit, running: Sequence[int]) -> str:
    """Return the gravity of the first brew."""
    for entry in await visit.store.sessions.entries(running[:1]):
        figures = await visit.services.figures.of(entry.session, visit.viewer.zone)
        if figures.gravity is not None:
            return f"{visit.words.gravity(figures.gravity.value).number} {entry.session.batchcode}"
    return ""


async def cards(visit: Visit) -> Part:
    """Show a card for each running brew."""
    running = await visit.services.figures.running(visit.viewer.account_id)
    entries = await visit.store.sessions.entries(running)
    figures = await visit.services.figures.of_all([entry.session for entry in entries], visit.viewer.zone)
    inside: dict[int, list[Device]] = {}
    for device in await visit.store.devices.all():
        if device.session_id is not None:
            inside.setdefault(device.session_id, []).append(device)
    sparks = await visit.services.series.sparklines([entry.session.id for entry in entries])
    alarms = own_alarms(visit, SEEN)
    made = [_card(visit, entry, figures, inside, sparks, alarms) for entry in entries]
    return Part("parts/cards.html", ("reading", "brew", "device", "alarm", "insight"), {"cards": made})


def _card(
    visit: Visit,
    entry: SessionEntry,
    all_figures: Mapping[int, Figures],
    inside: Mapping[int, list[Device]],
    sparks: Mapping[int, list[Line]],
    alarms: Sequence[Alarm],
) -> Card:
    session, devices = entry.session, inside.get(entry.session.id, [])
    figures, names = all_figures[session.id], ", ".join(device.title for device in devices)
    missing = ""
    if figures.gravity is None:
        missing = visit.t("brew.missing.silent", devices=names) if devices else visit.t("brew.missing.device")
    return Card(
        id=session.id,
        name=name_of(entry),
        url=visit.url("brew", id=session.id),
        devices=names,
        figures=shown_figures(figures, session, visit.words, now=visit.now, devices=devices),
        spark=None if figures.gravity is None else _spark(visit, session.id, sparks[session.id], figures),
        missing=missing,
        done=link(visit, "brew.done", id=session.id) if visit.viewer.may_change else "",
        alarms=[one(visit, alarm) for alarm in of_brew(alarms, session.id, devices)],
    )


def _spark(visit: Visit, session_id: int, lines: list[Line], figures: Figures) -> Markup | None:
    """Draw a sparkline, or return the drawing of the same lines: twelve of them take 10 ms."""
    times = [at for line in lines for at in line.t]
    if len(times) < 2:
        return None
    viewer, words = visit.viewer, visit.words
    units = viewer.language, viewer.gravity_unit, viewer.temp_unit, str(viewer.zone), words.date(visit.now)
    made_of = figures.original, figures.final, *units
    kept = _sparks.pop(session_id, None)
    # The service gives the very same lines as long as nothing has changed.
    if kept is None or kept[0] is not lines or kept[1] != made_of:
        start, end = min(times), max(times)
        width = (end - start) // charts.BUCKETS["spark"]
        series = Series(start, end, width, width, lines, [], [], figures.original, figures.final)
        kept = lines, made_of, charts.sparkline(series, words)
    _sparks[session_id] = kept
    if len(_sparks) > SPARKS:
        del _sparks[next(iter(_sparks))]
    return kept[2]


async def _in_no_brew(visit: Visit) -> list[Free]:
    if not visit.viewer.is_owner:
        return []
    words, found = visit.words, []
    for summary in await visit.store.devices.summaries():
        device, at = summary.device, summary.last_seen_at
        if device.session_id is None:
            found.append(
                Free(
                    id=device.id,
                    name=device.title,
                    url=link(visit, "device", id=device.id),
                    gravity=words.gravity(summary.sg),
                    temp=words.temp(summary.celsius),
                    ago=None if at is None else words.ago(at),
                    old=at is not None and is_silent(device, at, visit.now),
                )
            )
    return found


async def _rows(visit: Visit, ids: Sequence[int]) -> list[Finished]:
    entries = await visit.store.sessions.entries(ids)
    found = await visit.services.figures.of_all([entry.session for entry in entries], visit.viewer.zone)
    return [_row(visit, entry, found) for entry in entries]


def _row(visit: Visit, entry: SessionEntry, found: Mapping[int, Figures]) -> Finished:
    session, words = entry.session, visit.words
    figures = found[session.id]
    brewed = figures.began_at if figures.began_at is not None else session.created_at
    return Finished(
        batchcode=session.batchcode,
        title=entry.recipe_title,
        url=visit.url("brew", id=session.id),
        og=words.gravity(figures.original.sg if figures.original else None).number,
        fg=words.gravity(figures.gravity.value if figures.gravity else None).number,
        abv=str(words.percent(figures.abv, 1)),
        days="" if figures.day is None or figures.gravity is None else words.count(figures.day),
        brewed=words.date(brewed),
    )


async def use(visit: Visit) -> Answer:
    """Put a device into a brew."""
    if not visit.viewer.is_owner:
        raise Forbidden(visit.t("error.owner"))
    filled = visit.read(UseForm)
    if filled.value is None:
        return await _page(visit, filled)
    form, since = filled.value, None
    if form.since:
        try:
            since = moment(form.since, visit.viewer.zone)
        except ValueError as error:
            filled.wrong("since", str(error))
            return await _page(visit, filled)
    entry = await visit.store.sessions.entry(int(form.brew)) if decimal_digits(form.brew) else None
    if entry is None or entry.session.account_id != visit.viewer.account_id:
        raise NotFound(visit.t("brew.none", id=form.brew))
    devices = {str(device.id): device for device in await visit.store.devices.all()}
    if form.device not in devices:
        raise NotFound
    device = devices[form.device]
    assigned = await visit.services.brewsessions.assign(device.key, entry.session.id, since)
    notice = visit.t("brews.used", device=device.title, brew=name_of(entry), n=assigned.claimed)
    return Moved(visit.url("brew", id=entry.session.id), notice)


async def fill_samples(visit: Visit) -> Answer:
    """Fill an empty account with a made-up brewery."""
    from gateway.samples.brewery import fill  # here, because hardly any gateway ever needs it

    try:
        made = await fill(visit.services, visit.viewer.account_id, no_progress)
    except NameTaken:
        return Moved(visit.url("brews"), visit.t("brews.samples.not_empty"))
    return Moved(visit.url("brew", id=made.running), visit.t("brews.samples.done", n=made.sessions))


ROWS = (
    Row("GET", "/", show, "brews", "Brews that run, devices in no brew, finished brews"),
    Row("GET", "/cards", cards, "brews.cards", "The cards of running brews"),
    Row("GET", "/free", free, "brews.free", "Devices in no brew"),
    Row("POST", "/use", use, "brews.use", "Put a device into a brew", scope="admin", owner_only=True),
    Row(
        "POST", "/samples", fill_samples, "brews.samples", "A made-up brewery", scope="admin", owner_only=True
    ),
)
