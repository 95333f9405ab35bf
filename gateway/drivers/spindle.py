"""Common parts of the iSpindel's JSON and all its look-alikes: names, units, sentinels.

Members (devices sections 5.2, 6.2, 13): `name`, `ID`, `token`, `angle` or `tilt` degree, `temperature`,
`temp_units` C/F/K (absent: C), `battery` volt, `gravity` in the unit of the user's polynomial, `interval`
seconds, `RSSI` dBm. A value may be a number, text, text with a decimal comma, null or absent. Look-alikes
and forwarders use other names of section 13 as well, and a `timestamp`; both are read if they occur.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import GravityUnit, Report, TempUnit
from gateway.drivers import fill, identity, wire
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

NAME_SUFFIXES: dict[str, GravityUnit] = {"[sg]": "G", ",sg": "G", "[plato]": "P", ",plato": "P"}
"""Ends of a name that users add to state a unit; they are no part of the name."""

TEMPERATURES: dict[str, fill.Unit | None] = {"temperature": None, "temp": None}

ALL_TEMPERATURES = TEMPERATURES | fill.TEMPERATURE_NAMES

NUMBERS = {
    "angle": "angle",
    "tilt": "angle",
    "battery": "battery",
    "RSSI": "rssi",
    "rssi": "rssi",
    "velocity": "velocity",
    "run-time": "run_time_s",
    "co2": "co2",
    "battery-percent": "battery_percent",
    "battery_percent": "battery_percent",
    "batteryLevel": "battery_percent",
}
"""Numbers that are kept beside a reading, by their name on the wire."""

NUMERALS = {"corr-gravity": "corr_gravity", "pressure": "pressure"}
"""Numbers that are kept with their text as sent, by their name on the wire."""

ALL_NUMBERS = NUMBERS | fill.NUMBER_NAMES
ALL_NUMERALS = NUMERALS | fill.NUMERAL_NAMES

TIMES = ("timestamp", "timeStamp")

FOREIGN = frozenset(
    {*fill.GRAVITY_NAMES, *fill.TEMPERATURE_NAMES, *fill.NUMBER_NAMES, *fill.NUMERAL_NAMES, *TIMES}
    - {fill.OWN_GRAVITY, *NUMBERS, *NUMERALS}
)
"""Members that no iSpindel has: one look shows whether other formats' names need a search."""

NO_ID = "0"
"""The `ID` in Fermentrack's push for Grainfather. `angle`, `battery` and `RSSI` are 0 there, too (section
15)."""

NAME_SAYS = "the end of its name"

PSI = "PSI"
"""The unit of a pressure whose member is `psi`."""

SG_MEMBER = "tilt_SG"
"""Hydrom's gravity as SG, beside `gravity` in Plato (section 10.11)."""


def parse(
    payload: Payload, source: Fields, *, gravity: bool = True, temp_unit: TempUnit | None = "C"
) -> Report:
    """Return one report. Raise `DriverError` without a measurement. Some relatives know no `gravity`.

    `temp_unit` is the unit of a temperature that names none; None if that unit is unknown.
    """
    device_id = wire.text(source, "ID", "id")
    label = payload.label if payload.label != device_id else ""
    name, unit = split_name(wire.text(source, "name") or label)
    has_id = device_id != NO_ID
    report = Report(
        stable_id=(device_id if has_id else "") or name or payload.source,
        name=name,
        beer=fill.beer(source, "beer", "recipe"),
        comment=wire.text(source, "comment"),
    )
    identity.settle(report, payload, source, own=device_id if device_id and has_id else "", shared=not name)
    fill.token(report, payload, source)
    is_foreign = not FOREIGN.isdisjoint(source)
    if gravity and is_foreign:
        if wire.numeral(source, SG_MEMBER) is not None:
            fill.gravity(report, source, SG_MEMBER, unit="G", reason=f"the name of {SG_MEMBER}")
        else:
            fill.any_gravity(report, source, unit=unit, reason=NAME_SAYS)
    elif gravity:
        fill.gravity(report, source, fill.OWN_GRAVITY, unit=unit, reason=NAME_SAYS)
    fill.temperature(report, source, ALL_TEMPERATURES if is_foreign else TEMPERATURES, temp_unit)
    fill.interval(report, source)
    fill.facts(report, source, NUMBERS, NUMERALS)
    if is_foreign:
        # The names of other formats come after the iSpindel's own.
        has_pressure = "pressure" in report.facts
        fill.facts(report, source, fill.NUMBER_NAMES, fill.NUMERAL_NAMES)
        if not has_pressure and "pressure" in report.facts:
            report.facts["pressure_unit"] = PSI
        fill.clock(report, source, *TIMES)
    if not has_id:
        fill.drop_zeros(report, "angle", "battery")
    if report.facts.get("rssi") == 0:
        del report.facts["rssi"]  # no radio: iSpindel-TCP-Server fills the place with it
    if "corr_gravity" in report.facts:
        fill.drop_zeros(report, "corr_gravity")
    if report.facts.get("angle") == 0:
        report.flags.append("angle_zero")
    if not fill.measures(report):
        raise DriverError("neither gravity nor temperature nor angle")
    return report


def split_name(text: str) -> tuple[str, GravityUnit | None]:
    """Return a name without the unit at its end, and that unit."""
    lowered = text.lower()
    for suffix, unit in NAME_SUFFIXES.items():
        if lowered.endswith(suffix):
            return text[: -len(suffix)].rstrip(), unit
    return text, None
