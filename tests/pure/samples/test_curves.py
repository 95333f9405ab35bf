"""A brewer would believe the curves of the sample batches."""

from itertools import pairwise
from random import Random

import pytest

from gateway.samples.curves import INTERVAL_S, Course, CurvePoint, fermentation, measured, setting_c
from gateway.samples.sessions import SampleBatch, sample_brewery

DAY_S = 86_400
FINISHED = [batch for batch in sample_brewery().batches if batch.course and batch.days]

EACH = pytest.mark.parametrize("batch", FINISHED, ids=lambda batch: batch.recipe)

ALE = Course(
    og=1.050,
    fg=1.010,
    speed=0.12,
    usual_c=19.0,
    lag_h=8.0,
    settings=((0, 18), (3, 18), (5, 21), (9, 21), (10, 2)),
)


def dice(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - noise, no secret


def beer(batch: SampleBatch) -> list[CurvePoint]:
    assert batch.course is not None
    assert batch.days is not None
    return list(fermentation(batch.course, batch.days))


def at(points: list[CurvePoint], day: float) -> CurvePoint:
    return next(point for point in points if point.seconds >= day * DAY_S)


@EACH
def test_gravity_falls_from_original_to_final(batch: SampleBatch) -> None:
    points, course = beer(batch), batch.course
    assert course is not None
    assert points[0].sg == pytest.approx(course.og, abs=0.0005)
    assert points[-1].sg == pytest.approx(course.fg, abs=0.0006)
    assert all(later.sg <= earlier.sg for earlier, later in pairwise(points))


@EACH
def test_it_lags_then_rages_then_rests(batch: SampleBatch) -> None:
    points, course = beer(batch), batch.course
    assert course is not None
    drop = course.og - course.fg
    day_by_day = [at(points, day).sg - at(points, day + 1).sg for day in range(10)]
    busiest = day_by_day.index(max(day_by_day))
    assert points[0].sg - at(points, 0.2).sg < 0.03 * drop
    assert 1 <= busiest <= 4
    assert 0.2 < max(day_by_day) / drop < 0.8
    assert points[-96].sg - points[-1].sg < 0.0005


@EACH
def test_the_yeast_warms_the_beer_at_its_busiest(batch: SampleBatch) -> None:
    points, course = beer(batch), batch.course
    assert course is not None
    busiest = max(points, key=lambda point: point.activity)
    above = busiest.celsius - setting_c(course.settings, busiest.seconds / DAY_S)
    assert 0.3 < above < 4


def test_the_temperature_follows_the_settings_and_the_crash_is_cold() -> None:
    points = list(fermentation(ALE, 12))
    assert at(points, 7).celsius == pytest.approx(21, abs=0.6)
    assert at(points, 11.5).celsius == pytest.approx(2, abs=0.6)
    steps = [abs(later.celsius - earlier.celsius) for earlier, later in pairwise(points)]
    assert max(steps) < 0.5


def test_cold_yeast_works_slowly() -> None:
    cool = Course(og=1.050, fg=1.010, speed=0.12, usual_c=19.0, lag_h=8.0, settings=((0, 11.0),))
    assert at(list(fermentation(cool, 4)), 3).sg > at(list(fermentation(ALE, 4)), 3).sg + 0.005


def test_a_hydrometer_is_noisy_late_and_sometimes_not_heard() -> None:
    points = list(fermentation(ALE, 30))
    heard = list(measured(points, dice(1)))
    assert 0.9 * len(points) < len(heard) < len(points)
    gaps = [later.seconds - earlier.seconds for earlier, later in pairwise(heard)]
    assert min(gaps) >= INTERVAL_S - 1
    assert sorted(gaps)[len(gaps) // 2] < INTERVAL_S + 10
    assert len({round(point.sg, 5) for point in heard[-100:]}) > 50
    assert heard[0].seconds < 10
    assert len(heard) == len({point.seconds for point in heard})


def test_noise_is_small_against_the_fermentation() -> None:
    points = list(fermentation(ALE, 30))
    truth = {round(point.seconds / INTERVAL_S): point.sg for point in points}
    errors = [
        abs(point.sg - truth[min(round(point.seconds / INTERVAL_S), max(truth))])
        for point in measured(points, dice(2))
        if point.seconds > 15 * DAY_S
    ]
    assert max(errors) < 0.003
    assert sum(errors) / len(errors) < 0.0008


def test_the_last_reports_all_arrive() -> None:
    for seed in range(30):
        heard = list(measured(list(fermentation(ALE, 3)), dice(seed)))[-40:]
        assert all(later.seconds - earlier.seconds < 1.5 * INTERVAL_S for earlier, later in pairwise(heard))


def test_the_same_dice_give_the_same_readings() -> None:
    points = list(fermentation(ALE, 5))
    once, again, other = (list(measured(points, dice(seed))) for seed in (7, 7, 8))
    assert once == again != other
