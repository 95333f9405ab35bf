"""Readers of firmware's bodies: lenient JSON, forms and queries, and numbers as text.

Follows devices section 3.2: the first non-blank byte decides the body's format, never the Content-Type;
repair before failing; numbers may be strings, with a decimal comma, empty or null.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from gateway.domain import units
from gateway.domain.payload import Payload
from gateway.domain.report import TempUnit
from gateway.errors import DriverError

Fields = Mapping[str, Any]

DEPTH_LIMIT = 64
"""The most brackets inside brackets; no device nests deeper than four."""


class Numeral(str):
    """The literal text of a JSON number: `1.0450` stays `1.0450`."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_float=Numeral, parse_int=Numeral, parse_constant=lambda _: None)

_PADDING = b" \t\r\n\x00"
_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"\s*")
_SIGNS = re.compile(r'"(?:[^"\\]|\\.?)*(?:"|\Z)|[\[\]{},]', re.DOTALL)
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_BARE_NAN = re.compile(r"(?<=[:,\[])\s*[+-]?(?:nan|inf|infinity)\s*(?=[,}\]])", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"(:\s*-?\d+),(\d+)(?=\s*[,}])")
_SECOND_QUERY = re.compile(r"\?(?=[\w-]+=)")  # GravityMon adds its own to a URL that already has one
_OUTSIDE_STRINGS = re.compile(r'"(?:[^"\\]|\\.?)*(?:"|\Z)', re.DOTALL)  # never fails, so never quadratic
_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{0,14})?\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\Z")

DIGITS_LIMIT = 32
"""The most characters in a number; a double has 17 digits."""

MISSING_WORDS = frozenset({"", "null", "nan", "inf", "-inf", "none", "unknown", "unavailable"})
"""The words of firmware and brokers for no value."""


LINE_PROTOCOL = re.compile(rb"[^\s,={}\[\]&#]+(?:,[^\s=]+=(?:\\.|[^\s\\])*)? +(?:\\.|[^\s=&\\])+=")
"""InfluxDB: `measurement,tag=v field=v`; a form has a `=` or `&` before its first blank."""

PARAMETERS = b"?"
"""The first byte of a body behind a line of parameters, which the listener writes: RAPT's values may come
beside the body."""

EXPOSITION = re.compile(rb"# (?:TYPE|HELP) ")
"""The beginning of Prometheus' text format: a comment on the next lines."""


def fields(payload: Payload) -> Fields:
    """Return the members of a JSON object, a form or a query. Raise `DriverError` without any.

    The members are remembered on the payload: on shared paths recognition and driver both need them.
    """
    if payload.fields is None:
        payload.fields = _read(payload)
    return payload.fields


def stripped(payload: Payload) -> bytes:
    """Return the body without the BOM, NULs and white space around it."""
    return _unpadded(payload.body)


def _unpadded(body: bytes) -> bytes:
    body = body.strip(_PADDING)
    return body[len(_BOM) :].lstrip(_PADDING) if body.startswith(_BOM) else body


def is_object(payload: Payload) -> bool:
    """Return whether the body is a JSON object at first sight: nearly all are, and need no closer look."""
    return payload.body.startswith(b"{")


class Part(NamedTuple):
    """An object of a JSON list, and a list of that object alone, as it was sent."""

    fields: Fields
    raw: bytes


def parts(payload: Payload) -> list[Part] | None:
    """Return the objects of a JSON list with their own texts; None if the body is no list."""
    body = b"" if payload.fields is not None else stripped(payload)
    if not body.startswith(b"["):
        return None
    text, encoding = _text(body)
    try:
        found = [Part(value, f"[{said}]".encode(encoding)) for value, said in _values(text)]
    except (ValueError, RecursionError):
        said_by = (piece.encode(encoding) for piece in _pieces(text))
        found = [Part(_json(said), b"[%b]" % said) for said in said_by]
    if not all(isinstance(part.fields, dict) for part in found):
        raise DriverError("a list, but not of readings")
    return found


def items(payload: Payload) -> list[Fields] | None:
    """Return the objects of a JSON list; None if the body is no list."""
    found = parts(payload)
    return None if found is None else [part.fields for part in found]


def _values(text: str) -> Iterator[tuple[Any, str]]:
    """Return the values of a JSON list, each with its own text. Raise `ValueError` if it needs repair."""
    place = 1
    while True:
        place = _space_after(text, place)
        value, end = _DECODER.raw_decode(text, place)
        yield value, text[place:end]
        place = _space_after(text, end)
        if text[place : place + 1] != ",":
            break
        place += 1
    if text[place:] != "]":
        raise ValueError("no end of the list")


def _pieces(text: str) -> Iterator[str]:
    """Return the texts between the commas of a JSON list that needs repair."""
    depth, begin = 0, 1
    for sign in _SIGNS.finditer(text):
        what = sign.group()
        depth += (what in ("[", "{")) - (what in ("]", "}"))
        if depth == 0 or (depth == 1 and what == ","):
            if piece := text[begin : sign.start()].strip():
                yield piece
            begin = sign.end()
        if depth == 0:
            break
    if depth or text[begin:].strip():
        raise DriverError("not JSON: no end of the list, or something behind it")


def _space_after(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return place if space is None else space.end()


def is_line_protocol(payload: Payload) -> bool:
    """Return whether the body is InfluxDB's line protocol."""
    return payload.fields is None and LINE_PROTOCOL.match(stripped(payload)) is not None


def is_exposition(payload: Payload) -> bool:
    """Return whether the body is Prometheus' text format."""
    return payload.fields is None and EXPOSITION.match(stripped(payload)) is not None


def _read(payload: Payload) -> Fields:
    body = stripped(payload)
    if body.startswith(b"{"):
        return json_object(body)
    if body.startswith(b"["):
        raise DriverError("a list of readings instead of a single one")
    if body.startswith(PARAMETERS):
        # A body behind a line of parameters: the body's own members win.
        line, _, rest = body[len(PARAMETERS) :].partition(b"\n")
        beside = form(line.decode("utf-8", "replace"))
        rest = _unpadded(rest)
        own = json_object(rest) if rest.startswith(b"{") else form(rest.decode("utf-8", "replace"))
        return {**beside, **own}
    pairs = body.decode("utf-8", "replace") if body else payload.query
    if pairs.startswith(("{", "%7B", "%7b")):
        return json_object(unquote(pairs).encode())  # BrewPiLess puts any format behind the `?` of a GET
    if pairs:
        return form(_SECOND_QUERY.sub("&", pairs))
    raise DriverError("an empty body")


def json_object(body: bytes) -> Fields:
    """Return the members of a JSON object, repaired if necessary; numbers as `Numeral`."""
    value = _json(body)
    if not isinstance(value, dict):
        raise DriverError("not a JSON object")
    return value


def _text(body: bytes) -> tuple[str, str]:
    """Return the text and its encoding; some firmware knows no UTF-8."""
    try:
        return body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return body.decode("latin-1"), "latin-1"


def _json(body: bytes) -> Any:
    text, _ = _text(body)
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        if text.count("{") + text.count("[") > DEPTH_LIMIT:
            raise DriverError("JSON nested too deeply") from None
        return _decode_repaired(text)


def _decode_repaired(text: str) -> Any:
    """Drop trailing commas, make bare `nan` null and decimal commas points, outside strings only."""
    strings: list[str] = []

    def stash(match: re.Match[str]) -> str:
        strings.append(match.group())
        return f'"{len(strings) - 1}"'

    bare = _OUTSIDE_STRINGS.sub(stash, text)
    bare = _BARE_NAN.sub("null", _TRAILING_COMMA.sub("", bare))
    bare = _DECIMAL_COMMA.sub(r"\1.\2", bare)
    repaired = re.sub(r'"(\d+)"', lambda match: strings[int(match.group(1))], bare)
    try:
        return _DECODER.decode(repaired)
    except json.JSONDecodeError as error:
        raise DriverError(f"not JSON at character {error.pos + 1}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or nested too deeply
        raise DriverError("not JSON that can be read") from error


def form(text: str, known: Sequence[str] = (), *, escaped: bool = True) -> dict[str, str]:
    """Return `key=value` pairs, `escaped` with `%` or not. With `known` keys, `&` separates only before one.

    A key without `=` is kept with an empty value. `+` stays `+`: Tilt's encodeURI leaves it alone and writes
    a blank as `%20`.
    """
    pairs = _separator(tuple(known)).split(text) if known else text.split("&")
    result = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key:
            key = unquote(key) if "%" in key else key
            result[key] = unquote(value) if escaped and "%" in value else value
    return result


@cache
def _separator(known: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"&(?=(?:{'|'.join(map(re.escape, known))})(?:=|&|\Z))")


def text(source: Fields, *names: str) -> str | None:
    """Return the text of the first of these members that has text; the text is safe to store."""
    for name in names:
        value = source.get(name)
        if value and isinstance(value, str) and (stripped := value.strip()):
            return clean(stripped)
    return None


def first_text(source: Fields, *names: str) -> tuple[str, str]:
    """Return the first of these members that has text, with its name; two empty texts without any."""
    for name in names:
        if name in source and (found := text(source, name)) is not None:
            return name, found
    return "", ""


def clean(value: str) -> str:
    """Return the text with U+FFFD for characters that UTF-8 or SQLite cannot keep: lone surrogates, NUL."""
    if value.isascii() and "\x00" not in value:
        return value
    return value.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")


def numeral(source: Fields, *names: str) -> str | None:
    """Return the first of these members as numeric text with a decimal point, digits as sent, or None."""
    for name in names:
        value = source.get(name)
        if type(value) is Numeral and len(value) < DIGITS_LIMIT and "e" not in value and "E" not in value:
            return value  # a plain JSON number is finite and written as we want it
        if isinstance(value, str):
            if _PLAIN_NUMBER.match(value):
                return value
            candidate = value.strip()
            if candidate.lower() in MISSING_WORDS:
                continue
            if "," in candidate and "." not in candidate:
                candidate = candidate.replace(",", ".", 1)
            if len(candidate) < DIGITS_LIMIT and _NUMBER.match(candidate) and math.isfinite(float(candidate)):
                return candidate
    return None


def is_missing(source: Fields, name: str) -> bool:
    """Return whether this member is absent or means no value."""
    value = source.get(name)
    return value is None or (isinstance(value, str) and value.strip().lower() in MISSING_WORDS)


def number(source: Fields, *names: str) -> float | int | None:
    """Return the first of these members as a number; an int if it was written without decimals."""
    found = numeral(source, *names)
    if found is None:
        return None
    # Not by trying, because most numbers have decimals, and an exception costs more than all the rest.
    return float(found) if "." in found or "e" in found or "E" in found else int(found)


_TEMP_UNITS: dict[str, str] = {"c": "C", "celsius": "C", "f": "F", "fahrenheit": "F", "k": "K", "kelvin": "K"}


def temp_unit_letter(word: str) -> str | None:
    """Return `C`, `F` or `K` of a unit in any spelling, else None."""
    return _TEMP_UNITS.get(word.lstrip("°").lower()) if word else None


NO_SENSOR_BELOW_CELSIUS = -100.0
"""Degrees Celsius below every real temperature. `units.NO_SENSOR_C` is a sensor that does not answer, -273 a
GravityMon without a sensor. GravityMon adds the user's temperature adjustment to both, so this is a limit and
not a value."""


def is_sensor_fault(temp: float, unit: TempUnit | None) -> bool:
    """Return whether the temperature is a sentinel of devices section 15 and no measurement.

    Without a unit, only values that no beer has in any unit count: 85 may be a warm day in Fahrenheit, and
    only the device's earlier readings can tell.
    """
    celsius = units.to_celsius(temp, unit or "C")
    return celsius < NO_SENSOR_BELOW_CELSIUS or (
        unit is not None and abs(celsius - units.POWER_ON_C) < units.SENTINEL_TOLERANCE
    )
