import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import GatewayError, InvalidInput, TooLarge
from gateway.formats import beerjson, beerxml

from .test_beerxml import check_record

FILE = (Path(__file__).parent / "beerxml" / "beerjson.json").read_bytes()
MILLISECONDS = 100


def document(**members: Any) -> bytes:
    recipe = {"name": "N", "type": "all grain", "author": "A", "ingredients": {}} | members
    return json.dumps({"beerjson": {"version": 1.0, "recipes": [recipe]}}).encode()


def one(body: bytes) -> Any:
    (recipe,) = beerjson.read(body)
    return recipe


def of(value: float | str, unit: str) -> dict[str, Any]:
    return {"unit": unit, "value": value}


def test_the_file_becomes_valid_beerxml() -> None:
    recipe = one(FILE)
    check_record("RECIPE", recipe.record)
    (again,) = beerxml.read(beerxml.document([beerxml.write(recipe.record)]))
    assert again == beerxml.ReadRecipe(recipe.record, [])


def test_recipe_of_the_file() -> None:
    record = one(FILE).record
    assert {name: value for name, value in record.items() if isinstance(value, str)} == {
        "NAME": "Breakwater Saison",
        "VERSION": "1",
        "TYPE": "All Grain",
        "BREWER": "L. Tide",
        "ASST_BREWER": "P. Ebb",
        "BATCH_SIZE": "20.8197648",
        "BOIL_SIZE": "26.4978825",
        "BOIL_TIME": "60",
        "EFFICIENCY": "72.5",
        "NOTES": "Let it rise.",
        "TASTE_NOTES": "Pepper.",
        "TASTE_RATING": "41",
        "OG": "1.05471655",
        "FG": "1.005",
        "FERMENTATION_STAGES": "2",
        "PRIMARY_AGE": "14",
        "PRIMARY_TEMP": "24",
        "SECONDARY_AGE": "3",
        "SECONDARY_TEMP": "18",
        "DATE": "2026-04-12",
        "CARBONATION": "2.8",
        "EST_OG": "1.0547 SG",
        "EST_FG": "1.005 SG",
        "EST_COLOR": "5.2 SRM",
        "IBU": "27.5",
        "IBU_METHOD": "Tinseth",
        "EST_ABV": "6.5",
        "ABV": "6.5",
        "DISPLAY_BATCH_SIZE": "5.5 gal",
        "DISPLAY_BOIL_SIZE": "28 qt",
        "DISPLAY_OG": "13.5 plato",
    }


def test_ingredients_of_the_file() -> None:
    record = one(FILE).record
    pils, honey = record["FERMENTABLES"]
    assert (pils["AMOUNT"], pils["YIELD"], pils["COLOR"]) == ("4.76271988", "81", "1.77664975")
    assert (pils["SUPPLIER"], pils["DISPLAY_AMOUNT"]) == ("Tide Maltings", "10.5 lb")
    assert (honey["TYPE"], honey["USER_FERMENTABLE_TYPE"]) == ("Sugar", "honey")
    assert (honey["AMOUNT"], honey["POTENTIAL"], honey["YIELD"]) == ("0.45", "1.035 sg", "75.74")
    assert honey["ADD_AFTER_BOIL"] == "TRUE"
    mole, groyne = record["HOPS"]
    assert (mole["AMOUNT"], mole["USE"], mole["TIME"], mole["FORM"]) == ("0.0425242847", "Boil", "60", "Leaf")
    assert (groyne["AMOUNT"], groyne["USE"], groyne["TIME"]) == ("0.03", "Dry Hop", "5760")
    (spice,) = record["MISCS"]
    assert (spice["AMOUNT"], spice["AMOUNT_IS_WEIGHT"], spice["USE"]) == ("0.00492892159", "FALSE", "Boil")
    assert spice["TIME"] == "10"
    (yeast,) = record["YEASTS"]
    assert (yeast["AMOUNT"], yeast["DISPLAY_AMOUNT"], yeast["TYPE"]) == ("0", "1 pkg", "Ale")
    (water,) = record["WATERS"]
    assert (water["BICARBONATE"], water["SULFATE"]) == ("90", "21")
    first, second = record["MASH"]["MASH_STEPS"]
    assert (record["MASH"]["GRAIN_TEMP"], first["STEP_TEMP"], first["INFUSE_TEMP"]) == ("20", "63", "70 C")
    assert (second["TYPE"], second["USER_MASH_STEP_TYPE"], second["STEP_TIME"]) == (
        "Infusion",
        "sparge",
        "15",
    )


@pytest.mark.parametrize(
    "line",
    [
        "RECIPE: efficiency.mash '80 %' has no place in BeerXML; left out",
        "RECIPE: beer_pH '4.2 pH' has no place in BeerXML; left out",
        "HOPS/HOP 1 (Mole): year '2025' has no place in BeerXML; left out",
        "HOPS/HOP 2 (Groyne): timing.continuous 'TRUE' has no place in BeerXML; left out",
        "FERMENTABLES/FERMENTABLE 2 (Clover Honey): timing.time '2 day' has no place in BeerXML; left out",
        "YEASTS/YEAST 1 (Spray): AMOUNT '1 pkg' cannot be converted to kg or l; left out",
        "MASH/MASH_STEPS/MASH_STEP 2 (Rinse): start_ph '5.6 pH' has no place in BeerXML; left out",
        "fermentation step 2: free_rise 'TRUE' has no place in BeerXML; left out",
        "RECIPE: fermentation.name has no place in BeerXML; left out",
    ],
)
def test_what_beerxml_cannot_say_is_reported(line: str) -> None:
    assert line in one(FILE).changes


@pytest.mark.parametrize(
    ("value", "unit", "litres"),
    [
        (20, "l", "20"),
        (20.50, "l", "20.5"),
        (20000, "ml", "20"),
        (5, "gal", "18.9270589"),
        (5, "igal", "22.73045"),
        (20, "qt", "18.9270589"),
        (40, "pt", "18.9270589"),
        (80, "cup", "18.9270589"),
        (640, "floz", "18.9270589"),
        (1280, "tbsp", "18.9270589"),
        (3840, "tsp", "18.9270589"),
        (1, "bbl", "117.347765"),
        (1, "ibbl", "163.65924"),
        (800, "ifloz", "22.73045"),
        (20, "iqt", "22.73045"),
        (40, "ipt", "22.73045"),
    ],
)
def test_volumes(value: float, unit: str, litres: str) -> None:
    assert one(document(batch_size=of(value, unit))).record["BATCH_SIZE"] == litres


@pytest.mark.parametrize(
    ("member", "value", "unit", "element", "text"),
    [
        ("original_gravity", 1.05, "sg", "OG", "1.05"),
        ("original_gravity", 12, "plato", "OG", "1.04837824"),
        ("original_gravity", 12, "brix", "OG", "1.04837824"),
        ("original_gravity", 1.2, "plato", "OG", "1.00465939"),
        ("original_gravity", 1050, "sg", "OG", "1.05"),
        ("original_gravity", 12.5, "sg", "OG", "1.05048351"),
        ("final_gravity", 1010, "kg/m3", "FG", "1.01"),
        ("color_estimate", 10, "EBC", "EST_COLOR", "10 EBC"),
        ("alcohol_by_volume", 5, "%", "ABV", "5"),
    ],
)
def test_figures(member: str, value: float, unit: str, element: str, text: str) -> None:
    assert one(document(**{member: of(value, unit)})).record[element] == text


@pytest.mark.parametrize(
    ("value", "unit", "minutes"),
    [(1, "hr", "60"), (90, "sec", "1.5"), (3, "day", "4320"), (1, "week", "10080"), (7, "min", "7")],
)
def test_times(value: float, unit: str, minutes: str) -> None:
    hop = {"name": "h", "timing": {"use": "add_to_boil", "time": of(value, unit)}}
    recipe = one(document(ingredients={"hop_additions": [hop]}))
    assert recipe.record["HOPS"][0]["TIME"] == minutes


@pytest.mark.parametrize(
    ("timing", "use"),
    [
        ({"use": "add_to_mash"}, "Mash"),
        ({"use": "add_to_boil"}, "Boil"),
        ({"use": "add_to_fermentation"}, "Primary"),
        ({"use": "add_to_fermentation", "step": 2}, "Secondary"),
        ({"use": "add_to_package"}, "Bottling"),
    ],
)
def test_uses_of_other_ingredients(timing: dict[str, Any], use: str) -> None:
    other = {"name": "o", "type": "herb", "amount": of(5, "g"), "timing": timing}
    recipe = one(document(ingredients={"miscellaneous_additions": [other]}))
    (misc,) = recipe.record["MISCS"]
    assert (misc["USE"], misc["TYPE"], misc["AMOUNT"], misc["AMOUNT_IS_WEIGHT"]) == (
        use,
        "Herb",
        "0.005",
        "TRUE",
    )


def test_hops_of_the_package_are_dry_hops() -> None:
    hop = {"name": "h", "timing": {"use": "add_to_package", "duration": of(2, "day"), "time": of(1, "day")}}
    recipe = one(document(ingredients={"hop_additions": [hop]}))
    (found,) = recipe.record["HOPS"]
    assert (found["USE"], found["USER_HOP_USE"], found["TIME"]) == ("Dry Hop", "Package", "2880")
    assert "HOPS/HOP 1 (h): timing.time '1 day' has no place in BeerXML; left out" in recipe.changes


def test_the_use_of_drafts_says_more_than_the_timing() -> None:
    hop = {"name": "h", "use": "dry hop", "timing": {"use": "add_to_boil", "time": of(7, "day")}}
    recipe = one(document(ingredients={"hop_additions": [hop]}))
    assert (recipe.record["HOPS"][0]["USE"], recipe.record["HOPS"][0]["TIME"]) == ("Dry Hop", "10080")


def test_yeast_of_the_second_step() -> None:
    yeast = {"name": "y", "timing": {"use": "add_to_fermentation", "step": 2}}
    recipe = one(document(ingredients={"culture_additions": [yeast]}))
    assert recipe.record["YEASTS"][0]["ADD_TO_SECONDARY"] == "TRUE"


def test_numbers_keep_their_digits() -> None:
    body = document(batch_size=of(0, "l")).replace(b'"value": 0', b'"value": 20.123456789012')
    assert one(body).record["BATCH_SIZE"] == "20.123456789012"


def test_bare_minimum_has_no_needless_reports() -> None:
    changes = one(document(batch_size=of(20, "l"), efficiency={"brewhouse": of(70, "%")})).changes
    assert changes == [
        "RECIPE: STYLE is missing; written with defaults",
        "RECIPE: BOIL_SIZE is missing; written as 20",
        "RECIPE: BOIL_TIME is missing; written as 60",
        "RECIPE: MASH is missing; written with defaults",
    ]


def test_versions_and_other_records() -> None:
    body = b'{"beerjson":{"version":7,"hop_varieties":[],"recipes":[{"name":"N"}]}}'
    assert one(body).changes[:2] == [
        "Document: 'hop_varieties' has no place in BeerXML; left out",
        "Document: version '7' is read as 1.0",
    ]


NESTED = b'{"beerjson":{"version":1,"recipes":[{"name":' + b"[" * 200_000 + b"]" * 200_000 + b"}]}}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "line 1"),
        (b'{"beerjson":\n{,}}', "line 2"),
        (b"{}", "beerjson"),
        (b'{"beerjson":[]}', "beerjson"),
        (b'{"beerjson":{"version":1}}', "no recipes"),
        (b'{"beerjson":{"version":1,"recipes":{}}}', "no recipes"),
        (b'{"beerjson":{"version":1,"recipes":[1]}}', "recipe 1"),
        (b'{"beerjson":{"version":NaN,"recipes":[]}}', "NaN"),
        (b'{"beerjson":{"version":-Infinity,"recipes":[]}}', "Infinity"),
        (b'{"beerjson":{"version":1,"version":1,"recipes":[]}}', "twice"),
        (b'{"beerjson":{"version":1,"recipes":[{"batch_size":{"unit":"l","value":1e999}}]}}', "number"),
        (b'{"beerjson":"\xff"}', "UTF-8"),
        (NESTED, "nested"),
        (b"[" * 200_000, "nested"),
        (b'{"a":' * 200_000, "nested"),
        (b'{"beerjson":{"recipes":[' + b"[" * 70 + b"]" * 70 + b"]}}", "nested"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refusals(body: bytes, message: str) -> None:
    begun = time.process_time()
    with pytest.raises(InvalidInput, match=message):
        beerjson.read(body)
    assert (time.process_time() - begun) * 1000 <= MILLISECONDS


def test_sizes() -> None:
    with pytest.raises(TooLarge, match="bytes"):
        beerjson.read(b" " * (beerjson.DOCUMENT_BYTES + 1))
    with pytest.raises(TooLarge, match="recipes"):
        beerjson.read(b'{"beerjson":{"version":1,"recipes":[' + b"{}," * beerxml.RECIPES + b"{}]}}")


def test_characters_that_xml_forbids() -> None:
    recipe = one(document(name="a\x00b\ud800c", **{"x\ud800": 1}))
    assert recipe.record["NAME"] == "abc"
    assert "RECIPE: NAME: characters that XML forbids are left out" in recipe.changes
    assert "\n".join(recipe.changes).encode()


NAMES = """name type amount timing use time duration step unit value yield mash ingredients hop_additions
culture_additions fermentable_additions style potential batch_size mash_steps fermentation
fermentation_steps step_time alpha_acid color"""
names = st.sampled_from(NAMES.split())
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
        st.sampled_from(["l", "gal", "plato", "EBC", "F", "pkg", "add_to_boil", "min"]),
    ),
    lambda children: st.one_of(
        st.lists(children, max_size=4),
        st.dictionaries(names, children, max_size=6),
        st.fixed_dictionaries({"unit": st.sampled_from(["l", "kg", "plato", "day", "F"]), "value": children}),
    ),
    max_leaves=30,
)


@given(st.dictionaries(names, values, max_size=8))
def test_any_recipe_becomes_valid_beerxml(recipe: dict[str, Any]) -> None:
    body = json.dumps({"beerjson": {"version": 1, "recipes": [recipe]}}).encode()
    try:
        (found,) = beerjson.read(body)
    except GatewayError:
        return
    check_record("RECIPE", found.record)
    (again,) = beerxml.read(beerxml.document([beerxml.write(found.record)]))
    assert again == beerxml.ReadRecipe(found.record, [])
    "\n".join(found.changes).encode()
