"""Common parts of all formats for Tilts: colour and MAC, the firmware's version, figures of a Tilt Pro.

Programs without knowledge of the Tilt Pro take `major` for °F and `minor` for SG times 1000. A Tilt Pro sends
both times 10 (devices section 7.1).
"""

import re

from gateway.domain import units
from gateway.domain.report import Report

VERSION_BEACON_FAHRENHEIT = 900
"""The °F from which on a figure is no temperature: with 999 a Tilt sends its firmware version as gravity
(devices section 7.1), and programs convert and calibrate that figure, too."""

HIGH_RESOLUTION_SG = ((9.5, 12.5), (9_500.0, 12_500.0))
"""SG of a Tilt Pro from a program that divides by 1000, or not at all: times 10, or times 10,000."""

HIGH_RESOLUTION_FAHRENHEIT = 300
"""The °F from which on the temperature is times 10, too: a Tilt Pro's lowest figure is 320."""

FAHRENHEIT_TIMES_10_FROM = 450
"""The figure from which on a temperature without a unit is °F times 10: in °C times 10 it would be 45
degrees at least."""

MAC_DIGITS = 12

_HIGH_RESOLUTION = re.compile(r"\s?(?:•|â€¢|\ufffd)\s?HD(?=[:_ ]|$)", re.IGNORECASE)


def split_color(text: str) -> tuple[str, str]:
    """Return colour and MAC in a Tilt's name. The MAC may be missing; drop a mark for high resolution."""
    plain = _HIGH_RESOLUTION.sub("", text)
    color, colon, mac = plain.partition(":")
    first, underscore, rest = color.partition("_")
    if underscore and sum(c in "0123456789abcdefABCDEF" for c in rest + mac) >= MAC_DIGITS:
        color, mac = first, rest + colon + mac
    return color.strip(), mac.strip()


def is_version_beacon(report: Report) -> bool:
    """Return whether the report is a Tilt's firmware version and no measurement."""
    return _fahrenheit(report) >= VERSION_BEACON_FAHRENHEIT


def mend_high_resolution(report: Report) -> None:
    """Divide SG and temperature by 10 if only a Tilt Pro can have sent them."""
    if report.gravity is None or report.temp is None:
        return
    value = float(report.gravity)
    if not any(low <= value < high for low, high in HIGH_RESOLUTION_SG):
        return
    is_stated = report.temp_unit is not None and not report.temp_unit_by_format
    if not is_stated and float(report.temp) >= FAHRENHEIT_TIMES_10_FROM:
        report.temp_unit = "F"
    fahrenheit = _fahrenheit(report)
    if fahrenheit < HIGH_RESOLUTION_FAHRENHEIT:
        return
    if value < HIGH_RESOLUTION_SG[1][0]:
        report.gravity = units.scale_text(report.gravity, 10)
        report.gravity_unit, report.gravity_unit_reason = "G", "a Tilt Pro's SG times 10"
        report.gravity_unit_by_format = False
    if report.temp_unit == "F":
        report.temp = units.scale_text(report.temp, 10)
    else:
        report.temp = f"{units.fahrenheit_to_celsius(fahrenheit / 10):.2f}"
    report.temp_unit_reason, report.temp_unit_by_format = "a Tilt Pro's temperature times 10", False


def _fahrenheit(report: Report) -> float:
    if report.temp is None:
        return 0.0
    value = float(report.temp)
    return value if report.temp_unit == "F" else units.celsius_to_fahrenheit(value)
