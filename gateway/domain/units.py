"""Pure unit maths of brewing: degrees Plato and specific gravity, temperatures, spreadsheet days.

Gravity formulas as in api-decisions section 12: Plato to SG is the common rational fit, SG to Plato the
ASBC cubic. They are not exact inverses (12 °P -> 1.04838 -> 12.0021 °P), so they serve computing only
and never rewrite stored text.
"""

from decimal import Decimal
from functools import lru_cache

SECONDS_PER_DAY = 86_400
UNIX_EPOCH_AS_SERIAL_DAY = 25_569
"""1970-01-01 counted in days from 1899-12-30, as spreadsheets and Tilt's Timepoint count."""

ABSOLUTE_ZERO_C = Decimal("-273.15")

TYPICAL_SG = (0.95, 1.25)
"""Specific gravities of real wort and beer: a bare number in this range is an SG, and a calibration point
must lie in it."""

PLAUSIBLE_SG = (0.9, 1.3)
"""Specific gravities that a reading can have. A value outside is kept as text, and nothing is calculated
from it."""

POWER_ON_C = 85.0
"""A DS18B20 sensor that has not measured yet, in degrees Celsius."""

NO_SENSOR_C = -127.0
"""A DS18B20 sensor that does not answer, in degrees Celsius."""

SENTINEL_TOLERANCE = 0.06
"""Degrees that a firmware's rounding and its change of units may move such a value."""


def plato_to_sg(plato: float) -> float:
    """Return the specific gravity of an extract in degrees Plato: 12.0 -> 1.04838."""
    return 1 + plato / (258.6 - (plato / 258.2) * 227.1)


def sg_to_plato(sg: float) -> float:
    """Return the degrees Plato of a specific gravity: 1.048 -> 11.9."""
    return -616.868 + 1111.14 * sg - 630.272 * sg**2 + 135.997 * sg**3


def to_sg(gravity: float, unit: str) -> float:
    """Return the specific gravity of a value in `G` (SG) or `P` (Plato)."""
    return plato_to_sg(gravity) if unit == "P" else gravity


def fahrenheit_to_celsius(fahrenheit: float) -> float:
    """Return degrees Celsius: 68 -> 20."""
    return (fahrenheit - 32) * 5 / 9


def celsius_to_fahrenheit(celsius: float) -> float:
    """Return degrees Fahrenheit: 20 -> 68."""
    return celsius * 9 / 5 + 32


def to_celsius(temp: float, unit: str) -> float:
    """Return the degrees Celsius of a value in `C` or `F`."""
    return fahrenheit_to_celsius(temp) if unit == "F" else temp


def kelvin_text_to_celsius_text(kelvin: str) -> str:
    """Return Celsius with the digits of the Kelvin text: `293.71` -> `20.56`.

    The sum is decimal, because the text goes into the reading: binary floats would give 20.560000000000002.
    """
    return str(Decimal(kelvin) + ABSOLUTE_ZERO_C)


def scale_text(number: str, divisor: int) -> str:
    """Divide the number by a power of ten and keep its digits: `1045.6`, 1000 -> `1.0456`."""
    return format(Decimal(number) / divisor, "f")


# For eight moments, because many readings arrive in one second.
@lru_cache(maxsize=8)
def serial_day(unix_seconds: float) -> str:
    """Return the spreadsheet day as text with repr precision, UTC: 1772616600 -> `46085.39583333333`."""
    return repr(unix_seconds / SECONDS_PER_DAY + UNIX_EPOCH_AS_SERIAL_DAY)


def serial_day_to_unix(serial: float) -> float:
    """Return the seconds since 1970 of a spreadsheet day number, taken as UTC."""
    return (serial - UNIX_EPOCH_AS_SERIAL_DAY) * SECONDS_PER_DAY


def abv(og: float, fg: float) -> float:
    """Return the alcohol by volume in percent: 1.050, 1.010 -> 5.250000000000004.

    The operations have the order of api-decisions section 12, so that the service's own figures come out bit
    for bit.
    """
    return (og - fg) * 131.25


def abv_alternate(og: float, fg: float) -> float:
    """Return the alcohol by volume by the formula for strong beer; 0 at its pole.

    1.050, 1.010 -> 5.339411100495098.
    """
    if og == ALTERNATE_POLE:
        return 0.0
    return (76.08 * (og - fg) / (ALTERNATE_POLE - og)) * (fg / 0.794)


ALTERNATE_POLE = 1.775
"""The gravity at which the alternate formula divides by zero; no beer begins there."""
