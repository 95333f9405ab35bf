"""The figures at which a driver or `normalise` decides otherwise about a number.

Between two neighbouring figures every number is treated alike: a plan for a device (see `plan`) relies on it.
A new rule about the size of a number has its figure here, too; the test of plans finds one that is missing.
"""

import math
from collections.abc import Iterator, Sequence
from enum import Enum

from gateway.domain import units
from gateway.drivers import blynk, brewpiless, fill, pressuremon, thingspeak, tilt_tools, tilts, wire
from gateway.intake import normalise as normalising


def _in_both_units(*celsius: float) -> Iterator[float]:
    for figure in celsius:
        yield from (figure, units.celsius_to_fahrenheit(figure))


def _around(*figures: float) -> Iterator[float]:
    """Yield the limits of sentinels, which firmware and changes of unit round."""
    for figure in figures:
        yield from (figure - units.SENTINEL_TOLERANCE, figure + units.SENTINEL_TOLERANCE)


HOT = units.fahrenheit_to_celsius(tilts.HIGH_RESOLUTION_FAHRENHEIT)
"""The figure of a temperature, in any unit, from which on a payload has no plan.

From there on the gravity may be a Tilt Pro's, times 10. Below, no limit of a gravity depends on temperatures.
"""

GRAVITY_CUTS = sorted({
    -math.inf, 0.0, math.inf,
    *(limit for low, high, _ in normalising.SCALED_SG_RANGES for limit in (low, high)),
    *(limit for limits in normalising.BELIEVED.values() for limit in limits),
    *normalising.PLATO_RANGE, *normalising.PERHAPS_SG, *units.TYPICAL_SG,
    tilt_tools.PYTILT_SG_FROM, blynk.LEAST_GRAVITY, blynk.MOST_GRAVITY,
    brewpiless.NO_GRAVITY_SG - 5e-5, brewpiless.NO_GRAVITY_SG + 5e-5, brewpiless.NO_GRAVITY_PLATO,
})  # fmt: skip
"""Figures of a gravity at which a driver or `normalise` decides otherwise."""

SENSOR_CUTS = {
    0.0, HOT, *_in_both_units(wire.NO_SENSOR_BELOW_CELSIUS),
    *_in_both_units(*_around(units.POWER_ON_C)),
    *_around(*(figure for figures in normalising.SENTINELS.values() for figure in figures)),
}  # fmt: skip
"""Figures of any temperature that are those of a broken sensor."""

TEMP_CUTS = sorted(cut for cut in {
    -math.inf, *SENSOR_CUTS,
    *normalising.KELVIN_RANGE, normalising.FAHRENHEIT_FROM, normalising.CELSIUS_BELOW,
    normalising.SENDS_FAHRENHEIT_CELSIUS_BELOW, *_in_both_units(*normalising.BELIEVED_CELSIUS),
    tilt_tools.CELSIUS_BELOW,
} if cut <= HOT)  # fmt: skip
"""Figures of the beer's temperature at which a driver or `normalise` decides otherwise."""

FACT_CUTS = {
    "angle": (*brewpiless.TILT_SG, blynk.MOST_ANGLE_DEGREE),
    "battery": (fill.BATTERY_VOLT_LIMIT, *thingspeak.CELL_VOLT),
    "battery_percent": (fill.BATTERY_VOLT_LIMIT, *thingspeak.CELL_VOLT),
    "rssi": thingspeak.SIGNAL_DBM,
}
"""Figures of further numbers, beside 0, at which a driver decides otherwise."""

CLOCK_CUTS = [-math.inf, 0.0, fill.MILLISECONDS_ABOVE, math.inf]
"""Figures of a time at which a driver decides otherwise."""

TEXT_FACT_CUTS = sorted({
    -math.inf, math.inf, *SENSOR_CUTS,
    *(sign * (1 - pressuremon.NOT_FITTED_TOLERANCE) for sign in pressuremon.NOT_FITTED),
    *(sign / (1 - pressuremon.NOT_FITTED_TOLERANCE) for sign in pressuremon.NOT_FITTED),
})  # fmt: skip
"""Figures of a further number whose text is kept, such as a pressure or a second temperature."""


ALL_CUTS = sorted(
    {
        *GRAVITY_CUTS,
        *TEMP_CUTS,
        *TEXT_FACT_CUTS,
        *CLOCK_CUTS,
        *(cut for cuts in FACT_CUTS.values() for cut in cuts),
    }
)


class Kind(Enum):
    """The effect of a number."""

    FIXED = "it must stay as it is"
    IDENTITY = "it is part of an identity"
    UNREAD = "none"
    GRAVITY = "the text of the gravity"
    TEMP = "the text of the temperature"
    FACT = "a number among the facts"
    TEXT_FACT = "a number among the facts that keeps its text"
    CLOCK = "the time of the device's clock"


def cuts_of(kind: Kind, fact: str) -> Sequence[float]:
    """Return the figures at which a driver or `normalise` decides otherwise about a number."""
    match kind:
        case Kind.GRAVITY:
            return GRAVITY_CUTS
        case Kind.TEMP:
            return TEMP_CUTS
        case Kind.TEXT_FACT:
            return TEXT_FACT_CUTS
        case Kind.FACT:
            return sorted({-math.inf, 0.0, *FACT_CUTS.get(fact, ()), math.inf})
        case Kind.CLOCK:
            return CLOCK_CUTS
        case Kind.UNREAD:
            return ALL_CUTS
    return ()
