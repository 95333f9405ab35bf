"""Files of readings: find their format, write them whole or not at all, cut them into parts for import."""

import hashlib
import os
import secrets
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gateway.domain.reading import Reading
from gateway.errors import GatewayError, InvalidInput, in_words
from gateway.formats.readings import BODY_BYTES, ROWS, ImportContext, Media, readings_in
from gateway.formats.readings.export import HEADER_LINE, line_of

PART_ROWS = 20_000
"""Readings in a part of a file that is too large for one import."""

PART_BYTES = 20 * 1024 * 1024
"""Bytes of a part as CSV: well below the limit of an imported file."""

OBJECT_ID_CHARACTERS = 24
"""Characters of a reading's id, the first cell of every line."""

STDIN = Path("-")

FORMATS: dict[str, Media] = {".json": "json", ".csv": "csv"}
"""The format by the ending of a file's name."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """Lines of a CSV file without its header, and their readings' ids in the same order."""

    ids: tuple[str, ...]
    lines: bytes

    @property
    def rows(self) -> int:
        """Return the number of readings in the part."""
        return len(self.ids)

    @property
    def body(self) -> bytes:
        """Return the part as a CSV file, with a header."""
        return HEADER_LINE + self.lines


def format_of(path: Path | None, said: Media | None) -> Media:
    """Return the format that the user gave, else the format by the ending of the file's name."""
    found = said or FORMATS.get("" if path is None else path.suffix.lower())
    if found is None:
        raise InvalidInput("JSON or CSV? Add --format json or --format csv")
    return found


def parts_of(
    body: bytes, media: Media, session_id: int, now: float, *, decimal_comma: bool = False
) -> Iterator[FilePart]:
    """Yield a file's readings in parts. A reading without an id gets one. `now` is Unix seconds."""
    context = ImportContext(now, caller_ip="", new_id=lambda created_at: "")
    times: Counter[bytes] = Counter()
    ids: list[str] = []
    lines: list[bytes] = []
    size = 0
    for row, reading in enumerate(readings_in(body, media, context, decimal_comma=decimal_comma), 1):
        line = _line_with_id(reading, context.unsaid.get(reading.oid, ()), session_id, times)
        if len(line) > BODY_BYTES:
            raise InvalidInput(f"row {row}: larger than {BODY_BYTES} bytes")
        if len(lines) == PART_ROWS or size + len(line) > PART_BYTES:
            yield FilePart(tuple(ids), b"".join(lines))
            ids, lines, size = [], [], 0
        ids.append(line[:OBJECT_ID_CHARACTERS].decode())
        lines.append(line)
        size += len(line)
    yield FilePart(tuple(ids), b"".join(lines))


def _line_with_id(reading: Reading, unsaid: Collection[str], session_id: int, times: Counter[bytes]) -> bytes:
    """Return the reading's line. If the reading has no id, make one of the session and of the whole line.

    The same file then gives the same ids, and a part that is sent again replaces itself. Equal lines are
    counted: two equal readings stay two.
    """
    line = line_of(reading, unsaid)
    if reading.oid:
        return line
    said = hashlib.sha256(b"%d,%b" % (session_id, line)).digest()
    times[said] += 1
    unique = hashlib.sha256(b"%b%d" % (said, times[said])).hexdigest()
    return f"{reading.created_at & 0xFFFFFFFF:08x}{unique[:16]}".encode() + line  # the id is the first cell


def joined(parts: list[FilePart]) -> list[FilePart]:
    """Join the parts if one import may be that large; else return them as they are."""
    ids = tuple(oid for part in parts for oid in part.ids)
    whole = FilePart(ids, b"".join(part.lines for part in parts))
    return [whole] if whole.rows <= ROWS and len(whole.lines) <= PART_BYTES else parts


def read(path: Path) -> bytes:
    """Read a whole file, or stdin if the path is `-`."""
    try:
        return sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read it: {in_words(error)}") from error


@contextmanager
def written(path: Path | None) -> Iterator[BinaryIO]:
    """Open a file to write, or stdout. A file gets its name only when all of it is written."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        # Not replaced if it is a pipe or /dev/null, because a file must not take its place.
        with path.open("wb") if path.exists() and not path.is_file() else _replacing(path) as file:
            yield file
    except OSError as error:
        raise GatewayError(f"cannot write {path}: {in_words(error)}") from error


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    target = path.resolve()
    temporary = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
