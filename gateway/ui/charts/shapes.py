"""The shapes that charts are made of, in pixels. The same shapes become SVG and PNG."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.ui.charts.labels import Box, Point, Text, place

RING_PX = 5.0
"""Radius of a hand reading."""

RING_WEIGHT = 8
"""Points of a line that a hand reading is worth where a text looks for a place."""


class Size(NamedTuple):
    """The room of a chart in pixels: all of it, its margins, and the size of its letters.

    `name` becomes a class. `room_px` is the size that letters may grow to on a narrow screen, where the chart
    shrinks: labels keep so much room.
    """

    name: str
    width: float
    height: float
    left: float
    top: float
    right: float
    bottom: float
    font_px: float
    room_px: float

    @property
    def badge_y(self) -> float:
        """Return the height of the circles of events."""
        return self.top - self.badge_px - 7

    @property
    def badge_px(self) -> float:
        """Return the radius of the circles of events, which hold a letter."""
        return self.font_px * 0.68

    @property
    def box(self) -> Box:
        """Return the rectangle that the lines lie in."""
        return Box(self.left, self.top, self.width - self.right, self.height - self.bottom)


SMALL = Size("small", 390, 300, left=56, top=30, right=42, bottom=31, font_px=16, room_px=16)
LARGE = Size("large", 960, 420, left=66, top=36, right=54, bottom=35, font_px=16, room_px=16)
SIZES = {size.name: size for size in (SMALL, LARGE)}


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line through points; one point alone is a dot. `kind` says how it is drawn."""

    kind: str
    points: Sequence[Point]


class Area(NamedTuple):
    """A filled outline."""

    kind: str
    points: Sequence[Point]


class Ring(NamedTuple):
    """A value that a person measured."""

    kind: str
    x: float
    y: float


class Badge(NamedTuple):
    """An event or alarm, or several that lie close together: its letter or their number, and their words.

    `entry` is the anchor of the first one in the time line.
    """

    x: float
    letter: str
    title: str
    entry: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart in pixels: its frame, the lines, and what is in front of them.

    `start` and `end` are the times at the edges (Unix seconds). `bucket_px` is the width of a bucket in
    pixels, 0 where there are none.
    """

    size: Size
    start: float
    end: float
    bucket_px: float = 0.0
    frame: list[Stroke] = field(default_factory=list)
    areas: list[Area] = field(default_factory=list)
    strokes: list[Stroke] = field(default_factory=list)
    rings: list[Ring] = field(default_factory=list)
    badges: list[Badge] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)

    def add_text(
        self, choices: Sequence[Text], lines: Sequence[Point] = (), *, room: Box | None = None
    ) -> bool:
        """Add a text at the best of these places; return False if it would touch another text everywhere."""
        taken = [each.box for each in self.texts]
        # A hand reading counts as much as a stretch of line: better hidden in part than the words not there.
        rings = [(ring.x, ring.y) for ring in self.rings for _ in range(RING_WEIGHT)]
        placed = place(choices, room or self.size.box, taken, [*lines, *rings])
        if placed is not None:
            self.texts.append(placed)
        return placed is not None
