"""From a device's report to a fermentation reading: text stays as sent, numbers are derived beside it.

Pure. Odd values never fail here: they get a flag.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
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
"""Which unit a bare number can only have, devices section 3.4."""

BELIEVED: dict[GravityUnit, tuple[float, float]] = {"G": units.PLAUSIBLE_SG, "P": (-25.0, 60.0)}
"""What a value with a stated unit can be; beyond it the text is kept, and no number is derived."""

GRAVITY_WORDS: dict[GravityUnit, str] = {"G": "specific gravity", "P": "Plato"}

PERHAPS_SG = (0.8, 1.5)
"""What a polynomial for SG gives where it holds no more: 0.86 to 0.949 of a spindle that stands on a desk. So
no device is taken for one that sends Plato by such a value, and of one that sends SG it is SG."""

BELIEVED_CELSIUS = (-50.0, 150.0)
"""The same of a temperature: wort boils at 100."""

FAHRENHEIT_FROM, CELSIUS_BELOW = 45.0, 30.0
"""No beer ferments at 45 degrees Celsius or more, and below 30 degrees Fahrenheit it is ice."""

SENDS_FAHRENHEIT_CELSIUS_BELOW = 25.0
"""The same of a device that sends Fahrenheit: strong beer is still liquid at 29 degrees."""

TEST_SEND = "test_send"
"""The flag of what a device sends once it is configured: it lies in somebody's hand."""

KELVIN_RANGE = (250.0, 330.0)
"""-23 to 57 degrees Celsius. No beer is as hot as that in Celsius or Fahrenheit."""

KELVIN = -float(units.ABSOLUTE_ZERO_C)
POWER_ON_F = units.celsius_to_fahrenheit(units.POWER_ON_C)
SENTINELS = {
    "C": (units.POWER_ON_C,),
    "F": (POWER_ON_F,),
    "": (units.POWER_ON_C, POWER_ON_F, units.NO_SENSOR_C + KELVIN, units.POWER_ON_C + KELVIN),
}
"""What a DS18B20 that has not converted yet says where no unit is sent, in what the device is known to mean
or in any unit; 146.15 is one in Kelvin that does not answer."""

SET_BY_USER = "set by the user"

OLDEST_S = 30 * units.SECONDS_PER_DAY
"""How much earlier than its arrival a reading may have been measured, by a bridge that was offline."""

AHEAD_S = 120
"""How far a device's clock may be ahead of ours."""

CLOCK_SUSPECT = "clock_suspect"
"""The flag of a reading whose time is in doubt: the device's clock is wrong, or ours is not known yet."""

CLOCK_CORRECTED, CLOCK_ESTIMATED = "clock_corrected", "clock_estimated"
"""Flags of readings that came while our clock was not known, and whose times were put right since."""

COMMENT_REPEATED = "comment_repeated"
"""The flag of a reading that came with the comment of the one before it, and was not commented again."""

CLOCK_FLAGS = (CLOCK_SUSPECT, CLOCK_CORRECTED, CLOCK_ESTIMATED)
"""What was found out of a reading's time when it came or later: its bytes alone do not tell."""

ARRIVAL_FLAGS = (*CLOCK_FLAGS, COMMENT_REPEATED)
"""What the bytes of a reading alone do not tell: it stays when they are read again."""


class Gravity(NamedTuple):
    """Text, unit, SG (None for no plausible one), who says the unit, a flag or "", what the unit teaches.

    Without a text the unit is None where nothing tells.
    """

    text: str
    unit: GravityUnit | None
    sg: float | None
    reason: str
    flag: str = ""
    evidence: Evidence = Evidence.NONE


class Temp(NamedTuple):
    """Text, empty for none, unit, who says the unit, a flag or "", and what the unit teaches."""

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
    """The reading that this report is, and what was inferred for it, for a device with a past and settings.

    `measured_at` (Unix seconds) is given where that is settled, because the reading is stored already.
    `clock_known` is whether our own clock is to be believed, on which the time of arrival rests.
    """
    gravity = gravity_of(report, device)
    temp = temp_of(report, device)
    created_at, suspect = time_of(report, payload.received_at)
    if measured_at is not None:
        created_at = measured_at
    flags = list(report.flags)
    if gravity.flag:
        flags.append(gravity.flag)
    if temp.flag:
        flags.append(temp.flag)
    if suspect or not clock_known:
        flags.append(CLOCK_SUSPECT)
    shown = _believed(_shown(report, device, gravity, temp), device, created_at)
    flags += shown.flags
    reading = Reading(
        oid=new_object_id(created_at),
        created_at=created_at,
        received_at=int(payload.received_at * 1000),
        name=report.name,
        gravity=gravity.text,
        gravity_unit=shown.gravity_unit or "G",
        temp=temp.text,
        temp_unit=temp.unit,
        comment=report.comment or "",
        beer=report.beer or "",
        interval=report.timepoint or units.serial_day(created_at),
        source=report.family,
        ip=payload.source,
        sg=shown.sg,
        celsius=shown.celsius,
        facts=_json_of_facts(report, suspect),
        flags=json.dumps(flags) if flags else None,
        extra=_extra(report),
        shown_gravity=shown.gravity,
        shown_temp=shown.temp,
    )
    return reading, _inferences(report, gravity, temp)


def _believed(shown: Calibrated, device: Device, created_at: int) -> Calibrated:
    """Without the numbers that cannot be or are excluded: what is no number counts in no statistics."""
    if shown.celsius is not None and not BELIEVED_CELSIUS[0] <= shown.celsius <= BELIEVED_CELSIUS[1]:
        shown = replace(shown, celsius=None, flags=(*shown.flags, "temp_out_of_range"))
    if device.settings.excluded and device.settings.excludes(created_at):
        shown = replace(shown, sg=None, celsius=None, flags=(*shown.flags, "excluded"))
    return shown


def with_flags(reading: Reading, flags: Iterable[str]) -> Reading:
    """The reading with these flags beside its own."""
    new = tuple(flags)
    if not new:
        return reading
    return replace(reading, flags=json.dumps([*json.loads(reading.flags or "[]"), *new]))


def gravity_of(report: Report, device: Device) -> Gravity:
    """A unit in the payload wins, then magnitude, history, and what the format means; the user's over all.

    A value on the scale of 1045 is SG times 1000 even where the unit says G (tilty, RAPT); only there is
    the text scaled, because the specification has no such unit.
    """
    chosen = device.settings.gravity_unit
    text = report.gravity
    if text is None:
        return Gravity("", chosen or report.gravity_unit or device.gravity_unit, None, "")
    stated = chosen or (None if report.gravity_unit_by_format else report.gravity_unit)
    value = float(text)
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
    always = f"no unit sent, but this device has always sent {GRAVITY_WORDS[usual]}" if usual else ""
    # What the format means goes without saying; its reason stays the one that is told.
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
    """The temperature's unit is what the user or the payload says, else magnitude, history, then the format.

    Kelvin becomes Celsius, as it does where a payload states it. Where it states no unit, only here it can be
    told whether 85 is a sensor's sentinel or a warm day in Fahrenheit.
    """
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
    known = chosen or ("F" if usual == "F" else "")
    if any(abs(value - sentinel) < units.SENTINEL_TOLERANCE for sentinel in SENTINELS[known]):
        return Temp("", unit, "", "temp_sensor_fault")
    if chosen is None and _is_kelvin(value):
        text = units.kelvin_text_to_celsius_text(text)
    return Temp(text, unit, reason, "", evidence)


def _temp_unit_of(value: float | None, report: Report, device: Device) -> tuple[TempUnit, str, Evidence]:
    """The unit by the user, magnitude, history and the format, why, and what that teaches."""
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
    """When it was measured (Unix seconds), and whether the device's own clock is not to be believed."""
    if report.measured_at is not None:
        if -AHEAD_S <= received_at - report.measured_at <= OLDEST_S:
            return int(report.measured_at), False
        return int(received_at), True
    if report.age_s > OLDEST_S:
        return int(received_at), True
    return int(received_at - report.age_s), False


def _shown(report: Report, device: Device, gravity: Gravity, temp: Temp) -> Calibrated:
    """The numbers of what was sent; where the user has calibrated the device, of that, with its texts."""
    calibration = device.settings.calibration
    if calibration.is_identity:
        celsius = units.to_celsius(float(temp.text), temp.unit) if temp.text else None
        return Calibrated(None, gravity.unit, gravity.sg, None, celsius)
    return calibrating.calibrated(
        calibration,
        gravity_text=gravity.text if gravity.sg is not None else "",
        gravity_unit=gravity.unit,
        temp_text=temp.text,
        temp_unit=temp.unit,
        angle=_angle(report),
    )


def _angle(report: Report) -> float | None:
    angle = report.facts.get("angle")
    return angle if isinstance(angle, int | float) else None


def _extra(report: Report) -> str | None:
    """The pH, where statistics and clients look for it."""
    ph = report.facts.get("ph")
    return None if ph is None else json.dumps({"ph": str(ph)}, separators=(",", ":"))


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
    """A JSON object; by hand, because most values are numbers and this runs for every reading."""
    facts = report.facts
    if report.interval_s is not None:
        facts["interval_s"] = report.interval_s
    if report.device_time is not None:
        facts["device_time_local"] = report.device_time
    if suspect and report.measured_at is not None:
        facts["device_time"] = report.measured_at
    if not facts:
        return None
    members = (
        f'"{name}":{value!r}' if isinstance(value, int | float) else f'"{name}":{json.dumps(value)}'
        for name, value in facts.items()
    )
    return f"{{{','.join(members)}}}"
