"""Placeholder until the real module is written in the next minutes: replace the whole file."""

from collections.abc import Iterable


def document(recipes: Iterable[str]) -> bytes:
    """A BeerXML document of RECIPE elements."""
    return ('<?xml version="1.0" encoding="UTF-8"?>\n<RECIPES>\n' + "".join(recipes) + "</RECIPES>\n").encode()
