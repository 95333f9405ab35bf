import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_devices.fermentation import DAY_S, HOUR_S, Fermentation, plato, tilt_deg

SEEDS = st.text(max_size=8)
TIMES_S = st.floats(min_value=0, max_value=60 * DAY_S)


@given(SEEDS, TIMES_S)
def test_same_seed_and_time_give_the_same_point(seed: str, elapsed_s: float) -> None:
    assert Fermentation(seed).at(elapsed_s) == Fermentation(seed).at(elapsed_s)


def test_whole_and_floating_seconds_are_the_same_time() -> None:
    assert Fermentation("1").at(900).gravity_sg == Fermentation("1").at(900.0).gravity_sg


def test_another_seed_is_another_beer() -> None:
    assert Fermentation("1|0").at(0) != Fermentation("1|1").at(0)


@given(SEEDS, TIMES_S, TIMES_S)
def test_gravity_without_noise_never_rises(seed: str, one_s: float, other_s: float) -> None:
    beer = Fermentation(seed)
    early, late = sorted((one_s, other_s))
    assert beer.gravity_sg(early) >= beer.gravity_sg(late)


@given(SEEDS)
def test_gravity_lags_then_falls_from_original_to_final(seed: str) -> None:
    beer = Fermentation(seed)
    assert beer.gravity_sg(0) == beer.gravity_sg(6 * HOUR_S) == beer.original_sg
    assert beer.gravity_sg(beer.lag_s + 1) == pytest.approx(beer.original_sg, abs=1e-5)
    assert beer.gravity_sg(30 * DAY_S) == pytest.approx(beer.final_sg, abs=1e-6)


@given(SEEDS, TIMES_S)
def test_every_point_is_believable(seed: str, elapsed_s: float) -> None:
    point = Fermentation(seed).at(elapsed_s)
    assert 1.006 < point.gravity_sg < 1.070
    assert 14 < point.temperature_c < 25
    assert 3.2 < point.battery_v < 4.2
    assert 25 <= point.tilt_deg <= 65
    assert -90 < point.rssi_dbm < -45
    assert -45 < point.velocity_points_per_day <= 0
    assert 3 < point.awake_s < 7


def test_noise_is_there_but_small() -> None:
    beer = Fermentation("1")
    seen = [beer.at(second).gravity_sg for second in range(60)]
    assert len(set(seen)) > 50
    assert all(abs(gravity - beer.original_sg) <= 0.0006 for gravity in seen)


@given(st.floats(0.990, 1.119), st.floats(0.0001, 0.02))
def test_heavier_wort_tilts_further(gravity_sg: float, more: float) -> None:
    assert tilt_deg(gravity_sg + more) >= tilt_deg(gravity_sg)


@pytest.mark.parametrize(
    ("gravity_sg", "degrees"), [(1.0, 0.0), (1.040, 9.99), (1.050, 12.39), (1.080, 19.33)]
)
def test_plato_agrees_with_the_tables(gravity_sg: float, degrees: float) -> None:
    assert plato(gravity_sg) == pytest.approx(degrees, abs=0.01)
