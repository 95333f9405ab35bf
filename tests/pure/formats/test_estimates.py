import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.formats import formulas as estimates
from gateway.formats.formulas import Colour, Extract

anything = st.floats(allow_nan=True, allow_infinity=True)


def test_original_gravity_of_a_kilogram_of_sugar() -> None:
    og = estimates.original_gravity([Extract(1.0, 100.0, mashed=False)], 10.0, 70.0)
    assert og == pytest.approx(1.03856, abs=1e-5)


def test_pound_and_gallon_are_the_points_of_sucrose() -> None:
    og = estimates.original_gravity([Extract(0.45359237, 100.0, mashed=False)], 3.785411784, 70.0)
    assert og == pytest.approx(1.04621)


def test_efficiency_is_of_mashed_fermentables_alone() -> None:
    mashed = estimates.original_gravity([Extract(4.0, 80.0, mashed=True)], 20.0, 50.0)
    steeped = estimates.original_gravity([Extract(4.0, 80.0, mashed=False)], 20.0, 50.0)
    assert mashed is not None
    assert steeped is not None
    assert (steeped - 1) == pytest.approx(2 * (mashed - 1))


@pytest.mark.parametrize("litres", [0.0, -1.0, 1e9, math.nan, math.inf])
def test_no_volume_no_figure(litres: float) -> None:
    assert estimates.original_gravity([Extract(1, 80, mashed=True)], litres, 70) is None
    assert estimates.morey_srm([Colour(1, 3)], litres) is None
    assert estimates.boil_gravity(1.05, litres, 25) is None
    assert estimates.tinseth_ibu(5, 0.04, 60, litres, 1.05) == 0


def test_final_gravity() -> None:
    assert estimates.final_gravity(1.060, 75) == pytest.approx(1.015)
    assert estimates.final_gravity(1.060, 250) == 1.0


def test_boil_gravity() -> None:
    assert estimates.boil_gravity(1.055, 21, 26.25) == pytest.approx(1.044)


def test_tinseth_utilisation_is_that_of_his_table() -> None:
    """Utilisation of 0.231 for an hour in wort of 1.050: 20 l, 50 g of 10 % are 250 mg/l of alpha acid."""
    assert estimates.tinseth_ibu(10, 0.05, 60, 20, 1.050) == pytest.approx(250 * 0.2307, rel=1e-3)
    assert estimates.tinseth_ibu(10, 0.05, 15, 20, 1.050) == pytest.approx(250 * 0.1144, rel=2e-3)


def test_morey_and_ebc() -> None:
    srm = estimates.morey_srm([Colour(4.0, 3.0), Colour(0.3, 60.0)], 20.0)
    assert srm == pytest.approx(1.4922 * (30 * 8.34540445 / 20) ** 0.6859)
    assert estimates.ebc(10) == pytest.approx(19.7)


def test_abv() -> None:
    assert estimates.abv(1.061, 1.016) == 5.906249999999991


def test_ppg() -> None:
    assert estimates.ppg(80) == pytest.approx(36.968)


@given(anything, anything, anything, anything, anything)
def test_nothing_fails(a: float, b: float, c: float, d: float, e: float) -> None:
    figures = (
        estimates.original_gravity([Extract(a, b, mashed=True)], c, d),
        estimates.final_gravity(estimates.bounded(a), b),
        estimates.boil_gravity(estimates.bounded(a), b, c),
        estimates.tinseth_ibu(a, b, c, d, e),
        estimates.morey_srm([Colour(a, b)], c),
    )
    assert all(figure is None or math.isfinite(figure) for figure in figures)
