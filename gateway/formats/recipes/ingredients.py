"""The API's ingredient arrays from a recipe of BeerXML, with the members of api-decisions section 5.

Weights are kg for fermentables and g for all else, volumes litre, temperatures °C, times minutes, but days
for dry hops. Everything is text, None if the recipe lacks it.
"""

from gateway.domain.recipe import Ingredient
from gateway.formats import formulas as estimates
from gateway.formats import quantities as measures
from gateway.formats.beerxml.elements import UNKNOWN, XmlRecord
from gateway.formats.recipe_figures import hop_ibu, records, text, value

GRAMS_PER_KG = 1000
PERCENT_DECIMALS = 1
PPG_DECIMALS = 1
IBU_DECIMALS = 1


def ingredients_of(recipe: XmlRecord, mean_gravity: float) -> dict[str, list[Ingredient]]:
    """Return all arrays of a valid recipe; `mean_gravity` is the average SG during the boil."""
    total = sum(estimates.bounded(value(item, "AMOUNT")) for item in records(recipe, "FERMENTABLES"))
    mash = recipe.get("MASH")
    steps = records(mash, "MASH_STEPS") if isinstance(mash, dict) else []
    return {
        "fermentables": [_fermentable(item, total) for item in records(recipe, "FERMENTABLES")],
        "hops": [_hop(item, hop_ibu(recipe, item, mean_gravity)) for item in records(recipe, "HOPS")],
        "yeasts": [_yeast(item) for item in records(recipe, "YEASTS")],
        "mashsteps": [_mash_step(item) for item in steps],
        "others": [_other(item) for item in records(recipe, "MISCS")],
    }


def number_text(record: XmlRecord, *names: str) -> str | None:
    """Return the first of the elements that begins with a number, without needless digits and unit."""
    for name in names:
        parts = measures.split(text(record, name))
        if parts is not None:
            return measures.trimmed(parts[0])
    return None


def _grams(record: XmlRecord) -> str | None:
    kg = number_text(record, "AMOUNT")
    return kg and measures.times(kg, GRAMS_PER_KG)


def _amount(record: XmlRecord) -> dict[str, str | None]:
    """Return an amount that may be weight or volume."""
    if text(record, "AMOUNT_IS_WEIGHT") == "TRUE":
        return {"amount": _grams(record), "unit": "g"}
    return {"amount": number_text(record, "AMOUNT"), "unit": "l"}


def _said(record: XmlRecord, *names: str) -> str | None:
    return next((found for name in names if (found := text(record, name).strip())), None)


def _fermentable(record: XmlRecord, total_kg: float) -> Ingredient:
    share = 100 * estimates.bounded(value(record, "AMOUNT")) / total_kg if total_kg else 0.0
    ppg = estimates.ppg(estimates.bounded(value(record, "YIELD")))
    return {
        "name": text(record, "NAME"),
        "amount": number_text(record, "AMOUNT"),
        "unit": "kg",
        "percent": measures.text_of(share, PERCENT_DECIMALS),
        "lovibond": number_text(record, "COLOR"),
        "ppg": measures.text_of(ppg, PPG_DECIMALS),
        "type": _said(record, "USER_FERMENTABLE_TYPE", "TYPE"),
    }


def _hop(record: XmlRecord, ibu: float) -> Ingredient:
    minutes = number_text(record, "TIME") or "0"
    dry = text(record, "USE") == "Dry Hop"
    return {
        "name": text(record, "NAME"),
        "amount": _grams(record),
        "unit": "g",
        "aa": number_text(record, "ALPHA"),
        "hopuse": _said(record, "USER_HOP_USE", "USE"),
        "hoptime": measures.text_of(float(minutes) / measures.MINUTES_PER_DAY) if dry else minutes,
        "ibu": measures.text_of(ibu, IBU_DECIMALS),
        "form": _said(record, "USER_HOP_FORM", "FORM"),
        "hopstand_temp": number_text(record, "HOP_TEMP", "TEMPERATURE"),
    }


def _yeast(record: XmlRecord) -> Ingredient:
    return {
        "name": text(record, "NAME"),
        "laboratory": text(record, "LABORATORY"),
        "attenuation": number_text(record, "ATTENUATION"),
        **_amount(record),
        "flocculation": _said(record, "USER_YEAST_FLOCCULATION", "FLOCCULATION"),
        "templo": number_text(record, "MIN_TEMPERATURE"),
        "temphi": number_text(record, "MAX_TEMPERATURE"),
    }


def _mash_step(record: XmlRecord) -> Ingredient:
    description = _said(record, "DESCRIPTION", "NAME")
    infusion_c = measures.number_in(text(record, "INFUSE_TEMP"), "C")
    return {
        "mashtype": _said(record, "USER_MASH_STEP_TYPE", "TYPE"),
        "temp": number_text(record, "STEP_TEMP"),
        "mashtime": number_text(record, "STEP_TIME"),
        "amount": number_text(record, "INFUSE_AMOUNT"),
        "unit": "L",
        "starttemp": None if infusion_c is None else measures.trimmed(infusion_c),
        "description": None if description == UNKNOWN else description,
    }


def _other(record: XmlRecord) -> Ingredient:
    return {
        "name": text(record, "NAME"),
        **_amount(record),
        "otheruse": _said(record, "USER_MISC_USE", "USE"),
        "othertime": number_text(record, "TIME"),
        "othertype": _said(record, "USER_MISC_TYPE", "TYPE"),
    }
