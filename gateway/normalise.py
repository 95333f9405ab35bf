"""From a device's report to a fermentation reading: text stays as sent, numbers are derived beside it.

Pure. Odd values never fail here: they get a flag.
"""

import json

from gateway import units
from gateway.domain.device import Device
from gateway.domain.objectid import new_object_id
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import GravityUnit, Report

SG_RANGE = (0.95, 1.25)
SCALED_SG_RANGES = ((950.0, 1250.0, 1000), (9500.0, 12500.0, 10000))
PLATO_RANGE = (-5.0, 45.0)
"""Which unit a bare number can only have, devices section 3.4."""


def _json_of_facts(facts: dict[str, float | str | None]) -> str:
    """A JSON object; by hand, because most values are numbers and this runs for every reading."""
    members = (
        f'"{name}":{value!r}' if isinstance(value, int | float) else f'"{name}":{json.dumps(value)}'
        for name, value in facts.items()
    )
    return f"{{{','.join(members)}}}"


def normalise(report: Report, device: Device, payload: Payload) -> Reading:
    """The reading that this report is, for a device that may have told us its unit before."""
    gravity, unit, sg, flags = gravity_of(report, device)
    temp = report.temp or ""
    created_at = int(payload.received_at)
    facts = report.facts
    if report.interval_s is not None:
        facts["interval_s"] = report.interval_s
    if report.device_time is not None:
        facts["device_time_local"] = report.device_time
    return Reading(
        oid=new_object_id(created_at),
        created_at=created_at,
        received_at=int(payload.received_at * 1000),
        name=report.name,
        gravity=gravity,
        gravity_unit=unit,
        temp=temp,
        temp_unit=report.temp_unit,
        comment=report.comment or "",
        beer=report.beer or "",
        interval=report.timepoint or units.serial_day(created_at),
        source=report.family,
        ip=payload.source,
        sg=sg,
        celsius=units.to_celsius(float(temp), report.temp_unit) if temp else None,
        facts=_json_of_facts(facts) if facts else None,
        flags=json.dumps(flags) if flags else None,
    )


def gravity_of(report: Report, device: Device) -> tuple[str, GravityUnit, float | None, list[str]]:
    """Text, unit, specific gravity and flags: an explicit unit wins, then magnitude, then history.

    A value on the scale of 1045 is SG times 1000 even where the unit says G (tilty, RAPT); only there is
    the text scaled, because the specification has no such unit.
    """
    text, flags = report.gravity, report.flags
    if text is None:
        return "", report.gravity_unit or device.gravity_unit or "G", None, flags
    value = float(text)
    for low, high, divisor in SCALED_SG_RANGES:
        if low <= value < high and report.gravity_unit != "P":
            return units.scale_text(text, divisor), "G", value / divisor, flags
    unit = report.gravity_unit
    if unit is None and SG_RANGE[0] <= value < SG_RANGE[1]:
        # A beer that finishes near 1 °P looks like SG; a device that has always spoken Plato still does.
        unit = "P" if device.gravity_unit == "P" else "G"
    elif unit is None and PLATO_RANGE[0] <= value <= PLATO_RANGE[1]:
        unit = "P"
    if unit is None:
        return text, "G", None, [*flags, "gravity_out_of_range"]
    return text, unit, units.to_sg(value, unit), flags
