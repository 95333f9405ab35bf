"""`/manage/devices`: hydrometers, facts inferred from their reports, their settings and brew sessions."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import BaseModel

from gateway.domain.calibration import Calibration
from gateway.domain.device import (
    EXCLUDED_SPANS,
    Device,
    DeviceSettings,
    DeviceSummary,
    find_device,
)
from gateway.domain.key import ApiKey
from gateway.domain.texts import LABEL_CHARACTERS, label_of
from gateway.domain.times import EVER_S, iso
from gateway.errors import InvalidInput, NotFound
from gateway.http.endpoint import Call, Done, Endpoint, Query
from gateway.intake import calibration as calibrating
from gateway.manage.device_models import (
    AUTO,
    OFF,
    Assigned,
    Assignment,
    CalibrationChange,
    DeviceChange,
    DeviceDetails,
    DeviceRecord,
    Devices,
    DevicesQuery,
    Fit,
    FitRequest,
    Merge,
    MergeRequest,
    OneDevice,
    Reprocessed,
    ResendRequest,
    Resent,
    SessionName,
    Span,
    SpanQuery,
)
from gateway.services.build import Services
from gateway.services.unforwarded import called, session_to_nowhere

INTERVAL_S = (10, 86_400)
"""Limits in seconds of an interval that a spindle takes over TCP, both exclusive (devices section 5.4)."""


INFERRED = ("gravity_unit", "temp_unit", "battery")
"""Inferred facts that are shown; the device keeps further ones for the readings to come."""

Change = Callable[[DeviceSettings], DeviceSettings]


async def list_devices(call: Call[DevicesQuery, None]) -> Devices:
    """List all devices, or only the device that `find` names."""
    summaries = await call.store.devices.summaries()
    if call.query.find is not None:
        wanted = find_device([summary.device for summary in summaries], call.query.find)
        summaries = [summary for summary in summaries if summary.device.id == wanted.id]
    trust = await _Trust.of(call)
    records = [DeviceRecord.model_validate(_members(summary, trust)) for summary in summaries]
    return Devices(count=len(records), devices=records)


async def show_device(call: Call[Query, None]) -> OneDevice:
    """Show a device with the facts inferred from its reports and with its settings."""
    from gateway.drivers import BY_NAME

    device = await _device(call)
    summary = next(s for s in await call.store.devices.summaries() if s.device.id == device.id)
    driver, settings = BY_NAME.get(device.family), device.settings
    details = {
        **_members(summary, await _Trust.of(call)),
        "kind": driver.title if driver else device.family,
        "inferred": {
            name: {"value": device.inferred[name][0], "reason": device.inferred[name][1]}
            for name in INFERRED
            if name in device.inferred
        },
        "settings": asdict(settings),
        "reprocessing": device.reprocessing,
        "sources": [
            {**asdict(source), "first_at": iso(source.first_at), "last_at": iso(source.last_at)}
            for source in await call.store.devices.sources(device.id)
        ],
    }
    return OneDevice(device=DeviceDetails.model_validate(details))


async def set_device(call: Call[Query, DeviceChange]) -> Reprocessed:
    """Set label, units and interval, for the past and the future."""
    return await _configure(call, lambda settings: _with_change(settings, call.body))


async def fit_calibration(call: Call[Query, FitRequest]) -> Fit:
    """Fit a curve through points and show it; change nothing."""
    device = await _device(call)
    points, degree = _points(device.settings.calibration, call.body)
    found = calibrating.fit(points, degree)
    return Fit.model_validate({**asdict(found), "points": points})


async def calibrate(call: Call[Query, CalibrationChange]) -> Reprocessed:
    """Change a device's calibration, for the past and the future."""

    def change(settings: DeviceSettings) -> DeviceSettings:
        return replace(settings, calibration=_calibrated(settings.calibration, call.body))

    return await _configure(call, change)


async def exclude(call: Call[Query, Span]) -> Reprocessed:
    """Leave a span of readings out of statistics; they stay, with a flag."""
    span = int(call.body.from_), EVER_S if call.body.to is None else int(call.body.to)
    if span[0] > span[1]:
        raise InvalidInput("the span ends before it begins")

    def change(settings: DeviceSettings) -> DeviceSettings:
        spans = tuple(sorted({*settings.excluded, span}))
        if len(spans) > EXCLUDED_SPANS:
            raise InvalidInput(f"more than {EXCLUDED_SPANS} spans; `devices include` takes them back")
        return replace(settings, excluded=spans)

    return await _configure(call, change)


async def include(call: Call[SpanQuery, None]) -> Reprocessed:
    """Take back the excluded spans that touch the given one."""
    query = call.query
    first = 0 if query.from_ is None else int(query.from_)
    last = EVER_S if query.to is None else int(query.to)

    def change(settings: DeviceSettings) -> DeviceSettings:
        kept = tuple(span for span in settings.excluded if span[1] < first or span[0] > last)
        if kept == settings.excluded:
            raise InvalidInput("nothing is excluded there; `devices show` lists what is")
        return replace(settings, excluded=kept)

    return await _configure(call, change)


async def assign(call: Call[Query, Assignment]) -> Assigned:
    """Put a device into a brew session: its readings from now on belong there."""
    device, services = await _device(call), call.services
    done = await services.brewsessions.assign(str(device.id), call.body.brew_session_id, call.body.since)
    before, nowhere = done.before, await session_to_nowhere(call.store, done.session)
    return Assigned(
        device=called(done.device, await call.store.devices.all()),
        brew_session=SessionName(id=done.session.id, batchcode=done.session.batchcode),
        before=None if before is None else SessionName(id=before.id, batchcode=before.batchcode),
        claimed=done.claimed,
        unassigned=(await call.store.totals.unassigned()).get(device.id, 0),
        nowhere=None if nowhere is None else f"{nowhere.text}; {nowhere.remedy}",
    )


async def release(call: Call[Query, None]) -> Done:
    """Take a device out of its brew session; its readings stay there."""
    await call.services.brewsessions.release(str((await _device(call)).id))
    return Done()


async def resend_device(call: Call[Query, ResendRequest]) -> Resent:
    """Forward a device's readings once more, as they are now."""
    device = await _device(call)
    return Resent(readings=await call.services.reprocessor.send_again(device, int(call.body.since or 0)))


async def merge_devices(call: Call[Query, MergeRequest]) -> Merge:
    """Make two devices one, or with `dry_run` only show the effect."""
    into, other = await _device(call), await _device_with(call.services, call.body.other)
    merging, progress = call.services.merging, call.progress
    if call.body.dry_run:
        plan = await merging.plan(into, other)
    else:
        plan = await merging.merge(into, other, lambda read: progress(read, 0, "readings understood again"))
    return Merge.model_validate(plan.to_dict())


async def _device(call: Call[Any, Any]) -> Device:
    return await _device_with(call.services, call.path_id("device_id"))


async def _device_with(services: Services, device_id: int) -> Device:
    found = next((device for device in await services.store.devices.all() if device.id == device_id), None)
    if found is None:
        raise NotFound
    return found


async def _configure(call: Call[Any, Any], change: Change) -> Reprocessed:
    device, progress = await _device(call), call.progress
    total = next(s.readings for s in await call.store.devices.summaries() if s.device.id == device.id)
    done = await call.services.reprocessor.configure(
        device, change(device.settings), lambda read: progress(read, total, "readings understood again")
    )
    return Reprocessed(readings=done.readings, changed=done.changed)


@dataclass(frozen=True, slots=True)
class _Trust:
    """The keys that are bound to devices, and the readings that wait in the inbox, by device key."""

    keys: Sequence[ApiKey]
    waiting: Mapping[str, int]

    @classmethod
    async def of(cls, call: Call[Any, Any]) -> "_Trust":
        waiting: Counter[str] = Counter()
        for name in await call.store.inbox.names():
            waiting[name.device_key] += name.readings
        return cls(call.services.access.bound(), waiting)


def _members(summary: DeviceSummary, trust: _Trust) -> dict[str, Any]:
    device = summary.device
    own_keys = (device.key, *(alias.key for alias in device.aliases))
    return {
        "id": device.id,
        "key": device.key,
        "device_id": device.stable_id,
        "name": device.name,
        "label": device.settings.label or None,
        "family": device.family,
        "session": device.session_id,
        "gravity_unit": device.gravity_unit,
        "interval_s": device.interval_s,
        "readings": summary.readings,
        "first_seen_at": iso(device.first_seen_at),
        "last_seen_at": None if summary.last_seen_at is None else iso(summary.last_seen_at),
        "last_gravity": summary.gravity,
        "last_gravity_unit": summary.gravity_unit,
        "last_temp": summary.temp,
        "last_temp_unit": summary.temp_unit,
        "merged_in": [alias.key for alias in device.aliases],
        "bound_source": device.settings.source or None,
        "bound_keys": [key.name for key in trust.keys if key.device in device.names],
        "waiting": sum(trust.waiting.get(key, 0) for key in own_keys),
    }


def _with_change(settings: DeviceSettings, given: DeviceChange) -> DeviceSettings:
    changes: dict[str, Any] = {
        name: None if value == AUTO else value
        for name, value in (("gravity_unit", given.gravity_unit), ("temp_unit", given.temp_unit))
        if value is not None
    }
    if given.label is not None:
        label = unicodedata.normalize("NFC", given.label.strip())
        if label != label_of(label):
            raise InvalidInput(f"a label is text of at most {LABEL_CHARACTERS} characters that can be seen")
        changes["label"] = label
    if given.interval_s is not None:
        low, high = INTERVAL_S
        if given.interval_s and not low < given.interval_s < high:
            raise InvalidInput(f"an interval is more than {low} and less than {high} seconds, or 0 for none")
        changes["interval_s"] = given.interval_s or None
    return replace(settings, **changes)


def _points(calibration: Calibration, given: FitRequest) -> tuple[list[tuple[float, float]], int | None]:
    """Return the device's points with the given ones, and the degree; a new point replaces an old angle's."""
    before = Calibration() if given.clear else calibration
    return sorted({**dict(before.points), **dict(given.points)}.items()), given.degree or before.degree


def _calibrated(calibration: Calibration, given: CalibrationChange) -> Calibration:
    """Return the calibration with the given members changed; with `clear` it starts empty."""
    members: dict[str, Any] = {} if given.clear else calibration.to_dict()
    if given.curve is not None:
        if given.points or given.degree:
            raise InvalidInput("a curve is given, or points for one, but not both")
        members |= {"curve": given.curve, "curve_unit": given.curve_unit, "points": [], "degree": None}
    elif given.points or given.degree:
        points, degree = _points(calibration, given)
        curve = list(calibrating.fit(points, degree).curve)
        members |= {"curve": curve, "curve_unit": "G", "points": points, "degree": degree}
    for name in ("gravity_offset", "temp_offset", "corrected_at_c"):
        if (value := getattr(given, name)) is not None:
            members[name] = None if value == OFF else value
    return Calibration.from_dict(members).checked()


def _row(
    method: str, path: str, handler: Any, summary: str, answer: type[BaseModel], **more: Any
) -> Endpoint[Any, Any]:
    """Make an endpoint for the owner's keys."""
    query = more.pop("query", Query)
    return Endpoint(
        method, f"/manage/devices{path}", handler, summary, query, answer, owner_only=True, **more
    )


ONE = "/{device_id}"

ENDPOINTS = (
    _row("GET", "", list_devices, "Devices", Devices, query=DevicesQuery, refusals=(404, 409)),
    _row("GET", ONE, show_device, "One device, with what was inferred and what was set", OneDevice),
    _row("PATCH", ONE, set_device, "Set label, units, interval", Reprocessed, body=DeviceChange, long=True),
    _row("POST", f"{ONE}/calibration/fit", fit_calibration, "Fit a curve", Fit, body=FitRequest),
    _row(
        "PATCH",
        f"{ONE}/calibration",
        calibrate,
        "Calibrate a device",
        Reprocessed,
        body=CalibrationChange,
        long=True,
    ),
    _row("POST", f"{ONE}/exclusions", exclude, "Exclude a span", Reprocessed, body=Span, long=True),
    _row(
        "DELETE",
        f"{ONE}/exclusions",
        include,
        "Take excluded spans back",
        Reprocessed,
        query=SpanQuery,
        long=True,
    ),
    _row("PUT", f"{ONE}/brewsession", assign, "Put a device into a brew session", Assigned, body=Assignment),
    _row("DELETE", f"{ONE}/brewsession", release, "Take a device out of its brew session", Done),
    _row("POST", f"{ONE}/resend", resend_device, "Forward readings once more", Resent, body=ResendRequest),
    _row("POST", f"{ONE}/merge", merge_devices, "Make two devices one", Merge, body=MergeRequest, long=True),
)
"""Devices."""
