"""Reading what firmware writes: lenient JSON, forms and queries, and numbers as text.

Follows devices section 3.2: the first non-blank byte decides what the body is, never the Content-Type;
repair before failing; numbers may be strings, with a decimal comma, empty or null.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from gateway import units
from gateway.domain.payload import Payload
from gateway.domain.report import TempUnit
from gateway.errors import DriverError

Fields = Mapping[str, Any]

DEPTH_LIMIT = 64
"""Brackets inside brackets; no device nests deeper than four."""


class Numeral(str):
    """The literal text of a JSON number: `1.0450` stays `1.0450`."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_float=Numeral, parse_int=Numeral, parse_constant=lambda _: None)

_PADDING = b" \t\r\n\x00"
_BOM = b"\xef\xbb\xbf"
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_BARE_NAN = re.compile(r"(?<=[:,\[])\s*[+-]?(?:nan|inf|infinity)\s*(?=[,}\]])", re.IGNORECASE)
_SECOND_QUERY = re.compile(r"\?(?=[\w-]+=)")  # GravityMon adds its own to a URL that already has one
_OUTSIDE_STRINGS = re.compile(r'"(?:[^"\\]|\\.?)*(?:"|\Z)', re.DOTALL)  # never fails, so never quadratic
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\Z")

DIGITS_LIMIT = 32
"""Characters in a number; a double has 17 digits."""

MISSING_WORDS = frozenset({"", "null", "nan", "inf", "-inf", "none", "unknown", "unavailable"})
"""How firmware and brokers write that there is no value."""


LINE_PROTOCOL = re.compile(rb"[^\s,={}\[\]&#]+(?:,[^\s=]+=(?:\\.|[^\s\\])*)? +(?:\\.|[^\s=&\\])+=")
"""InfluxDB: `measurement,tag=v field=v`; a form has a `=` or `&` before its first blank."""

EXPOSITION = re.compile(rb"# (?:TYPE|HELP) ")
"""Prometheus: begins with a comment on what follows."""


def fields(payload: Payload) -> Fields:
    """The members of a JSON object, a form or a query; `DriverError` where there are none.

    Remembered on the payload: on shared paths both recognition and driver ask for them.
    """
    if payload.fields is None:
        payload.fields = _read(payload)
    return payload.fields


def stripped(payload: Payload) -> bytes:
    """The body without what firmware puts around it: BOM, NUL, white space."""
    body = payload.body.strip(_PADDING)
    return body[len(_BOM) :].lstrip(_PADDING) if body.startswith(_BOM) else body


def is_object(payload: Payload) -> bool:
    """Whether the body is a JSON object at first sight: nearly all are, and they need no closer look."""
    return payload.body.startswith(b"{")


def items(payload: Payload) -> list[Fields] | None:
    """The objects of a JSON list, or None where the body is no list."""
    body = b"" if payload.fields is not None else stripped(payload)
    if not body.startswith(b"["):
        return None
    value = _json(body)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise DriverError("a list of something else than readings")
    return value


def is_line_protocol(payload: Payload) -> bool:
    """Whether the body is InfluxDB's line protocol."""
    return payload.fields is None and LINE_PROTOCOL.match(stripped(payload)) is not None


def is_exposition(payload: Payload) -> bool:
    """Whether the body is Prometheus' text format."""
    return payload.fields is None and EXPOSITION.match(stripped(payload)) is not None


def _read(payload: Payload) -> Fields:
    body = stripped(payload)
    if body.startswith(b"{"):
        return json_object(body)
    if body.startswith(b"["):
        raise DriverError("a list of readings, where one was expected")
    pairs = body.decode("utf-8", "replace") if body else payload.query
    if pairs:
        return form(_SECOND_QUERY.sub("&", pairs))
    raise DriverError("an empty body")


def json_object(body: bytes) -> Fields:
    """The members of a JSON object, repaired where it needs to be; numbers as `Numeral`."""
    value = _json(body)
    if not isinstance(value, dict):
        raise DriverError("not a JSON object")
    return value


def _json(body: bytes) -> Any:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = body.decode("latin-1")
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        if text.count("{") + text.count("[") > DEPTH_LIMIT:
            raise DriverError("JSON nested too deeply") from None
        return _decode_repaired(text)


def _decode_repaired(text: str) -> Any:
    """Trailing commas dropped and bare `nan` made null, outside strings only."""
    strings: list[str] = []

    def stash(match: re.Match[str]) -> str:
        strings.append(match.group())
        return f'"{len(strings) - 1}"'

    bare = _OUTSIDE_STRINGS.sub(stash, text)
    bare = _BARE_NAN.sub("null", _TRAILING_COMMA.sub("", bare))
    repaired = re.sub(r'"(\d+)"', lambda match: strings[int(match.group(1))], bare)
    try:
        return _DECODER.decode(repaired)
    except (ValueError, RecursionError) as error:
        raise DriverError(f"not JSON: {error}") from error


def form(text: str, known: Sequence[str] = ()) -> dict[str, str]:
    """`key=value` pairs. With `known` keys given, `&` separates only in front of one of them.

    A key without `=` is kept with an empty value. `+` stays `+`: Tilt's encodeURI leaves it alone and
    writes a blank as `%20`.
    """
    if known:
        separator = re.compile(rf"&(?=(?:{'|'.join(map(re.escape, known))})(?:=|&|\Z))")
        pairs = separator.split(text)
    else:
        pairs = text.split("&")
    result = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key:
            result[unquote(key)] = unquote(value)
    return result


def text(source: Fields, *names: str) -> str | None:
    """The first of these members that has text; safe to store."""
    for name in names:
        value = source.get(name)
        if value and isinstance(value, str) and (stripped := value.strip()):
            return clean(stripped)
    return None


def first_text(source: Fields, *names: str) -> tuple[str, str]:
    """The first of these members that has text, with its name; two empty texts where none has."""
    for name in names:
        if name in source and (found := text(source, name)) is not None:
            return name, found
    return "", ""


def clean(value: str) -> str:
    """The text without what UTF-8 or SQLite cannot keep: lone surrogates and NUL become U+FFFD."""
    if value.isascii() and "\x00" not in value:
        return value
    return value.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")


def numeral(source: Fields, *names: str) -> str | None:
    """The first of these members as numeric text with a decimal point, digits as sent, or None."""
    for name in names:
        value = source.get(name)
        if type(value) is Numeral and len(value) < DIGITS_LIMIT and "e" not in value and "E" not in value:
            return value  # a plain JSON number is finite and written as we want it
        if isinstance(value, str):
            candidate = value.strip()
            if candidate.lower() in MISSING_WORDS:
                continue
            if "," in candidate and "." not in candidate:
                candidate = candidate.replace(",", ".", 1)
            if len(candidate) < DIGITS_LIMIT and _NUMBER.match(candidate) and math.isfinite(float(candidate)):
                return candidate
    return None


def number(source: Fields, *names: str) -> float | int | None:
    """The first of these members as a number; whole where it was written whole."""
    found = numeral(source, *names)
    if found is None:
        return None
    try:
        return int(found)
    except ValueError:
        return float(found)


_TEMP_UNITS: dict[str, str] = {"c": "C", "celsius": "C", "f": "F", "fahrenheit": "F", "k": "K", "kelvin": "K"}


def temp_unit_letter(word: str) -> str | None:
    """`C`, `F` or `K` of a word that says so in any spelling, else None."""
    return _TEMP_UNITS.get(word.lstrip("°").lower()) if word else None


FAULT_CELSIUS = -127.0
"""A DS18B20 that does not answer."""

POWER_ON_CELSIUS = 85.0
"""A DS18B20 that has not converted yet."""

NO_SENSOR_BELOW_CELSIUS = -270.0
"""GravityMon without a sensor sends absolute zero."""

_TOLERANCE_C = 0.06


def is_sensor_fault(temp: float, unit: TempUnit | None) -> bool:
    """Whether the temperature is a sentinel of devices section 15 and no measurement.

    Of an unknown unit only those that no beer has in either: 85 may be a warm day in Fahrenheit.
    """
    celsius = units.to_celsius(temp, unit or "C")
    return (
        celsius < NO_SENSOR_BELOW_CELSIUS
        or abs(celsius - FAULT_CELSIUS) < _TOLERANCE_C
        or (abs(celsius - POWER_ON_CELSIUS) < _TOLERANCE_C and unit is not None)
    )
