"""Prometheus' text format, as the iSpindel pushes it to a Pushgateway.

POST to `/metrics/job/<job>/instance/<instance>` (universam1/iSpindel pio/lib/Sender/Sender.cpp; defaults
`ispindel` and `000`), `# TYPE`, `# HELP` and one line with the value for each of `tilt`, `temperature`,
`battery`, `gravity`, `interval`, `RSSI`. The temperature is Celsius whatever the device is set to. There is
no name: job and instance, of which one may be empty, are the identity, or a label `name`, `device`, `host` or
`instance`, which no firmware sends. The firmware takes 202 as success.

eManometer means to send `temperature`, `pressure` in bar, `co2`, `interval`, `RSSI` likewise, but clears its
values first, up to 1.0.0 (JackFrost80/eManometer pio/src/Sender.cpp): an empty body is all that arrives.
"""

import re

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import emanometer, fill, identity, spindle, wire
from gateway.drivers.base import Driver
from gateway.errors import DriverError

NAMES = ("name", "device")
COLLECTORS = ("host", "instance")
"""Labels that several devices may share; the path of a job may be shared, too."""

NUMBERS = spindle.ALL_NUMBERS | emanometer.NUMBERS

DEVICES_LIMIT = 64
"""The most sets of labels in one body."""

_SAMPLE = re.compile(r"([A-Za-z_:][\w:.-]*)(?:\{([^}]*)\})?\s+(\S+)(?:\s+(-?[0-9]{1,16}))?\Z")
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:\\.|[^"\\])*)"')


def parse(payload: Payload) -> list[Report]:
    """Return one report for each set of labels; none if there are only comments, or nothing."""
    groups: dict[str, dict[str, str]] = {}
    for line in wire.stripped(payload).decode("utf-8", "replace").split("\n"):
        if not (line := line.strip()) or line.startswith("#"):
            continue
        sample = _SAMPLE.match(line)
        if sample is None:
            raise DriverError("no text format of Prometheus")
        metric, labels, value, time = sample.groups()
        group = groups.setdefault(labels or "", {})
        group.setdefault(metric, value)
        if time:
            group.setdefault("timestamp", time)
    if len(groups) > DEVICES_LIMIT:
        raise DriverError(f"metrics of more than {DEVICES_LIMIT} devices")
    if not groups and wire.stripped(payload) and not wire.is_exposition(payload):
        raise DriverError("no text format of Prometheus")
    return [_report(payload, labels, members) for labels, members in groups.items()]


def _report(payload: Payload, labels: str, members: dict[str, str]) -> Report:
    said = dict(_LABEL.findall(labels))
    name = wire.text(said, *NAMES)
    lesser = wire.text(said, *COLLECTORS) or payload.label
    report = Report(stable_id=name or lesser, name=name or "")
    identity.settle(report, payload, said, shared=name is None)
    report.name = report.name or lesser
    fill.token(report, payload, {})
    required = not emanometer.fits(members)
    fill.any_gravity(report, members, required=required)
    fill.temperature(report, members, spindle.ALL_TEMPERATURES, "C")
    fill.interval(report, members)
    fill.facts(report, members, NUMBERS, spindle.ALL_NUMERALS)
    fill.clock(report, members, "timestamp")
    if "pressure" in report.facts and not required:
        report.facts["pressure_unit"] = emanometer.PRESSURE_UNIT
    if report.facts.get("angle") == 0:
        report.flags.append("angle_zero")
    if not fill.measures(report):
        raise DriverError("metrics of something else than a hydrometer")
    return report


DRIVER = Driver(
    "prometheus",
    "Prometheus push",
    parse,
    paths=(
        "/metrics/job/{label}", "/metrics/job/{job}/instance/{label}", "/metrics/job/{label}/instance",
        "/metrics/job//instance/{label}",
    ),
    status=202,
)  # fmt: skip
