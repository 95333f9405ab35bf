"""Amounts, times and colours of recipes in the viewer's words, for the pages that show recipes."""

from datetime import datetime
from typing import NamedTuple

from gateway.formats import quantities
from gateway.formats.formulas import ebc
from gateway.formats.recipe_sheet import Vitals
from gateway.samples.drawing import srm_rgb
from gateway.ui.words import NO_BREAK, NOTHING, Quantity, Words

GRAMS_BELOW_KG = 0.1
"""Kilograms below which a weight is shown in grams."""

ML_BELOW_L = 1.0
"""Litres below which a volume is shown in millilitres."""

HOUR_MIN, DAY_MIN = 60, 1440


class Colour(NamedTuple):
    """A colour of beer: as `#rrggbb` for a swatch, and as a number with its unit."""

    swatch: str
    number: str


class VitalTexts(NamedTuple):
    """The figures of a recipe as texts."""

    og: Quantity
    fg: Quantity
    abv: Quantity
    ibu: str
    colour: Colour | None


class Amounts:
    """Writes amounts as the author of a recipe measures: in kilograms and litres, or pounds and gallons."""

    def __init__(self, words: Words, *, is_us: bool = False) -> None:
        self._words = words
        self._is_us = is_us

    def weight(self, kilograms: float | None) -> str:
        """Write a weight of malt or sugar."""
        if kilograms is None:
            return NOTHING
        if self._is_us:
            pounds = kilograms / quantities.KG_PER_POUND
            return self._write(pounds, 2, "lb") if pounds >= 1 else self._write(pounds * 16, 1, "oz")
        if kilograms < GRAMS_BELOW_KG:
            return self.grams(kilograms * 1000)
        return self._write(kilograms, 2, "kg")

    def grams(self, grams: float | None) -> str:
        """Write a small weight, such as one of hops."""
        if grams is None:
            return NOTHING
        if self._is_us:
            return self._write(grams / 1000 / quantities.KG_PER_POUND * 16, 2, "oz")
        return self._write(grams, 0 if grams >= 10 else 1, "g")

    def volume(self, litres: float | None) -> str:
        """Write a volume of water, wort or beer."""
        if litres is None:
            return NOTHING
        if litres < ML_BELOW_L:
            return self._write(litres * 1000, 0, "ml")
        if self._is_us:
            return self._write(litres / quantities.LITRES_PER_GALLON, 1, "gal")
        return self._write(litres, 1, "l")

    def either(self, grams: float | None, litres: float | None) -> str:
        """Write an amount that is a weight or a volume."""
        return self.volume(litres) if grams is None else self.grams(grams)

    def minutes(self, minutes: float | None) -> str:
        """Write a length of time in a brewing day, or in days if it is longer."""
        if minutes is None:
            return ""
        if minutes >= DAY_MIN:
            return self._words.t("recipe.days", n=round(minutes / DAY_MIN))
        return self._write(minutes, 0, "min")

    def _write(self, value: float, decimals: int, unit: str) -> str:
        return f"{self._words.number(value, decimals)}{NO_BREAK}{unit}"


def vital_texts(words: Words, vitals: Vitals) -> VitalTexts:
    """Return the figures of a recipe as texts."""
    return VitalTexts(
        og=words.gravity(vitals.og),
        fg=words.gravity(vitals.fg),
        abv=words.percent(vitals.abv, 1),
        ibu=NOTHING if vitals.ibu is None else words.number(vitals.ibu, 0),
        colour=colour_of(words, vitals.srm),
    )


def colour_of(words: Words, srm: float | None) -> Colour | None:
    """Return a colour; its number is EBC for a viewer who measures in Plato, else SRM."""
    if srm is None:
        return None
    unit, value = ("EBC", ebc(srm)) if words.gravity_unit == "P" else ("SRM", srm)
    red, green, blue = srm_rgb(srm)
    return Colour(f"#{red:02x}{green:02x}{blue:02x}", f"{words.number(value, 0)}{NO_BREAK}{unit}")


def day_text(words: Words, day: str) -> str:
    """Write a calendar day, YYYY-MM-DD; any other text stays as it is."""
    try:
        noon = datetime.fromisoformat(day).replace(hour=12, tzinfo=words.zone)
    except ValueError:
        return day
    return words.date(noon.timestamp())
