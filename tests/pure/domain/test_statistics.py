"""The statistics of a session, from the readings that they are made of."""

import math
from dataclasses import replace

import pytest

from gateway.domain import units
from gateway.domain.brewsession import Measured, Milestones
from gateway.domain.statistics import FermentationStats, current_stats
from tests.brew import brew

BEGUN, LATER = 1_772_616_600, 1_772_703_000
BREW = brew(now=BEGUN)


def measured(
    gravity: str = "", unit: str = "G", *, temp: str = "", ph: str = "", at: int = LATER
) -> Measured:
    sg = units.to_sg(float(gravity), unit) if gravity else None
    return Measured(gravity, unit, sg, temp, "C", ph, at)


def of(first: Measured | None, last: Measured | None) -> FermentationStats:
    return current_stats(Milestones(first, last, None, None), BREW)


def test_nothing_measured() -> None:
    assert of(None, None) == FermentationStats(0, "G", 0, "G", 0, 0, "", "", "F", BEGUN)


@pytest.mark.parametrize(
    ("first", "last", "abv", "abv_alt"),
    [
        (("1.061", "G"), ("1.016", "G"), 5.906249999999991, 6.13561374171834),
        (("1.050", "G"), ("1.010", "G"), 5.250000000000004, 5.339411100495098),
        (("1.090", "G"), ("1.020", "G"), 9.187500000000009, 9.987519535200144),
        (("13.5", "P"), ("1.012", "G"), 5.606547679314559, 5.7507341080846155),
        (("1.05", "G"), ("1.05", "G"), 0.0, 0.0),
        (("12", "P"), ("12", "P"), 0.0, 0.0),
    ],
)
def test_alcohol_is_not_rounded(
    first: tuple[str, str], last: tuple[str, str], abv: float, abv_alt: float
) -> None:
    stats = of(measured(*first), measured(*last))
    assert (stats.abv, stats.abv_alt) == (abv, abv_alt)
    assert (stats.og, stats.og_unit, stats.fg, stats.fg_unit) == (
        float(first[0]),
        first[1],
        float(last[0]),
        last[1],
    )


@pytest.mark.parametrize(
    ("by_hand", "first", "abv"),
    [
        (("1.060", "G"), measured("1.050"), 6.562500000000004),
        (("1.060", "G"), None, 6.562500000000004),
        (("14.7", "P"), measured("1.050"), units.abv(units.plato_to_sg(14.7), 1.01)),
    ],
)
def test_an_original_gravity_by_hand_counts_first(
    by_hand: tuple[str, str], first: Measured | None, abv: float
) -> None:
    session = replace(BREW, og=by_hand[0], og_unit=by_hand[1])
    stats = current_stats(Milestones(first, measured("1.010"), None, None), session)
    assert (stats.og, stats.og_unit) == (float(by_hand[0]), by_hand[1])
    assert stats.abv == pytest.approx(abv)
    nothing = current_stats(Milestones(None, None, None, None), session)
    assert (nothing.og, nothing.fg, nothing.abv) == (float(by_hand[0]), 0, 0)


def test_updated_is_when_the_last_gravity_was_measured() -> None:
    assert of(measured("1.05", at=1), measured("1.01", at=2)).updated == 2


def test_temperature_and_ph_come_from_readings_of_their_own() -> None:
    stats = current_stats(Milestones(None, None, measured(temp="18.50"), measured(ph="4.40")), BREW)
    assert (stats.temp, stats.temp_unit, stats.ph, stats.updated) == ("18.50", "C", "4.40", BEGUN)


@pytest.mark.parametrize("gravity", ["1.775", "1e308", "-1e308", "1.7750000000000001", "0"])
def test_every_figure_is_a_number_that_json_has(gravity: str) -> None:
    stats = of(measured(gravity), measured("-1e308"))
    assert all(math.isfinite(figure) for figure in (stats.og, stats.fg, stats.abv, stats.abv_alt))
