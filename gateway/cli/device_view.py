"""`devices show`: a device's identity, its settings, and the units inferred for it, with the reasons."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from gateway.cli.client import get
from gateway.cli.lookup import device_number
from gateway.cli.options import Config, DataDir, Device, json_option
from gateway.cli.output import harmless, local_time, unix
from gateway.domain import times
from gateway.domain.calibration import Calibration
from gateway.domain.device import DeviceSettings
from gateway.domain.polynomial import polynomial_text

Line = tuple[str, str]


def show(
    device: Device,
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_DEVICES_SHOW_JSON", "One JSON object.")] = False,
) -> None:
    """Show all about a device, with its units and the reasons for them.

    It shows the identity of the device, the units inferred from its readings, and your settings.
    """

    found = get(data_dir, f"/manage/devices/{device_number(data_dir, device, writing=False)}")["device"]
    settings = DeviceSettings.from_dict(found["settings"])
    if as_json:
        shown = {
            **entry(found),
            "merged_in": found["merged_in"],
            "inferred": found["inferred"],
            "settings": settings.to_dict(),
            "rereading": found["reprocessing"],
            "sources": found["sources"],
        }
        typer.echo(json.dumps(shown, ensure_ascii=False))
        return
    lines = [*_identity(found), *_inferred(found), *_set(settings)]
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        typer.echo(f"{name.ljust(width)}  {harmless(text)}")


ENTRY = (
    *("id", "key", "device_id", "name", "label", "family", "session", "gravity_unit", "interval_s"),
    *("readings", "first_seen_at", "last_seen_at"),
    *("last_gravity", "last_gravity_unit", "last_temp", "last_temp_unit"),
    *("bound_source", "bound_keys", "waiting"),
)
"""Members of a device in the JSON list, in their order."""


def entry(record: dict[str, Any]) -> dict[str, Any]:
    """Return a device's object in the JSON list."""
    return {name: record[name] for name in ENTRY}


def _identity(found: dict[str, Any]) -> Iterator[Line]:
    yield "id", str(found["id"])
    yield "key", found["key"]
    for alias in found["merged_in"]:
        yield "merged in", alias
    yield "name", found["name"] or "(none)"
    if found["label"]:
        yield "label", found["label"]
    yield "kind", found["kind"]
    yield "brew session", "(none)" if found["session"] is None else str(found["session"])
    yield "first seen", local_time(unix(found["first_seen_at"]))
    yield "last seen", local_time(unix(found["last_seen_at"])) or "(never)"
    yield "readings", str(found["readings"])
    if found["interval_s"] is not None:
        yield "interval", f"{found['interval_s']} s"
    for quantity in ("gravity", "temp"):
        if found[f"last_{quantity}"]:
            yield f"last {quantity}", f"{found[f'last_{quantity}']} {found[f'last_{quantity}_unit']}"
    yield from _sources(found["sources"])
    if found["bound_source"]:
        yield "bound to", f"{found['bound_source']}; what comes from elsewhere waits in the inbox"
    for name in found["bound_keys"]:
        yield "bound to", f"its key {name}; what comes without it waits in the inbox"
    if found["waiting"]:
        yield "waiting", f"{found['waiting']} readings in the inbox: `inbox list`"
    if found["reprocessing"]:
        yield "state", "earlier readings are being understood again"


def _sources(sources: list[dict[str, Any]]) -> Iterator[Line]:
    """Say where the readings came from: a second address is a hint, because a router may renumber."""
    for place, source in enumerate(sources):
        count, address = f"{source['readings']:,}", source["address"] or "an address that its broker hides"
        if place == 0:
            every = "all " if len(sources) == 1 and count != "1" else ""
            yield "from", f"{every}{count} {'reading' if count == '1' else 'readings'} came from {address}"
        else:
            yield "from", f"since {local_time(unix(source['first_at']))} also {count} from {address}"


def _inferred(found: dict[str, Any]) -> Iterator[Line]:
    for name, inference in found["inferred"].items():
        yield name.replace("_", " "), f"{inference['value']}: {inference['reason']}"


def _set(settings: DeviceSettings) -> Iterator[Line]:
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
