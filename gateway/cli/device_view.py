"""`devices show`: what is known of one device, and why."""

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from gateway.cli.options import Config, DataDir, Device, json_option
from gateway.cli.output import harmless, iso, local_time
from gateway.control import opened_read_only
from gateway.domain import times
from gateway.domain.calibration import Calibration
from gateway.domain.device import Device as Known
from gateway.domain.device import DeviceSettings, DeviceSummary, find_device
from gateway.domain.polynomial import polynomial_text
from gateway.drivers import BY_NAME

WHAT = {"gravity_unit": "gravity unit", "temp_unit": "temp unit", "battery": "battery"}
"""What is inferred of a device; what else is kept beside it is for the readings to come."""

Line = tuple[str, str]


def show(
    device: Device,
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_DEVICES_SHOW_JSON", "One JSON object.")] = False,
) -> None:
    """Show a device: its identity, what was inferred of what it sends and why, and what you set."""

    async def look() -> None:
        async with opened_read_only(data_dir) as store:
            found = find_device(await store.devices.all(), device)
            summary = next(s for s in await store.devices.summaries() if s.device.id == found.id)
        if as_json:
            typer.echo(json.dumps(_object(summary), ensure_ascii=False))
            return
        lines = [*_identity(summary), *_inferred(summary), *_said(summary.device.settings)]
        width = max(len(name) for name, _ in lines)
        for name, text in lines:
            typer.echo(f"{name.ljust(width)}  {harmless(text)}")

    asyncio.run(look())


def entry(summary: DeviceSummary) -> dict[str, object]:
    """A device as one JSON object."""
    device = summary.device
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
        "last_seen_at": iso(summary.last_seen_at),
        "last_gravity": summary.gravity,
        "last_gravity_unit": summary.gravity_unit,
        "last_temp": summary.temp,
        "last_temp_unit": summary.temp_unit,
    }


def _object(summary: DeviceSummary) -> dict[str, Any]:
    device = summary.device
    return {
        **entry(summary),
        "merged_in": [alias.key for alias in device.aliases],
        "inferred": {what: {"value": v, "reason": r} for what, (v, r) in _told(device)},
        "settings": device.settings.to_dict(),
        "rereading": device.reprocessing,
    }


def _identity(summary: DeviceSummary) -> Iterator[Line]:
    device = summary.device
    driver = BY_NAME.get(device.family)
    yield "id", str(device.id)
    yield "key", device.key
    for alias in device.aliases:
        yield "merged in", alias.key
    yield "name", device.name or "(none)"
    if device.settings.label:
        yield "label", device.settings.label
    yield "kind", driver.title if driver else device.family
    yield "brew session", "(none)" if device.session_id is None else str(device.session_id)
    yield "first seen", local_time(device.first_seen_at)
    yield "last seen", local_time(summary.last_seen_at) or "(never)"
    yield "readings", str(summary.readings)
    if device.interval_s is not None:
        yield "interval", f"{device.interval_s} s"
    if summary.gravity:
        yield "last gravity", f"{summary.gravity} {summary.gravity_unit}"
    if summary.temp:
        yield "last temp", f"{summary.temp} {summary.temp_unit}"
    if device.reprocessing:
        yield "state", "earlier readings are being understood again"


def _inferred(summary: DeviceSummary) -> Iterator[Line]:
    for what, (value, reason) in _told(summary.device):
        yield WHAT[what], f"{value}: {reason}"


def _told(device: Known) -> list[tuple[str, tuple[str, str]]]:
    return [(what, device.inferred[what]) for what in WHAT if what in device.inferred]


def _said(settings: DeviceSettings) -> Iterator[Line]:
    if settings.gravity_unit is not None:
        yield "you set", f"gravity unit {settings.gravity_unit}"
    if settings.temp_unit is not None:
        yield "you set", f"temp unit {settings.temp_unit}"
    if settings.interval_s is not None:
        yield "you set", f"interval {settings.interval_s} s, told to it when it reports by TCP"
    yield from _calibrated(settings.calibration)
    for first, last in settings.excluded:
        end = "now and later" if last >= times.EVER_S else _time(last)
        yield "excluded", f"{_time(first)} to {end}"


def _calibrated(calibration: Calibration) -> Iterator[Line]:
    if calibration.curve:
        unit = "SG" if calibration.curve_unit == "G" else "Plato"
        yield "calibration", f"{unit} = {polynomial_text(calibration.curve)}"
    if calibration.points:
        yield "points", ", ".join(f"{angle:g}={sg:.4f}" for angle, sg in calibration.points)
    if calibration.gravity_offset:
        yield "calibration", f"gravity {calibration.gravity_offset:+g} SG"
    if calibration.temp_offset:
        yield "calibration", f"temp {calibration.temp_offset:+g} degrees Celsius"
    if calibration.corrected_at_c is not None:
        yield "calibration", f"reads true at {calibration.corrected_at_c:g} degrees Celsius"


def _time(unix_seconds: int) -> str:
    try:
        return local_time(unix_seconds)
    except (ValueError, OverflowError, OSError):
        return times.iso(0)
