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
from gateway.drivers import fill, wire
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
    body = wire.stripped(payload)
    if (payload.fields is not None and not body) or body.startswith(b"{"):
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
        stable_id=mac or color,
        name=color,
        beer=beer or None,
        comment=wire.text(source, "Comment", "comment"),
        reply={"beername": beer_sent, "tiltcolor": color_sent} if comma else None,
    )
    if comma:
        report.facts["beer_cloud_id"] = cloud_id
    fill.gravity(report, source, "SG", unit="G", reason="the name of SG")
    fill.temperature(report, source, {"Temp": None}, "F")
    _set_timepoint(report, source)
    return [report]


def _set_timepoint(report: Report, source: Fields) -> None:
    timepoint = wire.numeral(source, "Timepoint")
    if timepoint is None or not EARLIEST_TIMEPOINT_DAY < float(timepoint) < LATEST_TIMEPOINT_DAY:
        return
    report.timepoint = timepoint
    local = datetime.fromtimestamp(round(units.serial_day_to_unix(float(timepoint))), UTC)
    report.device_time = local.replace(tzinfo=None).isoformat()


DRIVER = Driver("tilt", "Tilt Pi, Tilt app, Tilt Pico", parse, paths=("/tilt", "/tilt/{token}", "/API/tilt"))
