"""The mathematics of calibration: fit a curve through measured points, and apply the curve to a reading.

Pure. Readings are calibrated once their units are known and their gravities scaled.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from gateway.domain import units
from gateway.domain.calibration import Calibration
from gateway.domain.polynomial import MAX_DEGREE, evaluate
from gateway.domain.report import GravityUnit, TempUnit
from gateway.domain.units import PLAUSIBLE_SG, TYPICAL_SG
from gateway.errors import InvalidInput

DEFAULT_DEGREE = 3
MAX_POINTS = 100

ANGLE_RANGE_DEG = (0.0, 90.0)
MONOTONIC_STEP_DEG = 0.1
"""Degrees between two checks of a curve's slope: finer than a bobbing hydrometer can tell apart."""

CUT_SG = (0.0, 2.0)
CUT_PLATO = (-100.0, 100.0)
"""Range of degrees Plato in calculations; others are clamped. The formula for Plato has a pole at 294."""
LIQUID_RANGE_C = (-10.0, 100.0)
"""Temperatures in °C for which the correction has a meaning; at others the gravity stays as it is."""
SG_DECIMALS = 4
PLATO_DECIMALS = 2
TEMP_DECIMALS = (1, 2)
"""Decimals of a calibrated temperature, at least and at most; between these limits as many as were sent."""

OUT_OF_RANGE = "calibration_out_of_range"

WATER_DENSITY = (1.00130346, -1.34722124e-4, 2.04052596e-6, -2.32820948e-9)
"""The factor by which a hydrometer in water reads too low, as a polynomial in °F, constant first:
mp-se/gravitymon src/calc.cpp, gravityTemperatureCorrection, and drodil/rustybeer
src/calculators/sg_correction.rs."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A curve in SG through points; residuals are measured minus fitted, in SG, in the order of the points.

    `valid_deg` is the range of angles that the points span: outside it the curve is a guess.
    """

    curve: tuple[float, ...]
    residuals: tuple[float, ...]
    rms: float
    valid_deg: tuple[float, float]
    warnings: tuple[str, ...] = ()


def fit(points: Sequence[tuple[float, float]], degree: int | None = None) -> Fit:
    """Fit a curve by least squares to (angle, SG) points, exactly; raise `InvalidInput` for unusable points.

    Without a degree, take the highest degree that the points allow, 3 at most.
    """
    angles = _checked_angles(points)
    chosen = min(DEFAULT_DEGREE, len(angles) - 1) if degree is None else degree
    if not 1 <= chosen <= MAX_DEGREE:
        raise InvalidInput(f"The degree of a curve is 1 to {MAX_DEGREE}, not {chosen}")
    if chosen >= len(angles):
        need = f"{chosen + 1} points of different angles, here are {len(angles)}"
        raise InvalidInput(
            f"A curve of degree {chosen} needs at least {need}: add points or lower the degree"
        )
    curve = _least_squares(points, chosen)
    residuals = tuple(sg - evaluate(curve, angle) for angle, sg in points)
    rms = math.sqrt(math.fsum(each * each for each in residuals) / len(residuals))
    valid_deg = (angles[0], angles[-1])
    return Fit(curve, residuals, rms, valid_deg, _warnings(curve, valid_deg, exact=chosen + 1 == len(points)))


def _checked_angles(points: Sequence[tuple[float, float]]) -> list[float]:
    """Return the different angles of the points, ascending."""
    for angle, sg in points:
        if not ANGLE_RANGE_DEG[0] <= angle <= ANGLE_RANGE_DEG[1]:
            raise InvalidInput(f"A tilt is between 0 and 90 degrees, not {angle:g}: points are ANGLE=SG")
        if not TYPICAL_SG[0] <= sg <= TYPICAL_SG[1]:
            low, high = TYPICAL_SG
            raise InvalidInput(
                f"A gravity is between {low} and {high} SG, not {sg:g}: convert Plato to SG first"
            )
    angles = sorted({angle for angle, _ in points})
    if len(angles) < 2:
        raise InvalidInput("A curve needs at least two points of different angles")
    if len(points) > MAX_POINTS:
        raise InvalidInput(f"A curve takes at most {MAX_POINTS} points, here are {len(points)}")
    return angles


def _least_squares(points: Sequence[tuple[float, float]], degree: int) -> tuple[float, ...]:
    """Solve the normal equations without rounding: they are too ill-conditioned for floats."""
    exact = [(Fraction(angle), Fraction(sg)) for angle, sg in points]
    powers = [sum((x**n for x, _ in exact), Fraction(0)) for n in range(2 * degree + 1)]
    size = degree + 1
    rows = [
        [*powers[row : row + size], sum((x**row * y for x, y in exact), Fraction(0))] for row in range(size)
    ]
    for column in range(size):
        # Gram matrices of different angles are positive definite: no pivot is ever zero.
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(size):
            if row != column:
                factor = rows[row][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    return tuple(float(row[-1]) for row in rows)


def _warnings(curve: tuple[float, ...], valid_deg: tuple[float, float], *, exact: bool) -> tuple[str, ...]:
    """Return the reasons not to trust the curve, as sentences for the user."""
    low, high = valid_deg
    span = f"{low:g} to {high:g} degrees"
    steps = max(2, math.ceil((high - low) / MONOTONIC_STEP_DEG))
    values = [evaluate(curve, low + (high - low) * step / steps) for step in range(steps + 1)]
    rises = [after > before for before, after in itertools.pairwise(values)]
    said = []
    if not any(rises):
        said.append(
            f"Gravity falls with the tilt over {span}, while a hydrometer lies flatter the heavier the wort"
        )
    elif not all(rises):
        said.append(f"The curve turns back within {span}: lower the degree, or look for a mistyped point")
    if exact:
        said.append("The curve goes through every point, so residuals say nothing: one more point would")
    return tuple(said)


def corrected_for_temperature(sg: float, celsius: float, calibrated_at_c: float) -> float:
    """Return the SG at the calibrated temperature: 1.040 at 30 °C, calibrated at 20 °C -> 1.04258."""
    if not LIQUID_RANGE_C[0] <= celsius <= LIQUID_RANGE_C[1]:
        return sg
    read_at = evaluate(WATER_DENSITY, units.celsius_to_fahrenheit(celsius))
    return sg * read_at / evaluate(WATER_DENSITY, units.celsius_to_fahrenheit(calibrated_at_c))


class Calibrated(NamedTuple):
    """A reading's values after calibration: a text is None if it stays as sent.

    `sg` and `celsius` are the numbers of the text that counts after calibration, None if it has no value.
    `gravity_unit` is the unit of that text: the reading's, or the curve's if the reading had none.
    """

    gravity: str | None
    gravity_unit: GravityUnit | None
    sg: float | None
    temp: str | None
    celsius: float | None
    flags: tuple[str, ...] = ()


def calibrated(
    calibration: Calibration,
    *,
    gravity_text: str | None,
    gravity_unit: GravityUnit | None,
    temp_text: str | None,
    temp_unit: TempUnit,
    angle: float | None,
) -> Calibrated:
    """Apply a calibration to a reading's values; texts are numeric, or empty or None for no value.

    The temperature's offset comes first. If the angle is above 0 and below 90 degrees, the curve replaces
    the gravity that was sent; then come the offset in SG and the correction for the calibrated temperature.
    SG gets 4 decimals, Plato 2, and a temperature as many as it was sent with, but 1 or 2.
    """
    temp = _calibrated_temp(calibration, temp_text, temp_unit)
    temp_value = _number(temp or temp_text)
    celsius = None if temp_value is None else units.to_celsius(temp_value, temp_unit)
    value, value_unit = _number(gravity_text), gravity_unit or calibration.curve_unit
    unit, acts = value_unit, bool(calibration.gravity_offset)
    if calibration.curve and angle is not None and ANGLE_RANGE_DEG[0] < angle < ANGLE_RANGE_DEG[1]:
        value, value_unit, acts = evaluate(calibration.curve, angle), calibration.curve_unit, True
    if value is None:
        return Calibrated(None, gravity_unit, None, temp, celsius)
    acts = acts or (calibration.corrected_at_c is not None and celsius is not None)
    if not acts:
        return Calibrated(None, unit, _sg(value, unit), temp, celsius)
    gravity, sg = _calibrated_gravity(calibration, value, value_unit, unit, celsius)
    # An implausible gravity is given all the same, with a flag: the user sees that the curve is wrong.
    flags = () if PLAUSIBLE_SG[0] <= sg <= PLAUSIBLE_SG[1] else (OUT_OF_RANGE,)
    return Calibrated(gravity, unit, sg, temp, celsius, flags)


def _calibrated_gravity(
    calibration: Calibration, value: float, value_unit: GravityUnit, unit: GravityUnit, celsius: float | None
) -> tuple[str, float]:
    """Apply offset and temperature correction to a gravity in `value_unit`; return text in `unit`, and SG."""
    before = min(max(_sg(value, value_unit), CUT_SG[0]), CUT_SG[1])
    sg = before + calibration.gravity_offset
    if calibration.corrected_at_c is not None and celsius is not None:
        sg = corrected_for_temperature(sg, celsius, calibration.corrected_at_c)
    if unit == "G":
        text = _decimal_text(sg, SG_DECIMALS)
    elif value_unit == "P":
        # The two formulas are no exact inverses: Plato moves by the difference, and by nothing for nothing.
        plato = min(max(value, CUT_PLATO[0]), CUT_PLATO[1])
        text = _decimal_text(plato + units.sg_to_plato(sg) - units.sg_to_plato(before), PLATO_DECIMALS)
    else:
        text = _decimal_text(units.sg_to_plato(sg), PLATO_DECIMALS)
    return text, _sg(float(text), unit)


def _calibrated_temp(calibration: Calibration, text: str | None, unit: TempUnit) -> str | None:
    """Return the calibrated temperature as text in its unit, or None if the temperature stays as sent."""
    value = _number(text)
    if not calibration.temp_offset or value is None or text is None:
        return None
    offset = calibration.temp_offset * (1.8 if unit == "F" else 1)
    sent = -int(Decimal(text).as_tuple().exponent)
    return _decimal_text(value + offset, min(max(sent, TEMP_DECIMALS[0]), TEMP_DECIMALS[1]))


def _number(text: str | None) -> float | None:
    """Return the text's value, or None for no value."""
    if not text:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _sg(value: float, unit: GravityUnit) -> float:
    """Return the specific gravity; clamp degrees Plato to `CUT_PLATO`."""
    return units.to_sg(min(max(value, CUT_PLATO[0]), CUT_PLATO[1]) if unit == "P" else value, unit)


def _decimal_text(value: float, decimals: int) -> str:
    """Write a number with so many decimals, and never as -0.0."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}"
