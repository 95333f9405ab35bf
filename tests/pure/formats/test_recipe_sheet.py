"""A recipe as a brewer reads it, whatever a program or a service wrote."""

from dataclasses import replace

import pytest

from gateway.domain.recipe import Recipe
from gateway.domain.units import plato_to_sg
from gateway.formats.recipe_sheet import BOIL, DRY, FIRST_WORT, MASH, STAND, sheet_of, vitals_of
from tests.cases import each
from tests.system.api.library import content, porter


def recipe(**said: object) -> Recipe:
    whole = Recipe(1, 1, "", content(**said), None, None, None, None, False, 0, 0)  # type: ignore[arg-type]
    return whole if said else replace(whole, content=porter())


def test_the_porter_of_the_specification() -> None:
    sheet = sheet_of(recipe())
    vitals = sheet.vitals
    figures = (vitals.og, vitals.fg, vitals.abv, vitals.ibu, vitals.srm)
    assert figures == (1.055, 1.014, 5.38, 28.4, 26.1)
    assert (sheet.litres, sheet.boil_minutes, sheet.is_us) == (21.0, 60.0, False)
    assert [(malt.name, malt.kg, malt.share, malt.srm) for malt in sheet.malts] == [
        ("Pale Malt", 4.1, 100.0, 2.5)
    ]
    assert [(hop.name, hop.grams, hop.when, hop.time) for hop in sheet.hops] == [("Fuggle", 40.0, BOIL, 60.0)]
    assert [(step.celsius, step.minutes, step.litres) for step in sheet.mash] == [(67.0, 60.0, 14.0)]
    assert sheet.others == ()


def test_other_units_are_understood() -> None:
    sheet = sheet_of(
        recipe(
            sugar_scale="plato", og="12.5", fg="3", batchsize="5", batchsizeunit="gal",
            fermentables=[{"name": name, "amount": lb, "unit": "lb"} for name, lb in ("A1", "B3")],
            hops=[{"name": "C", "amount": "1", "unit": "oz"}],
            yeasts=[{"amount": "0.1", "unit": "l"}, {"amount": "11.5", "unit": "g"}],
        )
    )  # fmt: skip
    assert sheet.vitals.og == pytest.approx(plato_to_sg(12.5))
    assert sheet.litres == pytest.approx(18.927, abs=0.001)
    assert [(malt.name, round(malt.share or 0)) for malt in sheet.malts] == [("B", 75), ("A", 25)]
    assert sheet.hops[0].grams == pytest.approx(28.35, abs=0.01)
    assert [(yeast.grams, yeast.litres) for yeast in sheet.yeasts] == [(None, 0.1), (11.5, None)]


@each(
    "use, when",
    [
        ("Mash", MASH), ("Mash Hop", MASH), ("First Wort", FIRST_WORT), ("FWH", FIRST_WORT), ("Boil", BOIL),
        ("", BOIL), ("Kochen", BOIL), ("Aroma", STAND), ("Whirlpool", STAND), ("Hop Stand", STAND),
        ("flameout", STAND), ("Dry Hop", DRY), ("dryhop", DRY), ("Fermenter", DRY),
    ],
)  # fmt: skip
def test_a_hop_has_its_time_by_the_use_that_a_program_wrote(use: str, when: str) -> None:
    assert sheet_of(recipe(hops=[{"name": "X", "hopuse": use}])).hops[0].when == when


def test_hops_stand_in_the_order_of_a_brewing_day() -> None:
    uses = [
        ("Dry Hop", "2"),
        ("Boil", "5"),
        ("Whirlpool", "20"),
        ("Boil", "60"),
        ("Mash", "60"),
        ("Dry Hop", "4"),
    ]
    hops = sheet_of(recipe(hops=[{"name": use, "hopuse": use, "hoptime": time} for use, time in uses])).hops
    assert [(hop.when, hop.time) for hop in hops] == [
        (MASH, 60.0), (BOIL, 60.0), (BOIL, 5.0), (STAND, 20.0), (DRY, 4.0), (DRY, 2.0)
    ]  # fmt: skip


@each("text", ["", "0", "-3", "many", "1e999", "NaN", "99999999999999999999", None])
def test_what_is_no_gravity_is_none(text: str | None) -> None:
    assert vitals_of({"og": text, "srmmorey": None}).og is None


def test_a_recipe_that_says_nothing_has_a_sheet() -> None:
    sheet = sheet_of(recipe(title=""))
    assert (sheet.vitals.og, sheet.litres, sheet.malts, sheet.hops) == (None, None, (), ())
    odd = {"name": None, "amount": "x", "unit": "?", "hoptime": "?", "percent": "x"}
    sheet_of(recipe(fermentables=[odd], hops=[odd], yeasts=[odd], mashsteps=[odd], others=[odd]))
