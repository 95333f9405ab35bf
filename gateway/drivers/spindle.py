"""What the iSpindel's JSON and all its look-alikes share: names, units, sentinels.

Members (devices sections 5.2, 6.2, 13): `name`, `ID`, `token`, `angle` or `tilt` degree, `temperature`,
`temp_units` C/F/K (absent: C), `battery` volt, `gravity` in the unit of the user's polynomial, `interval`
seconds, `RSSI` dBm. A value may be a number, text, text with a decimal comma, null or absent.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import GravityUnit, Report, TempUnit
from gateway.drivers import fill, wire
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

NAME_SUFFIXES: dict[str, GravityUnit] = {"[sg]": "G", ",sg": "G", "[plato]": "P", ",plato": "P"}
"""Users add these for services that cannot be told the unit otherwise; they are no part of the name."""

TEMPERATURES: dict[str, fill.Unit | None] = {"temperature": None, "temp": None}

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
"""The same where the text is kept as sent."""


NO_ID = "0"
"""Fermentrack's push for Grainfather fills `ID` with it, and `angle`, `battery` and `RSSI` (section 15)."""

SG_MEMBER = "tilt_SG"
"""Hydrom's gravity as SG, beside `gravity` in Plato (section 10.11)."""


def parse(
    payload: Payload, source: Fields, *, gravity: bool = True, temp_unit: TempUnit | None = "C"
) -> Report:
    """One report; `DriverError` where nothing in it is a measurement. Some relatives know no `gravity`.

    `temp_unit` is what a temperature without a unit means; None where that says nothing.
    """
    device_id = wire.text(source, "ID", "id")
    label = payload.label if payload.label != device_id else ""
    name, unit = split_name(wire.text(source, "name") or label)
    stable_id = device_id or name
    report = Report(
        stable_id=stable_id if stable_id != NO_ID else name,
        name=name,
        beer=wire.text(source, "beer", "recipe"),
        comment=wire.text(source, "comment"),
    )
    fill.token(report, payload, source)
    if gravity and SG_MEMBER in source and wire.numeral(source, SG_MEMBER) is not None:
        fill.gravity(report, source, SG_MEMBER, unit="G", reason=f"the name of {SG_MEMBER}")
    elif gravity:
        fill.gravity(report, source, "gravity", unit=unit, reason="the end of its name")
    fill.temperature(report, source, TEMPERATURES, temp_unit)
    fill.interval(report, source)
    fill.facts(report, source, NUMBERS, NUMERALS)
    if stable_id == NO_ID:
        fill.drop_zeros(report, "angle", "battery", "rssi")
    if "corr_gravity" in report.facts:
        fill.drop_zeros(report, "corr_gravity")
    if report.facts.get("angle") == 0:
        report.flags.append("angle_zero")
    if not fill.measures(report):
        raise DriverError("neither gravity nor temperature nor angle")
    return report


def split_name(text: str) -> tuple[str, GravityUnit | None]:
    """A name without the unit that its end states, and that unit."""
    lowered = text.lower()
    for suffix, unit in NAME_SUFFIXES.items():
        if lowered.endswith(suffix):
            return text[: -len(suffix)].rstrip(), unit
    return text, None
