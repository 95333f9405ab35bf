"""The figures of a recipe: gravity, alcohol, bitterness and colour, as stated in the recipe or estimated."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.formats import formulas as estimates
from gateway.formats import quantities as measures
from gateway.formats.beerxml.elements import XmlRecord
from gateway.formats.beerxml.gravities import SG, is_sg
from gateway.formats.formulas import Colour, Extract

MASHED = frozenset({"Grain", "Adjunct"})
"""TYPE of fermentables to which the mash efficiency applies."""

GRAVITY_DECIMALS = 3
FIGURE_DECIMALS = 2
"""Decimals of estimated alcohol, bitterness and colour."""

STATED_DECIMALS = 4
"""Decimals of a recipe's own figures: further decimals come only from another unit or from noise."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures as plain text without trailing zeros, None if neither stated nor possible to estimate.

    `og`, `fg` and `boil_gravity` are SG, `abv` percent, `ibu` by Tinseth if estimated, `srm` and `ebc`
    colours of the beer. `mean_gravity` is the average SG during the boil.
    """

    og: str | None
    fg: str | None
    boil_gravity: str | None
    abv: str | None
    ibu: str | None
    srm: str | None
    ebc: str | None
    mean_gravity: float

    def missing_in(self, recipe: XmlRecord) -> dict[str, str]:
        """Return elements of these figures that the recipe lacks; two of them with their units."""
        ours = {
            "OG": self.og,
            "FG": self.fg,
            "EST_OG": self.og and f"{self.og} SG",
            "EST_FG": self.fg and f"{self.fg} SG",
            "EST_COLOR": self.srm and f"{self.srm} SRM",
            "IBU": self.ibu,
            "IBU_METHOD": "Tinseth" if self.ibu and "IBU" not in recipe else None,
            "EST_ABV": self.abv,
            "ABV": self.abv,
        }
        return {name: text for name, text in ours.items() if text and name not in recipe}


def records(recipe: XmlRecord, name: str) -> Sequence[XmlRecord]:
    """Return the records of one of the recipe's sets."""
    found = recipe.get(name)
    return found if isinstance(found, list) else []


def value(record: XmlRecord, name: str) -> float:
    """Return the number of an element; 0 without one."""
    return measures.value_of(record.get(name)) or 0.0


def text(record: XmlRecord, name: str) -> str:
    """Return the text of an element; "" without one."""
    found = record.get(name)
    return found if isinstance(found, str) else ""


def stated(recipe: XmlRecord, unit: str, *names: str) -> str | None:
    """Return the first of the elements with a plausible number, in the unit, with `STATED_DECIMALS`."""
    for name in names:
        number = measures.number_in(text(recipe, name), unit)
        if number is not None and (is_sg(float(number)) if unit == SG else float(number) > 0):
            return measures.text_of(float(number), STATED_DECIMALS)
    return None


def figures(recipe: XmlRecord) -> Figures:
    """Return the recipe's figures: its own first, its own estimates before measured values."""
    litres = value(recipe, "BATCH_SIZE")
    fermentables = records(recipe, "FERMENTABLES")
    og = stated(recipe, SG, "EST_OG", "OG")
    if not og and fermentables:
        extracts = [
            Extract(value(item, "AMOUNT"), value(item, "YIELD"), text(item, "TYPE") in MASHED)
            for item in fermentables
        ]
        og = _gravity(estimates.original_gravity(extracts, litres, value(recipe, "EFFICIENCY")))
    attenuation = max((value(yeast, "ATTENUATION") for yeast in records(recipe, "YEASTS")), default=0)
    attenuation = attenuation or estimates.DEFAULT_ATTENUATION
    fg = stated(recipe, SG, "EST_FG", "FG") or (
        og and _gravity(estimates.final_gravity(float(og), attenuation))
    )
    boil = estimates.boil_gravity(float(og), litres, value(recipe, "BOIL_SIZE")) if og else None
    mean = 1.0 if not og else (float(og) + (boil or float(og))) / 2
    abv = stated(recipe, "%", "EST_ABV", "ABV")
    if abv is None and og and fg:
        abv = measures.text_of(estimates.abv(float(og), float(fg)), FIGURE_DECIMALS)
    ibu = stated(recipe, "IBU", "IBU")
    if not ibu and og and estimates.is_volume(litres):
        total = sum(hop_ibu(recipe, hop, mean) for hop in records(recipe, "HOPS"))
        ibu = measures.text_of(total, FIGURE_DECIMALS)
    srm = stated(recipe, "SRM", "EST_COLOR")
    if not srm and fermentables:
        colours = [Colour(value(item, "AMOUNT"), value(item, "COLOR")) for item in fermentables]
        colour = estimates.morey_srm(colours, litres)
        srm = None if colour is None else measures.text_of(colour, FIGURE_DECIMALS)
    return Figures(
        og=og,
        fg=fg,
        boil_gravity=_gravity(boil),
        abv=abv,
        ibu=ibu,
        srm=srm,
        ebc=srm and measures.text_of(estimates.ebc(float(srm)), FIGURE_DECIMALS),
        mean_gravity=mean,
    )


def hop_ibu(recipe: XmlRecord, hop: XmlRecord, mean_gravity: float) -> float:
    """Return the IBU of one addition. First wort and mash hops count for the whole boil at least."""
    use = text(hop, "USE")
    minutes = value(hop, "TIME") if use == "Boil" else max(value(hop, "TIME"), value(recipe, "BOIL_TIME"))
    factor = estimates.USE_FACTORS.get(use, 0.0)
    alpha, kg, litres = value(hop, "ALPHA"), value(hop, "AMOUNT"), value(recipe, "BATCH_SIZE")
    return factor and factor * estimates.tinseth_ibu(alpha, kg, minutes, litres, mean_gravity)


def _gravity(sg: float | None) -> str | None:
    return None if sg is None or not is_sg(sg) else measures.text_of(sg, GRAVITY_DECIMALS)
