"""Readings that no other is like: everything that a reading says follows from its mark."""

import json
from zlib import crc32

INTERVAL_S = 900
"""What a device says of its own; the same bytes within a minute are then one delivery."""


def mark_of(device: str, number: int) -> str:
    """The unique id, which goes into the comment."""
    return f"{device}-{number:07d}"


def texts_of(mark: str) -> tuple[str, str]:
    """Gravity (Plato) and temperature (Celsius) as text, the last digits zeros often enough to be lost."""
    digits = crc32(mark.encode())
    return f"{10 + digits % 9}.{digits // 9 % 1000:03d}0", f"{15 + digits // 9000 % 9}.{digits % 100:02d}"


def body_of(mark: str, device: str, padding: int = 0) -> bytes:
    """The reading as an iSpindel posts it, with so many characters that say nothing."""
    gravity, temp = texts_of(mark)
    about: dict[str, object] = {"name": device, "ID": device, "interval": INTERVAL_S, "comment": mark}
    numbers = f'"angle":45.5,"temperature":{temp},"temp_units":"C","battery":3.95,"gravity":{gravity}'
    if padding:
        about["padding"] = "x" * padding
    return f"{json.dumps(about)[:-1]},{numbers}}}".encode()
