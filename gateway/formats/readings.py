"""Import bodies, JSON and CSV, become readings; an error names the row.

Rows are counted from 1. In CSV row 1 is the first row below the header, and blank lines do not count.
Both formats are read item by item, so that a large body is never a large tree of objects and another
thread gets its turn between two items.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from gateway import units
from gateway.domain.reading import EXTRA_MEMBERS, SPEC_MEMBERS, Reading
from gateway.errors import InvalidInput, TooLarge
from gateway.formats.items import ImportContext, Item, NumberLiteral, finite, in_range, reading_of

__all__ = ["BODY_BYTES", "ROWS", "ImportContext", "parse_csv", "parse_json"]

BODY_BYTES = 10 * 1024 * 1024
"""Size of an import body at most."""

ROWS = 50_000
"""Readings in one import at most."""

DEVICE_COLUMNS = {"sg": "SG", "color": "Color", "timepoint": "Timepoint", "timestamp": "Timestamp"}
"""Column names of meter devices, in lower case; `Beer` and `Comment` are ours in another case."""

DEVICE_TEMP = "Temp"
"""Only spelled so is it the device's column, in °F unless a unit is given; `temp` and `TEMP` are ours."""

_OWN_COLUMNS = {name.lower(): name for name in (*SPEC_MEMBERS, *EXTRA_MEMBERS)}

_BLANK = re.compile(r"[ \t\r\n]*")
_UNUSUAL_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""Escapes that may stand for NUL or for half a character; most bodies have none and skip the closer look."""


def parse_json(body: bytes, context: ImportContext) -> list[Reading]:
    """The readings of a JSON array, or of one object alone; members that mean nothing here are ignored."""
    constants: list[str] = []

    def constant(literal: str) -> NumberLiteral:
        constants.append(literal)
        return NumberLiteral(literal)

    decoder = json.JSONDecoder(
        parse_float=NumberLiteral,
        parse_int=NumberLiteral,
        parse_constant=constant,
        object_pairs_hook=_members,
    )
    document = _text(body)
    closer_look = _UNUSUAL_ESCAPE.search(document) is not None
    readings: list[Reading] = []
    for row, item in _json_items(document, decoder):
        if type(item) is not dict:
            raise InvalidInput(f"row {row}: not an object")
        if closer_look:
            _check_strings(item, row)
        _append(readings, row, item, context)
        if constants:
            raise InvalidInput(f"row {row}: {constants[0]} is not JSON")
    return readings


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object, unless a member comes twice: then nobody can say which one was meant."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise DuplicateMember
    return members


class DuplicateMember(InvalidInput):
    """A member comes twice in one object."""


def _json_items(document: str, decoder: json.JSONDecoder) -> Iterator[tuple[int, Any]]:
    """Row and value of each item; a single object is an array of one."""
    place = _after_blank(document, 0)
    opening = document[place : place + 1]
    row = 1
    if opening == "{":
        item, place = _decode(document, place, decoder, row)
        yield row, item
    elif opening == "[":
        place = _after_blank(document, place + 1)
        closing = document[place : place + 1] == "]"
        while not closing:
            item, place = _decode(document, place, decoder, row)
            yield row, item
            place = _after_blank(document, place)
            following = document[place : place + 1]
            if following not in {",", "]"}:
                raise InvalidInput(f"row {row}: not JSON: neither a comma nor the end of the array follows")
            closing = following == "]"
            if not closing:
                place = _after_blank(document, place + 1)
                row += 1
        place += 1
    else:
        raise InvalidInput("the body is neither a JSON array nor a JSON object")
    if _after_blank(document, place) != len(document):
        raise InvalidInput("not JSON: something follows the end")


def _decode(document: str, place: int, decoder: json.JSONDecoder, row: int) -> tuple[Any, int]:
    try:
        return decoder.raw_decode(document, place)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"row {row}: not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise InvalidInput(f"row {row}: nested too deeply") from error
    except DuplicateMember as error:
        raise InvalidInput(f"row {row}: {error}") from error


def _after_blank(document: str, place: int) -> int:
    match = _BLANK.match(document, place)
    return match.end() if match else place


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


def parse_csv(body: bytes, context: ImportContext) -> list[Reading]:
    """The readings of RFC 4180 rows below a header; a blank cell is an absent member."""
    document = _text(body)
    records = _csv_records(document)
    header = next(records, (0, []))[1]
    columns = _columns(header)
    from_device = DEVICE_TEMP in columns or not columns.keys().isdisjoint(DEVICE_COLUMNS.values())
    has_nul = "\0" in document
    readings: list[Reading] = []
    for row, cells in records:
        if len(cells) != len(header):
            raise InvalidInput(f"row {row}: {len(cells)} columns, the header has {len(header)}")
        if has_nul and any("\0" in cell for cell in cells):
            raise InvalidInput(f"row {row}: NUL is no text")
        item = {name: cells[place] for name, place in columns.items() if cells[place]}
        if from_device:
            _translate_device_columns(item, row)
        _append(readings, row, item, context)
    return readings


def _csv_records(document: str) -> Iterator[tuple[int, list[str]]]:
    """Row and cells of every line that is not blank; the header is row 0."""
    row = 0
    try:
        for cells in csv.reader(io.StringIO(document, newline=""), strict=True):
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield row, cells
                row += 1
    except csv.Error as error:
        raise InvalidInput(f"row {row}: not CSV: {error}") from error


def _columns(header: Sequence[str]) -> dict[str, int]:
    """Place of each known column, by the name of the member or of the device's column."""
    columns: dict[str, int] = {}
    for place, cell in enumerate(header):
        name: str | None = cell.strip()
        if name != DEVICE_TEMP:
            lower = cell.strip().lower()
            name = DEVICE_COLUMNS.get(lower) or _OWN_COLUMNS.get(lower)
        if name is None:
            continue
        if name in columns:
            raise InvalidInput(f"the header names {name} twice")
        columns[name] = place
    if not columns:
        raise InvalidInput("there is no header row that names a column of a reading")
    return columns


def _translate_device_columns(item: dict[str, str], row: int) -> None:
    """Say in our members what a meter device's columns say; our own columns win where both are filled."""
    if "SG" in item and "gravity" not in item:
        item["gravity"], item["gravity_unit"] = item["SG"], "G"
    if DEVICE_TEMP in item and "temp" not in item:
        item["temp"] = item[DEVICE_TEMP]
        item.setdefault("temp_unit", "F")
    for column, member in (("Color", "name"), ("Timepoint", "interval"), ("Timestamp", "created_at")):
        if column in item:
            item.setdefault(member, item[column])
    if "Timepoint" in item and "created_at" not in item:
        try:
            serial = finite(item["Timepoint"].strip(), "Timepoint")
            seconds = in_range(round(units.serial_day_to_unix(serial)))
        except (InvalidInput, OverflowError) as error:
            raise InvalidInput(f"row {row}: Timepoint is not a day number of 1970 to 9999") from error
        item["created_at"] = datetime.fromtimestamp(seconds, UTC).isoformat()


def _append(readings: list[Reading], row: int, item: Item, context: ImportContext) -> None:
    if row > ROWS:
        raise TooLarge(f"more than {ROWS} readings in one import")
    try:
        readings.append(reading_of(item, context))
    except InvalidInput as error:
        raise InvalidInput(f"row {row}: {error}") from error


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the body is not UTF-8 at byte {error.start + 1}") from error
