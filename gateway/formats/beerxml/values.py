"""Repairs that make an element's value valid BeerXML, each with its description."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gateway.formats import quantities as measures
from gateway.formats.beerxml.elements import VERSION, Element, Kind
from gateway.formats.beerxml.text import clean

SHOWN = 40
"""The most characters of a value in a report."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_WORD = re.compile(r"[\W_]+")
_BOOLEANS = {
    "true": "TRUE",
    "yes": "TRUE",
    "y": "TRUE",
    "on": "TRUE",
    "1": "TRUE",
    "false": "FALSE",
    "no": "FALSE",
    "n": "FALSE",
    "off": "FALSE",
    "0": "FALSE",
}


class Repair(NamedTuple):
    """A valid value or None, the fault or "", and whether the old value means more than the new."""

    value: str | None
    wrong: str = ""
    keep: bool = False


def shown(text: str) -> str:
    """Return a value for a report."""
    short = " ".join(clean(text).split())
    return f"'{short[:SHOWN]}...'" if len(short) > SHOWN else f"'{short}'"


def word(text: str) -> str:
    """Return letters and digits alone, in lower case: `Dry-Hop` -> `dryhop`."""
    return _WORD.sub("", text.lower())


def repaired(element: Element, text: str) -> Repair:
    """Return the valid value of an element's text. Drop blanks around the text, except around free text."""
    return _REPAIRS[element.kind](element, text)


def _text(element: Element, text: str) -> Repair:
    if element.default and not text.strip():
        return Repair(None, "is empty")
    return Repair(text)


def _number(element: Element, text: str) -> Repair:
    text = text.strip()
    if measures.is_plain(text):
        return Repair(text)
    if not text:
        return Repair(None, "is empty")
    number = measures.number_in(text, element.unit)
    if number is None:
        return Repair(None, f"{shown(text)} is not a number", keep=True)
    return Repair(number, f"{shown(text)} is not a plain number")


def _integer(element: Element, text: str) -> Repair:
    text = text.strip()
    if element.default == VERSION and text != VERSION:
        return Repair(None, f"{shown(text)} is not {VERSION}")
    if _WHOLE.fullmatch(text):
        return Repair(text)
    number = _number(element, text)
    if number.value is None:
        return number
    whole = number.value.partition(".")[0]
    if not _WHOLE.fullmatch(whole):
        return Repair(None, f"{shown(text)} is not a whole number", keep=True)
    return Repair(whole, f"{shown(text)} is not a whole number")


def _boolean(element: Element, text: str) -> Repair:
    text = text.strip()
    if text in {"TRUE", "FALSE"}:
        return Repair(text)
    if not text:
        return Repair(None, "is empty")
    value = _BOOLEANS.get(text.lower())
    return Repair(value, f"{shown(text)} is not TRUE or FALSE", keep=value is None)


def _choice(element: Element, text: str) -> Repair:
    text = text.strip()
    if text in element.choices:
        return Repair(text)
    if not text:
        return Repair(None, "is empty")
    key = word(text)
    for choice in element.choices:
        if key in {word(choice), f"{word(choice)}s"}:
            return Repair(choice, f"{shown(text)} is not BeerXML")
    synonyms: Mapping[str, str] = element.synonyms or {}
    meant = synonyms.get(key) or synonyms.get(key.removesuffix("s"))
    return Repair(meant, f"{shown(text)} is not BeerXML", keep=True)


_REPAIRS: Mapping[Kind, Callable[[Element, str], Repair]] = {
    "text": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "choice": _choice,
}
