"""Charts: drawn by the server as SVG or PNG, with the same in words and as a table.

Widths are fixed: `small` has 390 pixels and 300 buckets, `large` has 960 pixels and 600 buckets. A page has
both, and its styles show one.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from gateway.domain.polynomial import evaluate
from gateway.services.figures import Figures
from gateway.services.series import Series
from gateway.ui.charts import compare as comparing
from gateway.ui.charts import small, svg
from gateway.ui.charts.crosshair import crosshair
from gateway.ui.charts.finding import finding
from gateway.ui.charts.plot import LEAST_RANGE_S, Options, plot
from gateway.ui.charts.scales import at_least
from gateway.ui.charts.shapes import SIZES
from gateway.ui.charts.table import Row, table
from gateway.ui.words import Words

__all__ = [
    "BUCKETS",
    "Drawn",
    "Options",
    "Row",
    "chart_title",
    "compare",
    "crosshair",
    "curve",
    "draw",
    "drawn",
    "entry",
    "finding",
    "history",
    "sparkline",
    "table",
]


class Drawn(NamedTuple):
    """A brew's chart for `macros/chart.html`: both sizes, the finding, the table, the edges (Unix s)."""

    small: Markup
    large: Markup
    finding: str
    rows: list[Row]
    start: int
    end: int


BUCKETS = {"small": 300, "large": 600, "spark": 60}
"""Buckets that the series of a chart of each size has."""


def entry(anchor: str) -> str:
    """Return the address of an entry in the time line of the same page."""
    return f"#{anchor}"


def draw(
    series: Series,
    figures: Figures | None,
    words: Words,
    *,
    name: str,
    size: str = "small",
    links: Callable[[str], str] | None = entry,
    options: Options | None = None,
) -> Markup:
    """Return a brew's chart as SVG, `small` (390 x 300) or `large` (960 x 420), with its finding in words.

    `name` is the brew's. `links` makes the address of an event; None makes no links.
    """
    title, found = chart_title(series, words, name), finding(series, figures, words)
    return svg.draw(plot(series, words, SIZES[size], options), title, found, link=links)


def drawn(
    small_series: Series,
    large_series: Series,
    figures: Figures | None,
    words: Words,
    *,
    name: str,
    options: Options | None = None,
) -> Drawn:
    """Return a brew's chart in both sizes, made of 300 and of 600 buckets, with its words and its table."""
    start, end = at_least(small_series.start, small_series.end, LEAST_RANGE_S)
    return Drawn(
        draw(small_series, figures, words, name=name, size="small", options=options),
        draw(large_series, figures, words, name=name, size="large", options=options),
        finding(large_series, figures, words),
        table(large_series, words),
        round(start),
        round(end),
    )


def chart_title(series: Series, words: Words, name: str) -> str:
    """Return the chart's name: what it shows, of which brew, and when."""
    return words.t("chart.title", name=name, begin=words.day(series.start), end=words.day(series.end))


def sparkline(series: Series, words: Words) -> Markup:
    """Return a brew's gravity as one small line, for its card."""
    return svg.draw(small.sparkline(series), words.t("chart.spark"), finding(series, None, words))


def history(
    t: Sequence[int],
    values: Sequence[float | None],
    words: Words,
    *,
    title: str,
    unit: str,
    decimals: int,
    gap_s: float,
) -> Markup:
    """Return one line over time, such as a battery in volts: times in Unix seconds, and values.

    The line breaks after `gap_s` seconds without a value.
    """
    shown = [value for value in values if value is not None]
    found = words.t("chart.empty")
    if shown:
        low, high = (words.number(each, decimals) for each in (min(shown), max(shown)))
        found = words.t("chart.history", low=low, high=f"{high}\u00a0{unit}")
    return svg.draw(small.history(t, values, words, gap_s=gap_s, decimals=decimals), title, found)


def curve(
    points: Sequence[tuple[float, float]],
    coefficients: Sequence[float],
    residuals: Sequence[float],
    words: Words,
) -> Markup:
    """Return a calibration: points of angle and SG, and the curve through them in SG, constant first.

    Without coefficients no curve is drawn. `residuals` are measured minus fitted (SG), in the order of the
    points.
    """
    sg_of = (lambda angle: evaluate(coefficients, angle)) if coefficients else None
    found = words.t("chart.points", n=len(points))
    if residuals:
        worst = max(map(abs, residuals))
        found += " " + words.t("chart.residual", worst=words.number(worst, 4))
    return svg.draw(small.curve(points, sg_of, words), words.t("chart.curve"), found)


def compare(
    brews: Sequence[tuple[str, Series, int]], words: Words, *, size: str = "small", attenuation: bool = False
) -> Markup:
    """Return two to six brews by days since their beginnings: gravity or attenuation, then temperature.

    Each brew is its name, its series, and the Unix second of its beginning. Colours are those of the classes
    `brew1` to `brew6`, in this order.
    """
    upper = (comparing.attenuation_plot if attenuation else comparing.gravity_plot)(brews, words, size)
    names = ", ".join(name for name, _, _ in brews)
    what = words.t("chart.attenuation" if attenuation else "chart.gravity")
    return svg.draw(upper, f"{what}: {names}", what) + svg.draw(
        comparing.temp_plot(brews, words, size),
        f"{words.t('chart.temperature')}: {names}",
        words.t("chart.temperature"),
    )
