"""Each figure of section 1.3, and when it is not known."""

import pytest

from gateway.insight import figures
from gateway.insight.progress import Progress, insight
from gateway.insight.records import Facts, Insight, Sample
from tests.pure.insight.brews import HOUR_S, T0, ale, between, figures_at, samples

STILL = between((0, 1.050))


def test_nothing_is_known_of_nothing() -> None:
    assert insight([], Facts(), T0) == Insight(T0)
    known = insight([], Facts(recipe_og=1.050, pitched_at=T0), T0 + 12 * HOUR_S)
    assert known.og is not None
    assert known.og.is_estimate
    assert (known.day, known.sg, known.phase) == (0.5, None, None)


def test_current_gravity_needs_three_readings_of_the_last_day() -> None:
    progress = Progress(Facts())
    for number, sg in enumerate((1.050, 1.052)):
        progress.put([Sample(T0 + 60 * number, sg, None)])
        assert progress.insight(T0 + 60 * number).sg is None
    progress.put([Sample(T0 + 120, 1.049, None)])
    assert progress.insight(T0 + 120).sg == 1.050
    assert progress.insight(T0 + 120 + 24 * HOUR_S).sg == 1.050
    assert progress.insight(T0 + 121 + 24 * HOUR_S).sg is None


def test_current_gravity_follows_each_reading_of_a_quick_device() -> None:
    progress = Progress(Facts())
    progress.put(Sample(T0 + 60 * minute, 1.050 if minute < 1 else 1.048, None) for minute in range(4))
    assert progress.insight(T0 + 180).sg == 1.048
    assert progress.insight(T0 + 180).last_at == T0 + 180


def test_a_device_that_sends_each_three_hours_has_a_gravity() -> None:
    progress = Progress(Facts())
    progress.put(samples(STILL, 30, every_s=3 * HOUR_S))
    assert progress.insight(T0 + 30 * HOUR_S).sg == 1.050


def test_readings_before_a_gap_of_a_day_are_not_mixed_with_those_behind() -> None:
    progress = Progress(Facts(pitched_at=T0))
    progress.put(samples(STILL, 20))
    progress.put([Sample(T0 + 60 * HOUR_S, 1.020, None), Sample(T0 + 61 * HOUR_S, 1.020, None)])
    assert progress.insight(T0 + 61 * HOUR_S).sg is None


@pytest.mark.parametrize(
    ("gravity", "expected", "within"),
    [
        (STILL, 1.050, 0.0),
        (between((0, 1.050), (48, 1.002)), 1.026, 0.0001),
        (between((0, 1.050), (48, 1.0485)), 1.0493, 0.0002),
    ],
    ids=["still", "falls by a point an hour: the line", "hardly moves: the median"],
)
def test_current_gravity(gravity: object, expected: float, within: float) -> None:
    assert callable(gravity)
    assert figures_at(gravity, 24).sg == pytest.approx(expected, abs=within or 1e-12)


def test_spikes_do_not_touch_current_gravity() -> None:
    readings = [
        sample._replace(sg=1.090) if place % 9 == 4 else sample
        for place, sample in enumerate(samples(STILL, 20))
    ]
    assert insight(readings, Facts(), T0 + 20 * HOUR_S).sg == 1.050


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (Facts(og_by_hand=1.061, og_measured=1.062, recipe_og=1.063), (1.061, "hand")),
        (Facts(og_measured=1.062, recipe_og=1.063), (1.062, "measured")),
        (Facts(recipe_og=1.063), (1.050, "readings")),
        (Facts(recipe_og=1.063, pitched_at=T0 - 20 * HOUR_S), (1.063, "recipe")),
    ],
    ids=["by hand", "measured", "readings", "the device came 20 h later"],
)
def test_original_gravity(facts: Facts, expected: tuple[float, str]) -> None:
    og = insight(samples(STILL, 10), facts, T0 + 10 * HOUR_S).og
    assert og is not None
    assert (og.sg, og.origin) == expected


def test_original_gravity_of_readings_ends_where_gravity_has_fallen_two_points() -> None:
    # Hour 8: the median of three hours is two points lower.
    og = insight(samples(between((4, 1.050), (20, 1.018)), 40), Facts(pitched_at=T0), T0 + 40 * HOUR_S).og
    assert og is not None
    assert og.sg == pytest.approx(1.050, abs=0.0006)


def test_foam_and_a_spike_do_not_raise_original_gravity() -> None:
    gravity = between((0, 1.050), (11, 1.050), (12, 1.049), (60, 1.010))
    readings = [
        sample._replace(sg=sample.sg + 0.012) if 20 <= place < 32 or place == 0 else sample
        for place, sample in enumerate(samples(gravity, 40))
        if sample.sg is not None
    ]
    og = insight(readings, Facts(), T0 + 40 * HOUR_S).og
    assert og is not None
    assert og.sg == pytest.approx(1.050, abs=0.0002)


def test_two_readings_make_no_original_gravity_three_do() -> None:
    two = [Sample(T0, 1.050, None), Sample(T0 + 60, 1.051, None)]
    og = insight(two, Facts(recipe_og=1.063), T0 + 60).og
    assert og is not None
    assert og.is_estimate
    og = insight([*two, Sample(T0 + 120, 1.052, None)], Facts(recipe_og=1.063), T0 + 120).og
    assert og is not None
    assert (og.sg, og.origin) == (1.051, "readings")


@pytest.mark.parametrize(
    ("og", "sg", "percent"),
    [
        (1.050, 1.010, 80.0),
        (1.050, 1.050, 0.0),
        (1.050, 1.0525, -5.0),
        (1.050, 1.053, None),
        (1.050, 0.9951, 109.8),
        (1.050, 0.994, None),
        (1.005, 1.000, None),
        (None, 1.010, None),
        (1.050, None, None),
    ],
)
def test_attenuation(og: float | None, sg: float | None, percent: float | None) -> None:
    found = figures.attenuation(og, sg)
    assert found == (None if percent is None else pytest.approx(percent))


def test_alcohol() -> None:
    usual, other = figures.abv(1.050, 1.010)
    assert usual == pytest.approx(5.25)
    assert other is None
    usual, other = figures.abv(1.070, 1.010)
    assert usual == pytest.approx(7.875)
    assert other == pytest.approx(8.236, abs=0.001)
    assert figures.abv(1.050, 1.052) == (0.0, None)
    assert figures.abv(1.090, 1.092) == (0.0, 0.0)


def test_sugar_that_was_added_counts_for_alcohol_only() -> None:
    plain = figures_at(ale(), 120)
    sugar = figures_at(ale(), 120, Facts(pitched_at=T0, sugar_sg=0.010))
    assert plain.abv is not None
    assert sugar.abv == pytest.approx(plain.abv + 1.3125)
    assert (sugar.attenuation, sugar.og) == (plain.attenuation, plain.og)


def test_rate_needs_half_a_day_and_the_fall_is_negative() -> None:
    gravity = between((0, 1.060), (60, 1.000))
    assert figures_at(gravity, 10).rate is None
    assert figures_at(gravity, 40).rate == pytest.approx(-0.024, abs=1e-4)
    assert figures_at(STILL, 40).rate == pytest.approx(0.0)


def test_rate_falls_and_forecast_end_with_the_readings() -> None:
    progress = Progress(Facts(pitched_at=T0))
    progress.put(samples(ale(), 50))
    assert progress.insight(T0 + 54 * HOUR_S).rate is not None
    later = progress.insight(T0 + 90 * HOUR_S)
    assert (later.rate, later.fell_24h, later.sg, later.finish, later.unknown) == (
        None,
        None,
        None,
        None,
        "gap",
    )
    assert later.phase == "active"


def test_day_and_temperature() -> None:
    known = figures_at(STILL, 36, celsius=between((0, 18.0), (36, 21.6)))
    assert known.day == 1.5
    assert known.temp_c == pytest.approx(21.575)
    assert insight([Sample(T0, None, 20.0)], Facts(), T0 + HOUR_S).temp_c == 20.0
    assert insight([Sample(T0, None, 20.0)], Facts(), T0 + 25 * HOUR_S).temp_c is None
    assert insight([Sample(T0, 1.050, 20.0)], Facts(pitched_at=T0 + HOUR_S), T0).day == 0.0


def test_samples_later_than_now_are_not_seen() -> None:
    progress = Progress(Facts(pitched_at=T0))
    progress.put(samples(ale(), 120))
    progress.insight(T0 + 120 * HOUR_S)
    progress.put([Sample(T0 + 5000 * HOUR_S, 1.2, 80.0)])
    for hours in (40, 90, 120):
        assert progress.insight(T0 + hours * HOUR_S) == figures_at(ale(), hours)
