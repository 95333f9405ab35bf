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
    return [(raw, _json_character(raw)) for raw in _JSON_UNIT.findall(text)]


def _json_character(raw: str) -> str:
    if len(raw) == 1:
        return raw
    return chr(int(raw[2:], 16)) if raw[1] == "u" and len(raw) > 2 else _ESCAPES.get(raw[1], raw[1])


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
    return "".join(
        raw if char == other else _written_like(raw, other)
        for (raw, char), other in zip(units, new, strict=True)
    )


def _written_like(raw: str, char: str) -> str:
    if len(raw) == 1 or raw[0] not in "%\\":
        return char
    if raw[0] == "%":
        return "".join(f"%{byte:02X}" for byte in char.encode())
    return f"\\u{ord(char):04x}"
