"""Numbers as recipes write them, and the units of BeerXML: kg, litre, °C, minute, day, SG, Lovibond, ppm.

Gallons, quarts and spoons are US measures unless the unit says imperial (`igal`). Factors are the legal
definitions of the units; gravities go through `gateway.domain.units`.
"""

import math
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal

from gateway.domain import units

LITRES_PER_GALLON = 3.785411784
LITRES_PER_IMPERIAL_GALLON = 4.54609
KG_PER_POUND = 0.45359237
MINUTES_PER_DAY = 1440
EBC_PER_SRM = 1.97
KCAL_PER_KJ = 1 / 4.184
CO2_GRAMS_PER_LITRE = 1.96
"""Grams of carbon dioxide in a litre of beer that has taken up one volume of it."""

NUMBER_DIGITS = 300
"""The most characters of a number: longer ones may be beyond a double."""

CONVERTED_DIGITS = 9
"""Significant digits of a value that was computed from another unit."""

DECIMALS_BELOW = 1e15
"""Numbers that have digits behind the point in a double."""

_PLAIN = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_MEASURE = re.compile(r"([+-]?(?:[0-9][0-9.,]*|[.,][0-9]+))([eE][+-]?[0-9]{1,3})?\s*(.*)", re.DOTALL)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:([.,])[0-9]{3})(?:\1[0-9]{3})*")
_ROUNDED = Context(prec=CONVERTED_DIGITS, rounding=ROUND_HALF_EVEN)

_VOLUME = {
    "l": 1.0,
    "ml": 0.001,
    "hl": 100.0,
    "tsp": LITRES_PER_GALLON / 768,
    "tbsp": LITRES_PER_GALLON / 256,
    "floz": LITRES_PER_GALLON / 128,
    "cup": LITRES_PER_GALLON / 16,
    "pt": LITRES_PER_GALLON / 8,
    "qt": LITRES_PER_GALLON / 4,
    "gal": LITRES_PER_GALLON,
    "bbl": LITRES_PER_GALLON * 31,
    "ifloz": LITRES_PER_IMPERIAL_GALLON / 160,
    "ipt": LITRES_PER_IMPERIAL_GALLON / 8,
    "iqt": LITRES_PER_IMPERIAL_GALLON / 4,
    "igal": LITRES_PER_IMPERIAL_GALLON,
    "ibbl": LITRES_PER_IMPERIAL_GALLON * 36,
}
_MASS = {"kg": 1.0, "g": 0.001, "mg": 1e-6, "lb": KG_PER_POUND, "oz": KG_PER_POUND / 16}
_MINUTES = {"min": 1.0, "sec": 1 / 60, "s": 1 / 60, "hr": 60.0, "h": 60.0, "day": 1440.0, "week": 10_080.0}
_SPECIFIC_VOLUME = {
    "l/kg": 1.0,
    "l/g": 1000.0,
    "m^3/kg": 1000.0,
    "qt/lb": LITRES_PER_GALLON / 4 / KG_PER_POUND,
    "gal/lb": LITRES_PER_GALLON / KG_PER_POUND,
    "gal/oz": LITRES_PER_GALLON / KG_PER_POUND * 16,
    "floz/oz": LITRES_PER_GALLON / 8 / KG_PER_POUND,
    "ft^3/lb": 28.316846592 / KG_PER_POUND,
}

FACTORS: Mapping[str, Mapping[str, float]] = {
    "kg": _MASS,
    "l": _VOLUME,
    "kg or l": {**_VOLUME, **_MASS},
    "min": _MINUTES,
    "day": {unit: factor / MINUTES_PER_DAY for unit, factor in _MINUTES.items()},
    "C": {"c": 1.0},
    "SG": {
        "sg": 1.0,
        **dict.fromkeys(("kg/m^3", "kg/m3", "kg/m³", "g/l"), 0.001),
        "kg/l": 1.0,
        "g/cm^3": 1.0,
    },
    "%": {"%": 1.0},
    "SRM": {"srm": 1.0, "lovi": 1.0, "l": 1.0, "ebc": 1 / EBC_PER_SRM},
    "IBU": {"ibu": 1.0},
    "ppm": {"ppm": 1.0, "mg/l": 1.0, "ppb": 0.001},
    "kPa": {"kpa": 1.0, "psi": 6.894757293168, "bar": 100.0},
    "vols": {"vols": 1.0, "vol": 1.0, "g/l": 1 / CO2_GRAMS_PER_LITRE},
    "pH": {"ph": 1.0},
    "Lintner": {"lintner": 1.0},
    "cal/(g C)": {"cal/(g c)": 1.0, "btu/(lb f)": 1.0, "j/(kg k)": KCAL_PER_KJ / 1000},
    "l/kg": _SPECIFIC_VOLUME,
}
"""Factors to each unit of BeerXML from other units; unit names in lower case."""


_FORMULAS: Mapping[tuple[str, str], Callable[[float], float]] = {
    ("C", "f"): units.fahrenheit_to_celsius,
    ("SG", "plato"): units.plato_to_sg,
    ("SG", "p"): units.plato_to_sg,
    ("SG", "brix"): units.plato_to_sg,
    ("SG", "bx"): units.plato_to_sg,
    ("Lintner", "wk"): lambda windisch_kolbach: (windisch_kolbach + 16) / 3.5,
}
"""Conversions without a factor. Brix is taken as Plato; they agree to the second decimal."""

_SPELLINGS = {
    "liter": "l",
    "litre": "l",
    "gallon": "gal",
    "gals": "gal",
    "quart": "qt",
    "gram": "g",
    "kilogram": "kg",
    "kgs": "kg",
    "pound": "lb",
    "ounce": "oz",
    "minute": "min",
    "hour": "hr",
    "d": "day",
    "percent": "%",
    "celsius": "c",
    "fahrenheit": "f",
    "lovibond": "lovi",
    "volume": "vols",
}


def is_plain(text: str) -> bool:
    """Return whether the text is a decimal number without exponent that a double can hold."""
    return len(text) <= NUMBER_DIGITS and _PLAIN.fullmatch(text) is not None


def in_unit(value: float, unit: str, wanted: str) -> float | None:
    """Return the value in the wanted unit of BeerXML (a key of `FACTORS`); None for another kind of unit."""
    name = unit.strip().strip(".").replace("°", "").lower()
    name = _SPELLINGS.get(name, name)
    factors = FACTORS.get(wanted, {})
    if name not in factors and name.endswith("s"):
        name = _SPELLINGS.get(name[:-1], name[:-1])
    if name in factors:
        return value * factors[name]
    formula = _FORMULAS.get((wanted, name))
    try:
        result = None if formula is None else formula(value)
    except ZeroDivisionError:
        return None
    return result if result is not None and math.isfinite(result) else None


def split(text: str) -> tuple[str, str] | None:
    """Split a text into its first number, in plain decimal notation, and the rest: `4,5 kg` -> 4.5, kg."""
    found = _MEASURE.fullmatch(text.strip())
    if found is None:
        return None
    mantissa, exponent, rest = found.groups()
    decimal = max(mantissa.rfind(","), mantissa.rfind("."))
    if decimal >= 0 and mantissa.count(mantissa[decimal]) == 1:
        whole, fraction = mantissa[:decimal], "." + mantissa[decimal + 1 :]
    else:
        whole, fraction = mantissa, ""
    if _GROUPED.fullmatch(whole):
        whole = whole.replace(",", "").replace(".", "")
    number = whole + fraction
    if exponent and is_plain(number):
        number = text_of(float(number + exponent)) if math.isfinite(float(number + exponent)) else ""
    return (number, rest.strip()) if is_plain(number) else None


def number_in(text: str, wanted: str) -> str | None:
    """Return a text's first number in the wanted unit. An unknown unit counts as the wanted one."""
    parts = split(text)
    if parts is None:
        return None
    number, unit = parts
    converted = in_unit(float(number), unit, wanted) if unit else None
    if converted is not None and converted != float(number):
        number = text_of(converted)
    return number if is_plain(number) else None


def value_of(text: object) -> float | None:
    """Return the value of the number at a text's beginning; None for anything else."""
    parts = split(text) if isinstance(text, str) else None
    return None if parts is None else float(parts[0])


def text_of(value: float, decimals: int | None = None) -> str:
    """Write plain decimal notation without trailing zeros: with `decimals`, or `CONVERTED_DIGITS` digits."""
    exact = Decimal(repr(value))
    rounds = decimals is None or abs(value) >= DECIMALS_BELOW
    number = _ROUNDED.plus(exact) if rounds else round(exact, decimals)
    return trimmed(format(number, "f"))


def trimmed(number: str) -> str:
    """Return the plain number without needless digits: `21.50` -> `21.5`, `.5` -> `0.5`, `-0.0` -> `0`."""
    digits = format(Decimal(number), "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits


def times(number: str, factor: int) -> str:
    """Multiply the plain number and keep its digits: `0.0283`, 1000 -> `28.3`."""
    return trimmed(format(Decimal(number) * factor, "f"))
