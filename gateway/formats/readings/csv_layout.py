"""The CSV layout of readings, both ways: RFC 4180, a header, then one row per reading.

Columns are called like the members of a reading. We write all of them in the specification's order, CRLF
behind each row, and a last column `_extra`: the members beyond the 16 that an import brought, as a JSON
object with their types and digits, `{"ph":4.40}`; blank without any. We read columns in any order
and case, pass over unknown columns, and take meter devices' column names, too. A blank cell is an absent
member.

A spreadsheet takes text for a formula that begins with = + - @ TAB or CR, also behind blanks and in their
full-width forms. So such text is written with an apostrophe in front, and so is text with apostrophes before
one of these, and text of apostrophes alone: one apostrophe is taken off again if the rest of the cell is such
text, and every text comes back as it was.
A blank cell is an absent member, which is not the same as an empty one for `source`, and for a reading that
is edited by its `_id`: empty text is written as one apostrophe there, in `gravity` and `temp` as well.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gateway.domain import units
from gateway.domain.reading import EXTRA_MEMBERS, SPEC_MEMBERS
from gateway.domain.times import iso
from gateway.errors import InvalidInput
from gateway.formats.readings.json_items import json_items
from gateway.formats.readings.rows import Item, finite, in_range

EXTRA_COLUMN = "_extra"

HEADER = (*SPEC_MEMBERS, EXTRA_COLUMN)

TEXT_MEMBERS = ("name", "comment", "beer", "interval", "source")
"""Members that may hold any text at all."""

MAY_BE_EMPTY = (*TEXT_MEMBERS, "gravity", "temp")
"""Members whose empty text is written as an apostrophe."""

CELL_CHARACTERS = 10 * 1024 * 1024
"""The most characters of a cell: a comment may be as long as an import body. Python's own bound is
131,072."""

DEVICE_COLUMNS = {"sg": "SG", "color": "Color", "timepoint": "Timepoint", "timestamp": "Timestamp"}
"""Column names of meter devices, in lower case; `Beer` and `Comment` are ours in another case."""

DEVICE_TEMP = "Temp"
"""The only spelling of the device's column, in °F unless a unit is given; `temp` and `TEMP` are ours."""

USUAL_COLUMNS = ("created_at", "gravity", "gravity_unit", "temp", "temp_unit", "name", "beer", "comment")
"""The columns that people usually write into files of their own."""

NUMBER_COLUMNS = frozenset({"gravity", "temp", "SG", DEVICE_TEMP, "Timepoint", "interval", *EXTRA_MEMBERS})
"""Columns in which a comma between digits is a decimal comma."""

NAMED_COLUMNS, NAMED_CHARACTERS = 8, 40
"""The most columns of a header in an error, and the most characters of each."""

DELIMITER = ","

DECIMAL_COMMAS = (
    "here commas stand between columns and points in numbers "
    "(on the command line, `readings import --decimal-comma` takes semicolons and decimal commas)"
)
COMMAS_IN_CELLS = "; a comma in a text needs quotation marks around the text, and numbers have points"
ODD_QUOTES = "a quotation mark is missing, or stands where none can be"

_OWN_COLUMNS = {name.lower(): name for name in (*HEADER, *EXTRA_MEMBERS)}

_DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+\s*")

GUARD = "'"
"""The character that makes text of a cell that would be a formula."""

_PLAIN = re.compile(r"[A-Za-z0-9]")
_FORMULA_BEGINNINGS = frozenset("=+-@")
_TEXT_PLACES = tuple(SPEC_MEMBERS.index(name) for name in TEXT_MEMBERS)
_SOURCE = SPEC_MEMBERS.index("source")


def csv_lines(rows: Iterable[Sequence[str]]) -> bytes:
    """Write the lines of a file for these cells, each with its CRLF."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows(rows)
    return file.getvalue().encode()


def csv_row(members: Mapping[str, str], extra: str) -> list[str]:
    """Return the cells of a reading in the order of `HEADER`: its 16 members as text, the others as JSON."""
    cells = [members[name] for name in SPEC_MEMBERS]
    for place in _TEXT_PLACES:
        cells[place] = guarded(cells[place])
    cells[_SOURCE] = cells[_SOURCE] or GUARD
    cells.append(extra)
    return cells


def guarded(text: str) -> str:
    """Return the text as a cell that no spreadsheet takes for a formula."""
    return GUARD + text if text and _is_formula(text) else text


def _is_formula(text: str) -> bool:
    """Return whether a spreadsheet may take the text behind its guards for a formula."""
    if _PLAIN.match(text):
        return False
    rest = text.lstrip(GUARD)
    # By its compatible form (NFKC), because spreadsheets take a full-width equals sign for the plain one.
    first = unicodedata.normalize("NFKC", rest.lstrip()[:1])
    return not rest or rest[0] in "\t\r" or first in _FORMULA_BEGINNINGS


def unguarded(cell: str) -> str:
    """Return the text that was written as this cell."""
    return cell[1:] if cell.startswith(GUARD) and _is_formula(cell) else cell


def csv_items(document: str, *, decimal_comma: bool = False) -> Iterator[tuple[int, Item]]:
    """Yield row, from 1, and members of each row. Rows count from below the header, without blank lines.

    `decimal_comma` is the way of spreadsheets in most of Europe: `2026-03-04 18:00;1,050;18,5`.
    """
    # Decimal commas come with semicolons or tabs between the columns of the header, else with commas.
    first_line = document.lstrip().partition("\n")[0] if decimal_comma else ""
    delimiter = next((sign for sign in (";", "\t") if sign in first_line), DELIMITER)
    records = _records(document, delimiter)
    header = next(records, (0, []))[1]
    columns = _columns(header)
    from_device = DEVICE_TEMP in columns or not columns.keys().isdisjoint(DEVICE_COLUMNS.values())
    has_nul, has_guards = "\0" in document, GUARD in document
    numbers = {name: place for name, place in columns.items() if name in NUMBER_COLUMNS}
    has_commas = decimal_comma or '"' in document
    for row, cells in records:
        if len(cells) != len(header):
            more = COMMAS_IN_CELLS if len(cells) > len(header) and not decimal_comma else ""
            raise InvalidInput(f"row {row}: {len(cells)} columns, the header has {len(header)}{more}")
        if has_nul and any("\0" in cell for cell in cells):
            raise InvalidInput(f"row {row}: NUL is no text")
        if has_commas:
            _with_points(cells, numbers, row, taken=decimal_comma)
        item: dict[str, Any] = {name: cells[place] for name, place in columns.items() if cells[place]}
        if has_guards:
            item.update((name, unguarded(item[name])) for name in MAY_BE_EMPTY if name in item)
        if EXTRA_COLUMN in item:
            item = {**_extra_members(item[EXTRA_COLUMN], row), **item}
        if from_device:
            _translate_device_columns(item, row)
        yield row, item


def _with_points(cells: list[str], numbers: Mapping[str, int], row: int, *, taken: bool) -> None:
    """Replace decimal commas by points if commas are `taken`; else refuse a number with a comma."""
    for name, place in numbers.items():
        if _DECIMAL_COMMA.fullmatch(cells[place]):
            if not taken:
                raise InvalidInput(
                    f"row {row}: {name} {cells[place]!r} has a decimal comma; {DECIMAL_COMMAS}"
                )
            cells[place] = cells[place].replace(",", ".")


def _records(document: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield row and cells of every line that is not blank; the header is row 0."""
    row = 0
    csv.field_size_limit(CELL_CHARACTERS)  # of the whole process, which has no other reader
    try:
        for cells in csv.reader(io.StringIO(document, newline=""), strict=True, delimiter=delimiter):
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield row, cells
                row += 1
    except csv.Error as error:
        too_long = "larger than field limit" in str(error)
        why = f"a cell of more than {CELL_CHARACTERS} characters" if too_long else ODD_QUOTES
        raise InvalidInput(f"row {row}: not CSV: {why}") from error


def _columns(header: Sequence[str]) -> dict[str, int]:
    """Return the place of each known column, by the name of the member or of the device's column."""
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
        raise InvalidInput(_unknown(header))
    return columns


def _unknown(header: Sequence[str]) -> str:
    """Describe the fault of a header without a known column."""
    if len(header) == 1 and ";" in header[0]:
        return f"the columns are separated by semicolons; {DECIMAL_COMMAS}"
    if len(header) == 1 and "\t" in header[0]:
        return "the columns are separated by tabs; write commas between them"
    named = [cell.strip()[:NAMED_CHARACTERS] for cell in header if cell.strip()]
    found = ", ".join(map(repr, named[:NAMED_COLUMNS])) + (" ..." if len(named) > NAMED_COLUMNS else "")
    known = f"known are {', '.join((*USUAL_COLUMNS, *DEVICE_COLUMNS.values(), DEVICE_TEMP))}"
    if not found:
        return f"there is no header row that names the columns; {known}"
    return f"the header row names no column of a reading: it has {found}; {known}"


def _extra_members(cell: str, row: int) -> dict[str, Any]:
    """Return the extra members in a cell of `_extra`; a filled column of the same name wins."""
    try:
        [(_, members)] = json_items(cell)
    except ValueError as error:  # none at all, or several
        raise InvalidInput(f"row {row}: {EXTRA_COLUMN} is not a JSON object") from error
    except InvalidInput as error:
        reason = str(error).removeprefix("row 1: ")
        raise InvalidInput(f"row {row}: {EXTRA_COLUMN} is not a JSON object: {reason}") from error
    return {name: members[name] for name in EXTRA_MEMBERS if name in members}


def _translate_device_columns(item: dict[str, str], row: int) -> None:
    """Turn a meter device's columns into our members; filled columns of ours win."""
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
        item["created_at"] = iso(seconds)
