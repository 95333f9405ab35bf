"""The forecast, its interval, and why there is none."""

import itertools
import math

import pytest

from gateway.insight import finish
from gateway.insight.finish import forecast
from gateway.insight.progress import Progress, insight
from gateway.insight.records import Facts, Finish, Sample
from gateway.insight.series import DAY_S
from tests.pure.insight.brews import HOUR_S, T0, ale, between, figures_at, samples


def sigmoid(hour: float) -> float:
    """An ale: 38 points, half of them after 50 h; one point is left after 95 h."""
    return 1.012 + 0.038 / (1 + math.exp(0.08 * (hour - 50)))


END_H = 50 + math.log(37) / 0.08

FACTS = Facts(pitched_at=T0, og_measured=sigmoid(0), recipe_fg=1.012)


@pytest.mark.parametrize(("hour", "within"), [(50, 10), (64, 10), (78, 10)])
def test_the_forecast_meets_the_end(hour: int, within: int) -> None:
    found = figures_at(sigmoid, hour, FACTS).finish
    assert found is not None
    assert (found.at - T0) / HOUR_S == pytest.approx(END_H, abs=within)
    assert found.early < found.at < found.late
    assert found.fg == pytest.approx(1.012, abs=0.001)


def test_the_interval_is_never_narrow() -> None:
    # Two hours before the end as the readings show it; the rest counts as six hours.
    found = figures_at(sigmoid, END_H - 2, FACTS).finish
    assert found is not None
    assert found.late - found.early >= (2.5 - 0.4) * 6 * HOUR_S


def test_a_forecast_lies_not_long_in_the_past() -> None:
    progress = Progress(FACTS)
    progress.put(samples(sigmoid, 140))
    for hour in range(50, 140):
        found = progress.insight(T0 + hour * HOUR_S).finish
        assert found is None or found.at >= T0 + (hour - 6) * HOUR_S


def test_the_forecast_changes_only_when_it_has_moved_by_three_hours() -> None:
    progress = Progress(FACTS)
    progress.put(samples(sigmoid, 100))
    shown = [known for hour in range(40, 90) if (known := progress.insight(T0 + hour * HOUR_S).finish)]
    changes = [(before, after) for before, after in itertools.pairwise(shown) if before != after]
    assert len(shown) > 30
    assert all(abs(before.at - after.at) >= finish.MOVED_S for before, after in changes)
    assert len(changes) < 8


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(20, "phase"), (30, "little_attenuation"), (300, "phase")],
    ids=["lag", "35 % are not done", "finished"],
)
def test_not_yet_known(hours: int, expected: str) -> None:
    known = figures_at(sigmoid, hours, FACTS)
    assert (known.finish, known.unknown) == (None, expected)


def test_not_yet_known_within_a_day_of_pitching() -> None:
    known = figures_at(between((2, 1.050), (22, 1.020)), 22, FACTS)
    assert (known.phase, known.unknown) == ("active", "too_early")


def test_not_yet_known_after_a_gap_of_a_day() -> None:
    readings = [sample for sample in samples(sigmoid, 80) if not 40 < (sample.at - T0) / HOUR_S < 66]
    assert insight(readings, FACTS, T0 + 80 * HOUR_S).unknown == "gap"


def points(gravity: object, hours: int) -> tuple[list[int], list[float]]:
    assert callable(gravity)
    found = [sample for sample in samples(gravity, hours) if sample.sg is not None]
    return [sample.at for sample in found], [sample.sg or 0.0 for sample in found]


@pytest.mark.parametrize(
    ("gravity", "hours", "og", "fg", "expected"),
    [
        (sigmoid, 8, 1.050, None, "few_points"),
        (between((0, 1.012)), 60, 1.012, 1.012, "flat"),
    ],
)
def test_no_answer_of_the_models(
    gravity: object, hours: int, og: float, fg: float | None, expected: str
) -> None:
    at, values = points(gravity, hours)
    assert forecast(at, values, T0 + hours * HOUR_S, T0, og, fg) == expected


def test_bounds_of_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    at, values = points(sigmoid, 60)
    now = T0 + 60 * HOUR_S
    assert isinstance(forecast(at, values, now, T0, 1.050, 1.012), Finish)
    monkeypatch.setattr(finish, "DIFFER", -2.0)
    assert forecast(at, values, now, T0, 1.050, 1.012) == "models_differ"
    monkeypatch.setattr(finish, "FARTHEST_S", 10 * HOUR_S)
    assert forecast(at, values, now, T0, 1.050, 1.012) == "far_away"
    monkeypatch.setattr(finish, "RATES_PER_H", (0.5, 1.0))
    assert forecast(at, values, now, T0, 1.050, 1.012) == "rate_constant"


@pytest.mark.parametrize("model", range(2))
def test_the_inverse_of_a_curve(model: int) -> None:
    curve, inverse = finish.MODELS[model]
    for share in (0.9, 0.5, 0.026, 0.01):
        assert curve([inverse(share)]) == [pytest.approx(share)]


def test_wild_gravities_end_in_an_answer() -> None:
    """No overflow, no division by nothing: whatever a broken device has sent."""
    wild = [0.9, 1.3, 1.0] * 40
    at = [T0 + HOUR_S * number for number in range(len(wild))]
    for og in (1.001, 1.05, 1.3):
        assert isinstance(forecast(at, wild, at[-1], T0, og, None), Finish | str)
    assert isinstance(forecast(at, [1.05] * 120, at[-1], T0, 1.05, 1.05), str)


def test_a_long_brew_has_few_points() -> None:
    at, values = points(ale(), 40 * 24)
    found = forecast(at, values, T0 + 40 * DAY_S, T0, 1.050, 1.012)
    assert isinstance(found, Finish)


def test_one_wrong_hour_moves_the_forecast_by_little() -> None:
    usual = figures_at(sigmoid, 60, FACTS).finish
    readings = [
        Sample(sample.at, 1.030 if 55 <= (sample.at - T0) / HOUR_S < 56 else sample.sg, None)
        for sample in samples(sigmoid, 60)
    ]
    found = insight(readings, FACTS, T0 + 60 * HOUR_S).finish
    assert usual is not None
    assert found is not None
    assert abs(found.at - usual.at) <= 4 * HOUR_S
