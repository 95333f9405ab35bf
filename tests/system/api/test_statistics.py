"""`current_stats` of endpoints 9 and 10: api-decisions sections 9 and 12, from readings as they come in."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.brewsession import BrewSession
from tests.system.api.conftest import Service
from tests.system.api.library import Brewery, opened
from tests.system.api.test_brewsessions import one

NOTHING = {
    "og": 0.0, "og_unit": "G", "fg": 0.0, "fg_unit": "G", "abv": 0.0, "abv_alt": 0.0,
    "ph": "", "temp": "", "temp_unit": "F", "updated": "2026-03-04T09:30:00+00:00",
}  # fmt: skip
"""A session without a reading, begun when the test's clock stood still."""


@pytest.fixture
async def brewery(service: Service) -> Brewery:
    return await opened(service)


@pytest.fixture
async def session(brewery: Brewery) -> BrewSession:
    return await brewery.session()


def at(hour: int, **members: Any) -> dict[str, Any]:
    """A reading of that hour."""
    return {"created_at": f"2026-03-05T{hour:02d}:00:00Z", **members}


async def stats(brewery: Brewery, session: BrewSession) -> dict[str, Any]:
    found: dict[str, Any] = (await one(brewery, session.id))["current_stats"]
    return found


async def test_no_reading_at_all(brewery: Brewery, session: BrewSession) -> None:
    assert await stats(brewery, session) == NOTHING


@pytest.mark.parametrize(
    ("first", "last", "abv", "abv_alt"),
    [
        ("1.061", "1.016", 5.906249999999991, 6.13561374171834),
        ("1.050", "1.010", 5.250000000000004, 5.339411100495098),
        ("1.090", "1.020", 9.187500000000009, 9.987519535200144),
    ],
)
async def test_the_captured_figures_bit_for_bit(
    brewery: Brewery, session: BrewSession, first: str, last: str, abv: float, abv_alt: float
) -> None:
    await brewery.take(session, [at(1, gravity=first), at(2, gravity="1.040"), at(3, gravity=last)])
    assert await stats(brewery, session) == NOTHING | {
        "og": float(first),
        "fg": float(last),
        "abv": abv,
        "abv_alt": abv_alt,
        "updated": "2026-03-05T03:00:00+00:00",
    }


async def test_each_gravity_keeps_the_unit_of_its_reading(brewery: Brewery, session: BrewSession) -> None:
    await brewery.take(
        session, [at(1, gravity=13.5, gravity_unit="P"), at(2, gravity=1.012, temp=66.5, temp_unit="F")]
    )
    assert await stats(brewery, session) == {
        "og": 13.5,
        "og_unit": "P",
        "fg": 1.012,
        "fg_unit": "G",
        "abv": 5.606547679314559,
        "abv_alt": 5.7507341080846155,
        "ph": "",
        "temp": "66.5",
        "temp_unit": "F",
        "updated": "2026-03-05T02:00:00+00:00",
    }


async def test_one_gravity_is_both_and_no_alcohol(brewery: Brewery, session: BrewSession) -> None:
    await brewery.take(
        session, [at(1, temp=20), at(2, gravity="12.50", gravity_unit="P"), at(3, comment="x")]
    )
    assert await stats(brewery, session) == NOTHING | {
        "og": 12.5,
        "og_unit": "P",
        "fg": 12.5,
        "fg_unit": "P",
        "temp": "20",
        "temp_unit": "C",
        "updated": "2026-03-05T02:00:00+00:00",
    }


async def test_readings_without_gravity(brewery: Brewery, session: BrewSession) -> None:
    await brewery.take(session, [at(1, temp="18.50", temp_unit="F"), at(2, gravity="", comment="x", ph=4)])
    assert await stats(brewery, session) == NOTHING | {"temp": "18.50", "ph": "4"}


@pytest.mark.parametrize(
    ("first", "last"),
    [("1.8", "1.8"), ("1.05", "0"), ("1.05", "-0.0"), ("-0", "-0"), ("2", "2"), ("1.05", "1.05")],
)
async def test_no_figure_is_minus_zero(brewery: Brewery, session: BrewSession, first: str, last: str) -> None:
    await brewery.take(session, [at(1, gravity=first), at(2, gravity=last)])
    figures = [v for v in (await stats(brewery, session)).values() if isinstance(v, float)]
    assert all(str(figure) != "-0.0" for figure in figures)


async def test_negative_results_are_kept(brewery: Brewery, session: BrewSession) -> None:
    await brewery.take(session, [at(1, gravity=1.01), at(2, gravity=1.05)])
    found = await stats(brewery, session)
    assert found["abv"] == -5.250000000000004
    assert found["abv_alt"] < 0


async def test_temperature_and_ph_are_the_latest_that_there_are_as_sent(
    brewery: Brewery, session: BrewSession
) -> None:
    rows = [
        at(1, temp="10", temp_unit="C", ph="5.20"),
        at(2, temp=" 65.410 ", temp_unit="F"),
        at(3, ph="4.40", gravity="1.010"),
        at(4, ph="", temp="", temp_unit="C", comment="x"),
        at(5, ph=None, comment="x"),
    ]
    await brewery.take(session, rows)
    found = await stats(brewery, session)
    assert (found["temp"], found["temp_unit"], found["ph"]) == ("65.410", "F", "4.40")
    assert found["updated"] == "2026-03-05T03:00:00+00:00"


@pytest.mark.parametrize(
    ("sent", "shown"), [(4.4, "4.4"), (4, "4"), (4.0, "4"), ("4.0", "4.0"), ("~4", "~4")]
)
async def test_ph_is_text_also_where_a_number_was_sent(
    brewery: Brewery, session: BrewSession, sent: float | str, shown: str
) -> None:
    await brewery.take(session, [at(1, gravity=1.05, ph=sent)])
    assert (await stats(brewery, session))["ph"] == shown


async def test_first_and_last_go_by_time_and_not_by_arrival(brewery: Brewery, session: BrewSession) -> None:
    for hour in (5, 9, 1, 7):
        await brewery.take(session, [at(hour, gravity=f"1.0{hour}", temp=hour, ph=hour)])
    found = await stats(brewery, session)
    assert [found[name] for name in ("og", "fg", "temp", "ph")] == [1.01, 1.09, "9", "9"]


async def test_of_the_same_second_the_ids_decide(brewery: Brewery, session: BrewSession) -> None:
    rows = [at(1, _id=f"69a7fb98c0ffee00000000{n:02d}", gravity=f"1.0{n}", temp=n, ph=n) for n in (3, 1, 2)]
    await brewery.take(session, rows)
    found = await stats(brewery, session)
    assert [found[name] for name in ("og", "fg", "temp", "ph")] == [1.01, 1.03, "3", "3"]


async def test_reset_forgets_and_a_new_import_counts(brewery: Brewery, session: BrewSession) -> None:
    await brewery.take(session, [at(1, gravity=1.05, temp=20, ph=5), at(2, gravity=1.01)])
    await brewery.take(session, [at(3, gravity=1.04), at(4, gravity=1.02)], reset=True)
    found = await stats(brewery, session)
    assert [found[name] for name in ("og", "fg", "temp", "ph")] == [1.04, 1.02, "", ""]
    await brewery.take(session, [], reset=True)
    assert await stats(brewery, session) == NOTHING


async def test_importing_a_reading_again_replaces_it(brewery: Brewery, session: BrewSession) -> None:
    row = at(1, gravity=1.05, _id={"$oid": "69a7fb98c0ffee0000000001"})
    await brewery.take(session, [row, at(2, gravity=1.01)])
    before = await stats(brewery, session)
    await brewery.take(session, [row])
    assert await stats(brewery, session) == before
    await brewery.take(session, [row | {"gravity": 1.07}])
    assert (await stats(brewery, session))["og"] == 1.07


async def test_sessions_do_not_share_readings(brewery: Brewery, session: BrewSession) -> None:
    other = await brewery.session(batchcode="HP002")
    await brewery.take(other, [at(1, gravity=1.05, temp=20, ph=5)])
    assert await stats(brewery, session) == NOTHING
    await brewery.service.services.brewsessions.delete_session(other)
    assert await stats(brewery, session) == NOTHING


@pytest.mark.parametrize("gravity", ["1.775", "0", "-1", "1e300", "1" * 300, "0.794"])
async def test_gravities_that_no_beer_has_still_give_numbers(
    brewery: Brewery, session: BrewSession, gravity: str
) -> None:
    for unit in ("G", "P"):
        rows = [at(1, gravity=gravity, gravity_unit=unit), at(2, gravity="1.01"), at(3, gravity="-1e300")]
        await brewery.take(session, rows, reset=True)
        await stats(brewery, session)


SPINDLE = {"name": "i1", "ID": 7, "angle": 40.0, "temperature": 19.8, "temp_units": "C", "interval": 900}


async def test_readings_of_devices_count_as_those_of_imports_do(
    brewery: Brewery, session: BrewSession
) -> None:
    await brewery.report(SPINDLE | {"gravity": 12.48}, at=-3600)
    await brewery.service.services.brewsessions.assign("7", session.id, None)
    assert await stats(brewery, session) == NOTHING  # what came before the assignment is not of this session
    await brewery.report(SPINDLE | {"gravity": 12.5})
    await brewery.report(SPINDLE | {"gravity": 60, "temperature": 20.5}, at=900)  # no gravity that can be
    found = await stats(brewery, session)
    assert [found[name] for name in ("og", "og_unit", "fg", "fg_unit")] == [12.5, "P", 12.5, "P"]
    assert [found[name] for name in ("temp", "temp_unit")] == ["20.5", "C"]
    assert found["updated"] == "2026-03-04T09:30:00+00:00"
    await brewery.service.services.brewsessions.assign("7", session.id, brewery.service.clock.now() - 7200)
    assert (await stats(brewery, session))["og"] == 12.48


async def test_an_original_gravity_by_hand_counts_first(brewery: Brewery, session: BrewSession) -> None:
    await brewery.take(session, [at(1, gravity="1.050"), at(2, gravity="1.010")])
    await brewery.service.services.store.sessions.update(replace(session, og="14.7", og_unit="P"))
    found = await stats(brewery, session)
    assert [found[name] for name in ("og", "og_unit", "fg")] == [14.7, "P", 1.01]
    assert found["abv"] == pytest.approx(6.54, abs=0.01)
