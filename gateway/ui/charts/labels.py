"""Texts in a chart: their widths, as no browser is here to ask, and places where no two touch. Pure."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]

NARROW = frozenset(" .,:;|!'il()[]jf\u00a0")
WIDE = frozenset("mwMWGOQ@%&–")
WIDTHS_EM = (0.36, 0.64, 0.94, 1.05)
"""Widths of a narrow, a usual, a wide and an Asian character, as parts of the font's size.

They are those of a wide font: a text must not touch another one on a device with another font.
"""

SPARE_PX = 6.0
"""Pixels between two texts at least."""


def text_width(text: str, font_px: float) -> float:
    """Return the pixels that a text is wide at most."""
    narrow, usual, wide, asian = WIDTHS_EM
    return font_px * sum(
        narrow
        if letter in NARROW
        else wide
        if letter in WIDE
        else asian
        if unicodedata.east_asian_width(letter) in "WF"
        else usual
        for letter in text
    )


class Box(NamedTuple):
    """A rectangle of pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def touches(self, other: "Box", spare: float = 0.0) -> bool:
        """Return whether less than `spare` pixels are between the two boxes."""
        return (
            self.left < other.right + spare
            and other.left < self.right + spare
            and self.top < other.bottom + spare
            and other.top < self.bottom + spare
        )

    def inside(self, other: "Box") -> bool:
        """Return whether this box lies within the other."""
        return (
            other.left <= self.left
            and self.right <= other.right
            and other.top <= self.top
            and self.bottom <= other.bottom
        )


class Text(NamedTuple):
    """A text at its baseline. `kind` says how it is drawn."""

    x: float
    y: float
    text: str
    anchor: Anchor
    kind: str
    font_px: float

    @property
    def box(self) -> Box:
        """Return the room that the text takes."""
        width = text_width(self.text, self.font_px)
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return Box(left, self.y - self.font_px * 0.8, left + width, self.y + self.font_px * 0.25)


def apart(texts: Sequence[Text], spare: float = SPARE_PX) -> bool:
    """Return whether neighbours in a row of texts do not touch."""
    boxes = [each.box for each in texts]
    return all(not left.touches(right, spare) for left, right in pairwise(boxes))


def place(choices: Iterable[Text], room: Box, taken: Sequence[Box], lines: Sequence[Point]) -> Text | None:
    """Return the text at the place that hides least of the lines; None if each touches a text or an edge.

    `lines` are points close to each other, see `dense`. Of equal places the first is taken.
    """
    best: tuple[int, Text] | None = None
    for choice in choices:
        box = choice.box
        if not box.inside(room) or any(box.touches(other, SPARE_PX) for other in taken):
            continue
        left, top, right, bottom = box.left, box.top, box.right, box.bottom
        # Written out, because a call for each of thousands of points takes half of the drawing's time.
        hidden = sum(left <= x <= right and top <= y <= bottom for x, y in lines)
        if best is None or hidden < best[0]:
            best = hidden, choice
        if hidden == 0:
            break
    return best[1] if best else None


def dense(points: Sequence[Point], step: float = 6.0) -> list[Point]:
    """Return the points of a line and points between them, at most `step` pixels apart."""
    found = list(points[:1])
    for (x1, y1), (x2, y2) in pairwise(points):
        pieces = max(1, math.ceil(math.hypot(x2 - x1, y2 - y1) / step))
        found += [(x1 + (x2 - x1) * n / pieces, y1 + (y2 - y1) * n / pieces) for n in range(1, pieces + 1)]
    return found
