"""Read recipe documents as recipes in the API's words, and write the API's recipes as BeerXML."""

import re
from dataclasses import dataclass

from gateway.domain.recipe import RecipeContent
from gateway.errors import InvalidInput
from gateway.formats import beerjson, beerxml
from gateway.formats.beerxml.complete import ALL_CHANGES, CHANGES, Changes, completed
from gateway.formats.beerxml.elements import UNKNOWN, XmlRecord
from gateway.formats.recipe_figures import Figures, figures, text
from gateway.formats.recipes.beerxml_export import skeleton
from gateway.formats.recipes.ingredients import ingredients_of, number_text

__all__ = ["ParsedRecipe", "content_of", "parse", "skeleton"]

BREW_METHODS = {"All Grain": "allgrain", "Extract": "extract", "Partial Mash": "partialmash"}
"""The API's word for a TYPE of BeerXML."""

US_UNITS = re.compile(r"[0-9.,]\s*(?:gal|qt|bbl|us)", re.IGNORECASE)
"""The pattern of a volume for display by a brewer with US units."""

TEXT_BYTES = 256 * 1024
"""The most bytes of a text of a recipe: of its notes, or of any other element."""

_BLANK = b" \t\r\n\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ParsedRecipe:
    """A recipe of a document, and a line for each change in it."""

    content: RecipeContent
    changes: list[str]


def parse(body: bytes, *, all_changes: bool = False) -> list[ParsedRecipe]:
    """Return the recipes of a document: BeerJSON if it begins with `{` or `[`, else BeerXML."""
    read = beerjson.read if body[:1024].lstrip(_BLANK)[:1] in {b"{", b"["} else beerxml.read
    found = read(body, ALL_CHANGES if all_changes else CHANGES)
    for recipe in found:
        _check_texts(recipe.record)
    return [ParsedRecipe(content_of(recipe.record), recipe.changes) for recipe in found]


def _check_texts(record: XmlRecord) -> None:
    """Raise `InvalidInput` with the name of the first text that is too long."""
    for name, value in record.items():
        if isinstance(value, str):
            if len(value) * 4 > TEXT_BYTES and len(value.encode()) > TEXT_BYTES:
                raise InvalidInput(f"{name or 'a text'} of a recipe has more than {TEXT_BYTES} bytes")
        else:
            for part in value if isinstance(value, list) else [value]:
                _check_texts(part)


def content_of(record: XmlRecord) -> RecipeContent:
    """Return a BeerXML recipe's content in the API's words: volumes litre, times minutes, gravities SG."""
    recipe = completed(record, Changes())
    found = figures(recipe)
    return RecipeContent(
        record=_members(recipe, found),
        ingredients=ingredients_of(recipe, found.mean_gravity),
        beerxml=beerxml.write(recipe),
    )


def _members(recipe: XmlRecord, found: Figures) -> dict[str, str | None]:
    style = recipe["STYLE"] if isinstance(recipe["STYLE"], dict) else {}
    number = number_text(style, "CATEGORY_NUMBER") or text(style, "CATEGORY_NUMBER").strip()
    # Number and letter in the style guide, as one: `13A`.
    style_id = None if number in {"", "0"} else number + text(style, "STYLE_LETTER").strip()
    return {
        "title": " ".join((text(recipe, "NAME") or "").split()),
        "author": _filled(recipe, "BREWER"),
        "brewmethod": BREW_METHODS[text(recipe, "TYPE")],
        "styleid": style_id,
        "stylename": _filled(style, "NAME"),
        "batchsize": number_text(recipe, "BATCH_SIZE"),
        "batchsizeunit": "l",
        "boilsize": number_text(recipe, "BOIL_SIZE"),
        "boiltime": number_text(recipe, "BOIL_TIME"),
        "boilgravity": found.boil_gravity,
        "efficiency": number_text(recipe, "EFFICIENCY"),
        "displayunits": "us" if US_UNITS.search(text(recipe, "DISPLAY_BATCH_SIZE")) else "metric",
        "sugar_scale": "sg",
        "og": found.og,
        "fg": found.fg,
        "abv": found.abv,
        "ibutinseth": found.ibu,
        "srmmorey": found.srm,
        "srmecbmorey": found.ebc,
        "notes": text(recipe, "NOTES"),
        "url": text(recipe, "URL"),
    }


def _filled(record: XmlRecord, name: str) -> str:
    """Return the element's text; "" if the text only stands for no value."""
    found = text(record, name)
    return "" if found == UNKNOWN else found
