"""The chart of a brew as shapes: gravity on the left, temperature on the right, events on top. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from gateway.domain.units import celsius_to_fahrenheit, sg_to_plato
from gateway.services.series import AlarmMark, Mark, Series
from gateway.ui.charts import lines
from gateway.ui.charts.labels import Anchor, Point, Text, apart, dense
from gateway.ui.charts.scales import Axis, Scale, at_least, axis, most_ticks
from gateway.ui.charts.shapes import LARGE, Area, Badge, Plot, Ring, Size, Stroke
from gateway.ui.charts.ticks import Tick, time_ticks
from gateway.ui.words import GRAVITY_UNITS, TEMP_UNITS, Words

LEAST_SG = 0.010
"""Specific gravity that the axis spans at least, so that noise looks like noise."""

LEAST_C = 6.0
"""Degrees Celsius that the axis spans at least, for the same reason."""

MARGIN = 0.04
"""Part of the range of values that stays free above and below the lines."""

ABOVE_OG = 0.1
"""The same above the original gravity, which has its words there."""

MERGE_PART = 1.9
"""Marks closer than so many heights of a letter become one: each is a target that a finger can hit."""

LEAST_RANGE_S = 3600
"""Seconds that a chart shows at least: one reading alone has no length."""

TICK_LABEL_PX = 6.0
"""Pixels from one label of time to the next at least: closer ones are read as one text."""

OG_TICK_PX = 12.0
"""Length of the tick that shows the original gravity."""

LEFT_OUT_FLAGS = ("gravity_", "krausen_bump", "test_send", "excluded")
"""Beginnings of the flags for which a reading is left out; others, such as of clocks, leave none out."""

ALARM = "alarm"
"""The kind of an alarm that fired."""

HAND = "hand_reading"
"""The kind of an event that is drawn as a ring."""

SECOND = ("", " second", " third")
"""Classes of the first, the second and any other device of a brew."""


class Options(NamedTuple):
    """Choices of the viewer: a running median over six hours, and whether left-out readings are shown."""

    median: bool = False
    left_out: bool = False


def plot(
    series: Series, words: Words, size: Size = LARGE, options: Options | None = None, *, empty: str = ""
) -> Plot:
    """Return the shapes of a brew's chart. `empty` stands in place of missing lines."""
    options = options or Options()
    if options.median:
        series = replace(series, lines=[lines.smooth(line) for line in series.lines])
    start, end = at_least(series.start, series.end, LEAST_RANGE_S)
    across = Scale(start, end, size.left, size.box.right)
    made = Plot(size, start, end, bucket_px=across.at(start + series.width_s) - size.left)
    add_time_ticks(made, across, lambda fits: time_ticks(start, end, words.zone, words, fits))
    gravity, temp = gravity_scale(series, words, size), temp_scale(series, words, size)
    if gravity is None and temp is None:
        box = size.box
        middle = (box.left + box.right) / 2, (box.top + box.bottom) / 2
        made.texts.append(Text(*middle, empty or words.t("chart.empty"), "middle", "note", size.font_px))
    if gravity is not None:
        add_gravity_axis(made, gravity, GRAVITY_UNITS[words.gravity_unit], words)
    if temp is not None:
        add_temp_axis(made, temp, words)
    add_badges(made, marks_of(series), across, words)
    if temp is not None:
        _add_temp(made, series, across, temp)
    if gravity is not None:
        _add_gravity(made, series, across, gravity)
    if options.left_out:
        _add_left_out(made, series, across, gravity)
    _add_words(made, series, words, gravity, options)
    return made


class ValueScale(NamedTuple):
    """An axis of values in the viewer's unit, and the way from SG or °C to pixels."""

    axis: Axis
    scale: Scale
    unit: Callable[[float], float]

    def at(self, value: float) -> float:
        """Return the pixel of a value in SG or °C."""
        return self.scale.at(self.unit(value))


def value_scale(
    values: Sequence[float],
    least: float,
    unit: Callable[[float], float],
    size: Size,
    *,
    above: float = MARGIN,
    below: float = 0.5,
) -> ValueScale:
    """Return the scale for values in SG or °C, at least `least` of those high.

    `above` is the part that stays free above the values, `below` the part of what is missing that goes below.
    """
    low, high = at_least(min(values), max(values), least, below)
    span, box = high - low, size.box
    made = axis(unit(low - span * MARGIN), unit(high + span * above), *most_ticks(box.bottom - box.top))
    return ValueScale(made, Scale(made.low, made.high, box.bottom, box.top), unit)


def present(columns: Iterable[Iterable[float | None]]) -> list[float]:
    """Return the values that are there."""
    return [value for column in columns for value in column if value is not None]


def gravity_scale(series: Series, words: Words, size: Size) -> ValueScale | None:
    """Return the scale of gravity, from what is shown and OG and FG; None without any gravity."""
    columns: list[Iterable[float | None]] = [(hand.sg for hand in series.hand)]
    for line in series.lines:
        columns += [line.sg, line.sg_min, line.sg_max]
    if not (shown := present(columns)):
        return None
    shown += present([[series.original.sg if series.original else None, series.final]])
    above = ABOVE_OG if series.original else MARGIN
    return value_scale(shown, LEAST_SG, gravity_in(words), size, above=above)


def temp_scale(series: Series, words: Words, size: Size) -> ValueScale | None:
    """Return the scale of temperature; None without any temperature."""
    shown = present([*(line.temp for line in series.lines), (hand.temp for hand in series.hand)])
    # A third goes below, not a half: a single temperature then lies apart from a single gravity.
    return value_scale(shown, LEAST_C, temp_in(words), size, below=1 / 3) if shown else None


def gravity_in(words: Words) -> Callable[[float], float]:
    """Return the way from SG to the viewer's unit."""
    return sg_to_plato if words.gravity_unit == "P" else float


def temp_in(words: Words) -> Callable[[float], float]:
    """Return the way from °C to the viewer's unit."""
    return celsius_to_fahrenheit if words.temp_unit == "F" else float


def add_time_ticks(
    made: Plot, across: Scale, choose: Callable[[Callable[[list[Tick]], bool]], list[Tick]]
) -> None:
    """Add the ticks of time and their labels; a label that would be cut off is left away."""
    size, box = made.size, made.size.box

    def label(tick: Tick, font_px: float) -> Text:
        return Text(across.at(tick.at), size.height - 7, tick.label, "middle", "time", font_px)

    ticks = choose(lambda ticks: apart([label(tick, size.room_px) for tick in ticks], TICK_LABEL_PX))
    for tick in ticks:
        x = across.at(tick.at)
        made.frame.append(Stroke("tick", [(x, box.bottom), (x, box.bottom + 5)]))
        room = label(tick, size.room_px).box
        if room.left >= 0 and room.right <= size.width:
            made.texts.append(label(tick, size.font_px))
    made.frame.append(Stroke("tick", [(box.left, box.bottom), (box.right, box.bottom)]))


def add_gravity_axis(made: Plot, gravity: ValueScale, unit: str, words: Words) -> None:
    """Add the grid lines, their labels on the left, and the unit above them."""
    size, box = made.size, made.size.box
    decimals = 3 if unit == GRAVITY_UNITS["SG"] else gravity.axis.decimals
    for tick in gravity.axis.ticks:
        y = gravity.scale.at(tick)
        made.frame.append(Stroke("grid", [(box.left, y), (box.right, y)]))
        text = words.number(tick, decimals)
        made.texts.append(Text(box.left - 6, y + 5, text, "end", "left", size.font_px))
    made.texts.append(Text(box.left - size.badge_px - 5, size.badge_y + 5, unit, "end", "left", size.font_px))


def add_temp_axis(made: Plot, temp: ValueScale, words: Words) -> None:
    """Add the labels of temperature on the right, and the unit above them."""
    size, box = made.size, made.size.box
    for tick in temp.axis.ticks:
        text = words.number(tick, temp.axis.decimals)
        y = temp.scale.at(tick)
        made.texts.append(Text(box.right + 7, y + 5, text, "start", "right", size.font_px))
        made.frame.append(Stroke("tick", [(box.right, y), (box.right + 4, y)]))
    x, unit = box.right + size.badge_px + 5, TEMP_UNITS[words.temp_unit]
    made.texts.append(Text(x, size.badge_y + 5, unit, "start", "right", size.font_px))


def _add_gravity(made: Plot, series: Series, across: Scale, gravity: ValueScale) -> None:
    box = made.size.box
    for number, line in enumerate(series.lines):
        kind, gap = f"gravity{SECOND[min(number, 2)]}", lines.gap_s(series, line)
        for band in lines.bands(line, gap):
            # In whole pixels: its edges are noise, and parts of pixels would be a third of the chart's bytes.
            upper = [(across.at(at), round(gravity.at(high))) for at, _, high in band]
            lower = [(across.at(at), round(gravity.at(low))) for at, low, _ in band]
            if len(band) > 1:
                made.areas.append(Area("band", [*upper, *reversed(lower)]))
        for run in lines.runs(line.t, line.sg, gap):
            points = [(across.at(at), gravity.at(sg)) for at, sg in run]
            made.strokes.append(Stroke(kind if len(run) > 1 else "gravity dot", points))
    if series.final is not None:
        y = gravity.at(series.final)
        made.frame.append(Stroke("final", [(box.left, y), (box.right, y)]))
    if series.original is not None:
        y = gravity.at(series.original.sg)
        made.frame.append(Stroke("original", [(box.left, y), (box.left + OG_TICK_PX, y)]))
    made.rings.extend(
        Ring("hand", across.at(hand.at), gravity.at(hand.sg)) for hand in series.hand if hand.sg is not None
    )


def _add_temp(made: Plot, series: Series, across: Scale, temp: ValueScale) -> None:
    for number, line in enumerate(series.lines):
        for run in lines.runs(line.t, line.temp, lines.gap_s(series, line)):
            points = [(across.at(at), temp.at(celsius)) for at, celsius in run]
            kind = f"temp{SECOND[min(number, 2)]}" if len(run) > 1 else "temp dot"
            made.strokes.append(Stroke(kind, points))


def _add_left_out(made: Plot, series: Series, across: Scale, gravity: ValueScale | None) -> None:
    """Add a grey dot for each reading that is left out, at the edge if its gravity lies outside.

    A tick at the bottom stands for a reading without a gravity.
    """
    box = made.size.box
    for each in series.left_out:
        x = across.at(each.at)
        if each.sg is None or gravity is None:
            made.strokes.append(Stroke("out", [(x, box.bottom - 8), (x, box.bottom)]))
        else:
            # Not part of the axis: one spike would flatten all that counts.
            y = min(box.bottom - 3, max(box.top + 3, gravity.at(each.sg)))
            made.strokes.append(Stroke("out dot", [(x, y)]))


def marks_of(series: Series) -> list[Mark | AlarmMark]:
    """Return what has a badge: events, but no hand readings, and alarms that fired."""
    return [*(each for each in series.events if each.kind != HAND), *series.alarms]


def add_badges(made: Plot, events: Sequence[Mark | AlarmMark], across: Scale, words: Words) -> None:
    """Add a badge on top for each event within the range, and a hair line; close ones become one."""
    shown = sorted((each for each in events if made.start <= each.at <= made.end), key=lambda each: each.at)
    groups = [([each], across.at(each.at)) for each in shown]
    nearest = made.size.font_px * MERGE_PART
    while True:
        close = next(
            (n for n, ((_, one), (_, other)) in enumerate(pairwise(groups)) if other - one < nearest), None
        )
        if close is None:
            break
        both = groups[close][0] + groups[close + 1][0]
        groups[close : close + 2] = [(both, sum(across.at(each.at) for each in both) / len(both))]
    for group, x in groups:
        titles = [f"{words.moment(each.at)} {event_words(each, words)}" for each in group]
        first = group[0]
        kind = ALARM if isinstance(first, AlarmMark) else first.kind
        letter = words.t(f"chart.letter.{kind}") if len(group) == 1 else str(len(group))
        made.frame.append(Stroke("hair", [(x, made.size.top - 4), (x, made.size.box.bottom)]))
        made.badges.append(Badge(x, letter, "\n".join(titles), anchor_of(first)))


def anchor_of(event: Mark | AlarmMark) -> str:
    """Return the anchor of an entry of the time line: ids of alarms are counted apart."""
    return f"{ALARM if isinstance(event, AlarmMark) else 'event'}-{event.event_id}"


def event_words(event: Mark | AlarmMark, words: Words) -> str:
    """Return an event in words: `Dry hop, Citra 50 g`."""
    if isinstance(event, AlarmMark):
        return f"{words.t('alarms.chart', title=words.t(f'alarms.rule.{event.rule}'))}, {event.text}"
    kind = words.t(f"chart.event.{event.kind}")
    return f"{kind}, {event.text}" if event.text else kind


def _add_words(
    made: Plot, series: Series, words: Words, gravity: ValueScale | None, options: Options
) -> None:
    """Add the words inside the chart, each where it hides least."""
    size, box = made.size, made.size.box
    drawn = [point for stroke in made.strokes for point in dense(stroke.points)]

    def beside(y: float, text: str, kind: str) -> list[Text]:
        middle = (box.left + box.right) / 2
        columns: tuple[tuple[float, Anchor], ...] = (
            (box.left + 18, "start"),
            (box.right - 6, "end"),
            (middle, "middle"),
        )
        return [
            Text(x, y + off, text, anchor, kind, size.font_px)
            for off in (-6, size.font_px + 3)
            for x, anchor in columns
        ]

    if gravity is not None and series.final is not None:
        text = words.t("chart.final", gravity=words.gravity(series.final).number)
        made.add_text(beside(gravity.at(series.final), text, "note"), drawn)
    if gravity is not None and series.original is not None:
        text = words.t("chart.original", gravity=words.gravity(series.original.sg).number)
        made.add_text(beside(gravity.at(series.original.sg), text, "note")[::3], drawn)
    ends = [stroke.points[-1] for stroke in made.strokes if stroke.kind.startswith("temp")]
    if ends:
        made.add_text(at_end(size, max(ends), words.t("chart.temperature"), "temp"), drawn)
    if len(series.lines) > 1:
        for number, line in enumerate(series.lines):
            kind = f"gravity{SECOND[min(number, 2)]}"
            ends = [stroke.points[-1] for stroke in made.strokes if stroke.kind == kind]
            if ends:
                end = ends[min(number, len(ends)) - 1]
                made.add_text(at_end(size, end, line.name, "name gravity"), drawn)
    if options.left_out and series.left_out:
        heights = box.bottom - 12, box.top + size.font_px + 2, (box.top + box.bottom) / 2
        for text in _left_out_words(series, words):
            places = [Text(box.right - 6, y, text, "end", "note", size.font_px) for y in heights]
            if made.add_text(places, drawn):
                break


def _left_out_words(series: Series, words: Words) -> tuple[str, str]:
    """Return how many readings are left out, and why: `14 left out: spike`; then without the reasons."""
    count = words.t("chart.left_out", n=len(series.left_out))
    flags = dict.fromkeys(flag for each in series.left_out for flag in each.flags)
    reasons = [
        words.t(f"device.flag.{flag}")
        for flag in flags
        if flag.startswith(LEFT_OUT_FLAGS) and words.has(f"device.flag.{flag}")
    ]
    return f"{count}: {', '.join(reasons)}" if reasons else count, count


def at_end(size: Size, end: Point, text: str, kind: str) -> list[Text]:
    """Return the places for a word at the end of a line: above or below it, ending there or earlier."""
    x, y = end
    return [
        Text(min(x, size.box.right) - back, y + off, text, "end", kind, size.font_px)
        for back in (4, 70)
        for off in (-8, size.font_px + 5, -22, size.font_px + 20)
    ]
