"""Series, medians, lines."""

import random

import pytest

from gateway.insight import series
from gateway.insight.series import HOUR_S, Series, bucket_medians, line, median


@pytest.mark.parametrize(
    ("values", "middle"),
    [([3.0], 3.0), ([3.0, 1.0], 2.0), ([9.0, 1.0, 2.0], 2.0), ([4.0, 1.0, 2.0, 3.0], 2.5)],
)
def test_median(values: list[float], middle: float) -> None:
    assert median(values) == middle


def test_a_line_is_exact_and_three_wrong_buckets_of_twelve_do_nothing() -> None:
    points = [(float(hour), 1.050 - 0.001 * hour) for hour in range(-12, 0)]
    assert line(points) == pytest.approx((-0.001, 1.050))
    for place in (2, 5, 9):
        points[place] = (points[place][0], 1.200)
    assert line(points) == pytest.approx((-0.001, 1.050), abs=1e-3)


def test_the_first_of_a_slot_stays_in_any_order() -> None:
    numbers = [(at, float(at)) for at in range(0, 7200, 60)]
    expected = [0, 1200, 2400, 3600, 4800, 6000]
    for seed in range(5):
        random.Random(seed).shuffle(numbers)  # noqa: S311
        slots = Series(1200)
        for at, value in numbers:
            slots.put(at, value)
        assert list(slots.at) == expected
        assert list(slots.values) == expected


def test_put_says_whether_anything_changed() -> None:
    slots = Series(1200)
    assert [
        slots.put(100, 1.0),
        slots.put(100, 1.0),
        slots.put(200, 1.0),
        slots.put(100, 2.0),
        slots.put(50, 3.0),
    ] == [
        True,
        False,
        False,
        True,
        True,
    ]
    assert (list(slots.at), list(slots.values)) == ([50], [3.0])


def test_a_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "MOST_SLOTS", 10)
    slots = Series(60)
    for at in range(0, 6000, 60):
        slots.put(at, 1.0)
    assert (len(slots.at), slots.at[0]) == (10, 5400)


def test_buckets_end_at_a_time_and_begin_no_earlier_than_asked() -> None:
    at = list(range(0, 4 * HOUR_S, 900))
    values = [float(number) for number in range(len(at))]
    points = bucket_medians(at, values, 3 * HOUR_S, HOUR_S, 3, 0)
    assert points == [(-2.375, 2.5), (-1.375, 6.5), (-0.375, 10.5)]
    assert len(bucket_medians(at, values, 3 * HOUR_S, HOUR_S, 3, HOUR_S + 1)) == 2
    assert bucket_medians(at, values, 100 * HOUR_S, HOUR_S, 3, 0) == []
