"""Rules of text and of digits. Pure."""

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from urllib.parse import urlsplit

NOT_TEXT = re.compile("[\0\ud800-\udfff]")
"""NUL, at which SQLite's functions end a text, and halves of surrogate pairs, which UTF-8 cannot encode."""

NAME_CHARACTERS = 200
"""Characters that a name may have: of an account, a folder, a key, or of a photo at another service."""

LABEL_CHARACTERS = 64
"""Characters of a device's label at most."""

UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that have no place in a label: they hide, turn or break the text around them."""

JOINER, JOINED = "\u200d", frozenset({"So", "Sk", "Mn"})
"""The zero-width joiner, and the categories of the parts that it joins to one emoji."""

MAX_DIGITS = 15
"""Digits in a number of a request: enough for anything, small enough for SQLite's 64 bits."""

MAX_NUMBER = 10**MAX_DIGITS - 1

ALIKE = 0.6
"""The share of a word that must agree, 1 for all of it, before the word is suggested."""


def did_you_mean(wanted: str, known: Iterable[str], *, quoted: bool = True) -> str:
    """Return ` (did you mean 'iSpindel042'?)` if a known word is much like the wanted one, else ""."""
    by_lower = {word.casefold(): word for word in known if word}
    alike = get_close_matches(wanted.casefold(), by_lower, n=1, cutoff=ALIKE)
    if not alike:
        return ""
    word = by_lower[alike[0]]
    return f" (did you mean {word!r}?)" if quoted else f" (did you mean {word}?)"


def label_of(text: str) -> str:
    """Return the text as a label: composed (NFC), without characters of `UNSEEN`, at most 64 characters."""
    if text.isascii() and text.isprintable():
        return text[:LABEL_CHARACTERS]
    composed = unicodedata.normalize("NFC", text)
    kept = ""
    for place, character in enumerate(composed):
        if unicodedata.category(character) in UNSEEN:
            around = (composed[place - 1 : place], composed[place + 1 : place + 2])
            inside = all(side and unicodedata.category(side) in JOINED for side in around)
            if character != JOINER or not inside:
                continue
        kept += character
        if len(kept) == LABEL_CHARACTERS:
            break
    return kept


def shown_url(url: str) -> str:
    """Return a URL as people may see it: without user, password, query and fragment, where secrets stand."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


SECRET_CHARACTERS = 8
"""Characters from which a level of the path of a secret URL counts as a secret itself."""


def shown_secret(url: str) -> str:
    """Return a URL that is a secret, as people may see it: without query, and a path that may be one."""
    shown = shown_url(url)
    scheme, _, rest = shown.partition("://")
    host, _, path = rest.partition("/")
    if "?" in url and all(len(level) < SECRET_CHARACTERS for level in path.split("/")):
        return f"{shown}?..."
    return f"{scheme}://{host}/..."


def decimal_digits(text: str) -> bool:
    """Return whether the text is a whole number of at most `MAX_DIGITS` digits."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
