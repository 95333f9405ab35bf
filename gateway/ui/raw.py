"""Bytes of a stranger as people can read them: no character of them hides, turns or breaks the page."""

import unicodedata

from gateway.domain.texts import UNSEEN

HEX_BYTES = 8
"""Bytes in a line of hexadecimal digits: as many as fit on a phone."""

LAYOUT = "\n\t"
"""Control characters that stay as they are."""


def shown(raw: bytes, limit: int) -> str:
    """Return the first `limit` bytes as text; spell out unseen characters, and bytes that are no text."""
    text = raw[:limit].decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    return "".join(
        character.encode("unicode_escape").decode()
        if character not in LAYOUT and unicodedata.category(character) in UNSEEN
        else character
        for character in text
    )


def in_hex(raw: bytes, limit: int) -> str:
    """Return the first `limit` bytes in lines: place, hexadecimal digits, and letters where there are any."""
    lines = []
    for place in range(0, len(raw[:limit]), HEX_BYTES):
        piece = raw[place : min(place + HEX_BYTES, limit)]
        digits = piece.hex(" ")
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{place:04x} {digits:{3 * HEX_BYTES}}{letters}")
    return "\n".join(lines)
