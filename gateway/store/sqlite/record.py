"""Records of SQLite rows as bytes (sqlite.org/fileformat2.html, section 2.1)."""

import struct
from typing import Any

_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)


class Unreadable(ValueError):
    """These bytes are not what the format demands."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and the place behind it; above 63 bits it is negative."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    value = value << 8 | data[at + 8]
    return (value - (1 << 64) if value >= 1 << 63 else value), at + 9


def record(data: bytes) -> list[Any]:
    """The values; text that is no UTF-8 has its bytes as surrogates."""
    size, at = varint(data, 0)
    if not at <= size <= len(data):
        raise Unreadable
    types: list[int] = []
    while at < size:
        kind, at = varint(data, at)
        types.append(kind)
    values: list[Any] = []
    for kind in types:
        value, at = _value(data, at, kind)
        values.append(value)
    return values


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == 0:
        return None, at
    if kind in {8, 9}:
        return kind - 8, at
    size = _INTEGER_BYTES[kind] if 0 < kind < 7 else 8 if kind == 7 else (kind - 12) // 2
    if kind < 0 or kind in {10, 11} or at + size > len(data):
        raise Unreadable
    piece = data[at : at + size]
    if kind < 7:
        return int.from_bytes(piece, "big", signed=True), at + size
    if kind == 7:
        return struct.unpack(">d", piece)[0], at + size
    return (piece.decode("utf-8", "surrogateescape") if kind % 2 else piece), at + size
