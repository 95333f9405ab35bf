"""The statistics of a brew session, from its milestone readings. Nothing is rounded."""

import math
from dataclasses import dataclass

from gateway.domain import units
from gateway.domain.brewsession import BrewSession, Measured, Milestones


@dataclass(frozen=True, slots=True)
class FermentationStats:
    """Original and latest gravity, each in the unit of its reading; alcohol by volume in percent.

    `ph` and `temp` are text as sent, "" for none. `updated` is Unix seconds.
    """

    og: float
    og_unit: str
    fg: float
    fg_unit: str
    abv: float
    abv_alt: float
    ph: str
    temp: str
    temp_unit: str
    updated: int


def current_stats(milestones: Milestones, session: BrewSession) -> FermentationStats:
    """Calculate the figures of api-decisions section 9. An original gravity set by hand counts first.

    Without a gravity the figures are 0, and `updated` is the time at which the session began.
    """
    first, last = milestones.first_gravity, milestones.last_gravity
    temp, ph = milestones.last_temp, milestones.last_ph
    og, og_unit, og_sg = _gravity(first)
    by_hand = session.og_by_hand
    if by_hand is not None:
        og, og_unit, og_sg = float(session.og or 0), session.og_unit or "G", by_hand
    fg, fg_unit, fg_sg = _gravity(last)
    known = last is not None and (first is not None or by_hand is not None)
    return FermentationStats(
        og=og,
        og_unit=og_unit,
        fg=fg,
        fg_unit=fg_unit,
        abv=_finite(units.abv(og_sg, fg_sg)) if known else 0.0,
        abv_alt=_finite(units.abv_alternate(og_sg, fg_sg)) if known else 0.0,
        ph="" if ph is None else ph.ph,
        temp="" if temp is None else temp.temp,
        temp_unit="F" if temp is None else temp.temp_unit,
        updated=session.created_at if last is None else last.created_at,
    )


def _gravity(reading: Measured | None) -> tuple[float, str, float]:
    """Return value, unit and specific gravity."""
    if reading is None or reading.sg is None:
        return 0.0, "G", 0.0
    return _positive_zero(float(reading.gravity)), reading.gravity_unit, reading.sg


def _finite(value: float) -> float:
    """Return the value; 0 if it lies outside JSON's range, as no beer's figures do."""
    return _positive_zero(value) if math.isfinite(value) else 0.0


def _positive_zero(value: float) -> float:
    """Return the value bit for bit, but 0.0 for -0.0, which is no figure of a beer."""
    return value + 0.0
