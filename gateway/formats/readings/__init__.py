"""Read import bodies, JSON and CSV, as readings; an error names the row.

Rows are counted from 1. In CSV row 1 is the first row below the header, and blank lines do not count.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Literal

from gateway.domain.reading import Reading
from gateway.errors import InvalidInput, TooLarge
from gateway.formats.readings.csv_layout import csv_items
from gateway.formats.readings.json_items import json_items
from gateway.formats.readings.rows import ImportContext, reading_of

__all__ = ["BODY_BYTES", "ROWS", "ImportContext", "Media", "parse_csv", "parse_json", "readings_in"]

Media = Literal["json", "csv"]

BODY_BYTES = 10 * 1024 * 1024
"""The most bytes of an import body."""

ROWS = 50_000
"""The most readings in one import."""


def parse_json(body: bytes, context: ImportContext) -> list[Reading]:
    """Return the readings of a JSON array, or of one object alone. Ignore members without a meaning here."""
    return _of_one_import(readings_in(body, "json", context))


def parse_csv(body: bytes, context: ImportContext) -> list[Reading]:
    """Return the readings of the rows below a header, in the layout of `csv_layout`."""
    return _of_one_import(readings_in(body, "csv", context))


def readings_in(
    body: bytes, media: Media, context: ImportContext, *, decimal_comma: bool = False
) -> Iterator[Reading]:
    """Yield the readings of a file one by one, however many; a bad row raises after the rows before it.

    With `decimal_comma`, a CSV file has commas in its numbers, and mostly semicolons between its columns.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"the text is not UTF-8 at byte {error.start + 1}; save it as UTF-8 (a spreadsheet: CSV UTF-8)"
        ) from error
    for row, item in json_items(text) if media == "json" else csv_items(text, decimal_comma=decimal_comma):
        try:
            yield reading_of(item, context)
        except InvalidInput as error:
            raise InvalidInput(f"row {row}: {error}") from error


def _of_one_import(readings: Iterator[Reading]) -> list[Reading]:
    taken = list(islice(readings, ROWS + 1))
    if len(taken) > ROWS:
        raise TooLarge(f"more than {ROWS} readings in one import")
    return taken
