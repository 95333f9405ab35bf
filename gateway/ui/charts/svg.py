"""A chart's shapes as SVG: classes and attributes only, and every text goes through `escape`."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from markupsafe import Markup

from gateway.ui.charts.labels import Point, Text
from gateway.ui.charts.looks import LOOKS, ON_LINES, PALETTES, text_colour
from gateway.ui.charts.plot import MERGE_PART
from gateway.ui.charts.shapes import RING_PX, Badge, Plot, Ring, Stroke

UNITS_PER_PX = 3
"""Units of a line's coordinates in a pixel: finer ones cost bytes, and nobody sees them."""

Link = Callable[[str], str]
"""The address of an entry of the time line by its anchor."""


def number(value: float) -> str:
    """Write a number with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


class Pen(NamedTuple):
    """The way that shapes get their colours: by classes of the page, or written out by a palette."""

    colours: dict[str, str] | None = None

    def line(self, kind: str, more: str = "") -> Markup:
        """Return the attributes of a line."""
        look = LOOKS[kind]
        width = f' stroke-width="{number(look.width)}"' if look.width != 1 else ""
        dash = f' stroke-dasharray="{" ".join(map(str, look.dash))}"' if look.dash else ""
        own = f' class="{kind}"' if self.colours is None else f' stroke="{self.colours[look.colour]}"'
        return Markup(own + width + dash + more)

    def area(self, kind: str) -> Markup:
        """Return the attributes of an area."""
        look = LOOKS[kind]
        own = f' class="{kind}"' if self.colours is None else f' fill="{self.colours[look.colour]}"'
        return Markup(f'{own} opacity="{look.opacity}"')

    def text(self, kind: str) -> Markup:
        """Return the attributes of a text."""
        if self.colours is None:
            return Markup(' class="{}"').format(kind)
        fill = Markup(' fill="{}"').format(self.colours[text_colour(kind)])
        if kind.split()[0] not in ON_LINES:
            return fill
        ground = self.colours["ground"]
        return fill + Markup(' stroke="{}" stroke-width="4" paint-order="stroke"').format(ground)

    def surface(self, kind: str) -> Markup:
        """Return the attributes of a disc with an outline, which hides what is below it."""
        if self.colours is None:
            return Markup(' class="{}"').format(kind)
        return Markup('{} fill="{}"').format(self.line(kind), self.colours["surface"])


def draw(plot: Plot, title: str, finding: str, *, link: Link | None = None, scheme: str = "") -> Markup:
    """Return the chart as an SVG element.

    With a scheme its colours are written out, for a picture that stands alone; without one they come from the
    page's classes. Without `link`, events are no links.
    """
    size, pen = plot.size, Pen(PALETTES.get(scheme))
    inner = [
        Markup("<title>{}</title><desc>{}</desc>").format(title, finding),
        _lines(plot.frame, pen, Window()),
        _window(plot, pen),
        _texts(plot, pen),
        *(_ring(each, pen) for each in plot.rings),
    ]
    ground, alone = Markup(""), Markup("")
    if pen.colours is not None:
        ground = Markup('<rect width="100%" height="100%" fill="{}"/>').format(pen.colours["ground"])
        alone = Markup(
            ' xmlns="http://www.w3.org/2000/svg" width="{}" height="{}" font-family="system-ui,sans-serif"'
        ).format(number(size.width), number(size.height))
    return Markup(
        '<svg class="chart {}"{} viewBox="0 0 {} {}" font-size="{}" fill="none" stroke-linecap="round"'
        ' stroke-linejoin="round" data-from="{}" data-to="{}">{}<g role="img">{}</g>{}</svg>'
    ).format(
        size.name,
        alone,
        number(size.width),
        number(size.height),
        number(size.font_px),
        round(plot.start),
        round(plot.end),
        ground,
        Markup("").join(inner),
        Markup("").join(_badge(each, plot, link, pen) for each in plot.badges),
    )


def _window(plot: Plot, pen: Pen) -> Markup:
    """Return the lines in an SVG of their own, which cuts off what is scaled beyond it.

    Its units are a bucket across and a part of a pixel down: so the steps of a line are short numbers.
    """
    box = plot.size.box
    across = 1 / plot.bucket_px if plot.bucket_px else UNITS_PER_PX
    window = Window(box.left, box.top, across, UNITS_PER_PX)
    areas = [
        Markup('<path{} d="{}"/>').format(
            pen.area(kind), "".join(window.path(each.points, "z") for each in group)
        )
        for kind, group in groupby(plot.areas, lambda each: each.kind)
    ]
    width, height = box.right - box.left, box.bottom - box.top
    return Markup(
        '<svg class="lines" x="{}" y="{}" width="{}" height="{}" viewBox="0 0 {} {}"'
        ' preserveAspectRatio="none">{}{}</svg>'
    ).format(
        *(number(each) for each in (box.left, box.top, width, height, width * across, height * UNITS_PER_PX)),
        Markup("").join(areas),
        _lines(plot.strokes, pen, window, ' vector-effect="non-scaling-stroke"'),
    )


class Window(NamedTuple):
    """The origin of coordinates in pixels, and their units in a pixel across and down."""

    left: float = 0.0
    top: float = 0.0
    across: float = 1.0
    down: float = 1.0

    def path(self, points: Sequence[Point], end: str = "") -> str:
        """Return a path through points with relative steps in whole units; one point alone is a dot.

        Steps are differences of rounded places, so that roundings do not add up.
        """
        places = [
            (round((x - self.left) * self.across), round((y - self.top) * self.down)) for x, y in points
        ]
        steps = [(x2 - x1, y2 - y1) for (x1, y1), (x2, y2) in pairwise(places)] or [(0, 0)]
        numbers = [value for step in steps for value in step]
        text = "".join(f"{value}" if value < 0 else f" {value}" for value in numbers).lstrip()
        return f"M{places[0][0]} {places[0][1]}l{text}{end}"


def _lines(strokes: Iterable[Stroke], pen: Pen, window: Window, more: str = "") -> Markup:
    return Markup("").join(
        Markup('<path{} d="{}"/>').format(
            pen.line(kind, more), "".join(window.path(each.points) for each in group)
        )
        for kind, group in groupby(strokes, lambda each: each.kind)
    )


def _ring(ring: Ring, pen: Pen) -> Markup:
    return Markup('<circle{} cx="{}" cy="{}" r="{}"/>').format(
        pen.surface(ring.kind), number(ring.x), number(ring.y), number(RING_PX)
    )


def _texts(plot: Plot, pen: Pen) -> Markup:
    made = []
    for (kind, anchor, font), group in groupby(plot.texts, _group):
        own = Markup(' font-size="{}"').format(number(font)) if font != plot.size.font_px else ""
        inner = Markup("").join(
            Markup('<text x="{}" y="{}">{}</text>').format(number(each.x), number(each.y), each.text)
            for each in group
        )
        made.append(Markup('<g{} text-anchor="{}"{}>{}</g>').format(pen.text(kind), anchor, own, inner))
    return Markup("").join(made)


def _group(text: Text) -> tuple[str, str, float]:
    return text.kind, text.anchor, text.font_px


def _badge(badge: Badge, plot: Plot, link: Link | None, pen: Pen) -> Markup:
    """Return an event: a letter in a circle, and a link to its entry where there is one."""
    y = plot.size.badge_y
    shape = Markup(
        '<title>{}</title><circle{} cx="{}" cy="{}" r="{}"/>'
        '<text x="{}" y="{}"{} text-anchor="middle">{}</text>'
    ).format(
        badge.title,
        pen.surface("badge"),
        number(badge.x),
        number(y),
        number(plot.size.badge_px),
        number(badge.x),
        number(y + 5),
        pen.text("letter"),
        badge.letter,
    )
    if link is None:
        return Markup("<g>{}</g>").format(shape)
    width = plot.size.font_px * MERGE_PART
    # The area reaches down to the lines: a finger needs 44 pixels.
    area = Markup('<rect x="{}" y="{}" width="{}" height="44" fill="none" pointer-events="all"/>').format(
        number(badge.x - width / 2), number(y - plot.size.badge_px), number(width)
    )
    return Markup('<a href="{}">{}{}</a>').format(link(badge.entry), shape, area)
