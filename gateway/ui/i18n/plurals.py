"""The form of a text for a number, by language: a name that the catalogue's texts have."""

from collections.abc import Callable

PLURALS: dict[str, Callable[[int], str]] = {
    "en": lambda n: "one" if n == 1 else "other",
    "de": lambda n: "one" if n == 1 else "other",
}
"""The rules of the Unicode CLDR for whole numbers."""
