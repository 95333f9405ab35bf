"""Brewblox' envelopes by MQTT: spindles that write into its history, and its two services for Tilts.

Spindles (`brewcast/history` or below): `{"key":<name>,"data":{...}}`. iSpindel (universam1/iSpindel
pio/lib/Sender/Sender.cpp): `Tilt[deg]`, `Temperature[degC]` or `[degF]` or `[degK]`, `Battery[V]`, `Gravity`
in a unit that nothing tells, `Rssi[dBm]`. GravityMon (mp-se/gravitymon-ui gravityFormatOptions.js): both
temperatures, `SG` and `Plato`. PressureMon: `pressure`, `pressure1`, `pressure-unit`, `battery`, `interval`,
`RSSI`.

The old Tilt service (j616/brewblox-tilt brewblox_tilt/tiltScanner.py): history `{"key":<service>,"data":
{"Red":{"Temperature[degF]","Temperature[degC]","Specific gravity","Plato[degP]","Signal strength[dBm]",
"Calibrated temperature[degF]" ...}}}`, and retained `brewcast/state/<service>/<colour>` with `"type":
"Tilt.state"` and the same values: only its history is read. A Tilt of a service by another name than `tilt`
is another one.

The new one (BrewBlox/brewblox-tilt brewblox_tilt/broadcaster.py): state `brewcast/state/<service>/<colour>/
<MAC>` `{"key","type":"Tilt.state","timestamp" ms,"color","mac","name","data":{"temperature[degF]",
"temperature[degC]","specificGravity","plato[degP]","rssi[dBm]","uncalibrated..."}}`, values calibrated
where they can be; history has the same values by name: only its state is read. `Tilt.state.service` only
announces the service, and messages of Brewblox' other services are passed over.
"""

from typing import Any

from gateway.domain.payload import Payload
from gateway.domain.report import GravityUnit, Report
from gateway.drivers import fill, wire
from gateway.drivers.base import Driver
from gateway.drivers.tiltbridge import TILTS_MAX
from gateway.drivers.tilts import is_version_beacon
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

SPINDLE_GRAVITIES: dict[str, GravityUnit | None] = {"SG": "G", "Plato": "P", "Gravity": None}

SPINDLE_TEMPERATURES: dict[str, fill.Unit | None] = {
    "Temperature[degC]": "C",
    "Temperature[degF]": "F",
    "Temperature[degK]": "K",
}

SPINDLE_NUMBERS = {
    "Tilt[deg]": "angle",
    "Battery[V]": "battery",
    "battery": "battery",
    "Rssi[dBm]": "rssi",
    "RSSI": "rssi",
}

PRESSURES = {"pressure": "pressure", "pressure1": "pressure1"}

SPINDLE_MEMBERS = (*SPINDLE_GRAVITIES, *SPINDLE_TEMPERATURES, "Tilt[deg]", *PRESSURES)

TILT_GRAVITIES: dict[str, GravityUnit | None] = {
    "Calibrated specific gravity": "G",
    "Specific gravity": "G",
    "specificGravity": "G",
    "Calibrated plato[degP]": "P",
    "Plato[degP]": "P",
    "plato[degP]": "P",
}

TILT_TEMPERATURES: dict[str, fill.Unit | None] = {
    "Calibrated temperature[degF]": "F",
    "Calibrated temperature[degC]": "C",
    "Temperature[degF]": "F",
    "Temperature[degC]": "C",
    "temperature[degF]": "F",
    "temperature[degC]": "C",
}

TILT_NUMBERS = {"Signal strength[dBm]": "rssi", "rssi[dBm]": "rssi"}

TILT_MEMBERS = frozenset({*TILT_GRAVITIES, *TILT_TEMPERATURES})

NEW_MEMBERS = frozenset({"specificGravity", "plato[degP]", "temperature[degF]", "temperature[degC]"})
"""Members that only the new Tilt service writes."""

TILT_STATE = "Tilt.state"

TILT_SERVICE = "tilt"
"""The old Tilt service's name, unless its user changed it."""


def parse(payload: Payload) -> list[Report]:
    """Return a report per hydrometer; none if another message has the same values, or for another service."""
    source = wire.fields(payload)
    if source.keys().isdisjoint(("key", "type", "data")):
        raise DriverError("no message of Brewblox")
    data = source.get("data")
    kind = wire.text(source, "type")
    if not isinstance(data, dict) or (kind is not None and kind != TILT_STATE):
        return []
    if kind == TILT_STATE:
        if data.keys().isdisjoint(NEW_MEMBERS):
            return []
        color = wire.text(source, "color", "colour") or payload.label
        name = wire.text(source, "name") or color
        report = Report(stable_id=wire.text(source, "mac") or name, name=name)
        fill.words(report, source, {"color": "color", "colour": "color"})
        fill.clock(report, source, "timestamp")
        return _measured(report, data)
    if any(key in data and not isinstance(data[key], dict) for key in SPINDLE_MEMBERS):
        return _spindle(payload, wire.text(source, "key") or payload.label, data)
    return _tilts_of_history(payload, wire.text(source, "key") or "", data)


def _spindle(payload: Payload, name: str, data: Fields) -> list[Report]:
    report = Report(stable_id=name, name=name)
    fill.token(report, payload, data)
    if any(key in data for key in (*SPINDLE_GRAVITIES, "Tilt[deg]")):
        fill.named_gravity(report, data, SPINDLE_GRAVITIES)
    fill.temperature(report, data, SPINDLE_TEMPERATURES, None)
    fill.interval(report, data)
    fill.facts(report, data, SPINDLE_NUMBERS, PRESSURES)
    fill.words(report, data, {"pressure-unit": "pressure_unit", "pressure_unit": "pressure_unit"})
    if report.facts.get("angle") == 0:
        report.flags.append("angle_zero")
    return fill.only_measured(report, data, *SPINDLE_MEMBERS)


def _tilts_of_history(payload: Payload, service: str, data: dict[str, Any]) -> list[Report]:
    """Return the old Tilt service's reports; a message of another service has none."""
    tilts = {
        wire.clean(name.strip()): values
        for name, values in data.items()
        if isinstance(values, dict) and not TILT_MEMBERS.isdisjoint(values) and NEW_MEMBERS.isdisjoint(values)
    }
    if len(tilts) > TILTS_MAX:
        raise DriverError(f"{len(tilts)} Tilts in one message")
    reports: list[Report] = []
    for name, values in tilts.items():
        stable_id = f"{name}@{service}" if service not in {"", TILT_SERVICE} else name
        reports += _measured(Report(stable_id=stable_id or payload.label, name=name), values)
    return reports


def _measured(report: Report, data: Fields) -> list[Report]:
    fill.named_gravity(report, data, TILT_GRAVITIES)
    fill.temperature(report, data, TILT_TEMPERATURES, None)
    fill.facts(report, data, TILT_NUMBERS)
    return [] if is_version_beacon(report) or not fill.measures(report) else [report]


DRIVER = Driver(
    "brewblox",
    "Brewblox",
    parse,
    topics=("brewcast/history", "brewcast/history/#", "brewcast/state/#"),
)
