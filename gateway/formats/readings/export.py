"""Readings as a file that an import takes back bit for bit: a JSON array, or CSV as in `csv_layout`.

Exports are made piece by piece from the JSON that the store puts together for the read endpoint, so that many
thousand readings are never in memory at once.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterable, Collection

from gateway.domain.reading import SPEC_MEMBERS, Reading
from gateway.domain.times import iso
from gateway.formats.readings import Media
from gateway.formats.readings.csv_layout import GUARD, HEADER, MAY_BE_EMPTY, csv_lines, csv_row
from gateway.formats.readings.rows import NumberLiteral, extras

HEADER_LINE = csv_lines([HEADER])
"""The first line of every CSV file that we write."""

_BEGIN = b'{"_id":{"$oid":"'
"""The beginning of a reading in the store's JSON, and of nothing else: a quote in text has a backslash before
it."""

_DECODER = json.JSONDecoder(parse_int=NumberLiteral, parse_float=NumberLiteral)

_SAME_NAME = (
    *("ip", "name", "gravity", "gravity_unit", "temp", "temp_unit"),
    *("comment", "beer", "interval", "source"),
)
"""Members of the specification that `Reading` holds as they are."""


async def exported(chunks: AsyncIterable[bytes], media: Media) -> AsyncGenerator[bytes, None]:
    """Yield the file in pieces; `chunks` are the store's JSON objects joined by commas."""
    if media == "json":
        yield b"["
        async for chunk in chunks:
            yield chunk.replace(_BEGIN, b"\n" + _BEGIN)  # a reading a line
        yield b"\n]\n"
        return
    yield HEADER_LINE
    async for chunk in chunks:
        rows = []
        for reading in _DECODER.decode(f"[{chunk.decode().removeprefix(',')}]"):
            reading["_id"] = reading["_id"]["$oid"]
            rows.append(csv_row(reading, extras(reading) if len(reading) > len(SPEC_MEMBERS) else ""))
        yield csv_lines(rows)


def line_of(reading: Reading, unsaid: Collection[str] = ()) -> bytes:
    """Return a CSV line with everything that an import can read. Members that the session decides are blank.

    Members in `unsaid` are blank, too. An empty member is an apostrophe if the reading has an id.
    """
    members = dict.fromkeys(SPEC_MEMBERS, "") | {name: getattr(reading, name) for name in _SAME_NAME}
    members["_id"] = reading.oid
    members["created_at"] = iso(reading.created_at)
    cells = csv_row(members, reading.extra or "")
    for place, name in enumerate(SPEC_MEMBERS):
        if name in unsaid:
            cells[place] = ""
        elif reading.oid and name in MAY_BE_EMPTY:
            cells[place] = cells[place] or GUARD
    return csv_lines([cells])
