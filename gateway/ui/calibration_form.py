"""The form of a calibration: rows of tilt and true gravity, and corrections, as texts and as a change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup

from gateway.domain.calibration import (
    CORRECTED_AT_RANGE_C,
    MAX_GRAVITY_OFFSET_SG,
    MAX_TEMP_OFFSET_C,
    Calibration,
)
from gateway.domain.polynomial import evaluate
from gateway.domain.units import TYPICAL_SG, celsius_to_fahrenheit, fahrenheit_to_celsius, sg_to_plato
from gateway.intake.calibration import ANGLE_RANGE_DEG, MAX_POINTS
from gateway.services.device_settings import OFF, CalibrationChange, CurvePoint
from gateway.ui import charts, forms
from gateway.ui.forms import Filled, Form
from gateway.ui.words import Words

EMPTY_ROWS = 3
"""Rows of the form for a device without points: water, and two sugar solutions."""

TILT_DECIMALS = 2
GRAVITY_DECIMALS = {"SG": 4, "P": 2}
USUAL_DECIMALS = {"SG": 3, "P": 1}
"""Decimals of a true gravity at most and at least."""

DEGREES = ("1", "2", "3", "4")

FAHRENHEIT = 1.8
"""Degrees Fahrenheit in a degree Celsius."""


@dataclass(frozen=True, slots=True)
class PointRow:
    """A row of the form: tilt and true gravity as texts, and the keys of their errors."""

    number: int
    tilt: str = ""
    gravity: str = ""
    wrong_tilt: str = ""
    wrong_gravity: str = ""
    off_by: str = ""

    @property
    def is_blank(self) -> bool:
        """Return whether nothing was typed in the row."""
        return not self.tilt and not self.gravity


@dataclass(slots=True)
class Typed:
    """The form as it was filled in. `points` are those of the rows that are right, row by row.

    `change` is the change that the form asks for, None while something in it is wrong.
    """

    rows: list[PointRow]
    unit: str
    filled: Filled[Form]
    points: list[CurvePoint] = field(default_factory=list)
    change: CalibrationChange | None = None


def rows_of(calibration: Calibration, words: Words) -> list[PointRow]:
    """Return the points of a calibration as rows, with room for some where there are none."""
    rows = [
        row_of(number, angle, sg, words.gravity_unit, words)
        for number, (angle, sg) in enumerate(calibration.points, 1)
    ]
    return rows or [PointRow(number + 1) for number in range(EMPTY_ROWS)]


def row_of(number: int, angle: float, sg: float | None, unit: str, words: Words) -> PointRow:
    """Return a point as a row; without `sg` its true gravity is still to be typed."""
    gravity = "" if sg is None else gravity_text(sg, unit, words)
    return PointRow(number, _text(angle, TILT_DECIMALS, words), gravity)


def gravity_text(sg: float, unit: str, words: Words) -> str:
    """Write a true gravity as it can be typed."""
    value = sg_to_plato(sg) if unit == "P" else sg
    exact = _text(value, GRAVITY_DECIMALS[unit], words)
    usual = words.number(value, USUAL_DECIMALS[unit])
    return exact if len(exact) > len(usual) else usual


def _text(value: float, decimals: int, words: Words) -> str:
    """Write a number without needless zeros, so that it can be typed."""
    return words.number(round(value, decimals), decimals).rstrip("0").rstrip(words.t("number.decimal"))


def typed_rows(fields: Mapping[str, str]) -> list[PointRow]:
    """Return the rows that were sent, as they were typed."""
    numbers = [n for n in range(1, MAX_POINTS + 1) if f"tilt_{n}" in fields or f"gravity_{n}" in fields]
    return [
        PointRow(n, fields.get(f"tilt_{n}", "").strip(), fields.get(f"gravity_{n}", "").strip())
        for n in numbers
    ]


def numbered(rows: Sequence[PointRow]) -> list[PointRow]:
    """Return the rows with the numbers 1, 2, 3 ..."""
    return [replace(row, number=number) for number, row in enumerate(rows[:MAX_POINTS], 1)]


def unit_of(fields: Mapping[str, str], words: Words) -> str:
    """Return the unit in which the true gravities were typed."""
    unit = fields.get("unit", "")
    return unit if unit in GRAVITY_DECIMALS else words.gravity_unit


def checked(
    before: Calibration, rows: Sequence[PointRow], unit: str, fields: Mapping[str, str], words: Words
) -> Typed:
    """Check the whole form. A formula stays as long as there are no points."""
    typed = Typed([], unit, Filled(fields))
    for row in rows:
        if row.is_blank:
            typed.rows.append(row)
            continue
        row, point = _checked_row(row, unit)
        typed.rows.append(row)
        if point is not None:
            typed.points.append(point)
    _check_curve(typed, fields)
    offset = _corrections(typed.filled, fields, words)
    wrong_rows = any(row.wrong_tilt or row.wrong_gravity for row in typed.rows)
    if wrong_rows:
        typed.filled.errors.setdefault("", "calibrate.wrong.points")
    if not typed.filled.errors:
        keeps_formula = bool(before.curve) and not before.points and not typed.points
        typed.change = CalibrationChange(
            points=typed.points,
            degree=int(fields["degree"]) if typed.points and fields.get("degree") in DEGREES else None,
            clear=True,
            curve=before.curve if keeps_formula else None,
            curve_unit=before.curve_unit,
            gravity_offset=offset["gravity_offset"],
            temp_offset=offset["temp_offset"],
            corrected_at_c=OFF if offset["corrected_at"] is None else offset["corrected_at"],
        )
    return typed


def _checked_row(row: PointRow, unit: str) -> tuple[PointRow, CurvePoint | None]:
    """Return the row with the keys of its errors, and its point if there are none."""
    angle = sg = 0.0
    try:
        angle = _within(forms.decimal(row.tilt), ANGLE_RANGE_DEG, "calibrate.wrong.tilt")
    except ValueError as error:
        row = replace(row, wrong_tilt=str(error))
    try:
        sg = _within(forms.gravity(row.gravity, unit).sg, TYPICAL_SG, "calibrate.wrong.gravity")
    except ValueError as error:
        row = replace(row, wrong_gravity=str(error))
    return row, None if row.wrong_tilt or row.wrong_gravity else (angle, sg)


def _within(value: float, bounds: tuple[float, float], key: str) -> float:
    """Return the value if it is within the bounds, else raise `ValueError` with the key of a sentence."""
    if not bounds[0] <= value <= bounds[1]:
        raise ValueError(key)
    return value


def _check_curve(typed: Typed, fields: Mapping[str, str]) -> None:
    angles = {angle for angle, _ in typed.points}
    if len(angles) < len(typed.points):
        typed.filled.errors[""] = "calibrate.wrong.same_tilt"
    elif len(angles) == 1:
        typed.filled.errors[""] = "calibrate.wrong.one_point"
    elif typed.points and fields.get("degree") in DEGREES and int(fields["degree"]) >= len(angles):
        typed.filled.errors["degree"] = "calibrate.wrong.degree"


def _corrections(filled: Filled[Form], fields: Mapping[str, str], words: Words) -> dict[str, float | None]:
    """Read the three corrections, in SG and °C."""
    found: dict[str, float | None] = {"gravity_offset": 0.0, "temp_offset": 0.0, "corrected_at": None}
    fahrenheit = words.temp_unit == "F"
    for name in found:
        text = fields.get(name, "").strip()
        if not text:
            continue
        try:
            value = forms.decimal(text)
            if fahrenheit and name == "temp_offset":
                value /= FAHRENHEIT
            elif fahrenheit and name == "corrected_at":
                value = fahrenheit_to_celsius(value)
            found[name] = _within(value, BOUNDS[name], f"calibrate.wrong.{name}")
        except ValueError as error:
            filled.errors[name] = str(error)
    return found


BOUNDS = {
    "gravity_offset": (-MAX_GRAVITY_OFFSET_SG, MAX_GRAVITY_OFFSET_SG),
    "temp_offset": (-MAX_TEMP_OFFSET_C, MAX_TEMP_OFFSET_C),
    "corrected_at": CORRECTED_AT_RANGE_C,
}
"""Least and greatest correction, in SG and °C."""


def corrections_given(calibration: Calibration, words: Words) -> dict[str, str]:
    """Return the corrections of a calibration as texts that can be typed, in the viewer's units."""
    fahrenheit = words.temp_unit == "F"
    shown = {"gravity_offset": "", "temp_offset": "", "corrected_at": ""}
    if calibration.gravity_offset:
        shown["gravity_offset"] = _text(calibration.gravity_offset, 4, words)
    if calibration.temp_offset:
        factor = FAHRENHEIT if fahrenheit else 1
        shown["temp_offset"] = _text(calibration.temp_offset * factor, 2, words)
    if (at_c := calibration.corrected_at_c) is not None:
        shown["corrected_at"] = _text(celsius_to_fahrenheit(at_c) if fahrenheit else at_c, 1, words)
    return shown


def with_distances(typed: Typed, curve: Sequence[float], words: Words) -> list[PointRow]:
    """Return the rows with their distances from a curve in SG, in the unit of the form."""
    points = iter(typed.points)
    shown = []
    for row in typed.rows:
        if row.is_blank or row.wrong_tilt or row.wrong_gravity:
            shown.append(row)
            continue
        angle, sg = next(points)
        fitted = evaluate(curve, angle)
        off = sg_to_plato(sg) - sg_to_plato(fitted) if typed.unit == "P" else sg - fitted
        decimals = GRAVITY_DECIMALS[typed.unit]
        sign = "+" if round(off, decimals) > 0 else ""
        shown.append(replace(row, off_by=f"{sign}{words.number(off, decimals)}"))
    return shown


def drawn_curve(calibration: Calibration, words: Words) -> Markup | str:
    """Return the points and the curve of a calibration as a drawing, "" without points."""
    if not calibration.points or not calibration.curve:
        return ""
    return charts.curve(calibration.points, calibration.curve, [], words)
