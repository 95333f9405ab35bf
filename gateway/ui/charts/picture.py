"""A brew's chart as a picture that stands alone: with its name, its figures, and its own colours."""

import re
from dataclasses import dataclass, replace

from gateway.services.figures import Figures
from gateway.services.series import Series
from gateway.ui.charts import png, svg
from gateway.ui.charts.finding import finding
from gateway.ui.charts.labels import Text, text_width
from gateway.ui.charts.plot import plot
from gateway.ui.charts.shapes import Plot, Size
from gateway.ui.words import NO_BREAK, Words

HEAD_PART, HEAD_PX = 0.055, (15.0, 34.0)
"""Size of the letters of the name as a part of the picture's height, and its bounds in pixels."""

LETTERS_PART, LETTERS_PX = 0.03, (13.0, 22.0)
"""The same for the other letters."""

DATED_PX = 200
"""The least height in pixels of a picture that tells the time of its last reading."""

UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may have."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a picture shows: the brew's name, words in place of missing lines, readings and figures."""

    name: str
    empty: str
    series: Series
    figures: Figures | None


def picture(drawing: Drawing, words: Words, width: int, height: int, scheme: str, suffix: str) -> bytes:
    """Return the picture in a scheme (light, dark, mono), as `svg` or `png`."""
    drawing = replace(drawing, name=UNWRITABLE.sub("", drawing.name))
    made = plot(drawing.series, words, _size(width, height), empty=drawing.empty)
    _add_head(made, drawing, words)
    if suffix == "png":
        return png.draw(made, scheme)
    found = finding(drawing.series, drawing.figures, words)
    return svg.draw(made, drawing.name, UNWRITABLE.sub("", found), scheme=scheme).encode()


def _size(width: int, height: int) -> Size:
    head, letters = _bounded(height * HEAD_PART, HEAD_PX), _bounded(height * LETTERS_PART, LETTERS_PX)
    return Size(
        "picture",
        width,
        height,
        left=letters * 3.9,
        top=head * 1.6 + letters * (1.6 if height >= DATED_PX else 0) + 26,
        right=letters * 3,
        bottom=letters * 2.1,
        font_px=letters,
        room_px=letters,
    )


def _bounded(value: float, bounds: tuple[float, float]) -> float:
    return round(min(bounds[1], max(bounds[0], value)), 1)


def _add_head(made: Plot, drawing: Drawing, words: Words) -> None:
    """Add the figures on the right, and on the left the name as far as there is room."""
    size, figures = made.size, drawing.figures
    head = _bounded(size.height * HEAD_PART, HEAD_PX)
    baseline, margin = head * 1.2, size.font_px * 0.7
    values = []
    if figures is not None:
        values = [str(words.gravity(figures.gravity.value))] if figures.gravity else []
        values += [str(words.temp(figures.temp.value))] if figures.temp else []
    right = (NO_BREAK * 3).join(values)
    room = size.width - 2 * margin
    if right:
        made.texts.append(Text(size.width - margin, baseline, right, "end", "heading", head))
        room -= text_width(right, head) + head
    name = drawing.name
    while name and text_width(name, head) > room:
        name = name[:-2].rstrip() + "…" if len(name) > 2 else ""
    if name:
        made.texts.append(Text(margin, baseline, name, "start", "heading", head))
    if figures is not None and figures.last_at is not None and size.height >= DATED_PX:
        when = words.moment(figures.last_at)
        below = baseline + size.font_px * 1.6
        made.texts.append(Text(size.width - margin, below, when, "end", "note", size.font_px))
