"""BeerXML from the API's record and ingredients alone, for recipes without BeerXML of their own."""

import re
from collections.abc import Mapping

from gateway.domain.recipe import Ingredient
from gateway.formats import beerxml
from gateway.formats import formulas as estimates
from gateway.formats import quantities as measures
from gateway.formats.beerxml.elements import HOP_USE, XmlRecord, XmlValue
from gateway.formats.beerxml.values import repaired

TYPES = {"allgrain": "All Grain", "biab": "All Grain", "extract": "Extract", "partialmash": "Partial Mash"}
"""TYPE of BeerXML by the API's brewmethod."""

DISPLAY_DECIMALS = 2

MASH_CELSIUS = 90.0
YEAST_CELSIUS = 44.0
WATER_CELSIUS = 100.0
"""Highest temperatures in °C of rests, fermentations and water; the lowest in °F are above them."""

_STYLE_ID = re.compile(r"([0-9]{1,3})([A-Za-z])")

Row = Mapping[str, str | None]


def skeleton(record: Row, ingredients: Mapping[str, list[Ingredient]]) -> str:
    """Write one valid RECIPE element. Estimate figures that the record lacks.

    Temperatures without a unit are °F if they are too high for °C.
    """
    volume = _get(record, "batchsizeunit") or "l"
    gravity = "plato" if _get(record, "sugar_scale") == "plato" else "sg"
    sets: dict[str, XmlValue] = {
        "FERMENTABLES": [_fermentable(item) for item in ingredients.get("fermentables", [])],
        "HOPS": [_hop(item) for item in ingredients.get("hops", [])],
        "YEASTS": [_yeast(item) for item in ingredients.get("yeasts", [])],
        "MISCS": [_misc(item) for item in ingredients.get("others", [])],
        "WATERS": [],
        "MASH": {"MASH_STEPS": [_mash_step(item) for item in ingredients.get("mashsteps", [])]},
    }
    displayed: str | None = None
    litres = measures.value_of(_in(record, "batchsize", volume, "l"))
    if litres is not None:
        us = _get(record, "displayunits") == "us"
        size = measures.text_of(litres / measures.LITRES_PER_GALLON if us else litres, DISPLAY_DECIMALS)
        displayed = f"{size} {'gal' if us else 'l'}"
    texts = {
        "NAME": _get(record, "title"),
        "TYPE": TYPES.get(re.sub("[^a-z]", "", _get(record, "brewmethod").lower())),
        "BREWER": _get(record, "author"),
        "BATCH_SIZE": _in(record, "batchsize", volume, "l"),
        "BOIL_SIZE": _in(record, "boilsize", volume, "l"),
        "BOIL_TIME": _in(record, "boiltime", "min", "min"),
        "EFFICIENCY": _in(record, "efficiency", "%", "%"),
        "NOTES": record.get("notes"),
        "OG": _in(record, "og", gravity, "SG"),
        "FG": _in(record, "fg", gravity, "SG"),
        "EST_COLOR": _with_unit(_in(record, "srmmorey", "srm", "SRM"), "SRM"),
        "IBU": _in(record, "ibutinseth", "ibu", "IBU"),
        "ABV": _in(record, "abv", "%", "%"),
        "DISPLAY_BATCH_SIZE": displayed,
        "URL": _get(record, "url"),
    }
    name = _get(record, "stylename")
    if name:
        style: XmlRecord = {"NAME": name}
        place = _STYLE_ID.fullmatch(_get(record, "styleid"))
        if place is not None:
            style |= {"CATEGORY_NUMBER": place[1], "STYLE_LETTER": place[2].upper()}
        sets["STYLE"] = style
    return beerxml.write(_present(texts) | sets)


def _present(texts: Mapping[str, str | None]) -> XmlRecord:
    return {name: text for name, text in texts.items() if text}


def _get(row: Row, *names: str) -> str:
    """Return the first of the members that is filled."""
    return next((found for name in names if (found := (row.get(name) or "").strip())), "")


def _in(row: Row, name: str, unit: str, wanted: str) -> str | None:
    """Return the member's number in a unit of BeerXML."""
    return measures.number_in(f"{_get(row, name)} {unit}", wanted)


def _with_unit(number: str | None, unit: str) -> str | None:
    return f"{number} {unit}" if number else None


def _celsius(row: Row, name: str, highest: float) -> str | None:
    """Return a temperature in °C: above the highest plausible °C it was °F, if there is no unit."""
    degrees = measures.value_of(_get(row, name))
    if degrees is None:
        return None
    unit = _get(row, "steptempunit") or ("F" if degrees > highest else "C")
    return _in(row, name, unit, "C")


def _is_weight(unit: str) -> bool:
    return measures.in_unit(1.0, unit, "kg") is not None


def _amount(row: Row) -> dict[str, str | None]:
    """Return an amount that may be weight or volume; an amount in any other unit is only for display."""
    unit = _get(row, "unit")
    known = measures.in_unit(1.0, unit, "kg or l") is not None
    return {
        "AMOUNT": _in(row, "amount", unit, "kg or l") if known else None,
        "AMOUNT_IS_WEIGHT": "TRUE" if _is_weight(unit) else "FALSE",
        "DISPLAY_AMOUNT": _with_unit(_get(row, "amount"), unit),
    }


def _fermentable(row: Row) -> XmlRecord:
    ppg = measures.value_of(_get(row, "ppg"))
    return _present(
        {
            "NAME": _get(row, "name"),
            "TYPE": _get(row, "type"),
            "AMOUNT": _in(row, "amount", _get(row, "unit") or "kg", "kg"),
            "YIELD": None if ppg is None else measures.text_of(100 * ppg / estimates.SUCROSE_PPG, 2),
            "COLOR": _in(row, "lovibond", "lovi", "SRM"),
        }
    )


def _hop(row: Row) -> XmlRecord:
    use = _get(row, "hopuse") or "Boil"
    dry = repaired(HOP_USE, use).value == "Dry Hop"
    return _present(
        {
            "NAME": _get(row, "name"),
            "ALPHA": _in(row, "aa", "%", "%"),
            "AMOUNT": _in(row, "amount", _get(row, "unit") or "g", "kg"),
            "USE": use,
            "TIME": _in(row, "hoptime", "day" if dry else "min", "min"),
            "FORM": _get(row, "form"),
            "HOP_TEMP": _celsius(row, "hopstand_temp", WATER_CELSIUS),
        }
    )


def _yeast(row: Row) -> XmlRecord:
    return _present(
        {
            "NAME": _get(row, "name"),
            "FORM": "Dry" if _is_weight(_get(row, "unit")) else "Liquid",
            **_amount(row),
            "LABORATORY": _get(row, "laboratory"),
            "MIN_TEMPERATURE": _celsius(row, "templo", YEAST_CELSIUS),
            "MAX_TEMPERATURE": _celsius(row, "temphi", YEAST_CELSIUS),
            "FLOCCULATION": _get(row, "flocculation"),
            "ATTENUATION": _in(row, "attenuation", "%", "%"),
        }
    )


def _misc(row: Row) -> XmlRecord:
    return _present(
        {
            "NAME": _get(row, "name"),
            "TYPE": _get(row, "othertype"),
            "USE": _get(row, "otheruse"),
            "TIME": _in(row, "othertime", "min", "min"),
            **_amount(row),
        }
    )


def _mash_step(row: Row) -> XmlRecord:
    return _present(
        {
            "NAME": _get(row, "name", "description", "mashtype"),
            "TYPE": _get(row, "mashtype"),
            "INFUSE_AMOUNT": _in(row, "amount", _get(row, "unit") or "l", "l"),
            "STEP_TEMP": _celsius(row, "temp", MASH_CELSIUS) or _celsius(row, "steptemp", MASH_CELSIUS),
            "STEP_TIME": _in(row, "mashtime", "min", "min") or _in(row, "steptime", "min", "min"),
            "DESCRIPTION": _get(row, "description"),
            "INFUSE_TEMP": _with_unit(_celsius(row, "starttemp", WATER_CELSIUS), "C"),
        }
    )
