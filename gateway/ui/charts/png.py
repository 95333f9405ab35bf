"""A chart's shapes as PNG, for small screens and electronic paper."""

import io
import math
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.formats import pillow
from gateway.ui.charts.labels import Point
from gateway.ui.charts.looks import LOOKS, ON_LINES, PALETTES, Look, text_colour
from gateway.ui.charts.shapes import RING_PX, Plot, Stroke

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw as Canvas
    from PIL.ImageFont import FreeTypeFont, ImageFont

FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
"""DejaVu Sans where Debian puts it. Pillow's own font has neither ä nor é nor a dash."""

FINER = 2
"""Pixels drawn for each pixel, in both directions: lines have smooth edges then."""

GREYS = 16
"""Greys of electronic paper."""

HALO_PX = 2
"""Pixels of ground around a text that may lie on a line."""

MONO_DASHES = {"temp": (8, 4), "temp second": (3, 3)}
"""Dashes of lines that only their colour tells apart otherwise."""


def draw(plot: Plot, scheme: str) -> bytes:
    """Return the chart as a PNG image in a scheme: light, dark, or mono with 16 greys.

    Raise `NotInstalled` without Pillow.
    """
    pillow.load()  # here, because it takes 7 MiB, and most gateways draw no PNG
    from PIL import Image, ImageDraw

    colours = PALETTES[scheme]
    width, height = math.ceil(plot.size.width), math.ceil(plot.size.height)
    image = Image.new("RGB", (width * FINER, height * FINER), colours["ground"])
    canvas = ImageDraw.Draw(image)
    for area in plot.areas:
        faint = _mixed(colours[LOOKS[area.kind].colour], colours["ground"], LOOKS[area.kind].opacity)
        canvas.polygon([_finer(point) for point in area.points], fill=faint)
    for stroke in (*plot.frame, *plot.strokes):
        _stroke(canvas, stroke, scheme)
    for ring in plot.rings:
        _disc(canvas, (ring.x, ring.y), RING_PX, LOOKS[ring.kind], colours)
    for badge in plot.badges:
        _disc(canvas, (badge.x, plot.size.badge_y), plot.size.badge_px, LOOKS["badge"], colours)
    image = image.resize((width, height), Image.Resampling.BOX)
    # Texts are drawn last and at their size: shrunk letters would be blurred.
    canvas = ImageDraw.Draw(image)
    for text in plot.texts:
        anchor = {"start": "ls", "middle": "ms", "end": "rs"}[text.anchor]
        colour = colours[text_colour(text.kind)]
        halo = HALO_PX if text.kind.split()[0] in ON_LINES else 0
        canvas.text(
            (text.x, text.y),
            writable(text.text),
            colour,
            font(text.font_px),
            anchor,
            stroke_width=halo,
            stroke_fill=colours["ground"],
        )
    for badge in plot.badges:
        place = badge.x, plot.size.badge_y
        canvas.text(place, writable(badge.letter), colours["ink"], font(plot.size.font_px), "mm")
    if scheme == "mono":
        image = image.convert("L").quantize(GREYS)
    data = io.BytesIO()
    image.save(data, "PNG", optimize=True)
    return data.getvalue()


@cache
def font(size_px: float) -> "FreeTypeFont | ImageFont":
    """Return the font: DejaVu Sans where it is there, else Pillow's own."""
    from PIL import ImageFont

    if FONT.exists():
        return ImageFont.truetype(str(FONT), size_px)
    return ImageFont.load_default(size_px)


def writable(text: str) -> str:
    """Return the text in letters that the font has; without DejaVu Sans, folded to ASCII."""
    if FONT.exists():
        return text
    folded = unicodedata.normalize("NFKD", text.replace("–", "-").replace("−", "-").replace("ß", "ss"))
    return folded.encode("ascii", "ignore").decode()


def _finer(point: Point) -> Point:
    return point[0] * FINER, point[1] * FINER


def _stroke(canvas: "Canvas", stroke: Stroke, scheme: str) -> None:
    look = LOOKS[stroke.kind]
    colour = PALETTES[scheme][look.colour]
    width = max(1, round(look.width * FINER))
    points = [_finer(point) for point in stroke.points]
    dash = MONO_DASHES.get(stroke.kind, look.dash) if scheme == "mono" else look.dash
    if len(points) == 1:
        (x, y), radius = points[0], width / 2
        canvas.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
    elif dash:
        for piece in dashes(points, [length * FINER for length in dash]):
            canvas.line(piece, colour, width, joint="curve")
    else:
        canvas.line(points, colour, width, joint="curve")


def dashes(points: Sequence[Point], lengths: Sequence[float]) -> list[list[Point]]:
    """Return the pieces of a line that are drawn: on and off by turns, by these lengths."""
    pieces: list[list[Point]] = []
    number, left = 0, lengths[0]
    piece = [points[0]]
    for start, end in pairwise(points):
        (x1, y1), (x2, y2) = start, end
        whole, done = math.hypot(x2 - x1, y2 - y1), 0.0
        while whole - done >= left:
            done += left
            point = x1 + (x2 - x1) * done / whole, y1 + (y2 - y1) * done / whole
            if number % 2 == 0:
                pieces.append([*piece, point])
            piece, number = [point], number + 1
            left = lengths[number % len(lengths)]
        left -= whole - done
        piece.append(end)
    if number % 2 == 0 and len(piece) > 1:
        pieces.append(piece)
    return pieces


def _disc(canvas: "Canvas", centre: Point, radius: float, look: Look, colours: dict[str, str]) -> None:
    (x, y), radius = _finer(centre), radius * FINER
    canvas.ellipse(
        (x - radius, y - radius, x + radius, y + radius),
        colours["surface"],
        colours[look.colour],
        round(look.width * FINER),
    )


def _mixed(colour: str, ground: str, opacity: float) -> tuple[int, int, int]:
    """Return the colour as it looks on the ground with this opacity: the image has no transparency."""
    red, green, blue = (
        round(int(colour[n : n + 2], 16) * opacity + int(ground[n : n + 2], 16) * (1 - opacity))
        for n in (1, 3, 5)
    )
    return red, green, blue
