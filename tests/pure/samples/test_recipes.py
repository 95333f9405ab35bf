"""The sample recipes are valid BeerXML, of every kind there is, and their figures hold together."""

from importlib import import_module
from typing import Any

import pytest

from gateway.formats import beerxml
from gateway.formats.beerxml.complete import Changes, completed
from gateway.formats.beerxml.elements import XmlRecord, XmlValue
from gateway.formats.beerxml.schema import RECORDS
from gateway.formats.recipe_figures import figures
from gateway.formats.recipes import parse
from gateway.samples.recipes import SampleRecipe, sample_recipes

Parser: Any = import_module("pybeerxml").Parser

SAMPLES = sample_recipes()

EACH = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.title)

SAID = {"OG", "FG", "ABV", "IBU", "EST_OG", "EST_FG", "EST_ABV", "EST_COLOR", "IBU_METHOD"}
"""Elements that follow from the ingredients."""


def records(recipe: XmlRecord, *path: str) -> list[XmlRecord]:
    value: XmlValue = recipe
    for name in path:
        assert isinstance(value, dict)
        value = value[name]
    assert isinstance(value, list)
    return value


def values(element: str, *path: str) -> set[XmlValue]:
    found = (row.get(element) for sample in SAMPLES for row in records(sample.record, *path))
    return {value for value in found if isinstance(value, str)}


@EACH
def test_nothing_has_to_be_completed_or_repaired(sample: SampleRecipe) -> None:
    changes = Changes()
    completed(sample.record, changes)
    assert changes.lines == []
    [recipe] = parse(sample.document())
    assert recipe.changes == []
    assert recipe.content.title == sample.title


@EACH
def test_another_program_reads_what_is_exported(sample: SampleRecipe) -> None:
    [parsed] = parse(sample.document())
    content = parsed.content
    [read] = Parser().parse_from_string(beerxml.document([content.beerxml]).decode())
    assert (read.name, read.style.name) == (content.title, content.record["stylename"])
    for there, here in (
        ("fermentables", "fermentables"),
        ("hops", "hops"),
        ("yeasts", "yeasts"),
        ("miscs", "others"),
    ):
        names = [row["name"] for row in content.ingredients[here]]
        assert sorted(row.name for row in getattr(read, there)) == sorted(map(str, names))
    assert len(read.mash.steps if read.mash else ()) == len(content.ingredients["mashsteps"])
    for there, here in (("og", "og"), ("fg", "fg"), ("ibu", "ibutinseth")):
        assert getattr(read, there) == pytest.approx(float(str(content.record[here])), abs=0.05)


@EACH
def test_the_figures_are_what_the_ingredients_come_to(sample: SampleRecipe) -> None:
    bare = {name: value for name, value in sample.record.items() if name not in SAID}
    estimated, said = figures(bare), figures(sample.record)
    for name, tolerance in (("og", 0.001), ("fg", 0.001), ("abv", 0.1), ("ibu", 0.1), ("srm", 0.1)):
        assert float(getattr(said, name)) == pytest.approx(float(getattr(estimated, name)), abs=tolerance)


@EACH
def test_the_figures_lie_within_the_style(sample: SampleRecipe) -> None:
    style, said = sample.record["STYLE"], figures(sample.record)
    assert isinstance(style, dict)
    for name, element in (("og", "OG"), ("fg", "FG"), ("ibu", "IBU"), ("srm", "COLOR")):
        low, high = (float(str(style[f"{element}_{end}"])) for end in ("MIN", "MAX"))
        assert low <= float(getattr(said, name)) <= high, name


@EACH
def test_water_for_the_mash_fits_the_grain(sample: SampleRecipe) -> None:
    grain = sum(
        float(str(row["AMOUNT"]))
        for row in records(sample.record, "FERMENTABLES")
        if row["TYPE"] in {"Grain", "Adjunct"}
    )
    first = records(sample.record, "MASH", "MASH_STEPS")[0]
    thickness = float(str(first["INFUSE_AMOUNT"])) / grain
    assert 2 < thickness < 4 or sample.record["TYPE"] == "Extract", thickness


def test_there_is_every_kind_of_ingredient() -> None:
    for element, record, path in (
        ("USE", "HOP", ("HOPS",)),
        ("FORM", "HOP", ("HOPS",)),
        ("TYPE", "FERMENTABLE", ("FERMENTABLES",)),
        ("TYPE", "MISC", ("MISCS",)),
        ("USE", "MISC", ("MISCS",)),
        ("TYPE", "MASH_STEP", ("MASH", "MASH_STEPS")),
    ):
        assert values(element, *path) == set(RECORDS[record][element].choices), (record, element)
    assert values("FORM", "YEASTS") == {"Dry", "Liquid", "Culture"}
    assert {sample.record["TYPE"] for sample in SAMPLES} == set(RECORDS["RECIPE"]["TYPE"].choices)
    assert all(records(sample.record, "WATERS") for sample in SAMPLES)
    assert all(isinstance(sample.record["EQUIPMENT"], dict) and sample.record["NOTES"] for sample in SAMPLES)


def test_there_are_a_dozen_in_both_systems_of_units() -> None:
    contents = [parse(sample.document())[0].content.record for sample in SAMPLES]
    assert len({record["title"] for record in contents}) == 12
    assert len({record["stylename"] for record in contents}) == 12
    assert {record["displayunits"] for record in contents} == {"metric", "us"}
