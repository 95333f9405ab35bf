"""Figures of a recipe from its ingredients, by the usual published formulas.

An input that no brewery has (negative, or beyond `LARGEST`) counts as the nearest possible input, so that no
formula can fail. Gravities are SG, volumes litre, weights kg, times minutes, colours SRM or Lovibond.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from gateway.formats.quantities import EBC_PER_SRM, KG_PER_POUND, LITRES_PER_GALLON

LARGEST = 1e6
"""The upper bound of every quantity."""

SMALLEST_LITRES = 0.001
"""The lower bound of volumes, which formulas divide by."""

SUCROSE_PPG = 46.21
"""Gravity points (SG - 1, times 1000) of a pound of sucrose in a gallon, and so of a yield of 100 %."""

POINTS_PER_KG_AND_LITRE = SUCROSE_PPG / KG_PER_POUND * LITRES_PER_GALLON

DEFAULT_ATTENUATION = 75.0
"""Apparent attenuation in percent if no yeast has its own."""

USE_FACTORS = {"Boil": 1.0, "First Wort": 1.1, "Mash": 0.2}
"""Share of Tinseth's figure by USE of a hop, as calculators have it by custom; 0 for uses without a boil."""

ABV_FACTOR = 131.25
"""Percent of alcohol by volume for a fall of the gravity by 1."""


class Extract(NamedTuple):
    """A fermentable: kg, yield in percent of weight, and whether the mash efficiency applies to it."""

    kg: float
    yield_percent: float
    mashed: bool


class Colour(NamedTuple):
    """A fermentable: kg and degrees Lovibond."""

    kg: float
    lovibond: float


def bounded(value: float) -> float:
    """Return the nearest value from 0 to `LARGEST`; not a number counts as 0."""
    return min(max(value, 0.0), LARGEST) if value == value else 0.0


def is_volume(litres: float) -> bool:
    """Return whether so much can hold a beer."""
    return SMALLEST_LITRES <= litres <= LARGEST


def ppg(yield_percent: float) -> float:
    """Return the gravity points per pound and gallon of a yield in percent: 80 -> 36.97."""
    return SUCROSE_PPG * yield_percent / 100


def original_gravity(extracts: Iterable[Extract], litres: float, efficiency: float) -> float | None:
    """Return the SG before fermentation; `efficiency` in percent; None without a volume."""
    if not is_volume(litres):
        return None
    points = 0.0
    for extract in extracts:
        share = bounded(efficiency) / 100 if extract.mashed else 1.0
        points += bounded(extract.kg) * bounded(extract.yield_percent) / 100 * share
    return 1 + points * POINTS_PER_KG_AND_LITRE / litres / 1000


def final_gravity(og: float, attenuation: float) -> float:
    """Return the SG after fermentation by the apparent attenuation in percent."""
    return 1 + (og - 1) * (1 - min(bounded(attenuation), 100.0) / 100)


def boil_gravity(og: float, litres: float, boil_litres: float) -> float | None:
    """Return the SG before the boil: the same extract in the larger volume. None without a volume."""
    if not (is_volume(litres) and is_volume(boil_litres)):
        return None
    return 1 + (og - 1) * litres / boil_litres


def tinseth_ibu(alpha: float, kg: float, minutes: float, litres: float, gravity: float) -> float:
    """Return the IBU of one hop addition by Glenn Tinseth's formula of 1997.

    Milligrams of alpha acid per litre, times bigness of the wort, times boil time; `alpha` is in percent,
    `gravity` the average during the boil.
    """
    if not is_volume(litres):
        return 0.0
    bigness: float = 1.65 * 0.000125 ** bounded(gravity - 1)
    boil_time = (1 - math.exp(-0.04 * bounded(minutes))) / 4.15
    return bounded(alpha) / 100 * bounded(kg) * 1e6 / litres * bigness * boil_time


def morey_srm(colours: Iterable[Colour], litres: float) -> float | None:
    """Return the SRM by Dan Morey's formula: 1.4922 times the colour units to the power 0.6859."""
    if not is_volume(litres):
        return None
    pounds_per_gallon = LITRES_PER_GALLON / KG_PER_POUND / litres
    units = sum(bounded(colour.kg) * bounded(colour.lovibond) for colour in colours) * pounds_per_gallon
    return float(1.4922 * units**0.6859)


def ebc(srm: float) -> float:
    """Return the EBC of an SRM."""
    return srm * EBC_PER_SRM


def abv(og: float, fg: float) -> float:
    """Return the percent of alcohol by volume, as in api-decisions section 12."""
    return (og - fg) * ABV_FACTOR
