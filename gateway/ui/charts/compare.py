"""Several brews in one chart, by days since their beginnings: gravity above, temperature below. Pure."""

from collections.abc import Callable, Sequence

from gateway.domain.units import SECONDS_PER_DAY
from gateway.services.series import Series
from gateway.ui.charts import lines
from gateway.ui.charts.labels import Text, dense
from gateway.ui.charts.plot import (
    LEAST_C,
    LEAST_SG,
    ValueScale,
    add_gravity_axis,
    add_time_ticks,
    at_end,
    gravity_in,
    present,
    temp_in,
    value_scale,
)
from gateway.ui.charts.scales import Scale
from gateway.ui.charts.shapes import Plot, Size, Stroke
from gateway.ui.charts.ticks import day_ticks
from gateway.ui.words import GRAVITY_UNITS, TEMP_UNITS, Words

MOST_BREWS = 6
"""Brews in one chart at most: more lines cannot be told apart."""

LEAST_PERCENT = 20.0
"""Percent of attenuation that the axis spans at least."""

Compared = Sequence[tuple[str, Series, int]]
"""Brews by name, series, and the Unix second of their beginning."""

UPPER = {
    "small": Size("small", 390, 280, left=56, top=26, right=16, bottom=31, font_px=16, room_px=16),
    "large": Size("large", 960, 360, left=72, top=32, right=20, bottom=36, font_px=16, room_px=16),
}
LOWER = {
    "small": Size("small", 390, 180, left=56, top=26, right=16, bottom=31, font_px=16, room_px=16),
    "large": Size("large", 960, 220, left=72, top=32, right=20, bottom=36, font_px=16, room_px=16),
}


def gravity_plot(brews: Compared, words: Words, size: str) -> Plot:
    """Return the gravities of the brews."""
    values = [[line.sg for line in series.lines] for _, series, _ in brews]
    return _plot(
        brews, values, words, UPPER[size], LEAST_SG, gravity_in(words), GRAVITY_UNITS[words.gravity_unit]
    )


def attenuation_plot(brews: Compared, words: Words, size: str) -> Plot:
    """Return the apparent attenuation of the brews in percent; nothing of a brew without OG."""
    values: list[list[Sequence[float | None]]] = []
    for _, series, _ in brews:
        og = series.original.sg if series.original and series.original.sg > 1 else None
        values.append([[_attenuation(og, sg) for sg in line.sg] for line in series.lines])
    return _plot(brews, values, words, UPPER[size], LEAST_PERCENT, float, "%")


def temp_plot(brews: Compared, words: Words, size: str) -> Plot:
    """Return the temperatures of the brews."""
    values = [[line.temp for line in series.lines] for _, series, _ in brews]
    return _plot(brews, values, words, LOWER[size], LEAST_C, temp_in(words), TEMP_UNITS[words.temp_unit])


def _attenuation(og: float | None, sg: float | None) -> float | None:
    return None if og is None or sg is None else (og - sg) / (og - 1) * 100


def _plot(
    brews: Compared,
    values: Sequence[Sequence[Sequence[float | None]]],
    words: Words,
    size: Size,
    least: float,
    unit: Callable[[float], float],
    name: str,
) -> Plot:
    end = max([SECONDS_PER_DAY, *(series.end - start for _, series, start in brews)])
    across = Scale(0, end, size.left, size.box.right)
    made = Plot(size, 0, end)
    add_time_ticks(
        made, across, lambda fits: day_ticks(end, lambda day: words.t("chart.day", n=day + 1), fits)
    )
    shown = present(column for columns in values for column in columns)
    if not shown:
        middle = (size.left + size.box.right) / 2, (size.top + size.box.bottom) / 2
        made.texts.append(Text(*middle, words.t("chart.empty"), "middle", "note", size.font_px))
        return made
    scale = value_scale(shown, least, unit, size)
    add_gravity_axis(made, scale, name, words)
    ends = [
        (label, f"brew{number}", drawn)
        for number, ((label, series, start), columns) in enumerate(zip(brews, values, strict=True), 1)
        if (drawn := _add_brew(made, series, columns, start, across, scale, f"brew{number}"))
    ]
    points = [point for stroke in made.strokes for point in dense(stroke.points)]
    for label, kind, end_point in ends:
        made.add_text(at_end(size, end_point, label, f"name {kind}"), points)
    return made


def _add_brew(
    made: Plot,
    series: Series,
    columns: Sequence[Sequence[float | None]],
    start: int,
    across: Scale,
    scale: ValueScale,
    kind: str,
) -> tuple[float, float] | None:
    """Add the lines of a brew; return the end of its last line."""
    end = None
    for line, column in zip(series.lines, columns, strict=True):
        for run in lines.runs(line.t, column, lines.gap_s(series, line)):
            points = [(across.at(at - start), scale.at(value)) for at, value in run if at >= start]
            if points:
                made.strokes.append(Stroke(kind, points))
                end = points[-1]
    return end
