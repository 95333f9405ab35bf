"""Tilt, as Tilt Pi, the Tilt app, Tilt Pico and several TiltBridge targets post it.

Form body (baronbrew/TILTpi flow.json; Tilt-Hydrometer-Framework7; Tilt-Pico-2 main.py), fields in any
order: `Timepoint` spreadsheet day in local time, `Temp` °F, `SG`, `Beer` (`Name` or `Name,<row of a sheet>`),
`Color` (`RED`, `RED:<MAC>`, `RED_<MAC>`, any of them with `•HD`), `Comment`. Tilt Pi escapes with encodeURI,
which leaves `&` alone, so `&` separates only in front of a known key; Pico does not escape at all, so a `%`
stands for itself in a text with blanks, and TiltPico's `Comment` lacks its `=`.

The same members as JSON come from TiltBridge (thorrak/tiltbridge src/sendData.cpp): taplist.io with
`temperature_unit` and `gravity_unit`, Google Sheets with `Email`, which is not kept, and `tzOffset`; and from
tilty (myoung34/tilty README), whose `Timepoint` may be Unix seconds or ISO and whose `SG` is times 1000.

Reply: the app wants JSON with `result`. Tilt Pi clears a comment once it was sent only if the answer has
`beername` with a comma and `tiltcolor`; so both are echoed as received, and only then. Without a comma it
sends its comment with every later post. TiltBridge's Google Sheets target compares `doclongurl` with the text
it keeps, which is empty at first, and crashes without one.
"""

import re
from datetime import UTC, datetime

from gateway.domain import units
from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, identity, stream, wire
from gateway.drivers.base import Driver
from gateway.drivers.tilts import is_version_beacon, mend_high_resolution, split_color

KEYS = ("Timepoint", "Temp", "SG", "Beer", "Color", "Comment", "temperature_unit", "gravity_unit")

SHEETS_KEYS = ("Email", "tzOffset")
"""Members that only TiltBridge's Google Sheets target has."""

NO_SHEET = {"doclongurl": ""}
"""A member that the Google Sheets target needs in each answer, whatever becomes of the reading."""

EARLIEST_TIMEPOINT_DAY = 40_000
"""The first plausible spreadsheet day, in 2009: no Tilt is older. Before it a bridge's clock is not set."""

LATEST_TIMEPOINT_DAY = 110_000
"""The last plausible spreadsheet day, in 2201."""

_CLOUD_ID = re.compile(r"\d+\Z")  # a row of the user's sheet


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload; none for a Tilt that sends its firmware version."""
    body = wire.stripped(payload)
    if (payload.fields is not None and not body and not payload.query) or body.startswith(b"{"):
        source = wire.fields(payload)
    else:
        text = body.decode("utf-8", "replace") if body else payload.query.replace("?", "&")
        source = wire.form(text, KEYS, escaped=" " not in text)
    if "SG" not in source and "Temp" not in source and stream.fits(source):
        return stream.parse(payload)
    color_sent = wire.text(source, "Color", "color") or ""
    color, mac = split_color(color_sent or payload.label)
    beer_sent = wire.text(source, "Beer", "beer") or ""
    beer, comma, cloud_id = beer_sent.rpartition(",")
    if not comma or (cloud_id and not _CLOUD_ID.match(cloud_id)):
        beer, cloud_id = beer_sent, ""  # text after a comma is part of the name if it has a blank
    # Tilt Pi clears its comment only after an answer with the colour and a name with a comma.
    reply = {"beername": beer_sent, "tiltcolor": color_sent} if "," in beer_sent and color_sent else {}
    if any(key in source for key in SHEETS_KEYS):
        reply |= NO_SHEET
    report = Report(
        stable_id=mac or color,
        name=color,
        beer=beer or None,
        comment=wire.text(source, "Comment", "comment"),
        reply=reply or None,
    )
    identity.settle(report, payload, source, shared=not report.stable_id)
    if cloud_id:
        report.facts["beer_cloud_id"] = cloud_id
    fill.token(report, payload, source)
    fill.gravity(report, source, "SG", unit="G", reason="the name of SG")
    fill.temperature(report, source, {"Temp": None}, "F")
    mend_high_resolution(report)
    timepoint = wire.numeral(source, "Timepoint")
    if timepoint is None or float(timepoint) >= LATEST_TIMEPOINT_DAY:
        fill.clock(report, source, "Timepoint")
    elif float(timepoint) > EARLIEST_TIMEPOINT_DAY:
        report.timepoint = timepoint
        local = datetime.fromtimestamp(round(units.serial_day_to_unix(float(timepoint))), UTC)
        report.device_time = local.replace(tzinfo=None).isoformat()
    return [] if is_version_beacon(report) else fill.only_measured(report, source, "SG", "Temp")


DRIVER = Driver(
    "tilt",
    "Tilt Pi, Tilt app, Tilt Pico",
    parse,
    paths=("/tilt", "/tilt/{token}", "/API/tilt", "/macros/s/{key}/exec"),
    repeats_comments=True,
    reply=NO_SHEET,
)
