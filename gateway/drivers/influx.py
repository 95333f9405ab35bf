"""InfluxDB's line protocol, from iSpindel, GravityMon, PressureMon, the chamber controller and eManometer.

iSpindel (universam1/iSpindel pio/lib/Sender/Sender.cpp, POST to `/write?db=` or a URI of the user's):
`measurements,source=<name> tilt=,temperature=,temp_units="C",battery=,gravity=,interval=,RSSI=`. The name is
not escaped and may hold commas, `=` and blanks; `temp_units` has no quotes up to 6.0 and is absent before
5.9; gravity may be `null`. eManometer (JackFrost80/eManometer pio/src/Sender.cpp) means to send the same line
with `pressure` in bar and `co2`, but clears its values first, up to 1.0.0: `measurements,source=<name>` is
all that arrives.

mp-se, POST to `/api/v2/write?org=&bucket=`: `measurement,host=<mdns>,device=<id>,temp-format=C,
gravity-format=G gravity=,velocity=,corr-gravity=,angle=,temp=,battery=,rssi=` (gravitymon
src/push_templates.cpp), `measurement,host=,device=,temperature-unit=,pressure-unit= pressure=,temp=,...`
(pressuremon src/push_pressuremon.cpp), `chamber,host=,device=,mode= beer-temp=,chamber-temp=,
beer-target-temp=,chamber-target-temp=,...` without a unit (chamber-controller src/main.cpp), 0.000000 where
a sensor is not connected and where nothing is set (INVALID_TEMP through tempToDouble,
lib/brewpi-pid/TemperatureFormats.cpp).

TiltBridge 2 (thorrak/tiltbridge src/sendData.cpp), POST to `/api/v2/write?org=&bucket=&precision=s`, a line
for each Tilt: `tilt,color=Red,device_source=TiltBridge gravity=1.0450,temperature=68.0,temp_units="F",
weeks_on_battery=3`; a Tilt is known by its colour, and its gravity is SG.

Each line is a reading. The rest of the protocol is read, too: escapes, quoted text, `i` and `u` behind
whole numbers, and a time at the end in s, ms, us or ns. The firmware takes 204 as success.
"""

import re
from itertools import islice

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import emanometer, fill, identity, spindle, wire
from gateway.drivers.base import Driver
from gateway.errors import DriverError

SPINDLE_MEASUREMENT, SPINDLE_TAG = "measurements", "source="

CHAMBER_MEASUREMENT = "chamber"

TILT_MEASUREMENT, TILT_NAME = "tilt", "color"

NAMES = ("source", "name", "device_name")
COLLECTOR = "host"
"""The device itself in GravityMon's lines. In other lines it is the machine that collects from many
devices."""

FORMERLY = ("source", "host", "name", "device_name")
"""Tags that identified a device without an id in earlier versions."""

IDS = ("device", "ID", "id", "chipid", "device_id", "mac")

NUMBERS = spindle.ALL_NUMBERS | emanometer.NUMBERS

NUMERALS = spindle.ALL_NUMERALS | {
    "chamber-temp": "aux_temp",
    "beer-target-temp": "temp_target",
    "chamber-target-temp": "chamber_temp_target",
}

WORDS = {"pressure-unit": "pressure_unit", "pressure_unit": "pressure_unit", "mode": "device_state"}

BLANKS_LIMIT = 16
"""The most blanks in a name."""

LINES_LIMIT = 200
"""The most lines in one body; a device sends one, a proxy a few dozen."""

TIME_UNITS_PER_S = ((10**17, 10**9), (10**14, 10**6), (10**11, 10**3))
"""Figures from which on a time is in ns, us and ms: seconds have not been so large since 1973."""

_BLANKS = re.compile(r"(?<!\\) +")
_FIELD = re.compile(r'[,\s]*((?:\\.|[^\\=,"\s])+)=("(?:\\.|[^"\\])*"|(?:\\.|[^\\,\s"])*)')
_COMMA = re.compile(r"(?<!\\),")
_EQUALS = re.compile(r"(?<!\\)=")
_ESCAPED = re.compile(r'\\([ ,="\\])')
_TIME = re.compile(r"[0-9]{1,19}\Z")
_WHOLE = re.compile(r"[+-]?[0-9]+[iu]\Z")


def parse(payload: Payload) -> list[Report]:
    """Return one report per line with a value. Pass over other lines, unless there is nothing else."""
    reports: list[Report] = []
    trouble: DriverError | None = None
    is_silent = False
    lines = wire.stripped(payload).decode("utf-8", "replace").split("\n", LINES_LIMIT)
    if len(lines) > LINES_LIMIT:
        raise DriverError(f"more than {LINES_LIMIT} lines")
    for line in lines:
        if not (line := line.strip()) or line.startswith("#"):
            continue
        try:
            # An eManometer clears its values before it sends them.
            is_cleared = (
                line.startswith(f"{SPINDLE_MEASUREMENT},{SPINDLE_TAG}") and _end_of_tags(line) is None
            )
            report = None if is_cleared else _report(payload, line)
        except DriverError as error:
            trouble = trouble or error
            continue
        if report is None:
            is_silent = True
        else:
            reports.append(report)
    if not reports and not is_silent:
        raise trouble or DriverError("no line in it")
    return reports


def _report(payload: Payload, line: str) -> Report | None:
    """Return the report of a line; None if a chamber controller has no sensor with a value."""
    measurement, members, time = read_line(line)
    if measurement == CHAMBER_MEASUREMENT:
        # A controller writes 0 for a probe that is not there.
        members = {
            k: v for k, v in members.items() if not (k.endswith("-temp") and wire.number(members, k) == 0)
        }
    named_by = (*NAMES, TILT_NAME) if measurement == TILT_MEASUREMENT else NAMES
    said, collector = wire.text(members, *named_by), wire.text(members, COLLECTOR)
    name, unit = spindle.split_name(said or collector or "")
    device_id = wire.text(members, *IDS) or ""
    own = device_id if device_id.strip("0") else ""
    elsewhere = payload.label or payload.source or measurement
    report = Report(own or name or elsewhere, "" if said is None else name, beer=fill.beer(members, "beer"))
    identity.settle(report, payload, members, own=own, shared=said is None)
    report.name = report.name or name
    before = spindle.split_name(wire.text(members, *FORMERLY) or "")[0] or elsewhere
    if not own and report.stable_id != before:
        report.shared_id = before
    report.measured_at = time
    fill.token(report, payload, members)
    # Only a hydrometer can miss its gravity; a pressure gauge and a chamber have none.
    required = any(word in members for word in ("gravity", "tilt", "angle"))
    reason = spindle.NAME_SAYS
    if measurement == TILT_MEASUREMENT:
        unit, reason = "G", fill.FORMAT_SAYS
    fill.any_gravity(report, members, unit=unit, reason=reason, required=required)
    # Before 5.9 the iSpindel had no unit and sends Celsius; the chamber controller never says it.
    fill.temperature(
        report, members, spindle.ALL_TEMPERATURES, "C" if measurement == SPINDLE_MEASUREMENT else None
    )
    fill.interval(report, members)
    fill.facts(report, members, NUMBERS, NUMERALS)
    fill.words(report, members, WORDS)
    if "pressure" in report.facts and emanometer.fits(members):
        report.facts.setdefault("pressure_unit", emanometer.PRESSURE_UNIT)
    if report.facts.get("angle") == 0:
        report.flags.append("angle_zero")
    if fill.measures(report) or "aux_temp" in report.facts:
        return report
    if measurement == CHAMBER_MEASUREMENT:
        return None
    raise DriverError("a line without a measurement of a hydrometer")


def read_line(line: str) -> tuple[str, dict[str, str], float | None]:
    """Return measurement, tags and fields together, and the time in Unix seconds.

    Raise `DriverError` if the text is no line of the protocol.
    """
    blank = _end_of_tags(line)
    if blank is None:
        raise DriverError("no line of InfluxDB's protocol")
    measurement, members = _tags(line[: blank.start()])
    place = blank.end()
    while field := _FIELD.match(line, place):
        value = field[2]
        if value.startswith('"'):
            value = _plain(value[1:-1])
        else:
            value = value[:-1] if _WHOLE.match(value) else _plain(value)
        members[_plain(field[1])] = value
        place = field.end()
    behind = line[place:].strip(" ,\t")
    if not _TIME.match(behind):
        return measurement, members, None
    time = int(behind)
    per_s = next((per_s for least, per_s in TIME_UNITS_PER_S if time >= least), 1)
    return measurement, members, time / per_s


def _end_of_tags(line: str) -> re.Match[str] | None:
    """Return the place of the first blank before a field: the firmware leaves blanks in a name unescaped."""
    blanks = islice(_BLANKS.finditer(line), BLANKS_LIMIT)
    return next((blank for blank in blanks if _FIELD.match(line, blank.end())), None)


def _tags(head: str) -> tuple[str, dict[str, str]]:
    measurement, _, rest = head.partition(",")
    if measurement == SPINDLE_MEASUREMENT and rest.startswith(SPINDLE_TAG):
        return measurement, {"source": _plain(rest[len(SPINDLE_TAG) :])}
    tags: dict[str, str] = {}
    for pair in _COMMA.split(rest):
        key, *value = _EQUALS.split(pair, maxsplit=1)
        if value:
            tags[_plain(key)] = _plain(value[0])
    return _plain(measurement), tags


def _plain(text: str) -> str:
    return wire.clean(_ESCAPED.sub(r"\1", text) if "\\" in text else text)


DRIVER = Driver("influx", "InfluxDB line protocol", parse, paths=("/write", "/api/v2/write"), status=204)
