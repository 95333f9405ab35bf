"""Reads the rows of a damaged database file page by page, passing over unreadable pages.

SQLite gives up a whole table if one page of its tree is wrong, and Debian's SQLite has no recovery built in.
Format: sqlite.org/fileformat2.html, sections 1.5 (trees), 1.6 (overflow).
"""

import os
import struct
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path
from typing import Any

from gateway.store.sqlite.engine import wal

_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)


class UnreadableRecord(ValueError):
    """The bytes do not follow the format."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, and the place behind it; above 63 bits it is negative."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    value = value << 8 | data[at + 8]
    return (value - (1 << 64) if value >= 1 << 63 else value), at + 9


def record(data: bytes) -> list[Any]:
    """Return the values of a record; text that is no UTF-8 has its bytes as surrogates."""
    size, at = varint(data, 0)
    if not at <= size <= len(data):
        raise UnreadableRecord
    types: list[int] = []
    while at < size:
        kind, at = varint(data, at)
        types.append(kind)
    values: list[Any] = []
    for kind in types:
        value, at = _value(data, at, kind)
        values.append(value)
    return values


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == 0:
        return None, at
    if kind in {8, 9}:
        return kind - 8, at
    size = _INTEGER_BYTES[kind] if 0 < kind < 7 else 8 if kind == 7 else (kind - 12) // 2
    if kind < 0 or kind in {10, 11} or at + size > len(data):
        raise UnreadableRecord
    piece = data[at : at + size]
    if kind < 7:
        return int.from_bytes(piece, "big", signed=True), at + size
    if kind == 7:
        return struct.unpack(">d", piece)[0], at + size
    return (piece.decode("utf-8", "surrogateescape") if kind % 2 else piece), at + size


Row = tuple[int, list[Any]]
"""Row id (0 in a table that has none) and values; text that is no UTF-8 has its bytes as surrogates."""

HEADER_BYTES = 100
CHUNK_BYTES = 256 * 1024
"""Bytes that are read at once: pages of a tree lie close together."""

DEFAULT_PAGE_BYTES = 1024
"""The page size if the header does not give it."""

TABLE_LEAF, TABLE_INNER, INDEX_LEAF, INDEX_INNER = 0x0D, 0x05, 0x0A, 0x02
_INNER = (TABLE_INNER, INDEX_INNER)

RECORD_BYTES = 64 * 1024 * 1024
"""The longest record of ours in bytes; a greater length is damage."""

MOST_LEVELS = 20
"""The most levels of a tree; SQLite's own bound."""


class Pages:
    """The pages of a file that nobody has open, each in its newest version: file or write-ahead log."""

    def __init__(self, path: Path, *, with_wal: bool = True) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        header = self._pread(0, HEADER_BYTES)
        sizes = [1 << power for power in range(9, 17)]
        said = wal.page_bytes_of(header) if len(header) == HEADER_BYTES else 0
        self.page_bytes = said if said in sizes else DEFAULT_PAGE_BYTES
        self.usable = self.page_bytes - (header[20] if len(header) > 20 and header[20] < 32 else 0)
        self._log = _read_log(path) if with_wal else b""
        self._newest = {frame.page: frame.offset for frame in wal.frames(self._log, self.page_bytes)}
        self.count = max([os.fstat(self._fd).st_size // self.page_bytes, *self._newest])
        self._chunk = (-1, b"")
        self.bad = 0
        """Pages that were asked for and could not be read, so far."""
        self.seen = bytearray(self.count + 1)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def rows(self, root: int) -> Iterator[Row]:
        """Yield the rows of the tree with this root, in order if it has row ids."""
        waiting = [root]
        while waiting:
            number = waiting.pop()
            if not 0 < number <= self.count or self.seen[number]:
                self.bad += 1
                continue
            self.seen[number] = 1
            try:
                kind, children, cells = self._parts(number)
            except UnreadableRecord:
                self.bad += 1
                continue
            waiting.extend(reversed(children))
            if kind != TABLE_INNER:
                yield from self._rows_of(number, kind, cells)

    def orphans(self, like: Callable[[list[Any]], bool]) -> Iterator[Row]:
        """Yield rows on leaves of tables that no tree has led to, if the leaf's first row is `like` them."""
        for number in range(1, self.count + 1):
            if self.seen[number]:
                continue
            try:
                kind, _, cells = self._parts(number)
            except UnreadableRecord:
                continue
            if kind == TABLE_LEAF and any(
                like(values) for _, values in self._rows_of(number, kind, cells[:1])
            ):
                yield from self._rows_of(number, kind, cells)

    def roots(self, wanted: Set[str]) -> dict[str, int]:
        """Return the root page of every table, by name; search no further once all `wanted` are found."""
        found = dict(_tables(self.rows(1)))
        if self.bad:
            for name, root in _tables(self.orphans(_is_schema)):
                found.setdefault(name, root)
                if found.keys() >= wanted:
                    break
        self.seen = bytearray(self.count + 1)
        return found

    def highest(self, root: int) -> int:
        """Return the largest row id of a table, as far as it can be read; 0 if nothing can."""
        best, number = 0, root
        for _ in range(MOST_LEVELS):
            try:
                kind, children, cells = self._parts(number)
                page = self.page(number)
                for cell in cells:
                    at = cell + 4 if kind == TABLE_INNER else varint(page, cell)[1]
                    best = max(best, varint(page, at)[0])
            except (UnreadableRecord, IndexError):
                break
            if kind != TABLE_INNER:
                break
            number = children[-1]
        return best

    def page(self, number: int) -> bytes:
        """Return the page's bytes; `UnreadableRecord` if the medium does not give them."""
        offset = self._newest.get(number)
        if offset is not None:
            return self._log[offset : offset + self.page_bytes]
        first, at = divmod((number - 1) * self.page_bytes, CHUNK_BYTES)
        if first != self._chunk[0]:
            self._chunk = first, self._pread(first * CHUNK_BYTES, CHUNK_BYTES)
        data = self._chunk[1][at : at + self.page_bytes]
        if len(data) < self.page_bytes:  # the end, or a sector near it that the medium does not give
            data = self._pread((number - 1) * self.page_bytes, self.page_bytes)
        if len(data) < self.page_bytes:
            raise UnreadableRecord
        return data

    def _pread(self, offset: int, size: int) -> bytes:
        try:
            return os.pread(self._fd, size, offset)
        except OSError:
            return b""

    def _parts(self, number: int) -> tuple[int, list[int], list[int]]:
        """Return the type of a page, its children, and the offsets of its cells."""
        page = self.page(number)
        start = HEADER_BYTES if number == 1 else 0
        kind = page[start]
        if kind not in {TABLE_LEAF, TABLE_INNER, INDEX_LEAF, INDEX_INNER}:
            raise UnreadableRecord
        count: int = struct.unpack_from(">H", page, start + 3)[0]
        first = start + (12 if kind in _INNER else 8)
        if first + 2 * count > self.usable:
            raise UnreadableRecord
        cells = list(struct.unpack_from(f">{count}H", page, first))
        if kind not in _INNER:
            return kind, [], cells
        inside = [cell for cell in cells if cell <= self.usable - 4]
        children = [struct.unpack_from(">I", page, cell)[0] for cell in inside]
        return kind, [*children, struct.unpack_from(">I", page, start + 8)[0]], cells

    def _rows_of(self, number: int, kind: int, cells: list[int]) -> Iterator[Row]:
        page = self.page(number)
        for cell in cells:
            try:
                yield self._row(page, kind, cell)
            except (UnreadableRecord, IndexError, struct.error):
                self.bad += 1

    def _row(self, page: bytes, kind: int, cell: int) -> Row:
        size, at = varint(page, cell + (4 if kind == INDEX_INNER else 0))
        row_id = 0
        if kind == TABLE_LEAF:
            row_id, at = varint(page, at)
        if size > RECORD_BYTES:
            raise UnreadableRecord
        return row_id, record(self._payload(page, kind, at, size))

    def _payload(self, page: bytes, kind: int, at: int, size: int) -> bytes:
        usable = self.usable
        most = usable - 35 if kind == TABLE_LEAF else (usable - 12) * 64 // 255 - 23
        if size <= most:
            local, rest = size, 0
        else:
            least = (usable - 12) * 32 // 255 - 23
            local = least + (size - least) % (usable - 4)
            local = local if local <= most else least
            rest = size - local
        if at + local > usable:
            raise UnreadableRecord
        pieces = [page[at : at + local]]
        following = struct.unpack_from(">I", page, at + local)[0] if rest else 0
        while rest > 0:
            if not 0 < following <= self.count:
                raise UnreadableRecord
            overflow = self.page(following)
            pieces.append(overflow[4 : min(usable, 4 + rest)])
            rest -= len(pieces[-1])
            following = struct.unpack_from(">I", overflow)[0]
        return b"".join(pieces)


def _is_schema(values: list[Any]) -> bool:
    return len(values) == 5 and values[0] in {"table", "index", "view", "trigger"}


def _tables(rows: Iterable[Row]) -> Iterator[tuple[str, int]]:
    for _, values in rows:
        if _is_schema(values) and values[0] == "table" and isinstance(values[3], int) and values[3] > 0:
            yield str(values[1]), values[3]


def _read_log(path: Path) -> bytes:
    try:
        return wal.wal_path(path).read_bytes()
    except OSError:
        return b""
