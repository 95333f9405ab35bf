"""`/manage/devices`: hydrometers, facts inferred from their reports, their settings and brew sessions."""

from dataclasses import asdict
from typing import Any

from pydantic import BaseModel

from gateway.domain.calibration import Calibration
from gateway.domain.device import DeviceSummary, find_device
from gateway.domain.times import EVER_S, iso
from gateway.http.endpoint import Call, Done, Endpoint, Query
from gateway.manage.device_models import (
    Assigned,
    Assignment,
    Calibrated,
    CalibrationPatch,
    DeviceChange,
    DeviceDetails,
    DeviceRecord,
    Devices,
    DevicesQuery,
    Excluded,
    Exclusion,
    Fit,
    FitRequest,
    Merge,
    MergeRequest,
    OneDevice,
    Reprocessed,
    ResendRequest,
    Resent,
    SessionName,
    SpanQuery,
)
from gateway.services.device_settings import (
    BasicChange,
    CalibrationChange,
    Change,
    leaving_out,
    taking_back,
)
from gateway.services.devices import DeviceState, Effect
from gateway.services.unforwarded import called, session_to_nowhere

INFERRED = ("gravity_unit", "temp_unit", "battery")
"""Inferred facts that are shown; the device keeps further ones for the readings to come."""


async def list_devices(call: Call[DevicesQuery, None]) -> Devices:
    """List all devices, or only the device that `find` names."""
    states = await call.services.devices.states()
    if call.query.find is not None:
        wanted = find_device([state.device for state in states], call.query.find)
        states = [state for state in states if state.device.id == wanted.id]
    records = [DeviceRecord.model_validate(_members(state)) for state in states]
    return Devices(count=len(records), devices=records)


async def show_device(call: Call[Query, None]) -> OneDevice:
    """Show a device with the facts inferred from its reports and with its settings."""
    from gateway.drivers import BY_NAME

    state = await call.services.devices.state(call.path_id("device_id"))
    device = state.device
    driver = BY_NAME.get(device.family)
    details = {
        **_members(state),
        "kind": driver.title if driver else device.family,
        "inferred": {
            name: {"value": device.inferred[name][0], "reason": device.inferred[name][1]}
            for name in INFERRED
            if name in device.inferred
        },
        "settings": asdict(device.settings),
        "reprocessing": device.reprocessing,
        "sources": [
            {**asdict(source), "first_at": iso(source.first_at), "last_at": iso(source.last_at)}
            for source in await call.services.devices.sources(device.id)
        ],
    }
    return OneDevice(device=DeviceDetails.model_validate(details))


async def set_device(call: Call[Query, DeviceChange]) -> Reprocessed:
    """Set label, units and interval, for the past and the future."""
    return Reprocessed(**await _configure(call, BasicChange(**call.body.model_dump()).apply))


async def fit_calibration(call: Call[Query, FitRequest]) -> Fit:
    """Fit a curve through points and show it; change nothing."""
    before = (await call.services.devices.find(call.path_id("device_id"))).settings.calibration
    return _fit(CalibrationChange(**call.body.model_dump()), before)


async def calibrate(call: Call[Query, CalibrationPatch]) -> Calibrated:
    """Change a device's calibration for the past and the future, or with `preview` only show the effect."""
    change = CalibrationChange(**call.body.model_dump(exclude={"preview"}))
    if not call.body.preview:
        return Calibrated(**await _configure(call, change.apply))
    device_id = call.path_id("device_id")
    before = (await call.services.devices.find(device_id)).settings.calibration
    effect = await call.services.devices.preview(device_id, change.apply)
    fit = _fit(change, before) if change.points or change.degree else None
    return Calibrated(**_counts(effect), fit=fit, **_columns(effect))


async def exclude(call: Call[Query, Exclusion]) -> Excluded:
    """Leave a span of readings out of statistics, or with `preview` only show the effect; they stay."""
    device_id, body, devices = call.path_id("device_id"), call.body, call.services.devices
    change = leaving_out(body.from_, body.to)
    if not body.preview:
        return Excluded(**await _configure(call, change))
    effect = await devices.preview(device_id, change)
    left_out = await devices.readings_in(device_id, body.from_, EVER_S if body.to is None else body.to)
    return Excluded(**_counts(effect), left_out=left_out, **_columns(effect))


async def include(call: Call[SpanQuery, None]) -> Reprocessed:
    """Take back the excluded spans that touch the given one."""
    return Reprocessed(**await _configure(call, taking_back(call.query.from_, call.query.to)))


async def assign(call: Call[Query, Assignment]) -> Assigned:
    """Put a device into a brew session: its readings from now on belong there."""
    services = call.services
    device = await services.devices.find(call.path_id("device_id"))
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
    device = await call.services.devices.find(call.path_id("device_id"))
    await call.services.brewsessions.release(str(device.id))
    return Done()


async def resend_device(call: Call[Query, ResendRequest]) -> Resent:
    """Forward a device's readings once more, as they are now."""
    device_id, since = call.path_id("device_id"), call.body.since or 0
    return Resent(readings=await call.services.devices.send_again(device_id, since))


async def merge_devices(call: Call[Query, MergeRequest]) -> Merge:
    """Make two devices one, or with `dry_run` only show the effect."""
    devices, merging, progress = call.services.devices, call.services.merging, call.progress
    into, other = await devices.find(call.path_id("device_id")), await devices.find(call.body.other)
    if call.body.dry_run:
        plan = await merging.plan(into, other)
    else:
        plan = await merging.merge(into, other, lambda read: progress(read, 0, "readings understood again"))
    return Merge.model_validate(plan.to_dict())


async def _configure(call: Call[Any, Any], change: Change) -> dict[str, int]:
    device_id = call.path_id("device_id")
    return asdict(await call.services.devices.configure(device_id, change, call.progress))


def _fit(change: CalibrationChange, before: Calibration) -> Fit:
    return Fit.model_validate({**asdict(change.fitted(before)), "points": change.points_after(before)[0]})


def _counts(effect: Effect) -> dict[str, int]:
    return {"readings": len(effect.before), "changed": effect.changed}


def _columns(effect: Effect) -> dict[str, Any]:
    return {
        name: {
            "t": [point.at for point in points],
            "sg": [point.sg for point in points],
            "temp": [point.celsius for point in points],
        }
        for name, points in (("before", effect.before), ("after", effect.after))
    }


def _members(state: DeviceState) -> dict[str, Any]:
    summary: DeviceSummary = state.summary
    device, facts = summary.device, summary.facts
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
        "last_facts": facts,
        "merged_in": [alias.key for alias in device.aliases],
        "bound_source": device.settings.source or None,
        "bound_keys": list(state.bound_keys),
        "waiting": state.waiting,
    }


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
        Calibrated,
        body=CalibrationPatch,
        long=True,
    ),
    _row("POST", f"{ONE}/exclusions", exclude, "Exclude a span", Excluded, body=Exclusion, long=True),
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
