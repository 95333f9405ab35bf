"""The chart as a table of texts, for people who do not see the lines."""

from bisect import bisect_left
from itertools import pairwise
from typing import NamedTuple

from gateway.services.series import Series
from gateway.ui.charts.plot import event_words, marks_of, present
from gateway.ui.charts.ticks import STEPS, Step, label, moments
from gateway.ui.words import NOTHING, Words

MOST_ROWS = 60
"""Rows of the table at most."""


class Row(NamedTuple):
    """A row of the table: an hour, a day or longer; gravity, lowest, highest and temperature are averages."""

    time: str
    gravity: str
    lowest: str
    highest: str
    temp: str
    events: str


def table(series: Series, words: Words) -> list[Row]:
    """Return the readings by hours, days or longer spans, at most 60 rows, oldest first; spans without any
    reading or event are left away."""
    if series.end < series.start:
        return []
    for step in STEPS:
        inner = [at for at in moments(series.start + 1, series.end, step, words.zone)]
        if len(inner) < MOST_ROWS and (inner or _short(series, step)):
            break
    edges = [series.start, *inner, series.end + 1]
    rows = (_row(series, words, step, begin, end) for begin, end in pairwise(edges))
    return [row for row in rows if row is not None]


def _short(series: Series, step: Step) -> bool:
    return step.unit == "hour" and series.end - series.start < step.number * 3600


def _row(series: Series, words: Words, step: Step, begin: int, end: int) -> Row | None:
    weighted: list[tuple[float, int]] = []
    lows: list[float] = []
    highs: list[float] = []
    temps: list[tuple[float, int]] = []
    for line in series.lines:
        for n in range(bisect_left(line.t, begin), bisect_left(line.t, end)):
            count = max(1, line.n[n] - line.left_out[n])
            if (sg := line.sg[n]) is not None:
                weighted.append((sg, count))
                lows += present([[line.sg_min[n], sg]])[:1]
                highs += present([[line.sg_max[n], sg]])[:1]
            if (temp := line.temp[n]) is not None:
                temps.append((temp, count))
    events = [event_words(each, words) for each in marks_of(series) if begin <= each.at < end]
    for hand in series.hand:
        if begin <= hand.at < end:
            values = [words.gravity(hand.sg)] if hand.sg is not None else []
            values += [words.temp(hand.temp)] if hand.temp is not None else []
            events.append(words.t("chart.by_hand", values=", ".join(map(str, values))))
    if not weighted and not temps and not events:
        return None
    when = words.moment(begin) if step.unit == "hour" else words.day(begin)
    return Row(
        time=when if step.unit != "month" else label(begin, step, words.zone, words),
        gravity=str(words.gravity(_average(weighted))),
        lowest=words.gravity(min(lows)).number if lows else NOTHING,
        highest=words.gravity(max(highs)).number if highs else NOTHING,
        temp=str(words.temp(_average(temps))),
        events="; ".join(events),
    )


def _average(weighted: list[tuple[float, int]]) -> float | None:
    total = sum(count for _, count in weighted)
    return sum(value * count for value, count in weighted) / total if total else None
