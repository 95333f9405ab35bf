"""A user's corrections of one hydrometer: of its tilt, its gravity and its temperature."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from gateway.domain.report import GravityUnit
from gateway.errors import InvalidInput

MAX_GRAVITY_OFFSET_SG = 0.1
MAX_TEMP_OFFSET_C = 20.0
CORRECTED_AT_RANGE_C = (0.0, 50.0)
"""The bounds of `Calibration.checked`. A number beyond them is mistyped."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Corrections of a device's readings; the default changes nothing.

    `curve` is the gravity in `curve_unit` as a polynomial of the tilt angle in degrees, constant first.
    `points` are the (angle, SG) pairs that the curve was fitted to, kept to be shown. `degree` is the user's
    choice for the fit, None if the points decide. The offsets are added: `gravity_offset` is -0.002 for a
    device that reads 0.002 SG too high, `temp_offset` -0.5 for a device that reads half a degree Celsius too
    warm. `corrected_at_c` is the temperature at which the device reads true; None leaves the gravity alone.
    """

    curve: tuple[float, ...] = ()
    curve_unit: GravityUnit = "G"
    points: tuple[tuple[float, float], ...] = ()
    gravity_offset: float = 0.0
    temp_offset: float = 0.0
    corrected_at_c: float | None = None
    degree: int | None = None

    @property
    def is_identity(self) -> bool:
        """Return whether the calibration changes no reading. Points without a curve change none."""
        return not (self.curve or self.gravity_offset or self.temp_offset or self.corrected_at_c is not None)

    def checked(self) -> Self:
        """Return this calibration. Raise InvalidInput with the number that is out of bounds."""
        bounds = (
            ("gravity offset", "SG", self.gravity_offset, -MAX_GRAVITY_OFFSET_SG, MAX_GRAVITY_OFFSET_SG),
            ("temperature offset", "°C", self.temp_offset, -MAX_TEMP_OFFSET_C, MAX_TEMP_OFFSET_C),
            ("calibration temperature", "°C", self.corrected_at_c, *CORRECTED_AT_RANGE_C),
        )
        for what, unit, value, low, high in bounds:
            if value is not None and not low <= value <= high:
                raise InvalidInput(f"The {what} is between {low:g} and {high:g} {unit}, not {value:g}")
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the members that differ from the default, as JSON has them: `{}` for none."""
        members: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value != each.default:
                members[each.name] = value
        if self.curve:
            members["curve"] = list(self.curve)
        if self.points:
            members["points"] = [list(point) for point in self.points]
        return members

    @classmethod
    def from_dict(cls, members: Mapping[str, Any]) -> Self:
        """Read a dictionary of `to_dict`. Ignore unknown members; raise InvalidInput for junk."""
        at_c = members.get("corrected_at_c")
        try:
            return cls(
                curve=tuple(_finite(value) for value in members.get("curve", ())),
                curve_unit="P" if members.get("curve_unit") == "P" else "G",
                points=tuple((_finite(angle), _finite(sg)) for angle, sg in members.get("points", ())),
                gravity_offset=_finite(members.get("gravity_offset", 0)),
                temp_offset=_finite(members.get("temp_offset", 0)),
                corrected_at_c=None if at_c is None else _finite(at_c),
                degree=None if (degree := members.get("degree")) is None else int(_finite(degree)),
            )
        except (TypeError, ValueError, OverflowError) as wrong:
            raise InvalidInput(f"this is no calibration: {wrong}; set it again") from wrong


def _finite(value: Any) -> float:
    """Return the number. Raise ValueError for NaN and infinity: they would spread into every reading."""
    if isinstance(value, bool) or not math.isfinite(number := float(value)):
        raise ValueError(f"{value!r} is no number to calculate with")
    return number
