"""Small charts: a sparkline, one line over time, the curve of a calibration. Pure."""

from collections.abc import Callable, Sequence

from gateway.services.series import Series
from gateway.ui.charts import lines
from gateway.ui.charts.labels import Text
from gateway.ui.charts.plot import (
    LEAST_SG,
    MARGIN,
    add_gravity_axis,
    add_time_ticks,
    gravity_in,
    present,
    value_scale,
)
from gateway.ui.charts.scales import Scale, at_least, axis, most_ticks
from gateway.ui.charts.shapes import Plot, Ring, Size, Stroke
from gateway.ui.charts.ticks import time_ticks
from gateway.ui.words import GRAVITY_UNITS, Words

SPARK = Size("spark", 320, 56, left=3, top=5, right=3, bottom=5, font_px=14, room_px=14)
HISTORY = Size("history", 390, 120, left=56, top=12, right=10, bottom=31, font_px=16, room_px=16)
CURVE = Size("curve", 390, 260, left=56, top=26, right=16, bottom=44, font_px=16, room_px=16)

LEAST_PART = 0.05
"""Part of the greatest value that the axis of a history spans at least, so that noise looks like noise."""

CURVE_STEPS = 60
"""Pieces that a curve is drawn in."""


def sparkline(series: Series) -> Plot:
    """Return the gravity of a brew as one line without any words. It needs no unit: only its shape counts."""
    start, end = at_least(series.start, series.end, 3600)
    across = Scale(start, end, SPARK.left, SPARK.box.right)
    made = Plot(SPARK, start, end, bucket_px=across.at(start + series.width_s) - SPARK.left)
    shown = present(line.sg for line in series.lines)
    if not shown:
        return made
    low, high = at_least(min(shown), max(shown), LEAST_SG)
    scale = Scale(low, high, SPARK.box.bottom - 2, SPARK.box.top + 2)
    for line in series.lines:
        for run in lines.runs(line.t, line.sg, lines.gap_s(series, line)):
            points = [(across.at(at), scale.at(sg)) for at, sg in run]
            made.strokes.append(Stroke("gravity" if len(run) > 1 else "gravity dot", points))
    return made


def history(
    t: Sequence[int], values: Sequence[float | None], words: Words, *, gap_s: float, decimals: int
) -> Plot:
    """Return one line over time: battery or signal. A line breaks after `gap_s` seconds without a value."""
    start, end = at_least(t[0] if t else 0, t[-1] if t else 0, 3600)
    box = HISTORY.box
    across = Scale(start, end, box.left, box.right)
    made = Plot(HISTORY, start, end)
    add_time_ticks(made, across, lambda fits: time_ticks(start, end, words.zone, words, fits))
    shown = present([values])
    if not shown:
        return made
    low, high = at_least(min(shown), max(shown), max(map(abs, shown)) * LEAST_PART or 1)
    spare = (high - low) * MARGIN
    made_axis = axis(low - spare, high + spare, *most_ticks(box.bottom - box.top))
    scale = Scale(made_axis.low, made_axis.high, box.bottom, box.top)
    for tick in made_axis.ticks:
        y = scale.at(tick)
        made.frame.append(Stroke("grid", [(box.left, y), (box.right, y)]))
        text = words.number(tick, min(decimals, made_axis.decimals))
        made.texts.append(Text(box.left - 6, y + 5, text, "end", "left", HISTORY.font_px))
    for run in lines.runs(t, values, gap_s or float("inf")):
        points = [(across.at(at), scale.at(value)) for at, value in run]
        made.strokes.append(Stroke("temp" if len(run) > 1 else "temp dot", points))
    return made


def curve(
    points: Sequence[tuple[float, float]], sg_of: Callable[[float], float] | None, words: Words
) -> Plot:
    """Return a calibration: points of angle (degrees) and SG, and the curve through them, if there is one."""
    box = CURVE.box
    angles = [angle for angle, _ in points] or [25.0, 70.0]
    below = axis(*at_least(min(angles) - 3, max(angles) + 3, 10))
    across = Scale(below.low, below.high, box.left, box.right)
    made = Plot(CURVE, below.low, below.high)
    step = (below.high - below.low) / CURVE_STEPS
    drawn = (
        [(below.low + n * step, sg_of(below.low + n * step)) for n in range(CURVE_STEPS + 1)] if sg_of else []
    )
    # Only where the curve is near its points: a polynomial flies off beyond them, and would flatten the rest.
    low, high = at_least(
        min((sg for _, sg in points), default=1.0), max((sg for _, sg in points), default=1.08), 0.02
    )
    room = (high - low) / 4
    drawn = [(angle, sg) for angle, sg in drawn if low - room <= sg <= high + room]
    scale = value_scale([low, high, *(sg for _, sg in drawn)], LEAST_SG, gravity_in(words), CURVE)
    for tick in below.ticks:
        x = across.at(tick)
        made.frame.append(Stroke("tick", [(x, box.bottom), (x, box.bottom + 5)]))
        text = f"{words.number(tick, below.decimals)}°"
        made.texts.append(Text(x, box.bottom + 20, text, "middle", "time", CURVE.font_px))
    middle = (box.left + box.right) / 2
    made.texts.append(Text(middle, CURVE.height - 6, words.t("chart.tilt"), "middle", "time", CURVE.font_px))
    made.frame.append(Stroke("tick", [(box.left, box.bottom), (box.right, box.bottom)]))
    add_gravity_axis(made, scale, GRAVITY_UNITS[words.gravity_unit], words)
    if drawn:
        made.strokes.append(Stroke("gravity", [(across.at(angle), scale.at(sg)) for angle, sg in drawn]))
    made.rings.extend(Ring("hand", across.at(angle), scale.at(sg)) for angle, sg in points)
    return made
