"""Calibrate a device: points as rows of a form, corrections, a look at the effect, and saving."""

from collections.abc import Mapping

from markupsafe import Markup

from gateway.domain.calibration import Calibration
from gateway.domain.device import Device
from gateway.domain.polynomial import polynomial_text
from gateway.errors import InvalidInput
from gateway.intake.calibration import MAX_POINTS, Fit
from gateway.services.calibration_points import (
    OfferedPoint,
    TiltReading,
    offered_points,
    readings_with_tilt,
)
from gateway.ui import charts
from gateway.ui.calibration_form import (
    DEGREES,
    PointRow,
    Typed,
    checked,
    corrections_given,
    drawn_curve,
    gravity_text,
    numbered,
    row_of,
    rows_of,
    typed_rows,
    unit_of,
    with_distances,
)
from gateway.ui.device_words import unit_choices
from gateway.ui.effect import Shown, shown_effect
from gateway.ui.forms import Filled
from gateway.ui.pages import Moved, Page, Row, Visit
from gateway.ui.views.device import moved_here, visible_state
from gateway.ui.words import Words

RMS_DECIMALS = 4

WARNINGS = {"Gravity falls": "falls", "The curve turns": "turns", "The curve goes through": "exact"}
"""Kinds of warnings of a fit by the beginnings of their sentences."""


async def show(visit: Visit) -> Page:
    """Show the form with the device's present calibration."""
    device = (await visible_state(visit)).device
    rows = rows_of(device.settings.calibration, visit.words)
    return await _page(visit, device, Typed(rows, visit.words.gravity_unit, Filled()))


async def change(visit: Visit) -> Page | Moved:
    """Do what the pressed button says: add or remove a row, show the effect, or save."""
    device, fields = (await visible_state(visit)).device, visit.fields
    pressed, unit = fields.get("do", "preview"), unit_of(fields, visit.words)
    rows = typed_rows(fields)
    if pressed.startswith("remove "):
        rows = [row for row in rows if pressed != f"remove {row.number}"]
        return await _page(visit, device, Typed(numbered(rows), unit, Filled(fields)))
    if pressed == "point" or pressed.startswith(("reading", "use ")):
        rows = _with_new(rows, _new_row(pressed, fields))
        return await _page(visit, device, Typed(rows, unit, Filled(fields)))
    before = device.settings.calibration
    typed = checked(before, rows, unit, fields, visit.words)
    if typed.change is None:
        return await _page(visit, device, typed, status=422)
    try:
        fit = typed.change.fitted(Calibration()) if typed.points else None
        settings = typed.change.apply(device.settings)
    except InvalidInput as error:
        return await _page(visit, device, typed, status=422, problem=str(error))
    if pressed == "save":
        await visit.services.devices.start(device.id, typed.change.apply)
        return await moved_here(visit, "calibrate.saved")
    effect = await visit.services.devices.preview(device.id, lambda _: settings)
    return await _page(visit, device, typed, fit=fit, shown=shown_effect(effect, visit.words))


async def _page(
    visit: Visit,
    device: Device,
    typed: Typed,
    *,
    fit: Fit | None = None,
    shown: Shown | None = None,
    problem: str = "",
    status: int = 200,
) -> Page:
    words, calibration = visit.words, device.settings.calibration
    readings = await readings_with_tilt(visit.services, device)
    is_formula = bool(calibration.curve) and not calibration.points
    values = {
        "id": device.id,
        "has_tilt": bool(readings or calibration.curve or typed.points),
        "rows": with_distances(typed, fit.curve, words) if fit else typed.rows,
        "unit": typed.unit,
        "units": unit_choices(words),
        "filled": typed.filled,
        "problem": problem,
        "degree": calibration.degree or "",
        "degrees": [("", words.t("calibrate.degree_auto")), *((each, each) for each in DEGREES)],
        "given": corrections_given(calibration, words),
        "temp_unit": f"°{words.temp_unit}",
        "formula": polynomial_text(calibration.curve) if is_formula else "",
        "readings": [_reading_choice(reading, words) for reading in readings],
        "offered": [
            _offer(point, typed.unit, words) for point in await offered_points(visit.services, device)
        ],
        "curve": drawn_curve(calibration, words) if fit is None else _drawn(typed, fit, words),
        "warnings": [_warning(text, words) for text in fit.warnings] if fit else [],
        "rms": words.t("calibrate.rms", rms=words.number(fit.rms, RMS_DECIMALS)) if fit else "",
        "shown": shown,
        "looked": shown is not None or fit is not None,
    }
    title = words.t("calibrate.title", name=device.title)
    return Page("calibrate.html", title, values, menu="devices", status=status)


def _drawn(typed: Typed, fit: Fit, words: Words) -> Markup:
    return charts.curve(typed.points, fit.curve, fit.residuals, words)


def _with_new(rows: list[PointRow], new: PointRow) -> list[PointRow]:
    """Return the rows with one more; a row that is filled in already takes the place of a blank one."""
    if not new.is_blank:
        rows = [row for row in rows if not row.is_blank]
    return numbered([*rows, new][:MAX_POINTS])


def _new_row(pressed: str, fields: Mapping[str, str]) -> PointRow:
    """Return the row of the pressed button: blank, with the tilt of a reading, or with an offered point."""
    if pressed == "point":
        return PointRow(0)
    if pressed == "reading":
        return PointRow(0, fields.get("from_reading", "")[:16])
    tilt, _, gravity = pressed.removeprefix("use ").partition(" ")
    return PointRow(0, tilt[:16], gravity[:16])


def _reading_choice(reading: TiltReading, words: Words) -> tuple[str, str]:
    """Return a reading as a choice: its tilt as it can be typed, and its words."""
    tilt = row_of(0, reading.tilt, None, words.gravity_unit, words).tilt
    gravity = f", {words.gravity(reading.sg)}" if reading.sg is not None else ""
    return tilt, f"{words.moment(reading.at)}: {words.number(reading.tilt, 1)}°{gravity}"


def _offer(point: OfferedPoint, unit: str, words: Words) -> tuple[str, str]:
    """Return an offered point as a button: its value, and its words."""
    row = row_of(0, point.tilt, point.sg, unit, words)
    said = words.t(
        "calibrate.offer",
        moment=words.moment(point.at),
        gravity=str(words.gravity(point.sg)),
        tilt=f"{words.number(point.tilt, 1)}°",
    )
    return f"use {row.tilt} {gravity_text(point.sg, unit, words)}", said


def _warning(text: str, words: Words) -> str:
    kind = next((kind for start, kind in WARNINGS.items() if text.startswith(start)), None)
    return words.t(f"calibrate.warning.{kind}") if kind else text


ROWS = (
    Row(
        "GET",
        "/devices/{id}/calibrate",
        show,
        "device.calibrate",
        "Calibrate a device",
        scope="admin",
        owner_only=True,
    ),
    Row(
        "POST",
        "/devices/{id}/calibrate",
        change,
        "device.calibrate.change",
        "Change the rows, look at the effect, or save a calibration",
        scope="admin",
        owner_only=True,
    ),
)
