"""JSON text as the programs of bridges write it, and decimal text of values for these bodies.

Sources: CPython's `json` (blank after comma and colon), ArduinoJson and JavaScript (no blanks).
"""

import json
from decimal import Decimal


def python_json(value: object) -> str:
    """Print as Python's json.dumps does by default: blanks, non-ASCII characters escaped."""
    return json.dumps(value)


def compact_json(value: object) -> str:
    """Print without blanks, non-ASCII characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def shortest(value: float, decimals: int) -> str:
    """Round to so many decimals and print without trailing zeros, whole numbers without a point."""
    return repr(round(value, decimals)).removesuffix(".0")


def thousandth(text: str) -> str:
    """Give decimal text divided by a thousand without new zeros: 1.0456 for 1045.6, 1.03 for 1030."""
    return format(Decimal(text) / 1000, "f")
