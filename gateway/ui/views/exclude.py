"""Leave a range of a device's readings out: the form, its effect, and saving."""

from dataclasses import replace

from gateway.domain.times import EVER_S
from gateway.errors import InvalidInput
from gateway.services.device_settings import leaving_out
from gateway.ui.effect import shown_effect
from gateway.ui.forms import Filled, Form, local_input, moment
from gateway.ui.pages import Moved, Page, Row, Visit
from gateway.ui.views.device import moved_here, span_in_words, visible_state

LAST_S = 59
"""Seconds that a minute typed as the end goes on: the readings of that minute are meant, too."""


class SpanForm(Form):
    """A range of time as typed; without an end it has none."""

    first: str
    last: str = ""


LOCAL_CHARACTERS = 32
"""Characters of a local time in a query at most."""


async def show(visit: Visit) -> Page:
    """Show the form; a range in the query is filled in, with its effect: Unix seconds, or local times."""
    given = {}
    for name, key in (("from", "first"), ("to", "last")):
        text = visit.query.get(name, "")
        if text.isdecimal() and len(text) <= 12:
            given[key] = local_input(int(text), visit.viewer.zone)
        elif text:
            given[key] = text[:LOCAL_CHARACTERS]
    filled: Filled[SpanForm] = Filled(given, SpanForm(**given) if "first" in given else None)
    return await _page(visit, filled) if filled.value is None else await _looked(visit, filled)


async def change(visit: Visit) -> Page | Moved:
    """Show how many readings are in the range and the effect, or leave it out."""
    filled = visit.read(SpanForm)
    if filled.value is None:
        return await _page(visit, filled, status=422)
    if visit.fields.get("do") != "save":
        return await _looked(visit, filled)
    span = _span(visit, filled)
    if span is None:
        return await _page(visit, filled, status=422)
    state = await visible_state(visit)
    try:
        await visit.services.devices.start(state.device.id, leaving_out(*span))
    except InvalidInput:
        filled.wrong("", "exclude.too_many")
        return await _page(visit, filled, status=422)
    return await moved_here(visit, "exclude.saved", span=span_in_words(span, visit.words))


async def _looked(visit: Visit, filled: Filled[SpanForm]) -> Page:
    span = _span(visit, filled)
    if span is None:
        return await _page(visit, filled, status=422)
    devices, device = visit.services.devices, (await visible_state(visit)).device
    effect = await devices.preview(device.id, leaving_out(*span))
    # Without its count, because a preview may look at a part of the readings: the whole count stands above.
    shown = shown_effect(effect, visit.words)
    return await _page(
        visit,
        filled,
        count=visit.t("exclude.count", n=await devices.readings_in(device.id, *span)),
        span=span_in_words(span, visit.words),
        shown=replace(shown, sentence="") if shown and effect.changed else None,
    )


def _span(visit: Visit, filled: Filled[SpanForm]) -> tuple[int, int] | None:
    """Return the range in Unix seconds; None if it is wrong, which `filled` notes."""
    form, found = filled.value, {"first": 0, "last": EVER_S}
    for name in found:
        text = getattr(form, name)
        if not text:
            continue
        try:
            found[name] = moment(text, visit.viewer.zone)
        except ValueError as error:
            filled.wrong(name, str(error))
            return None
    if found["first"] > found["last"]:
        filled.wrong("last", "exclude.ends_early")
        return None
    return found["first"], found["last"] if found["last"] == EVER_S else found["last"] + LAST_S


async def _page(visit: Visit, filled: Filled[SpanForm], status: int = 200, **looked: object) -> Page:
    device = (await visible_state(visit)).device
    values = {
        "id": device.id,
        "filled": filled,
        "count": "",
        "span": "",
        "shown": None,
        **looked,
    }
    title = visit.t("exclude.title", name=device.title)
    return Page("exclude.html", title, values, menu="devices", status=status)


ROWS = (
    Row(
        "GET",
        "/devices/{id}/exclude",
        show,
        "device.exclude",
        "Leave a range of readings out",
        scope="admin",
        owner_only=True,
    ),
    Row(
        "POST",
        "/devices/{id}/exclude",
        change,
        "device.exclude.change",
        "Look at the effect of leaving a range out, or do it",
        scope="admin",
        owner_only=True,
    ),
)
