"""What the iSpindel's JSON and all its look-alikes share: names, units, sentinels.

Members (devices sections 5.2, 6.2, 13): `name`, `ID`, `token`, `angle` or `tilt` degree, `temperature`,
`temp_units` C/F/K (absent: C), `battery` volt, `gravity` in the unit of the user's polynomial, `interval`
seconds, `RSSI` dBm. A value may be a number, text, text with a decimal comma, null or absent.
"""

from typing import Any

from gateway import units
from gateway.domain.payload import Payload
from gateway.domain.report import GravityUnit, Report
from gateway.drivers import wire
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

GRAVITY_KEYS = ("gravity",)
TEMP_UNIT_KEYS = ("temp_units", "temp-units", "temp_unit", "temperature-unit", "temperature_unit")
GRAVITY_UNIT_KEYS = ("gravity-unit", "gravity_unit", "gravity-units", "gravity_units")

GRAVITY_UNITS: dict[str, GravityUnit] = {
    "g": "G", "sg": "G", "p": "P", "plato": "P", "°p": "P",
}  # fmt: skip

NAME_SUFFIXES: dict[str, GravityUnit] = {"[sg]": "G", ",sg": "G", "[plato]": "P", ",plato": "P"}
"""Users add these for services that cannot be told the unit otherwise; they are no part of the name."""

BATTERY_VOLT_LIMIT = 5.5
"""Above it a battery figure is percent: no single cell has that many volts."""

FACTS = {
    "angle": "angle",
    "tilt": "angle",
    "battery": "battery",
    "RSSI": "rssi",
    "rssi": "rssi",
    "velocity": "velocity",
    "run-time": "run_time_s",
    "pressure": "pressure",
    "co2": "co2",
}
"""Numbers that are kept beside a reading, by their name on the wire."""


def parse(payload: Payload, family: str, source: Fields) -> Report:
    """One report; `DriverError` where nothing in it is a measurement."""
    name, unit_of_name = _name(wire.text(source, "name") or payload.label)
    stable_id = wire.text(source, "ID", "id") or name
    report = Report(
        family=family,
        stable_id=stable_id if stable_id != "0" else name,
        name=name,
        beer=wire.text(source, "beer", "recipe"),
        comment=wire.text(source, "comment"),
        token=_token(source),
    )
    _set_gravity(report, source, unit_of_name)
    set_temp(report, source, TEMP_UNIT_KEYS, "temperature", "temp")
    _set_interval(report, source)
    _set_facts(report, source)
    if not _measures(report):
        raise DriverError("neither gravity nor temperature nor angle")
    return report


def _measures(report: Report) -> bool:
    return (
        report.gravity is not None
        or report.temp is not None
        or not report.facts.keys().isdisjoint(("angle", "pressure"))
        or not {"gravity_zero", "temp_sensor_fault"}.isdisjoint(report.flags)
    )


def _name(text: str) -> tuple[str, GravityUnit | None]:
    lowered = text.lower()
    for suffix, unit in NAME_SUFFIXES.items():
        if lowered.endswith(suffix):
            return text[: -len(suffix)].rstrip(), unit
    return text, None


def _token(source: Fields) -> str | None:
    token = wire.text(source, "token")
    return None if token == "*" else token  # noqa: S105  (iSpindel-TCP-Server writes * for none)


def _set_gravity(report: Report, source: Fields, unit_of_name: GravityUnit | None) -> None:
    word = wire.text(source, *GRAVITY_UNIT_KEYS)
    stated = None if word is None else GRAVITY_UNITS.get(word.lower())
    report.gravity_unit = stated or unit_of_name
    gravity = wire.numeral(source, *GRAVITY_KEYS)
    if gravity is None:
        report.flags.append("gravity_missing")
    elif float(gravity) == 0:
        report.flags.append("gravity_zero")
    else:
        report.gravity = gravity


def set_temp(report: Report, source: Fields, unit_keys: tuple[str, ...], *keys: str) -> None:
    """Temperature and its unit; sentinels become missing with a flag, Kelvin becomes Celsius."""
    letter = wire.temp_unit(source, *unit_keys)
    report.temp_unit = wire.as_temp_unit(letter, "C")
    temp = wire.numeral(source, *keys)
    if temp is None:
        return
    if letter == "K":
        temp = units.kelvin_text_to_celsius_text(temp)
    if wire.is_sensor_fault(units.to_celsius(float(temp), report.temp_unit)):
        report.flags.append("temp_sensor_fault")
    else:
        report.temp = temp


def _set_interval(report: Report, source: Fields) -> None:
    """1 is the test send right after saving the configuration; 0 a gateway that does not know."""
    interval = wire.number(source, "interval")
    if interval == 1:
        report.flags.append("test_send")
    elif interval is not None and 0 < interval < units.SECONDS_PER_DAY * 7:
        report.interval_s = int(interval)


def _set_facts(report: Report, source: Fields) -> None:
    facts: dict[str, Any] = report.facts
    for key, fact in FACTS.items():
        if key in source:
            value = wire.number(source, key)
            if value is not None:
                facts[fact] = value
    if facts.get("angle") == 0:
        report.flags.append("angle_zero")
    if facts.get("battery", 0) > BATTERY_VOLT_LIMIT:
        facts["battery_percent"] = facts.pop("battery")
    if "corr-gravity" in source:
        corrected = wire.numeral(source, "corr-gravity")
        if corrected is not None:
            facts["corr_gravity"] = corrected
