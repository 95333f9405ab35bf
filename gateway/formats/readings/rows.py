"""Make a `Reading` of an import's item, of whatever format, as in api-decisions section 3.

An import of many thousand readings runs through here: plain functions, and the usual case first.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from gateway.domain import units
from gateway.domain.objectid import is_object_id, new_object_id
from gateway.domain.reading import EXTRA_MEMBERS, Reading
from gateway.errors import InvalidInput
from gateway.network import address_in

DEFAULT_SOURCE = "import"
DEFAULT_GRAVITY_UNIT = "G"
DEFAULT_TEMP_UNIT = "C"

NUMBER_CHARACTERS = 400
"""The most characters of a number: the longest finite whole number of a double has 309 digits."""

NUMERALS_REMEMBERED = 2048
"""Numbers whose checked text is remembered: the readings of a fermentation repeat few of them."""

LAST_SECOND = 253_402_300_799
"""9999-12-31T23:59:59 UTC in Unix seconds: later years have no four-digit ISO form."""

CONTEXT_MEMBERS = frozenset({"gravity_unit", "temp_unit", "created_at", "interval", "source", "ip"})
"""Members for which an import has a value of its own if an item lacks them."""

Item = Mapping[str, Any]


class NumberLiteral(str):
    """The literal text of a JSON number; only the type distinguishes it from text."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ImportContext:
    """The defaults of an import; `now` is Unix seconds, `new_id` takes `created_at`.

    `unsaid` is filled: by the item's given id, in lower case, the members that the item lacks.
    """

    now: float
    caller_ip: str
    new_id: Callable[[int], str] = new_object_id
    unsaid: dict[str, frozenset[str]] = field(default_factory=dict)


_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GRAVITY_UNITS = {"G": "G", "P": "P", "g": "G", "p": "P"}
_TEMP_UNITS = {"C": "C", "F": "F", "c": "C", "f": "F"}
_EXTRAS = frozenset(EXTRA_MEMBERS)
_EDITABLE = CONTEXT_MEMBERS | {"gravity", "temp", "name", "comment", "beer"}
_NOTHING: frozenset[str] = frozenset()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def reading_of(item: Item, context: ImportContext) -> Reading:
    """Return the reading. Raise `InvalidInput` with the member; the caller adds the row."""
    get = item.get
    oid = given_id(get("_id"))
    gravity = number(get("gravity"), "gravity")
    temp = number(get("temp"), "temp")
    comment = text(get("comment"), "comment")
    if not gravity and not temp and oid is None and not comment.strip():
        raise InvalidInput("one of gravity, temp and comment is needed")
    gravity_unit = unit(get("gravity_unit"), "gravity_unit", _GRAVITY_UNITS, DEFAULT_GRAVITY_UNIT)
    temp_unit = unit(get("temp_unit"), "temp_unit", _TEMP_UNITS, DEFAULT_TEMP_UNIT)
    created_at = unix_seconds(get("created_at"), context)
    interval = text(get("interval"), "interval")
    if not interval or interval.isspace():
        interval = units.serial_day(created_at)
    source = get("source")
    if oid is not None:
        oid = oid.lower()
        context.unsaid.pop(oid, None)  # the last item with an id is the one that counts
        if unsaid := _unsaid(item):
            context.unsaid[oid] = unsaid
    return Reading(  # in the order of the fields: names would cost as much as all the checks of text
        oid or context.new_id(created_at),
        created_at,
        int(context.now * 1000),
        text(get("name"), "name"),
        gravity,
        gravity_unit,
        temp,
        temp_unit,
        comment,
        text(get("beer"), "beer"),
        interval,
        DEFAULT_SOURCE if source is None else text(source, "source"),
        address(get("ip"), context.caller_ip),
        specific_gravity(gravity, gravity_unit) if gravity else None,
        celsius(temp, temp_unit) if temp else None,
        extra=None if _EXTRAS.isdisjoint(item) else extras(item),
    )


def _unsaid(item: Item) -> frozenset[str]:
    """Return the members that the item leaves out, and blank members that have a default."""
    if item.keys() >= _EDITABLE and all(item[name] for name in CONTEXT_MEMBERS):
        return _NOTHING
    absent = {name for name in _EDITABLE if name not in item}
    for name in CONTEXT_MEMBERS & item.keys():  # an empty `source` is one, and said
        if item[name] is None or (name != "source" and not str(item[name]).strip()):
            absent.add(name)
    return frozenset(absent)


def number(value: Any, member: str) -> str:
    """Return text to store: a literal in shortest form, text trimmed and else as sent, not checked yet."""
    kind = type(value)
    if kind is str:
        trimmed: str = value.strip()
        return trimmed
    if value is None:
        return ""
    if kind is NumberLiteral:
        return shortest(value, member)
    raise InvalidInput(f"{member} is not a number")


def finite(numeral: str, member: str) -> float:
    """Return the value of plain decimal notation: nothing else may reach the store's JSON."""
    if len(numeral) > NUMBER_CHARACTERS or _NUMBER.fullmatch(numeral) is None:
        raise InvalidInput(f"{member} is not a number")
    value = float(numeral)
    if not math.isfinite(value):
        raise InvalidInput(f"{member} is not a number")
    return value


@lru_cache(NUMERALS_REMEMBERED)
def shortest(literal: str, member: str) -> str:
    """Return the fewest digits of the same double, without exponent: `18.50` -> `18.5`, `2e1` -> `20`."""
    value = finite(literal, member)
    if "." not in literal and "e" not in literal and "E" not in literal:
        return str(literal)
    digits = repr(value)
    if "e" in digits:
        digits = format(Decimal(digits), "f")
    return digits.removesuffix(".0")


def text(value: Any, member: str) -> str:
    """Return text as sent; a number becomes text, nothing becomes ""."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    if type(value) is NumberLiteral:
        return shortest(value, member)
    raise InvalidInput(f"{member} is not text")


def unit(value: Any, member: str, letters: Mapping[str, str], default: str) -> str:
    """Return the unit's letter in upper case; absent, null and blank mean the default."""
    if value is None:
        return default
    if type(value) is str:
        letter = letters.get(value)
        if letter is not None:
            return letter
        value = value.strip()
        if not value:
            return default
        if value in letters:
            return letters[value]
    raise InvalidInput(f"{member} must be {' or '.join(dict.fromkeys(letters.values()))}")


def unix_seconds(value: Any, context: ImportContext) -> int:
    """Return the Unix seconds of an ISO 8601 time, without fractions, UTC without a zone; blank means now."""
    if value is None:
        return int(context.now)
    if type(value) is not str:
        raise InvalidInput("created_at is not a time")
    value = value.strip()
    if not value:
        return int(context.now)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise InvalidInput("created_at is not a time") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return in_range(since.days * units.SECONDS_PER_DAY + since.seconds)


def in_range(seconds: int) -> int:
    """Return the same seconds if the year is 1970 to 9999."""
    if not 0 <= seconds <= LAST_SECOND:
        raise InvalidInput("created_at must lie in the years 1970 to 9999")
    return seconds


def given_id(value: Any) -> str | None:
    """Return the given id, None if it is no id: an item with an id may be one of our readings come back."""
    if type(value) is dict:
        value = value.get("$oid")
    return value if type(value) is str and is_object_id(value) else None


def address(value: Any, caller_ip: str) -> str:
    """Return the given address as it is written everywhere, or the caller's if the text is no address."""
    return (address_in(value) if type(value) is str else None) or caller_ip


@lru_cache(NUMERALS_REMEMBERED)
def specific_gravity(gravity: str, letter: str) -> float | None:
    """Return the number for queries; None if the formula has no result for the value."""
    try:
        sg = units.to_sg(finite(gravity, "gravity"), letter)
    except ZeroDivisionError:
        return None
    return sg if math.isfinite(sg) else None


@lru_cache(NUMERALS_REMEMBERED)
def celsius(temp: str, letter: str) -> float | None:
    """Return the number for queries; None beyond the range of a double."""
    degrees = units.to_celsius(finite(temp, "temp"), letter)
    return degrees if math.isfinite(degrees) else None


def extras(item: Item) -> str:
    """Return the item's extra members as JSON: numbers with their own digits, text as sent."""
    members = (f'"{name}":{_scalar(item[name], name)}' for name in EXTRA_MEMBERS if name in item)
    return "{" + ",".join(members) + "}"


def _scalar(value: Any, member: str) -> str:
    if type(value) is NumberLiteral:
        finite(value, member)
        return str(value)
    if value is None or type(value) in {str, bool}:
        return json.dumps(value, ensure_ascii=False)
    raise InvalidInput(f"{member} is neither text nor a number")
