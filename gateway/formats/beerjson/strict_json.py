"""A strict reader of JSON: no NaN, no member twice, bounded nesting, and numbers with their own digits."""

import json
from typing import Any, NoReturn

from gateway.errors import InvalidInput
from gateway.formats.readings.rows import NumberLiteral

DEPTH = 64
"""The most levels of objects and arrays."""


def loads(body: bytes) -> Any:
    """Read a document of UTF-8 text, without the mark before it; numbers are `NumberLiteral`."""
    try:
        document = json.loads(
            body.decode("utf-8-sig"),
            parse_float=NumberLiteral,
            parse_int=NumberLiteral,
            parse_constant=_refused,
            object_pairs_hook=_members,
        )
    except UnicodeDecodeError as error:
        raise InvalidInput("the document is not UTF-8") from error
    except RecursionError as error:
        raise InvalidInput("the document is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise InvalidInput(f"not JSON at line {error.lineno}, character {error.colno}") from error
    level = [document]
    for _ in range(DEPTH):
        level = [
            child
            for value in level
            if isinstance(value, dict | list)
            for child in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return document
    raise InvalidInput("the document is nested too deeply")


def _refused(constant: str) -> NoReturn:
    raise InvalidInput(f"{constant} is not JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidInput("a member comes twice in one object")
    return members
