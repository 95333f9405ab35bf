"""The items of a JSON body one by one, with refusals that `json` alone lacks.

A member that comes twice, NaN and infinities, NUL and half characters are errors. Numbers keep their literal
text. Item by item, a large body is never a large tree of objects, and other threads run between items.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from gateway.errors import InvalidInput
from gateway.formats.readings.rows import NumberLiteral

_BLANK = r"[ \t\r\n]*"
_OPENING = re.compile(rf"{_BLANK}(\{{|\[{_BLANK}(\])?)")
_SEPARATOR = re.compile(rf"{_BLANK}(,|\]){_BLANK}")
_END = re.compile(rf"{_BLANK}\Z")
_UNUSUAL_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""Escapes that may stand for NUL or for half a character; most bodies have none and skip the closer look."""

Scan = Callable[[str, int], tuple[Any, int]]
"""Reads the value at a place in the document, and returns the place behind it."""


def json_items(document: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield row, from 1, and members of each object of an array; an object alone is an array of one."""
    constants: list[str] = []
    scan = _scanner(constants)
    closer_look = _UNUSUAL_ESCAPE.search(document) is not None
    for row, item in _values(document, scan):
        if type(item) is not dict:
            raise InvalidInput(f"row {row}: not an object")
        if closer_look:
            _check_strings(item, row)
        yield row, item
        if constants:  # only now: a member that it stands in says more
            raise InvalidInput(f"row {row}: {constants[0]} is not JSON")


def _scanner(constants: list[str]) -> Scan:
    """Return the reader of one item; it notes NaN and infinities in `constants`, wherever they are."""

    def constant(literal: str) -> NumberLiteral:
        constants.append(literal)
        return NumberLiteral(literal)

    decoder = json.JSONDecoder(
        parse_float=NumberLiteral,
        parse_int=NumberLiteral,
        parse_constant=constant,
        object_pairs_hook=_members,
    )
    return decoder.raw_decode


class DuplicateMember(InvalidInput):
    """A member comes twice in one object."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object. Refuse a member that comes twice: nobody can tell which one was meant."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise DuplicateMember
    return members


def _values(document: str, scan: Scan) -> Iterator[tuple[int, Any]]:
    """Yield row and value of each item."""
    opening = _OPENING.match(document)
    if opening is None:
        raise InvalidInput("the body is neither a JSON array nor a JSON object")
    place, row = opening.end(), 0
    if opening[1] == "{":
        item, place = _scanned(scan, document, place - 1, 1)
        yield 1, item
    elif opening[2] is None:
        separator = ","
        while separator == ",":
            row += 1
            item, place = _scanned(scan, document, place, row)
            yield row, item
            found = _SEPARATOR.match(document, place)
            if found is None:
                raise InvalidInput(f"row {row}: not JSON: neither a comma nor the end of the array follows")
            separator, place = found[1], found.end()
    if _END.match(document, place) is None:
        raise InvalidInput("not JSON: something follows the end")


def _scanned(scan: Scan, document: str, place: int, row: int) -> tuple[Any, int]:
    try:
        return scan(document, place)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"row {row}: not JSON at character {error.pos + 1}") from error
    except RecursionError as error:
        raise InvalidInput(f"row {row}: nested too deeply") from error
    except DuplicateMember as error:
        raise InvalidInput(f"row {row}: {error}") from error


def _check_strings(item: dict[str, Any], row: int) -> None:
    """Refuse NUL and half characters, wherever in the item they are."""
    pending: list[Any] = [item]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            if "\0" in value:
                raise InvalidInput(f"row {row}: NUL is no text")
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise InvalidInput(f"row {row}: half a surrogate pair is no text") from error
        elif isinstance(value, dict):
            pending.extend(value)
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
