"""Charts: shapes, words and the table made of a series, looked at without a browser."""

import gzip
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from defusedxml import ElementTree
from hypothesis import given
from hypothesis import strategies as st

from gateway.services.figures import Figures, Latest, Original
from gateway.services.series import HandPoint, LeftOut, Line, Mark, Series
from gateway.ui import charts
from gateway.ui.charts import lines, png, ticks
from gateway.ui.charts.labels import apart
from gateway.ui.charts.plot import MERGE_PART, plot
from gateway.ui.charts.scales import axis
from gateway.ui.charts.shapes import LARGE, SMALL, Size
from gateway.ui.charts.ticks import STEPS, moments
from gateway.ui.words import Words
from tests.cases import each

BERLIN = ZoneInfo("Europe/Berlin")
DAY = 86_400
BEGAN = int(datetime(2026, 11, 3, 18, tzinfo=BERLIN).timestamp())

YEAR_BYTES = 5900
"""Bytes that both charts of a noisy year may take, compressed."""


def words(language: str = "en", gravity: str = "SG", temp: str = "C", zone: ZoneInfo = BERLIN) -> Words:
    return Words(language, gravity, temp, zone, BEGAN + 9 * DAY)


def line(rows: Sequence[tuple[int, float | None, float | None]], device: int = 3, name: str = "Tilt") -> Line:
    """A line on which each reading is a point of its own."""
    t, sg, temp = ([row[column] for row in rows] for column in range(3))
    count = len(rows)
    return Line(device, name, [*map(int, t)], [1] * count, sg, sg, sg, temp, temp, temp, [0] * count)  # type: ignore[arg-type]


def series(lines: list[Line], **members: Any) -> Series:
    given = Series(BEGAN, BEGAN + 9 * DAY, 0, 900, lines, [], [], Original(1.062, "hand"), 1.013)
    return replace(given, **members)


def brew(days: float = 9, every: int = 3600) -> Line:
    """A brew that falls from 1.062 to 1.012 in five days."""
    return line(
        [
            (at, round(1.012 + 0.05 / (1 + math.exp(min(50, 3 * ((at - BEGAN) / DAY - 2)))), 5), 19.0)
            for at in range(BEGAN, BEGAN + int(days * DAY), every)
        ]
    )


def figures(gravity: float = 1.012) -> Figures:
    at = BEGAN + 9 * DAY
    now, original = Latest(gravity, at), Original(1.062, "hand")
    still = at - 2 * DAY - 4 * 3600
    return Figures(7, now, Latest(19.0, at), original, 1.013, 81.0, 6.6, 0.0, 9, BEGAN, at, still)


def test_a_noisy_year_stays_small() -> None:
    noise = random.Random(1)  # noqa: S311  (no secret)
    drawn = []
    for size, count in (("small", 300), ("large", 600)):
        width = 365 * DAY // count
        t = [BEGAN + n * width + width // 2 for n in range(count)]
        sg = [1.012 + 0.05 / (1 + math.exp(min(50, n / count * 365 - 4))) for n in range(count)]
        low = [round(value - abs(noise.gauss(0.003, 0.0005)), 5) for value in sg]
        high = [round(value + abs(noise.gauss(0.003, 0.0005)), 5) for value in sg]
        sg = [round(value + noise.gauss(0, 0.0002), 5) for value in sg]
        temp = [round(19 + 1.2 * math.sin(n / 3) + noise.gauss(0, 0.1), 2) for n in range(count)]
        year = Line(
            3, "Tilt", t, [58] * count, [*low], [*high], [*sg], [*temp], [*temp], [*temp], [0] * count
        )
        shown = series([year], end=BEGAN + 365 * DAY, width_s=width)
        drawn.append(charts.draw(shown, figures(), words(), name="HP001", size=size))
    assert len(gzip.compress("".join(drawn).encode(), 6)) <= YEAR_BYTES


@given(
    low=st.floats(-50, 1500, allow_nan=False),
    span=st.floats(0.009, 2000, allow_nan=False),
)
def test_axes_have_four_to_six_round_ticks(low: float, span: float) -> None:
    made = axis(low, low + span)
    assert 4 <= len(made.ticks) <= 6
    assert made.low <= low + 1e-9 * span
    assert made.high >= low + span - 1e-9 * span
    steps = {f"{after - before:.6g}" for before, after in pairwise(made.ticks)}
    assert len(steps) == 1
    mantissa = f"{float(steps.pop()):e}"[0:8]
    assert mantissa in {"1.000000", "2.000000", "5.000000"}
    # No empty half: an axis is at most twice as long as what is on it.
    assert made.high - made.low <= 2 * span


@given(
    day=st.dates(date(2020, 1, 1), date(2030, 1, 1)),
    minute=st.integers(0, 24 * 60 - 1),
    hours=st.integers(1, 24 * 500),
    zone=st.sampled_from(
        ["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]
    ),
)
def test_ticks_of_time_stand_at_full_local_times(day: date, minute: int, hours: int, zone: str) -> None:
    begin = datetime.combine(day, time(minute // 60, minute % 60), ZoneInfo(zone)).timestamp()
    for step in STEPS:
        found = moments(begin, begin + hours * 3600, step, ZoneInfo(zone))
        assert found == sorted(set(found))
        for at in found:
            assert begin <= at <= begin + hours * 3600
            local = datetime.fromtimestamp(at, ZoneInfo(zone))
            assert local.minute == local.second == 0
            if step.unit == "hour":
                assert local.hour % step.number == 0
            else:
                before = datetime.fromtimestamp(at - 1, ZoneInfo(zone)).date()
                assert before == local.date() - timedelta(days=1)


@each(
    "zone, day, length",
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("America/Santiago", date(2026, 9, 6), 23),  # its midnight does not exist
        ("America/New_York", date(2026, 11, 1), 25),
    ],
)
def test_days_of_23_and_25_hours(zone: str, day: date, length: int) -> None:
    here = ZoneInfo(zone)
    begin = datetime.combine(day - timedelta(days=3), time(12), here).timestamp()
    midnights = moments(begin, begin + 7 * DAY, ticks.Step(1, "day"), here)
    lengths = [(after - before) // 3600 for before, after in pairwise(midnights)]
    assert sorted(lengths) in ([*[23], *[24] * (len(lengths) - 1)], [*[24] * (len(lengths) - 1), 25])
    assert length in lengths


@given(
    start=st.integers(1_600_000_000, 1_900_000_000),
    length=st.integers(0, 800 * DAY),
    sg=st.lists(st.one_of(st.none(), st.floats(0.99, 1.12)), max_size=30),
    language=st.sampled_from(["en", "de"]),
    units=st.sampled_from([("SG", "C"), ("P", "F")]),
    size=st.sampled_from([SMALL, LARGE]),
    events=st.lists(st.floats(0, 1), max_size=12),
)
def test_labels_never_touch(
    start: int,
    length: int,
    sg: list[float | None],
    language: str,
    units: tuple[str, str],
    size: Size,
    events: list[float],
) -> None:
    rows = [
        (start + length * n // 30, value, None if value is None else value * 15) for n, value in enumerate(sg)
    ]
    marks = [Mark(n, start + int(length * part), "note", "") for n, part in enumerate(events)]
    shown = series([line(rows), line(rows[::2], 4, "Fermenter with a name")], events=marks)
    shown = replace(shown, start=start, end=start + length)
    made = plot(shown, words(language, *units), size)
    boxes = [text.box for text in made.texts]
    for number, box in enumerate(boxes):
        assert not any(box.touches(other) for other in boxes[number + 1 :])
        assert box.left >= 0
        assert box.right <= size.width
        assert box.bottom <= size.height
    places = [badge.x for badge in made.badges]
    assert all(after - before >= size.font_px * MERGE_PART for before, after in pairwise(places))
    assert apart([text for text in made.texts if text.kind == "time"])
    ElementTree.fromstring(charts.draw(shown, None, words(language, *units), name="x"))


def test_a_line_breaks_where_readings_are_missing() -> None:
    rows = [(BEGAN + n * 900, 1.05, 19.0) for n in range(100) if not 40 <= n < 43 and not 60 <= n < 62]
    made = line(rows)
    found = lines.runs(made.t, made.sg, lines.gap_s(series([made]), made))
    assert [len(run) for run in found] == [40, 55]  # two missing readings alone are no gap


def test_temperature_keeps_its_height() -> None:
    made = plot(series([brew()]), words(), LARGE)
    drawn = [text.text for text in made.texts if text.kind == "right" and text.text.isdigit()]
    assert int(drawn[-1]) - int(drawn[0]) >= 4


def test_marks_that_are_close_become_one() -> None:
    events = [
        Mark(12, BEGAN + DAY, "dry_hop", "Citra 50 g"),
        Mark(13, BEGAN + DAY + 600, "note", ""),
        Mark(14, BEGAN + 5 * DAY, "addition", "<b>Sugar</b>"),
        Mark(15, BEGAN + 6 * DAY, "hand_reading", ""),
    ]
    shown = series([brew()], events=events, hand=[HandPoint(15, BEGAN + 6 * DAY, 1.02, None)])
    svg = charts.draw(shown, figures(), words(), name="<img src=x>", size="large")
    root = ElementTree.fromstring(svg)
    links = [(each.get("href"), "".join(each.itertext())) for each in root.iter("a")]
    assert [href for href, _ in links] == ["#event-12", "#event-14"]
    assert links[0][1].endswith("2")
    assert "Addition, <b>Sugar</b>A" in links[1][1]
    assert "<img" not in svg
    assert len(plot(shown, words(), LARGE).rings) == 1
    inside = {each.tag for group in root.findall("g") for each in group.iter()}
    assert "a" not in inside  # inside the picture links would be hidden
    assert "style" not in svg


@each(
    "language, gravity, expected",
    [
        (
            "en",
            "SG",
            "Gravity fell from 1.062 to 1.012\u00a0SG in 8 days 23 hours"
            " and has not moved for 2 days 4 hours. Temperature 19.0\u00a0°C. 1 event.",
        ),
        (
            "de",
            "P",
            "Der Extrakt fiel von 15,2 auf 3,1\u00a0°P (8 Tage 23 Stunden) und bewegt sich nicht mehr"
            " (2 Tage 4 Stunden). Temperatur 19,0\u00a0°C. 1 Ereignis.",
        ),
    ],
)
def test_the_finding(language: str, gravity: str, expected: str) -> None:
    shown = series([brew()], events=[Mark(1, BEGAN + DAY, "note", "")])
    assert charts.finding(shown, figures(), words(language, gravity)) == expected


def test_readings_that_are_left_out_are_shown_on_request() -> None:
    flags = ("krausen_bump", "clock_corrected")
    out = [LeftOut(3, BEGAN + n * 3600, 1.3 if n else None, None, flags) for n in range(3)]
    shown = series([brew()], left_out=out)
    usual, asked = (plot(shown, words(), LARGE, charts.Options(left_out=wanted)) for wanted in (False, True))
    assert not [stroke for stroke in usual.strokes if stroke.kind.startswith("out")]
    assert [stroke.kind for stroke in asked.strokes if stroke.kind.startswith("out")] == [
        "out",
        "out dot",
        "out dot",
    ]
    assert "3 left out: bump of the krausen" in [text.text for text in asked.texts]
    axes = [[text.text for text in made.texts if text.kind == "left"] for made in (usual, asked)]
    assert axes[0] == axes[1]


def test_a_range_of_the_past_does_not_tell_of_today() -> None:
    past = series([brew(3)], end=BEGAN + 3 * DAY)
    found = charts.finding(past, figures(), words())
    assert found.startswith("Gravity fell from 1.062 to 1.015\u00a0SG in 2 days 23 hours. ")


def test_findings_of_little() -> None:
    english = words()
    assert charts.finding(series([]), None, english) == "No reading in this range."
    one = series([line([(BEGAN, 1.05, None)])], original=None)
    assert charts.finding(one, None, english) == "One reading: 1.050\u00a0SG on 3\u00a0Nov 18:00."
    still = series([line([(BEGAN + n * 3600, 1.05, None) for n in range(30)])], original=None)
    assert charts.finding(still, None, english) == "Gravity has been 1.050\u00a0SG for 1 day 5 hours."


@given(length=st.integers(0, 900 * DAY), count=st.integers(0, 200))
def test_the_table_has_sixty_rows_at_most_and_every_reading(length: int, count: int) -> None:
    rows = [(BEGAN + length * n // max(1, count), 1.05, 19.0) for n in range(count)]
    shown = series([line([*rows])], end=BEGAN + length)
    made = charts.table(shown, words())
    assert len(made) <= 60
    assert bool(made) == bool(count)
    assert all(row.gravity == "1.050\u00a0SG" for row in made)


def test_the_median_changes_the_line_and_no_figure() -> None:
    rows = [(BEGAN + n * 900, 1.05 if n % 7 else 1.08, 19.0) for n in range(200)]
    shown = series([line(rows)])
    smooth = lines.running_median([row[0] for row in rows], [row[1] for row in rows])
    assert set(smooth) == {1.05}
    same = charts.finding(shown, figures(), words())
    svg = charts.draw(shown, figures(), words(), name="x", options=charts.Options(median=True))
    assert same in ElementTree.fromstring(svg).findtext(".//desc", "")


def test_every_kind_of_event_has_words() -> None:
    from gateway.services.timeline import GATEWAY_KINDS, HAND_KINDS

    for language in ("en", "de"):
        for kind in (*HAND_KINDS, *GATEWAY_KINDS):
            assert words(language).t(f"chart.event.{kind}")
            assert len(words(language).t(f"chart.letter.{kind}")) == 1


def test_a_chart_without_an_end_is_drawn() -> None:
    nothing = series([], start=BEGAN, end=BEGAN)
    assert "No reading in this range" in charts.draw(nothing, None, words(), name="x")
    with pytest.raises(KeyError):
        charts.draw(nothing, None, words(), name="x", size="huge")


def texts_of(svg: str) -> list[str]:
    """The texts of a chart, or of several."""
    root = ElementTree.fromstring(f"<all>{svg}</all>")
    return ["".join(text.itertext()) for text in root.iter("text")]


def test_the_crosshair_has_a_text_for_each_point_in_the_viewers_units_and_zone() -> None:
    hand = [HandPoint(1, BEGAN + 90, 1.05, 20.0)]
    shown = series(
        [line([(BEGAN, 1.06, 19.0), (BEGAN + 900, None, None), (BEGAN + 1800, 1.059, None)])], hand=hand
    )
    assert charts.crosshair(shown, words("de", "P", "F")) == {
        "t": [BEGAN, BEGAN + 90, BEGAN + 1800],
        "text": [
            "3. Nov. 18:00, 14,7\u00a0°P, 66,2\u00a0°F".replace(". Nov", ".\u00a0Nov"),
            "3. Nov. 18:01, Von Hand 12,4\u00a0°P, 68,0\u00a0°F".replace(". Nov", ".\u00a0Nov"),
            "3. Nov. 18:30, 14,5\u00a0°P".replace(". Nov", ".\u00a0Nov"),
        ],
        "local": ["2026-11-03T18:00", "2026-11-03T18:01", "2026-11-03T18:30"],
        "n": [1, 0, 1],
    }


def test_brews_are_compared_by_their_days() -> None:
    later = line([(at + 30 * DAY, sg, temp) for at, sg, temp in zip(*columns(brew(12)), strict=True)])
    brews = [
        ("HP001", series([brew()]), BEGAN),
        ("<b>LQ</b>", series([later], start=BEGAN + 30 * DAY, end=BEGAN + 42 * DAY), BEGAN + 30 * DAY),
    ]
    for size in ("small", "large"):
        svg = charts.compare(brews, words(), size=size)
        assert "<b>" not in svg
        root = ElementTree.fromstring(f"<all>{svg}</all>")
        names = "HP001, <b>LQ</b>"
        titles = [each.text for each in root.iter("title")]
        assert titles == [f"Gravity: {names}", f"Temperature: {names}"]
        paths = [each for each in root.iter("path") if each.get("class") in {"brew1", "brew2"}]
        begins = [str(path.get("d")).split("l")[0] for path in paths]
        assert len(begins) == 4
        assert {begin.split()[0] for begin in begins} == {"M0"}, "both begin on day 1"
        assert "day 1" in texts_of(svg)
    percent = texts_of(charts.compare(brews, words("de"), attenuation=True))
    assert "%" in percent
    assert "80" in percent


def columns(made: Line) -> tuple[list[int], list[float | None], list[float | None]]:
    return made.t, made.sg, made.temp


@given(points=st.lists(st.tuples(st.floats(0, 90), st.floats(0.98, 1.15)), max_size=8), fitted=st.booleans())
def test_a_calibration_shows_every_point_inside(points: list[tuple[float, float]], fitted: bool) -> None:
    coefficients = (0.95, 0.0019, 0.000004) if fitted else ()
    svg = charts.curve(points, coefficients, [0.0004] if points else [], words())
    root = ElementTree.fromstring(svg)
    width, height = map(float, str(root.get("viewBox")).split()[2:])
    rings = list(root.iter("circle"))
    assert len(rings) == len(points)
    assert all(
        0 < float(ring.get("cx", 0)) < width and 0 < float(ring.get("cy", 0)) < height for ring in rings
    )
    assert "Tilt" in texts_of(svg)


def test_a_battery_and_a_sparkline() -> None:
    t = [BEGAN + n * 3600 for n in range(50)]
    volts = [4.1 - n / 500 if n != 20 else None for n in range(50)]
    svg = charts.history(t, volts, words("de"), title="Akku", unit="V", decimals=2, gap_s=3600)
    root = ElementTree.fromstring(svg)
    assert root.findtext(".//desc") == "4,00 bis 4,10\u00a0V."
    [path] = [each for each in root.iter("path") if each.get("class") == "temp"]
    assert str(path.get("d")).count("M") == 2, "the missing hour breaks the line"
    assert "Keine Messung" in charts.history([], [], words("de"), title="x", unit="V", decimals=2, gap_s=0)
    spark = charts.sparkline(series([brew()]), words())
    assert texts_of(spark) == []
    assert charts.sparkline(series([]), words())


def test_a_picture_has_its_dashes() -> None:
    pieces = png.dashes([(0, 0), (10, 0), (10, 10)], [4, 2])
    assert pieces == [[(0, 0), (4, 0)], [(6, 0), (10, 0)], [(10, 2), (10, 6)], [(10, 8), (10, 10)]]
