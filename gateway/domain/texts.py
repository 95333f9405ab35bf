"""Rules of text and of digits, wherever they come from. Pure."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

NOT_TEXT = re.compile("[\0\ud800-\udfff]")
"""NUL, at which SQLite's functions end a text, and halves of surrogate pairs, which UTF-8 cannot say."""

MAX_DIGITS = 15
"""Digits in a number of a request: enough for anything, small enough for SQLite's 64 bits."""

MAX_NUMBER = 10**MAX_DIGITS - 1

ALIKE = 0.6
"""How much of a word has to be the same, where 1 is all of it, to be what was meant."""


def did_you_mean(wanted: str, known: Iterable[str]) -> str:
    """` (did you mean 'iSpindel042'?)` where one of the known words is much like it, else nothing."""
    by_lower = {word.casefold(): word for word in known if word}
    alike = get_close_matches(wanted.casefold(), by_lower, n=1, cutoff=ALIKE)
    return f" (did you mean {by_lower[alike[0]]!r}?)" if alike else ""


def decimal_digits(text: str) -> bool:
    """Whether the text is a whole number that fits."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
