"""The members of a brew session about its device: the meter members, and the last reading as JSON text."""

import json

from gateway.domain import units
from gateway.domain.brewsession import DEVICE_MEMBERS, DeviceReading, SessionEntry
from gateway.domain.times import stamp

SG_DIGITS = 5
"""Decimals of a specific gravity whose reading was sent in Plato."""

FAHRENHEIT_DIGITS = 2
"""Decimals of a temperature in Fahrenheit whose reading was sent in Celsius."""


def meter_members(entry: SessionEntry) -> dict[str, str | None]:
    """Return the `DEVICE_MEMBERS` of a session; without a device, as the mirrored service sent them."""
    device = entry.device
    if device is None:
        said = {name: entry.session.details.get(name) for name in DEVICE_MEMBERS}
        return {**said, "meter_active": said["meter_active"] or "0"}
    reported = None if device.created_at is None else stamp(device.created_at)
    return {
        "meter_active": "1",
        "meter_color": device.name or device.device_name,
        "meter_updated": reported,
        "device_reading": None if reported is None else last_reading(device),
        "device_updated_at": reported,
        "device_active": "1",
        "device_id": str(device.device_id),
    }


def last_reading(device: DeviceReading) -> str:
    """Write the last reading as a meter device's six members, in SG and Fahrenheit, and as it was sent."""
    sg, fahrenheit = device.gravity, device.temp
    if sg and device.gravity_unit != "G":
        try:
            sg = _plain(units.to_sg(float(sg), device.gravity_unit), SG_DIGITS)
        except ZeroDivisionError:
            sg = ""
    if fahrenheit and device.temp_unit != "F":
        fahrenheit = _plain(units.celsius_to_fahrenheit(float(fahrenheit)), FAHRENHEIT_DIGITS)
    members = {
        "SG": sg,
        "Temp": fahrenheit,
        "Color": device.name or "",
        "Timepoint": device.interval,
        "Beer": device.beer,
        "Comment": device.comment,
        "gravity": device.gravity,
        "gravity_unit": device.gravity_unit,
        "temp": device.temp,
        "temp_unit": device.temp_unit,
    }
    return json.dumps({"last_reading": members}, ensure_ascii=False, separators=(",", ":"))


def _plain(value: float, digits: int) -> str:
    """Write a number as decimal text without trailing zeros, as the service writes numbers."""
    text = f"{round(value, digits) + 0.0:.{digits}f}"  # 0.0: there is no text "-0"
    return text.rstrip("0").rstrip(".")
