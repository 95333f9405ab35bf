"""Tilt, as Tilt Pi, the Tilt app and Tilt Pico post it.

Form body (baronbrew/TILTpi flow.json; Tilt-Hydrometer-Framework7; Tilt-Pico-2 main.py), fields in either
order: `Timepoint` spreadsheet day in local time, `Temp` °F, `SG`, `Beer` (`Name` or `Name,<cloud id>`),
`Color` (`RED` or `RED:<MAC>`), `Comment`. Tilt Pi escapes with encodeURI, which leaves `&` alone, so `&`
separates only in front of a known key; Pico does not escape at all, and a key may lack its `=`.
Some bridges send the same members as JSON.

Reply: the app wants JSON with `result`. Tilt Pi clears a comment once it was sent only if the answer has
`beername` with a comma and `tiltcolor`; so both are echoed as received, and only then.
"""

from datetime import UTC, datetime

from gateway import units
from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import wire
from gateway.drivers.base import Driver
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

KEYS = ("Timepoint", "Temp", "SG", "Beer", "Color", "Comment")

EARLIEST_TIMEPOINT_DAY = 40_000
"""2009: no Tilt is older; below it the bridge's clock was not set."""

LATEST_TIMEPOINT_DAY = 110_000
"""2201."""


def parse(payload: Payload) -> list[Report]:
    """One report per payload."""
    body = payload.body.strip(b" \t\r\n\x00")
    if body.startswith(b"{"):
        source = wire.fields(payload)
    else:
        source = wire.form((body or payload.query.encode()).decode("utf-8", "replace"), KEYS)
    color_sent = wire.text(source, "Color", "color") or payload.label
    color, _, mac = color_sent.partition(":")
    if "SG" not in source and "Temp" not in source:
        raise DriverError("neither SG nor Temp")
    beer_sent = wire.text(source, "Beer", "beer") or ""
    beer, comma, cloud_id = beer_sent.rpartition(",") if "," in beer_sent else (beer_sent, "", "")
    report = Report(
        family="tilt",
        stable_id=mac or color,
        name=color,
        gravity_unit="G",
        temp_unit=wire.as_temp_unit(wire.temp_unit(source, "Unit", "temp_unit"), "F"),
        beer=beer or None,
        comment=wire.text(source, "Comment", "comment"),
        reply={"beername": beer_sent, "tiltcolor": color_sent} if comma else None,
    )
    if comma:
        report.facts["beer_cloud_id"] = cloud_id
    _set_values(report, source)
    _set_timepoint(report, source)
    return [report]


def _set_values(report: Report, source: Fields) -> None:
    gravity = wire.numeral(source, "SG")
    if gravity is None:
        report.flags.append("gravity_missing")
    elif float(gravity) == 0:
        report.flags.append("gravity_zero")
    else:
        report.gravity = gravity
    report.temp = wire.numeral(source, "Temp")
    if report.temp is not None and wire.is_sensor_fault(
        units.to_celsius(float(report.temp), report.temp_unit)
    ):
        report.temp = None
        report.flags.append("temp_sensor_fault")


def _set_timepoint(report: Report, source: Fields) -> None:
    timepoint = wire.numeral(source, "Timepoint")
    if timepoint is None or not EARLIEST_TIMEPOINT_DAY < float(timepoint) < LATEST_TIMEPOINT_DAY:
        return
    report.timepoint = timepoint
    local = datetime.fromtimestamp(round(units.serial_day_to_unix(float(timepoint))), UTC)
    report.device_time = local.replace(tzinfo=None).isoformat()


DRIVER = Driver("tilt", "Tilt Pi, Tilt app, Tilt Pico", parse)
