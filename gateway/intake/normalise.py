"""From a device's report to a fermentation reading: text stays as sent, numbers are derived beside it.

Pure. Odd values never fail here: they get a flag.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple

from gateway.domain import units
from gateway.domain.device import Device, Evidence, Inferences
from gateway.domain.objectid import new_object_id
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import GravityUnit, Report, TempUnit
from gateway.domain.units import TYPICAL_SG
from gateway.intake import calibration as calibrating
from gateway.intake.calibration import Calibrated

SCALED_SG_RANGES = ((950.0, 1250.0, 1000), (9500.0, 12500.0, 10000))
PLATO_RANGE = (-5.0, 45.0)
"""Ranges in which a number without a unit can have one unit only."""

BELIEVED: dict[GravityUnit, tuple[float, float]] = {"G": units.PLAUSIBLE_SG, "P": (-25.0, 60.0)}
"""Plausible values with a stated unit. Beyond them the text is kept, and no number is derived."""

ALWAYS: dict[GravityUnit, str] = {
    "G": "no unit sent, but this device has always sent specific gravity",
    "P": "no unit sent, but this device has always sent Plato",
}

PERHAPS_SG = (0.8, 1.5)
"""Values that a polynomial for SG may give outside its range: a spindle on a desk sends 0.86 to 0.949. Such a
value is no evidence for Plato, and it is SG if the device sends SG."""

BELIEVED_CELSIUS = (-50.0, 150.0)
"""Plausible temperatures in degrees Celsius: wort boils at 100."""

FAHRENHEIT_FROM, CELSIUS_BELOW = 45.0, 30.0
"""From 45 on a figure is °F, below 30 it is °C: no beer ferments at 45 °C, and below 30 °F beer is ice."""

SENDS_FAHRENHEIT_CELSIUS_BELOW = 25.0
"""The lower limit for a device that sends Fahrenheit: strong beer is still liquid at 29 °F."""

TEST_SEND = "test_send"
"""The flag of the test reading of a device that was just configured: it is not in the wort."""

KELVIN_RANGE = (250.0, 330.0)
"""Temperatures that must be Kelvin, -23 to 57 °C: no beer has such a figure in Celsius or Fahrenheit."""

KELVIN = -float(units.ABSOLUTE_ZERO_C)
POWER_ON_F = units.celsius_to_fahrenheit(units.POWER_ON_C)
SENTINELS = {
    "C": (units.POWER_ON_C,),
    "F": (POWER_ON_F,),
    "": (units.POWER_ON_C, POWER_ON_F, units.NO_SENSOR_C + KELVIN, units.POWER_ON_C + KELVIN),
}
"""Values of a DS18B20 that does not work, by the device's usual unit, "" for unknown: 85 °C before its first
conversion, 146.15 K without an answer."""

SET_BY_USER = "set by the user"

OLDEST_S = 30 * units.SECONDS_PER_DAY
"""Seconds from measuring to arrival at most, for a bridge that was offline."""

AHEAD_S = 120
"""Seconds that a device's clock may be ahead of ours."""

CLOCK_SUSPECT = "clock_suspect"
"""The flag of a reading whose time is in doubt: the device's clock is wrong, or ours is in doubt."""

CLOCK_CORRECTED, CLOCK_ESTIMATED = "clock_corrected", "clock_estimated"
"""Flags of readings that arrived while our clock was in doubt, and whose times were put right since."""

COMMENT_REPEATED = "comment_repeated"
"""The flag of a reading whose firmware repeated the comment of the reading before."""

CLOCK_FLAGS = (CLOCK_SUSPECT, CLOCK_CORRECTED, CLOCK_ESTIMATED)
"""Flags about a reading's time, which do not follow from its bytes."""

ARRIVAL_FLAGS = (*CLOCK_FLAGS, COMMENT_REPEATED)
"""Flags that do not follow from a reading's bytes: they stay when the bytes are decoded again."""


class Gravity(NamedTuple):
    """A gravity as text and unit, its SG (None if implausible), why this unit, and a flag or "".

    `weight` is how strong the evidence for the unit is. Without a text, the unit may be None: unknown.
    """

    text: str
    unit: GravityUnit | None
    sg: float | None
    reason: str
    flag: str = ""
    evidence: Evidence = Evidence.NONE


class Temp(NamedTuple):
    """A temperature as text ("" for none) and unit, why this unit, a flag or "", the weight of evidence."""

    text: str
    unit: TempUnit
    reason: str
    flag: str = ""
    evidence: Evidence = Evidence.NONE


def normalise(
    report: Report,
    device: Device,
    payload: Payload,
    measured_at: int | None = None,
    *,
    clock_known: bool = True,
) -> tuple[Reading, Inferences]:
    """Make a reading of a report, by its device's past and settings; return it with the inferences made.

    `measured_at` (Unix seconds) is given if the reading is stored already: its time is settled.
    `clock_known` says whether our own clock is trusted: the time of arrival depends on it.
    """
    gravity = gravity_of(report, device)
    temp = temp_of(report, device)
    created_at, suspect = time_of(report, payload.received_at)
    if measured_at is not None:
        created_at = measured_at
    flags = report.flags.copy()
    if gravity.flag:
        flags.append(gravity.flag)
    if temp.flag:
        flags.append(temp.flag)
    if suspect or not clock_known:
        flags.append(CLOCK_SUSPECT)
    shown = shown_of(device, gravity, temp, report.facts.get("angle"), created_at)
    flags += shown.flags
    ph = report.facts.get("ph")
    reading = Reading(  # in the order of the members: names would cost as much again
        new_object_id(created_at),
        created_at,
        int(payload.received_at * 1000),
        report.name,
        gravity.text,
        shown.gravity_unit or "G",
        temp.text,
        temp.unit,
        report.comment or "",
        report.beer or "",
        report.timepoint or units.serial_day(created_at),
        report.family,
        payload.source,
        shown.sg,
        shown.celsius,
        _json_of_facts(report, suspect),
        json.dumps(flags) if flags else None,
        None if ph is None else extra_of(ph),
        shown.gravity,
        shown.temp,
    )
    return reading, _inferences(report, gravity, temp)


def shown_of(
    device: Device, gravity: Gravity, temp: Temp, angle: float | str | None, created_at: int
) -> Calibrated:
    """Derive the numbers of a reading, with the user's calibration if there is one.

    Drop numbers that are implausible or excluded by the user, and flag the reading. The texts stay. A reading
    without numbers counts in no statistics.
    """
    calibration = device.settings.calibration
    if calibration.is_identity:
        celsius = units.to_celsius(float(temp.text), temp.unit) if temp.text else None
        shown = Calibrated(None, gravity.unit, gravity.sg, None, celsius)
    else:
        shown = calibrating.calibrated(
            calibration,
            gravity_text=gravity.text if gravity.sg is not None else "",
            gravity_unit=gravity.unit,
            temp_text=temp.text,
            temp_unit=temp.unit,
            angle=angle if isinstance(angle, int | float) else None,
        )
    if shown.celsius is not None and not BELIEVED_CELSIUS[0] <= shown.celsius <= BELIEVED_CELSIUS[1]:
        shown = shown._replace(celsius=None, flags=(*shown.flags, "temp_out_of_range"))
    if device.settings.excluded and device.settings.excludes(created_at):
        shown = shown._replace(sg=None, celsius=None, flags=(*shown.flags, "excluded"))
    return shown


def with_flags(reading: Reading, flags: Iterable[str]) -> Reading:
    """Add flags to a reading."""
    new = tuple(flags)
    if not new:
        return reading
    return reading._replace(flags=json.dumps([*json.loads(reading.flags or "[]"), *new]))


def gravity_of(report: Report, device: Device) -> Gravity:
    """Decide the gravity's unit: by user, payload, magnitude, history, then by the format."""
    chosen = device.settings.gravity_unit
    text = report.gravity
    if text is None:
        return Gravity("", chosen or report.gravity_unit or device.gravity_unit, None, "")
    stated = chosen or (None if report.gravity_unit_by_format else report.gravity_unit)
    value = float(text)
    # Before the stated unit, because tilty and RAPT send 1045 as G. Only here the text is scaled: the
    # specification has no unit for 1045.
    for low, high, divisor in SCALED_SG_RANGES:
        if low <= value < high and stated != "P":
            reason = f"{low:.0f} to {high:.0f} is specific gravity times {divisor}"
            evidence = Evidence.EXPLICIT if chosen is None else Evidence.NONE
            return Gravity(units.scale_text(text, divisor), "G", value / divisor, reason, "", evidence)
    unit, reason, evidence = _unit_of(value, report, device)
    if unit is None:
        likely = device.gravity_unit or report.gravity_unit or ("P" if value < 0 else "G")
        return Gravity(text, likely, None, "", "gravity_out_of_range")
    low, high = BELIEVED[unit]
    if not low <= value <= high:
        return Gravity(text, unit, None, reason, "gravity_out_of_range", evidence)
    return Gravity(text, unit, units.to_sg(value, unit), reason, "", evidence)


def _unit_of(value: float, report: Report, device: Device) -> tuple[GravityUnit | None, str, Evidence]:
    if device.settings.gravity_unit is not None:
        return device.settings.gravity_unit, SET_BY_USER, Evidence.NONE
    if report.gravity_unit is not None and not report.gravity_unit_by_format:
        return report.gravity_unit, report.gravity_unit_reason or "the payload says so", Evidence.EXPLICIT
    usual = device.gravity_unit or report.gravity_unit
    always = ALWAYS[usual] if usual else ""
    # The format's usual unit needs no evidence: its reason stays the one that is shown.
    told = report.gravity_unit_reason
    if TYPICAL_SG[0] <= value < TYPICAL_SG[1]:
        # A beer that finishes near 1 °P looks like SG; a device that has always spoken Plato still does.
        if usual == "P":
            return "P", told if report.gravity_unit == "P" else always, Evidence.NONE
        by_size = f"no unit sent; {TYPICAL_SG[0]} to {TYPICAL_SG[1]} is specific gravity"
        return "G", told if report.gravity_unit == "G" else by_size, Evidence.RANGE
    perhaps_sg = PERHAPS_SG[0] <= value < PERHAPS_SG[1]
    if perhaps_sg and usual == "G":
        return "G", told if report.gravity_unit == "G" else always, Evidence.NONE
    if PLATO_RANGE[0] <= value <= PLATO_RANGE[1]:
        evidence: Evidence = Evidence.NONE if perhaps_sg or TEST_SEND in report.flags else Evidence.RANGE
        by_size = f"no unit sent; {PLATO_RANGE[0]:g} to {PLATO_RANGE[1]:g} can only be Plato"
        return "P", told if report.gravity_unit == "P" else by_size, evidence
    return None, "", Evidence.NONE


def temp_of(report: Report, device: Device) -> Temp:
    """Decide the temperature's unit: by user, payload, magnitude, history, then by the format."""
    text = report.temp or ""
    chosen = device.settings.temp_unit
    if report.temp_unit is not None and not report.temp_unit_by_format:
        if chosen is not None:
            return Temp(text, chosen, SET_BY_USER)
        return Temp(text, report.temp_unit, report.temp_unit_reason, "", Evidence.EXPLICIT)
    value = float(text) if text else None
    usual = device.usual_temp_unit or report.temp_unit
    unit, reason, evidence = _temp_unit_of(value, report, device)
    if value is None:
        return Temp("", unit, "")
    # Not in the driver: without a unit in the payload, 85 is a broken sensor or a warm day in Fahrenheit, and
    # only the device's usual unit tells which.
    assumed = chosen or ("F" if usual == "F" else "")
    if any(abs(value - sentinel) < units.SENTINEL_TOLERANCE for sentinel in SENTINELS[assumed]):
        return Temp("", unit, "", "temp_sensor_fault")
    if chosen is None and _is_kelvin(value):
        text = units.kelvin_text_to_celsius_text(text)
    return Temp(text, unit, reason, "", evidence)


def _temp_unit_of(value: float | None, report: Report, device: Device) -> tuple[TempUnit, str, Evidence]:
    """Return the unit by the user, magnitude, history and the format, why, and the weight of evidence."""
    if device.settings.temp_unit is not None:
        return device.settings.temp_unit, SET_BY_USER, Evidence.NONE
    told = report.temp_unit_reason
    sends_fahrenheit = (device.usual_temp_unit or report.temp_unit) == "F"
    celsius_below = SENDS_FAHRENHEIT_CELSIUS_BELOW if sends_fahrenheit else CELSIUS_BELOW
    if value is not None and _is_kelvin(value):
        return "C", f"no unit sent; {KELVIN_RANGE[0]:g} to {KELVIN_RANGE[1]:g} is Kelvin", Evidence.RANGE
    if value is not None and value >= FAHRENHEIT_FROM:
        by_size = f"no unit sent; {FAHRENHEIT_FROM:g} or more can only be Fahrenheit"
        return "F", told if report.temp_unit == "F" else by_size, Evidence.RANGE
    if value is not None and value < celsius_below:
        by_size = f"no unit sent; below {celsius_below:g} can only be Celsius"
        return "C", told if report.temp_unit == "C" else by_size, Evidence.RANGE
    if sends_fahrenheit:
        always = "no unit sent, but this device has always sent Fahrenheit"
        return "F", told if report.temp_unit == "F" else always, Evidence.NONE
    nothing = "no unit sent, and nothing speaks for Fahrenheit"
    return "C", told if report.temp_unit == "C" else nothing, Evidence.NONE


def _is_kelvin(value: float) -> bool:
    return KELVIN_RANGE[0] <= value <= KELVIN_RANGE[1]


def time_of(report: Report, received_at: float) -> tuple[int, bool]:
    """Return when the report was measured (Unix seconds), and whether the device's clock is in doubt."""
    if report.measured_at is not None:
        if -AHEAD_S <= received_at - report.measured_at <= OLDEST_S:
            return int(report.measured_at), False
        return int(received_at), True
    if report.age_s > OLDEST_S:
        return int(received_at), True
    return int(received_at - report.age_s), False


def _inferences(report: Report, gravity: Gravity, temp: Temp) -> Inferences:
    found: Inferences = {}
    if gravity.unit is not None and gravity.reason:
        found["gravity_unit"] = gravity.unit, gravity.reason, gravity.evidence
    if temp.text:
        found["temp_unit"] = temp.unit, temp.reason, temp.evidence
    if report.battery_reason:
        found["battery"] = "percent", report.battery_reason, Evidence.NONE
    return found


def _json_of_facts(report: Report, suspect: bool) -> str | None:
    """Return the facts as a JSON object, None if there are none."""
    # By hand, not by `json.dumps`: most values are numbers, and this runs for every reading.
    facts = report.facts
    if report.interval_s is not None:
        facts["interval_s"] = report.interval_s
    if report.device_time is not None:
        facts["device_time_local"] = report.device_time
    if suspect and report.measured_at is not None:
        facts["device_time"] = report.measured_at
    if not facts:
        return None
    return f"{{{','.join([fact_member(name, value) for name, value in facts.items()])}}}"


def extra_of(ph: float | str) -> str:
    """Return the further members of a reading with a pH, where statistics and clients look for it."""
    return json.dumps({"ph": str(ph)}, separators=(",", ":"))


def fact_member(name: str, value: float | str | None) -> str:
    """Return a fact as a member of a JSON object."""
    return f'"{name}":{value!r}' if isinstance(value, int | float) else f'"{name}":{json.dumps(value)}'
