"""The effect of a change of settings on a device's last days, drawn and in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from gateway.services.devices import Effect, EffectPoint
from gateway.services.series import Line, Series
from gateway.ui import charts
from gateway.ui.charts import svg
from gateway.ui.charts.plot import plot
from gateway.ui.charts.shapes import SIZES
from gateway.ui.words import Words

KINDS = {"gravity": "before", "gravity second": "gravity", "temp": "before", "temp second": "temp"}
"""Kinds of strokes by the kinds that a chart of two devices has: the first line is the one before."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The effect: both sizes of its chart, and sentences."""

    small: Markup
    large: Markup
    sentence: str
    now: str


def shown_effect(effect: Effect, words: Words) -> Shown | None:
    """Return the effect of a change for a page; None where no reading would show it."""
    if not effect.before:
        return None
    start, end = effect.before[0].at, effect.before[-1].at
    gaps = sorted(
        later.at - earlier.at for earlier, later in zip(effect.before, effect.before[1:], strict=False)
    )
    temps_differ = any(old.celsius != new.celsius for old, new in _pairs(effect))
    after = _line(words.t("effect.after"), effect.after, with_temp=True)
    before = _line(words.t("effect.before"), effect.before, with_temp=temps_differ)
    usual = gaps[len(gaps) // 2] if gaps else 0
    series = Series(start, end, 0, usual, [before, after], [], [], None, None)
    return Shown(
        _drawn(series, words, "small"),
        _drawn(series, words, "large"),
        words.t("effect.changed", n=effect.changed, of=len(effect.before))
        if effect.changed
        else words.t("effect.same"),
        _now(effect, words),
    )


def _drawn(series: Series, words: Words, size: str) -> Markup:
    """Return the chart of both lines: the one before grey and dotted, the one after as in every chart."""
    made = plot(series, words, SIZES[size])
    made.strokes[:] = [replace(stroke, kind=KINDS.get(stroke.kind, stroke.kind)) for stroke in made.strokes]
    # The sentence above says which line is which: words at lines that lie so close would be mistaken.
    names = {line.name for line in series.lines}
    made.texts[:] = [text for text in made.texts if text.text not in names]
    title = charts.chart_title(series, words, words.t("effect.title"))
    return svg.draw(made, title, charts.finding(series, None, words))


def _pairs(effect: Effect) -> list[tuple[EffectPoint, EffectPoint]]:
    return list(zip(effect.before, effect.after, strict=True))


def _line(name: str, points: Sequence[EffectPoint], *, with_temp: bool) -> Line:
    sg = [point.sg for point in points]
    temp = [point.celsius if with_temp else None for point in points]
    ones, none = [1] * len(points), [0] * len(points)
    return Line(None, name, [point.at for point in points], ones, sg, sg, sg, temp, temp, temp, none)


def _now(effect: Effect, words: Words) -> str:
    """Return the last gravity that counts before and after, as a sentence."""
    old, new = next(
        ((old.sg, new.sg) for old, new in reversed(_pairs(effect)) if old.sg is not None), (None, None)
    )
    if old is None:
        return ""
    if old == new:
        return ""
    if new is None:
        return words.t("effect.now_out", before=str(words.gravity(old)))
    return words.t("effect.now", before=str(words.gravity(old)), after=str(words.gravity(new)))
