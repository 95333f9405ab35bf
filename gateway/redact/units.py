"""Splits escaped text into characters, so that some can be replaced and the rest stays as written."""

import re
from collections.abc import Sequence

Unit = tuple[str, str]
"""A character as it is written, and the character itself."""

_JSON_UNIT = re.compile(r"\\u[0-9A-Fa-f]{4}|\\.|.", re.DOTALL)
_FORM_UNIT = re.compile(r"(?:%[0-9A-Fa-f]{2})+|.", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

_ESCAPED_BYTE = 3
"""Characters in `%20`."""


def json_units(text: str) -> list[Unit]:
    """Split the text between the quotation marks of a JSON string."""
    units: list[Unit] = []
    for raw in _JSON_UNIT.findall(text):
        if len(raw) == 1:
            char = raw
        elif raw[1] == "u" and len(raw) > 2:
            char = chr(int(raw[2:], 16))
        else:
            char = _ESCAPES.get(raw[1], raw[1])
        units.append((raw, char))
    return units


def form_units(text: str) -> list[Unit]:
    """Split a form's key or value; escaped bytes that are no UTF-8 count as ISO-8859-1."""
    units: list[Unit] = []
    for raw in _FORM_UNIT.findall(text):
        if len(raw) == 1:
            units.append((raw, raw))
            continue
        data = bytes.fromhex(raw.replace("%", ""))
        try:
            widths = [(char, len(char.encode())) for char in data.decode()]
        except UnicodeDecodeError:
            widths = [(char, 1) for char in data.decode("latin-1")]
        place = 0
        for char, width in widths:
            end = place + width * _ESCAPED_BYTE
            units.append((raw[place:end], char))
            place = end
    return units


def text_of(units: Sequence[Unit]) -> str:
    """Return the characters without escapes."""
    return "".join(char for _, char in units)


def written(units: Sequence[Unit], new: str) -> str:
    """Write as many new characters: equal ones as they were written, the others escaped in the same way."""
    texts = []
    for (raw, old), char in zip(units, new, strict=True):
        if char == old:
            texts.append(raw)
        elif len(raw) == 1 or raw[0] not in "%\\":
            texts.append(char)
        elif raw[0] == "%":
            texts += [f"%{byte:02X}" for byte in char.encode()]
        else:
            texts.append(f"\\u{ord(char):04x}")
    return "".join(texts)
