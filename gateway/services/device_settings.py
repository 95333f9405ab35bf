"""Changes of a device's settings: the settings before give the settings after. Pure."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.domain.calibration import Calibration
from gateway.domain.device import EXCLUDED_SPANS, DeviceSettings, Span
from gateway.domain.texts import LABEL_CHARACTERS, label_of
from gateway.domain.times import EVER_S
from gateway.errors import InvalidInput
from gateway.intake import calibration as calibrating

AUTO = "auto"
"""The value that takes a setting back: the device's reports decide again."""

OFF = "off"

INTERVAL_S = (10, 86_400)
"""Limits in seconds of an interval that a spindle takes over TCP, both exclusive (devices section 5.4)."""

Change = Callable[[DeviceSettings], DeviceSettings]

CurvePoint = tuple[float, float]
"""A tilt in degrees and a true gravity in SG."""


@dataclass(frozen=True, slots=True)
class BasicChange:
    """A change of label, units and interval; None leaves a setting as it is, an interval of 0 is none."""

    label: str | None = None
    gravity_unit: str | None = None
    temp_unit: str | None = None
    interval_s: int | None = None

    def apply(self, settings: DeviceSettings) -> DeviceSettings:
        """Return the settings after this change; `InvalidInput` for a value that no device can have."""
        changes: dict[str, Any] = {
            name: None if value == AUTO else value
            for name, value in (("gravity_unit", self.gravity_unit), ("temp_unit", self.temp_unit))
            if value is not None
        }
        if self.label is not None:
            label = unicodedata.normalize("NFC", self.label.strip())
            if label != label_of(label):
                raise InvalidInput(
                    f"a label is text of at most {LABEL_CHARACTERS} characters that can be seen"
                )
            changes["label"] = label
        if self.interval_s is not None:
            low, high = INTERVAL_S
            if self.interval_s and not low < self.interval_s < high:
                raise InvalidInput(
                    f"an interval is more than {low} and less than {high} seconds, or 0 for none"
                )
            changes["interval_s"] = self.interval_s or None
        return replace(settings, **changes)


@dataclass(frozen=True, slots=True)
class CalibrationChange:
    """A change of a calibration: a curve, or points for one, and corrections; None leaves one as it is.

    With `clear` the calibration starts empty. A new point replaces an old one of the same angle.
    """

    points: Sequence[CurvePoint] = ()
    degree: int | None = None
    clear: bool = False
    curve: Sequence[float] | None = None
    curve_unit: str = "G"
    gravity_offset: float | None = None
    temp_offset: float | None = None
    corrected_at_c: float | str | None = None

    def points_after(self, calibration: Calibration) -> tuple[list[CurvePoint], int | None]:
        """Return the points and the degree after this change."""
        before = Calibration() if self.clear else calibration
        return sorted({**dict(before.points), **dict(self.points)}.items()), self.degree or before.degree

    def fitted(self, calibration: Calibration) -> calibrating.Fit:
        """Fit a curve through the points after this change; `InvalidInput` if they make none."""
        return calibrating.fit(*self.points_after(calibration))

    def apply(self, settings: DeviceSettings) -> DeviceSettings:
        """Return the settings after this change; `InvalidInput` for a calibration that cannot be."""
        before = settings.calibration
        members: dict[str, Any] = {} if self.clear else before.to_dict()
        if self.curve is not None:
            if self.points or self.degree:
                raise InvalidInput("a curve is given, or points for one, but not both")
            members |= {"curve": self.curve, "curve_unit": self.curve_unit, "points": [], "degree": None}
        elif self.points or self.degree:
            points, degree = self.points_after(before)
            curve = list(self.fitted(before).curve)
            members |= {"curve": curve, "curve_unit": "G", "points": points, "degree": degree}
        for name in ("gravity_offset", "temp_offset", "corrected_at_c"):
            if (value := getattr(self, name)) is not None:
                members[name] = None if value == OFF else value
        return replace(settings, calibration=Calibration.from_dict(members).checked())


def leaving_out(first: float, last: float | None) -> Change:
    """Make the change that leaves out a span of readings, from then on without `last` (Unix seconds)."""
    span: Span = int(first), EVER_S if last is None else int(last)
    if span[0] > span[1]:
        raise InvalidInput("the span ends before it begins")

    def change(settings: DeviceSettings) -> DeviceSettings:
        spans = tuple(sorted({*settings.excluded, span}))
        if len(spans) > EXCLUDED_SPANS:
            raise InvalidInput(f"more than {EXCLUDED_SPANS} spans; `devices include` takes them back")
        return replace(settings, excluded=spans)

    return change


def taking_back(first: float | None, last: float | None) -> Change:
    """Make the change that takes back the spans that touch this one; None is open on that side."""
    begin = 0 if first is None else int(first)
    end = EVER_S if last is None else int(last)

    def change(settings: DeviceSettings) -> DeviceSettings:
        kept = tuple(span for span in settings.excluded if span[1] < begin or span[0] > end)
        if kept == settings.excluded:
            raise InvalidInput("nothing is excluded there; `devices show` lists what is")
        return replace(settings, excluded=kept)

    return change


def without_span(span: Span) -> Change:
    """Make the change that takes back exactly this span; without it the settings stay as they are."""

    def change(settings: DeviceSettings) -> DeviceSettings:
        return replace(settings, excluded=tuple(each for each in settings.excluded if each != span))

    return change
