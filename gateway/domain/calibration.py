"""What a user found out about one hydrometer: how its tilt, gravity and temperature have to be corrected."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from gateway.domain.report import GravityUnit
from gateway.errors import InvalidInput

MAX_GRAVITY_OFFSET_SG = 0.1
MAX_TEMP_OFFSET_C = 20.0
CORRECTED_AT_RANGE_C = (0.0, 50.0)
"""What a user may set, see `Calibration.checked`; more is a mistyped number."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Corrections of a device's readings; the default changes nothing.

    `curve` is gravity in `curve_unit` as a polynomial of the tilt angle in degrees, constant first; `points`
    are the (angle, SG) pairs that it was fitted to, kept to be shown, and `degree` is the one that the user
    wants the fit to have, None for whatever the points can tell. The offsets are added:
    `gravity_offset` -0.002 where the device reads 0.002 SG too high, `temp_offset` -0.5 where it reads half
    a degree Celsius too warm. `corrected_at_c` is the temperature at which it reads true; None leaves
    gravity alone.
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
        """Whether no reading is changed by it; points without a curve change none."""
        return not (self.curve or self.gravity_offset or self.temp_offset or self.corrected_at_c is not None)

    def checked(self) -> Self:
        """The same, if a user may set it; InvalidInput names the number that is out of bounds."""
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
        """The members that differ from the default, as JSON has them: `{}` for none."""
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
        """What `to_dict` gave, of a later version too: unknown members are ignored; InvalidInput for junk."""
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
    """The number, or ValueError: NaN and infinity would spread into every reading."""
    if isinstance(value, bool) or not math.isfinite(number := float(value)):
        raise ValueError(f"{value!r} is no number to calculate with")
    return number
