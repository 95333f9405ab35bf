"""One device: its values, its units and why, its brew, its calibration, its history, its last readings."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from markupsafe import Markup

from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import Alarm
from gateway.domain.device import Device, Span
from gateway.domain.polynomial import polynomial_text
from gateway.domain.texts import label_of
from gateway.domain.times import EVER_S
from gateway.errors import InvalidInput, NotFound
from gateway.network import address_in
from gateway.services.device_settings import AUTO, INTERVAL_S, BasicChange, CalibrationChange, without_span
from gateway.services.devices import DeviceState, facts_of
from gateway.store.records import DeviceSource, RawReading
from gateway.ui import charts, raw
from gateway.ui.alarm_words import SEEN, one, own_alarms
from gateway.ui.brew_words import USUAL_INTERVAL_S
from gateway.ui.calibration_form import drawn_curve
from gateway.ui.device_words import (
    family_title,
    flags_in_words,
    state_of,
    tilt,
    unit_of,
    values_of,
    why,
)
from gateway.ui.forms import Filled, Form, moment
from gateway.ui.pages import Moved, Page, Part, Row, View, Visit
from gateway.ui.words import Quantity, Words

LAST_READINGS = 10
"""Readings that the page lists with their bytes."""

SHOWN_BYTES = 2_048
"""Bytes of a reading that the page shows at most."""

HISTORY_S, HISTORY_POINTS = 60 * 86_400, 200
"""Seconds of battery and signal that the page shows, and points of each line."""

GAP_INTERVALS = 3
"""A line breaks where two readings are further apart than so many usual intervals."""

SIGNS = (
    ("battery", "device.battery", "V", 2),
    ("battery_percent", "device.battery", "%", 0),
    ("rssi", "device.signal", "dBm", 0),
)
"""What a device tells about itself, with title, unit and decimals; a battery in volts comes first."""

TCP = "tcp"
"""The beginning of the channel of a device that takes an interval."""


class SettingsForm(Form):
    """Label, units and interval."""

    label: str = ""
    gravity_unit: str = AUTO
    temp_unit: str = AUTO
    interval: str = ""


class AssignForm(Form):
    """A brew, and the beginning of the readings that come along."""

    brew: str
    since: str = ""


class Unit(NamedTuple):
    """A unit of the device, and why it has it."""

    label: str
    unit: str
    why: str


class LeftOutSpan(NamedTuple):
    """A range of readings that is left out; `first` and `last` name it in the form that takes it back."""

    words: str
    readings: str
    first: int
    last: int


class Source(NamedTuple):
    """An address that readings came from; `is_new` marks every one after the first."""

    words: str
    address: str
    is_new: bool
    may_bind: bool


class Sent(NamedTuple):
    """A reading with its bytes as they came."""

    moment: str
    gravity: Quantity
    temp: Quantity
    tilt: Quantity | None
    flags: str
    channel: str
    text: str


async def show(visit: Visit) -> Page:
    """Show a device."""
    return await page(visit)


async def now(visit: Visit) -> Part:
    """Show the last values of a device and its state."""
    state = await visible_state(visit)
    interval_s = state.device.interval_s
    values = {
        "values": values_of(state, visit.words),
        "state": state_of(state, visit.words),
        "alarms": [one(visit, each) for each in own_alarms(visit, SEEN) if _is_about(each, state.device)],
        "every": visit.t("device.every", span=visit.words.span(interval_s)) if interval_s else "",
    }
    return Part("parts/device.html", (f"device:{state.device.id}",), values)


def _is_about(alarm: Alarm, device: Device) -> bool:
    return (alarm.scope, alarm.subject) == ("device", str(device.id))


async def history(visit: Visit) -> Part:
    """Show battery and signal over the last weeks."""
    state = await visible_state(visit)
    device, words = state.device, visit.words
    last = state.summary.last_seen_at or device.first_seen_at
    first = max(last - HISTORY_S, min(device.first_seen_at, last))
    signs = await visit.services.series.signs(device, first, last, HISTORY_POINTS)
    interval_s = device.interval_s or USUAL_INTERVAL_S
    gap_s = max(GAP_INTERVALS * interval_s, 2 * (last - first) / HISTORY_POINTS)
    drawn: list[tuple[str, str, Markup]] = []
    for name, title, unit, decimals in SIGNS:
        values = [getattr(sign, name) for sign in signs]
        if any(value is not None for value in values) and title not in {each[0] for each in drawn}:
            times = [sign.at for sign in signs]
            chart = charts.history(
                times, values, words, title=visit.t(title), unit=unit, decimals=decimals, gap_s=gap_s
            )
            drawn.append((title, visit.t(title), chart))
    told = any(title == "device.battery" for title, _, _ in drawn)
    return Part("parts/device_history.html", (), {"drawn": drawn, "tells_battery": told})


async def page(
    visit: Visit,
    settings: Filled[SettingsForm] | None = None,
    assigning: Filled[AssignForm] | None = None,
    resending: Filled[Form] | None = None,
) -> Page:
    """Return the page of a device; a form that was filled in wrongly is open."""
    state = await visible_state(visit)
    device, words = state.device, visit.words
    latest = await visit.services.devices.latest(device.id, LAST_READINGS)
    sources = await visit.services.devices.sources(device.id) if visit.viewer.is_owner else []
    may_change = visit.viewer.may_change and visit.viewer.is_owner
    values = {
        "id": device.id,
        "last": await visit.include("device.now", id=device.id),
        "family": family_title(device.family),
        "identity": device.stable_id,
        "may_change": may_change,
        "reprocessing": device.reprocessing,
        "units": units_of(device, words),
        "interval_s": device.settings.interval_s or "",
        "takes_interval": device.settings.interval_s is not None or _by_tcp(latest),
        "label": device.settings.label,
        "chosen": {
            "gravity_unit": device.settings.gravity_unit or AUTO,
            "temp_unit": device.settings.temp_unit or AUTO,
        },
        "settings": settings,
        **await _brew(visit, state, assigning),
        **_calibration(device, words, latest),
        "curve": drawn_curve(device.settings.calibration, words),
        "history": await visit.include("device.history", id=device.id),
        "left_out": await _left_out(visit, device),
        "sources": _sources(sources, device, words),
        "bound": device.settings.source,
        "keys": ", ".join(state.bound_keys),
        "readings": [_sent(each, words) for each in latest] if may_change else [],
        "resending": resending,
    }
    return Page(
        "device.html", device.title, values, menu="devices", news=str(words.gravity(state.summary.sg))
    )


async def visible_state(visit: Visit) -> DeviceState:
    """Return the device of the path; `NotFound` if the viewer may not see it."""
    missing = NotFound(visit.t("device.missing", number=visit.path_text("id")))
    try:
        state = await visit.services.devices.state(visit.path_id("id"))
    except NotFound:
        raise missing from None
    if visit.viewer.account_id != OWNER_ID:
        brews = await visit.services.devices.brews(visit.viewer.account_id)
        if state.device.session_id not in {brew.id for brew in brews}:
            raise missing
    return state


async def change_settings(visit: Visit) -> Page | Moved:
    """Change label, units and interval."""
    state, filled = await visible_state(visit), visit.read(SettingsForm)
    form = filled.value
    if form is None:
        return replace(await page(visit, filled), status=422)
    interval_s = None
    if form.interval:
        interval_s = int(form.interval) if form.interval.isdecimal() and len(form.interval) < 8 else -1
    elif "interval" in visit.fields:
        interval_s = 0
    low, high = INTERVAL_S
    if interval_s and not low < interval_s < high:
        filled.wrong("interval", "device.wrong.interval")
    if form.label != label_of(form.label):
        filled.wrong("label", "device.wrong.label")
    if filled.errors:
        return replace(await page(visit, filled), status=422)
    change = BasicChange(form.label, form.gravity_unit, form.temp_unit, interval_s)
    if form.gravity_unit not in {"G", "P", AUTO} or form.temp_unit not in {"C", "F", AUTO}:
        raise InvalidInput(visit.t("form.wrong"))
    await visit.services.devices.start(state.device.id, change.apply)
    return await moved_here(visit, "device.saved")


async def assign(visit: Visit) -> Page | Moved:
    """Put a device into a brew, with its readings since a time."""
    state, filled = await visible_state(visit), visit.read(AssignForm)
    form = filled.value
    since = None
    if form is not None and form.since:
        try:
            since = moment(form.since, visit.viewer.zone)
        except ValueError as error:
            filled.wrong("since", str(error))
    brews = {str(brew.id) for brew in await visit.services.devices.brews(visit.viewer.account_id)}
    if form is not None and form.brew not in brews:
        filled.wrong("brew", "form.wrong")
    if form is None or filled.errors:
        return replace(await page(visit, assigning=filled), status=422)
    done = await visit.services.brewsessions.assign(str(state.device.id), int(form.brew), since)
    return await moved_here(visit, "device.assigned", brew=done.session.batchcode, n=done.claimed)


async def release(visit: Visit) -> Moved:
    """Take a device out of its brew."""
    state = await visible_state(visit)
    await visit.services.brewsessions.release(str(state.device.id))
    return await moved_here(visit, "device.released")


async def include(visit: Visit) -> Moved:
    """Take back a range that is left out."""
    state = await visible_state(visit)
    try:
        span = int(visit.fields["first"]), int(visit.fields["last"])
    except (KeyError, ValueError):
        raise InvalidInput(visit.t("error.form")) from None
    await visit.services.devices.start(state.device.id, without_span(span))
    return await moved_here(visit, "device.taken_back")


async def ask_clear(visit: Visit) -> Page:
    """Ask before a calibration is taken back."""
    device = (await visible_state(visit)).device
    values = {
        "question": visit.t("device.uncalibrate_question", name=device.title),
        "explain": visit.t("device.uncalibrate_explain"),
        "action": visit.url("device.uncalibrate", id=device.id),
        "button": visit.t("device.take_back"),
        "back": visit.url("device", id=device.id),
    }
    return Page("confirm.html", visit.t("device.calibration"), values, menu="devices")


async def clear_calibration(visit: Visit) -> Moved:
    """Take the whole calibration back."""
    state = await visible_state(visit)
    await visit.services.devices.start(state.device.id, CalibrationChange(clear=True).apply)
    return await moved_here(visit, "device.calibration_back")


async def resend(visit: Visit) -> Page | Moved:
    """Send a device's readings since a day again."""
    state, filled = await visible_state(visit), visit.read(Form)
    try:
        since = moment(visit.fields.get("since", ""), visit.viewer.zone)
    except ValueError as error:
        filled.wrong("since", str(error))
        return replace(await page(visit, resending=filled), status=422)
    count = await visit.services.devices.send_again(state.device.id, since)
    return await moved_here(visit, "device.resent", n=count)


async def bind(visit: Visit) -> Moved:
    """Let a device report from one address only, or from every address again."""
    state = await visible_state(visit)
    given = visit.fields.get("source", "")
    address = address_in(given) if given else ""
    if address is None:
        raise InvalidInput(visit.t("form.wrong"))
    await visit.services.devices.start(state.device.id, lambda settings: replace(settings, source=address))
    return await moved_here(visit, "device.bound" if address else "device.unbound", source=address)


async def moved_here(visit: Visit, notice: str, **members: object) -> Moved:
    """Lead back to the device's page with a notice."""
    return Moved(visit.url("device", id=visit.path_id("id")), visit.t(notice, **members))


def units_of(device: Device, words: Words) -> list[Unit]:
    """Return the units of a device with their reasons."""
    return [
        Unit(words.t(f"device.{what}"), unit_of(device, what), why(device, what, words))
        for what in ("gravity", "temp")
    ]


def span_in_words(span: Span, words: Words) -> str:
    """Write a range of time."""
    first, last = span
    if last >= EVER_S:
        return words.t("device.span_open", first=words.moment(first))
    return words.t("device.span", first=words.moment(first), last=words.moment(last))


async def _brew(visit: Visit, state: DeviceState, filled: Filled[AssignForm] | None) -> dict[str, object]:
    brews = await visit.services.devices.brews(visit.viewer.account_id)
    own = next((brew for brew in brews if brew.id == state.device.session_id), None)
    running = [brew for brew in brews if brew.ended_at is None and not brew.is_over and brew is not own]
    return {
        "brew": own.batchcode if own else "",
        "brew_url": visit.url("brew", id=own.id) if own and visit.has("brew") else "",
        "elsewhere": own is None and state.device.session_id is not None,
        "brews": [(str(brew.id), brew.batchcode) for brew in reversed(running)],
        "assigning": filled,
    }


def _calibration(device: Device, words: Words, latest: Sequence[RawReading]) -> dict[str, object]:
    calibration = device.settings.calibration
    has_tilt = any("angle" in facts_of(each.reading) for each in latest) or bool(calibration.curve)
    facts: list[tuple[str, str]] = []
    if calibration.gravity_offset:
        facts.append((words.t("device.gravity_offset"), signed_sg(calibration.gravity_offset, words)))
    if calibration.temp_offset:
        facts.append((words.t("device.temp_offset"), signed_celsius(calibration.temp_offset, words)))
    if calibration.corrected_at_c is not None:
        facts.append((words.t("device.corrected_at"), str(words.temp(calibration.corrected_at_c))))
    formula = polynomial_text(calibration.curve) if calibration.curve and not calibration.points else ""
    return {
        "calibrated": not calibration.is_identity,
        "has_tilt": has_tilt,
        "corrections": facts,
        "points": words.t("device.points", n=len(calibration.points)) if calibration.points else "",
        "formula": formula,
    }


def signed_sg(value: float, words: Words) -> str:
    """Write a difference of specific gravities with its sign."""
    return f"{'+' if value > 0 else ''}{words.number(value, 4)}\u00a0SG"


def signed_celsius(value: float, words: Words) -> str:
    """Write a difference of temperatures with its sign, in the viewer's unit."""
    shown = value if words.temp_unit == "C" else value * 1.8
    return f"{'+' if shown > 0 else ''}{words.number(shown, 1)}\u00a0°{words.temp_unit}"


async def _left_out(visit: Visit, device: Device) -> list[LeftOutSpan]:
    return [
        LeftOutSpan(
            span_in_words((first, last), visit.words),
            visit.t("device.readings", n=await visit.services.devices.readings_in(device.id, first, last)),
            first,
            last,
        )
        for first, last in device.settings.excluded
    ]


def _sources(sources: Sequence[DeviceSource], device: Device, words: Words) -> list[Source]:
    shown = []
    for place, source in enumerate(sources):
        address = source.address or words.t("device.hidden_address")
        key = "device.came_from" if place == 0 else "device.also_from"
        text = words.t(key, address=address, n=source.readings, since=words.moment(source.first_at))
        may_bind = bool(source.address) and not device.settings.source
        shown.append(Source(text, source.address, place > 0, may_bind))
    return shown


def _sent(each: RawReading, words: Words) -> Sent:
    reading = each.reading
    return Sent(
        words.moment(reading.created_at),
        words.gravity(reading.sg),
        words.temp(reading.celsius),
        tilt(facts_of(reading), words),
        flags_in_words(json.loads(reading.flags or "[]"), words),
        each.channel,
        raw.shown(each.raw, SHOWN_BYTES),
    )


def _by_tcp(latest: Sequence[RawReading]) -> bool:
    return bool(latest) and latest[0].channel.startswith(TCP)


def _form(path: str, view: View, name: str, summary: str) -> Row:
    return Row("POST", f"/devices/{{id}}{path}", view, name, summary, scope="admin", owner_only=True)


ROWS = (
    Row("GET", "/devices/{id}", show, "device", "One device"),
    Row("GET", "/devices/{id}/history", history, "device.history", "Battery and signal over time"),
    Row("GET", "/devices/{id}/now", now, "device.now", "The last values of a device"),
    Row(
        "GET",
        "/devices/{id}/uncalibrate",
        ask_clear,
        "device.uncalibrate.ask",
        "Ask before the calibration is taken back",
        scope="admin",
        owner_only=True,
    ),
    _form("/settings", change_settings, "device.settings", "Change label, units and interval"),
    _form("/assign", assign, "device.assign", "Put a device into a brew"),
    _form("/release", release, "device.release", "Take a device out of its brew"),
    _form("/include", include, "device.include", "Take back a range that is left out"),
    _form("/uncalibrate", clear_calibration, "device.uncalibrate", "Take the calibration back"),
    _form("/resend", resend, "device.resend", "Send a device's readings again"),
    _form("/bind", bind, "device.bind", "Bind a device to an address"),
)
