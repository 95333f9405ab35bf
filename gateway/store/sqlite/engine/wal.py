"""The write-ahead log as a file: its database, its sound frames, and durability after an error.

Format: sqlite.org/fileformat2.html#walformat; checksum algorithm: section 4.3 there.
"""

import itertools
import os
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
_MAGIC = 0x377F0682
"""The start of a log's header; if the lowest bit is set, the checksums are over big-endian words."""

_APPLICATION_ID = slice(68, 72)
"""The application id in page 1: random for every database of ours, so that a foreign log is recognised."""

_COPY_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Frame:
    """A page in the log: its number and the offset of its bytes."""

    page: int
    offset: int


def wal_path(database: Path) -> Path:
    """Return the path of a database's log."""
    return database.with_name(f"{database.name}-wal")


def header_is_sound(wal: bytes) -> bool:
    """Return whether the first 32 bytes are a header as SQLite writes it."""
    if len(wal) < HEADER_BYTES or struct.unpack_from(">I", wal)[0] & ~1 != _MAGIC:
        return False
    big = bool(wal[3] & 1)
    return _checksum(wal[:24], (0, 0), big) == struct.unpack_from(">II", wal, 24)


def frames(wal: bytes, page_bytes: int) -> Iterator[Frame]:
    """Yield the sound frames of the log's present generation, up to its last commit.

    SQLite stops at the first damaged frame. Here each frame counts that matches its own checksum, which
    continues the checksum stored in the frame before it. A last transaction with a damaged frame does not
    count: a power cut leaves one, and no device got a yes. With another behind it, it was on the medium.
    """
    big = header_is_sound(wal) and bool(wal[3] & 1)
    salts = wal[16:24] if header_is_sound(wal) else wal[HEADER_BYTES + 8 : HEADER_BYTES + 16]
    running = struct.unpack_from(">II", wal, 24) if len(wal) >= HEADER_BYTES else (0, 0)
    pending: list[Frame] = []
    held: list[Frame] = []
    broken = False
    size = FRAME_HEADER_BYTES + page_bytes
    for start in range(HEADER_BYTES, len(wal) - size + 1, size):
        header = wal[start : start + FRAME_HEADER_BYTES]
        if header[8:16] != salts:
            break
        page, pages_after = struct.unpack_from(">II", header)
        stored = struct.unpack_from(">II", header, 16)
        content = header[:8] + wal[start + FRAME_HEADER_BYTES : start + size]
        sound = page > 0 and _checksum(content, running, big) == stored
        running, broken = stored, broken or not sound
        if sound:
            pending.append(Frame(page, start + FRAME_HEADER_BYTES))
        if sound and pages_after:
            yield from held
            held, pending = (pending, []) if broken else ([], pending)
            yield from pending
            pending, broken = [], False


def has_gap(wal: bytes) -> bool:
    """Return whether sound commits lie behind a damaged frame: SQLite would not see them."""
    page_bytes: int = struct.unpack_from(">I", wal, 8)[0]
    if page_bytes < 512:
        return False
    size = FRAME_HEADER_BYTES + page_bytes
    offsets = [HEADER_BYTES - page_bytes, *(frame.offset for frame in frames(wal, page_bytes))]
    return any(later - earlier != size for earlier, later in itertools.pairwise(offsets))


def is_foreign(database: Path) -> bool:
    """Return whether the log beside a database is another one's. Blocks; nobody may have it open."""
    try:
        with database.open("rb") as file:
            header = file.read(100)
        wal = wal_path(database).read_bytes()
    except OSError:
        return False
    ours = header[_APPLICATION_ID]
    if len(header) < 100 or not header_is_sound(wal):
        return False
    page_bytes: int = struct.unpack_from(">I", wal, 8)[0]
    if page_bytes != page_bytes_of(header):
        return True
    first = next((frame for frame in frames(wal, page_bytes) if frame.page == 1), None)
    if first is None or ours == bytes(4):
        return False
    return wal[first.offset :][_APPLICATION_ID] != ours


def page_bytes_of(header: bytes) -> int:
    """Return the page size in bytes from the first bytes of a database file."""
    size: int = struct.unpack_from(">H", header, 16)[0]
    return 65_536 if size == 1 else size


def rewrite(database: Path) -> None:
    """Write the log over itself and fsync it; `OSError` if the disk still fails.

    After a failed fsync the kernel counts pages as written that are not: a second fsync would say yes and
    mean nothing ("Can Applications Recover from fsync Failures?", USENIX ATC 2020). Written again, they
    count anew.
    """
    fd = os.open(wal_path(database), os.O_RDWR | os.O_CLOEXEC)
    try:
        offset = 0
        while chunk := os.pread(fd, _COPY_BYTES, offset):
            offset += os.pwrite(fd, chunk, offset)
        os.fsync(fd)
    finally:
        os.close(fd)


def _checksum(data: bytes, start: tuple[int, ...], big: bool) -> tuple[int, int]:
    words = array("I", data)
    if big != (struct.pack("=I", 1) == struct.pack(">I", 1)):
        words.byteswap()
    first, second = start[0], start[1]
    for place in range(0, len(words) - 1, 2):
        first = (first + words[place] + second) & 0xFFFFFFFF
        second = (second + words[place + 1] + first) & 0xFFFFFFFF
    return first, second
