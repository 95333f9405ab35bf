"""Pseudonyms for texts that are taken out: as long, and of the same classes of characters."""

import hashlib
import ipaddress
import re
import secrets
from itertools import cycle

from gateway.redact.kinds import COLORS, MARKS, MISSING, WORDS, Kind, kind_of

SALT_BYTES = 32

ATTEMPTS = 64
"""Attempts at a pseudonym that is not in use: of one digit there are only eight."""

LOWER, HEX, DIGITS = "abcdefghijklmnopqrstuvwxyz", "abcdef", "0123456789"

FOREIGN = {2: "é", 3: "文", 4: "🍺"}
"""Replacements of a character beyond ASCII, by its bytes in UTF-8."""

_SG_AT_END = re.compile(r"(?:\[SG\]|,SG)\Z")
_FIGURE = re.compile(r"\s*(?:[a-z_]+,[a-z]+=)?[+-]?[0-9.,]*[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?[iu%]?\s*\Z")
"""A number, also Cayenne's `temp,c=21.10`."""
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(?:Z|[+-][0-9:]+)?\Z")
_ANYWHERE = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"
    r"|(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f])"
    r"|(?<![0-9A-Za-z])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"
    r"|(?<![0-9A-Za-z.])(?=[0-9]*[A-Fa-f])(?=[A-Fa-f]*[0-9])[0-9A-Fa-f]{12}(?![0-9A-Za-z])"
    r"|hg_[0-9A-Za-z_-]+"
)
"""E-mail, MAC with and without separators, GUID, a key of the gateway's own."""
_COLOR_AND_MAC = re.compile(r"([A-Za-z]+)([:_])((?:[0-9A-Fa-f]{2}[:-]?){5}[0-9A-Fa-f]{2})\Z")
_PERHAPS_IP = re.compile(
    r"(?<![\w.:])(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{0,40}:[0-9A-Fa-f.]{0,15})"
)


class Pseudonyms:
    """The pseudonyms of one run: equal texts have the same, different texts have different ones.

    They come from a salt that is not kept, so that nothing leads back to the texts.
    """

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(SALT_BYTES)
        self._attempts: dict[str, int] = {}
        self._used: set[str] = set()

    def value(self, key: str, text: str) -> str:
        """Return the replacement of a text under this name."""
        kind, word = kind_of(key), text.strip().casefold()
        if kind is Kind.SECRET:
            return text if word in MISSING else shape(text)
        if kind is Kind.IDENTITY:
            return self.identity(text)
        if kind is Kind.COLOR:
            match = _COLOR_AND_MAC.match(text)
            color, mark, rest = match.groups() if match else text.partition(":")
            return self.word(color) + mark + self.identity(rest)
        if kind is Kind.FREE:
            return text if word in MARKS else self._pseudonym(text)
        if kind is Kind.KEPT or word in WORDS or _FIGURE.match(text) or _MOMENT.match(text.strip()):
            return self.anywhere(text)
        return self._pseudonym(text)

    def word(self, text: str) -> str:
        """Return the pseudonym of a name or id in a topic or a path; a Tilt's colour stays."""
        if all(word.casefold() in COLORS | {"tilt"} for word in text.split("_")):
            return text
        return self.identity(text)

    def identity(self, text: str) -> str:
        """Return the pseudonym of a name or id. Zeros stay, and a unit at the end (`[SG]` or `,SG`)."""
        if text.strip().casefold() in MISSING or not text.strip("0"):
            return text
        end = _SG_AT_END.search(text)
        stem = text[: end.start()] if end else text
        return self._pseudonym(stem) + text[len(stem) :]

    def anywhere(self, text: str) -> str:
        """Replace only e-mail, MAC and IP addresses, GUIDs and our own keys in a text."""
        text = _ANYWHERE.sub(lambda match: self._pseudonym(match.group()), text)

        def replace(match: re.Match[str]) -> str:
            try:
                ipaddress.ip_address(match.group())
            except ValueError:
                return match.group()  # a number with dots, or a time
            return self._pseudonym(match.group())

        return _PERHAPS_IP.sub(replace, text)

    def _pseudonym(self, text: str) -> str:
        if not any(char.isalnum() for char in text):
            return text
        folded = text.casefold()
        if folded in self._attempts:
            return self._draw(text, self._attempts[folded])
        for attempt in range(ATTEMPTS):
            found = self._draw(text, attempt)
            if found.casefold() not in self._used:
                break
        self._attempts[folded] = attempt
        self._used.add(found.casefold())
        return found

    def _draw(self, text: str, attempt: int) -> str:
        seed = self._salt + f"{attempt} {text.casefold()}".encode("utf-8", "surrogatepass")
        draws = hashlib.shake_256(seed).digest(len(text))
        letters = HEX if all(c in DIGITS + HEX for c in text.casefold() if c.isalnum()) else LOWER
        first = next(place for place, char in enumerate(text) if char.isalnum())
        return "".join(
            _other(char, draw, letters, place == first)
            for place, (char, draw) in enumerate(zip(text, draws, strict=True))
        )


def shape(text: str) -> str:
    """Return a text with a secret's length, capitals and separators only: `s3cr3t-Tok` is `r1ed1a-Cte`."""
    letters, chars = cycle("redacted"), []
    for char in text:
        if char.isdigit():
            chars.append("1")
        elif not char.isalnum():
            chars.append(char)
        else:
            chars.append(next(letters).upper() if char.isupper() else next(letters))
    return "".join(chars)


def _other(char: str, draw: int, letters: str, first: bool) -> str:
    """Return another character of the same class; a number does not begin with 0."""
    if not char.isascii():
        return FOREIGN[len(char.encode("utf-8", "surrogatepass"))]
    if char.isdigit():
        choice = DIGITS.replace(char, "").replace("0" if first else char, "")
        return choice[draw % len(choice)]
    if not char.isalpha():
        return char
    choice = letters.replace(char.lower(), "")
    letter = choice[draw % len(choice)]
    return letter.upper() if char.isupper() else letter
