"""The facts in a photo's header, read in bounded steps and without Pillow.

A hostile file costs the daemon nothing, and an idle gateway saves Pillow's 7 MiB.
"""

import re
import struct
from dataclasses import dataclass

from gateway.errors import InvalidInput, TooLarge

PHOTO_BYTES = 12 * 1024 * 1024
"""The most bytes of a photo's file."""

PIXELS = 25_000_000
"""The most pixels of a photo, of a resized photo, and of the half-way picture between them."""

HEADER_PARTS = 1000
"""The most JPEG segments or PNG chunks before the pixels: cameras write 10 to 200."""

JPEG_SCANS = 40
"""The most scans of a progressive JPEG: 10 are usual, and 100,000 fit into the file."""

QUARTER_TURN = 5
"""EXIF orientations from here on swap width and height."""

JPEG, PNG, GIF = "image/jpeg", "image/png", "image/gif"

_EXIF_ORIENTATION = 0x0112
_SCAN, _END = 0xDA, 0xD9
_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE = frozenset((*range(0xC0), *range(0xD0, _SCAN)))
_MARKER = re.compile(rb"\xff[\x02-\xcf\xd8-\xfe]")


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Facts of a header: sides in pixels as displayed, after turning by the EXIF orientation (1 to 8)."""

    mimetype: str
    width: int
    height: int
    orientation: int


def inspect(data: bytes) -> ImageFacts:
    """Return the facts of a JPEG, PNG or GIF without decoding it, or raise `InvalidInput` or `TooLarge`."""
    if len(data) > PHOTO_BYTES:
        raise TooLarge(f"the photo is larger than {PHOTO_BYTES >> 20} MiB; shrink it first")
    try:
        if data.startswith(b"\xff\xd8\xff"):
            mimetype, (width, height, orientation) = JPEG, _jpeg_header(data)
        elif data.startswith(b"\x89PNG\r\n\x1a\n"):
            mimetype, (width, height, orientation) = PNG, _png_header(data)
        elif data.startswith((b"GIF87a", b"GIF89a")):
            mimetype, (width, height), orientation = GIF, struct.unpack_from("<HH", data, 6), 1
        else:
            raise InvalidInput("the photo is neither a JPEG nor a PNG nor a GIF")
    except struct.error as error:
        raise InvalidInput("the photo is broken: it is cut off") from error
    if not width or not height:
        raise InvalidInput("the photo is broken: it has no pixels")
    if width * height > PIXELS:
        has = f"the photo has {width} x {height} pixels, {PIXELS // 1_000_000} million are taken"
        raise TooLarge(f"{has}; shrink it first")
    if orientation >= QUARTER_TURN:
        width, height = height, width
    return ImageFacts(mimetype, width, height, orientation)


def _jpeg_header(data: bytes) -> tuple[int, int, int]:
    width = height = 0
    exif, at = b"", 2
    for _ in range(HEADER_PARTS):
        if data.startswith(b"\xff\xff", at):
            at += 1
            continue
        lead, kind, length = struct.unpack_from(">BBH", data, at)
        if lead != 0xFF or kind in _BARE or length < 2:
            break
        if kind in _SIZES:
            height, width = struct.unpack_from(">HH", data, at + 5)
        elif kind == 0xE1 and data.startswith(b"Exif\0\0", at + 4):
            exif = exif or data[at + 10 : at + 2 + length]
        elif kind == _SCAN:
            _count_scans(data, at)
            return width, height, _exif_orientation(exif)
        at += 2 + length
    raise InvalidInput("the photo is broken: its JPEG header makes no sense")


def _count_scans(data: bytes, at: int) -> None:
    """Walk as libjpeg does, from marker to marker and over each segment, so that no scan can hide."""
    scans = 0
    for _ in range(HEADER_PARTS):
        marker = _MARKER.search(data, at)
        if marker is None or data[marker.end() - 1] == _END:
            return
        scans += data[marker.end() - 1] == _SCAN
        if scans > JPEG_SCANS:
            break
        at = marker.end() + max(struct.unpack_from(">H", data, marker.end())[0], 2)
    raise InvalidInput("the photo is coded in too many steps; save it anew first")


def _png_header(data: bytes) -> tuple[int, int, int]:
    exif, at = b"", 8
    width, height = struct.unpack_from(">II", data, at + 8)
    for _ in range(HEADER_PARTS):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"eXIf":
            exif = exif or data[at + 8 : at + 8 + length]
        elif kind == b"IDAT":
            return width, height, _exif_orientation(exif)
        at += 12 + length
    raise InvalidInput("the photo is broken: its PNG header makes no sense")


def _exif_orientation(tiff: bytes) -> int:
    """Return 1 to 8; 1, as stored, if the EXIF has no orientation or nonsense."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None:
        return 1
    try:
        (start,) = struct.unpack_from(order + "I", tiff, 4)
        (entries,) = struct.unpack_from(order + "H", tiff, start)
        for entry in range(start + 2, start + 2 + 12 * entries, 12):
            tag, _, _, value = struct.unpack_from(order + "HHIH", tiff, entry)
            if tag == _EXIF_ORIENTATION:
                return value if 1 <= value <= 8 else 1
    except struct.error:
        pass
    return 1
