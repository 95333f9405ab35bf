from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.recipe import CONTENT_MEMBERS, INGREDIENT_KINDS, RecipeContent
from gateway.errors import GatewayError, InvalidInput
from gateway.formats import beerxml
from gateway.formats.recipes import content_of, parse, skeleton
from tests.cases import each

from .test_beerxml import check_record, records

Parser: Any = import_module("pybeerxml").Parser
FILES = Path(__file__).parent / "beerxml"
NAMES = sorted(path.name for path in FILES.iterdir())


def content(document: bytes | str) -> RecipeContent:
    (parsed,) = parse(document.encode() if isinstance(document, str) else document)
    return parsed.content


def of(inner: str) -> RecipeContent:
    return content(f"<RECIPE><NAME>N</NAME>{inner}</RECIPE>")


def read_back(element: str) -> beerxml.ReadRecipe:
    (recipe,) = beerxml.read(beerxml.document([element]))
    return recipe


def test_record_of_the_full_file() -> None:
    assert content((FILES / "full.xml").read_bytes()).record == {
        "title": "Full Tide Porter",
        "author": "R. Quay",
        "brewmethod": "allgrain",
        "styleid": "13C",
        "stylename": "Harbour Porter",
        "batchsize": "21",
        "batchsizeunit": "l",
        "boilsize": "26",
        "boiltime": "60",
        "boilgravity": "1.044",
        "efficiency": "74",
        "displayunits": "metric",
        "sugar_scale": "sg",
        "og": "1.055",
        "fg": "1.014",
        "abv": "5.38",
        "ibutinseth": "28.4",
        "srmmorey": "26.1",
        "srmecbmorey": "51.42",
        "notes": "Mash warm.\n\n  Indented line.\tTab.",
        "url": "",
    }


def test_ingredients_of_the_full_file() -> None:
    assert content((FILES / "full.xml").read_bytes()).ingredients == {
        "fermentables": [
            {
                "name": "Pier Pale Malt",
                "amount": "4.1",
                "unit": "kg",
                "percent": "100",
                "lovibond": "2.5",
                "ppg": "37",
                "type": "Grain",
            }
        ],
        "hops": [
            {
                "name": "Harbour Gold",
                "amount": "40",
                "unit": "g",
                "aa": "4.8",
                "hopuse": "Boil",
                "hoptime": "60",
                "ibu": "21.1",
                "form": "Pellet",
                "hopstand_temp": None,
            }
        ],
        "yeasts": [
            {
                "name": "Ferry Ale",
                "laboratory": "House",
                "attenuation": "75",
                "amount": "11",
                "unit": "g",
                "flocculation": "Very High",
                "templo": "16",
                "temphi": "22",
            }
        ],
        "mashsteps": [
            {
                "mashtype": "Infusion",
                "temp": "67",
                "mashtime": "60",
                "amount": "14",
                "unit": "L",
                "starttemp": "74",
                "description": "Add 14 l of water at 74.0 C",
            }
        ],
        "others": [
            {
                "name": "Sea Salt",
                "amount": "2",
                "unit": "g",
                "otheruse": "Mash",
                "othertime": "60",
                "othertype": "Water Agent",
            }
        ],
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_file_has_all_members_and_valid_beerxml(name: str) -> None:
    found = content((FILES / name).read_bytes())
    assert tuple(found.record) == CONTENT_MEMBERS
    assert tuple(found.ingredients) == INGREDIENT_KINDS
    assert all(isinstance(found.record[member], str) for member in CONTENT_MEMBERS if member != "styleid")
    back = read_back(found.beerxml)
    check_record("RECIPE", back.record)
    assert back.changes == []
    assert content_of(back.record) == found


def test_hops_of_the_service_keep_their_use_and_dry_hops_count_days() -> None:
    hops = content((FILES / "brewersfriend.xml").read_bytes()).ingredients["hops"]
    assert [(hop["hopuse"], hop["hoptime"], hop["hopstand_temp"]) for hop in hops] == [
        ("Boil", "60", None),
        ("Whirlpool", "20", "79.4"),
        ("Dry Hop", "4", None),
    ]
    assert [hop["ibu"] for hop in hops] == ["35.2", "0", "0"]
    assert hops[2]["amount"] == "85.04857"


def test_share_of_the_grist() -> None:
    fermentables = content((FILES / "brewfather.xml").read_bytes()).ingredients["fermentables"]
    assert [item["percent"] for item in fermentables] == ["79.4", "16.8", "3.8"]


def test_mash_steps_of_the_service() -> None:
    steps = content((FILES / "brewersfriend.xml").read_bytes()).ingredients["mashsteps"]
    assert [(step["mashtype"], step["temp"], step["description"]) for step in steps] == [
        ("Strike", "67.22", None),
        ("Batch Sparge", "75.56", None),
    ]


def test_display_units() -> None:
    assert of("<DISPLAY_BATCH_SIZE>5.50 gal</DISPLAY_BATCH_SIZE>").record["displayunits"] == "us"
    assert of("<DISPLAY_BATCH_SIZE>21.00 l</DISPLAY_BATCH_SIZE>").record["displayunits"] == "metric"
    assert of("").record["displayunits"] == "metric"


@pytest.mark.parametrize(
    ("kind", "method"),
    [("All Grain", "allgrain"), ("Extract", "extract"), ("Partial Mash", "partialmash"), ("??", "allgrain")],
)
def test_brew_methods(kind: str, method: str) -> None:
    assert of(f"<TYPE>{kind}</TYPE>").record["brewmethod"] == method


def test_a_name_alone() -> None:
    found = of("")
    unsaid = {member for member, value in found.record.items() if value is None}
    assert unsaid == {"styleid", "boilgravity", "og", "fg", "abv", "ibutinseth", "srmmorey", "srmecbmorey"}
    assert (found.record["author"], found.record["stylename"]) == ("", "")
    assert found.title == "N"


@pytest.mark.parametrize(
    ("inner", "og", "fg", "abv"),
    [
        ("<EST_OG>1.0560 sg</EST_OG><OG>1.050</OG><EST_FG>1.012 sg</EST_FG>", "1.056", "1.012", "5.78"),
        ("<OG>1.050</OG><FG>1.010</FG><ABV>5.1</ABV>", "1.05", "1.01", "5.1"),
        ("<EST_OG>12.5 Plato</EST_OG>", "1.0505", "1.013", "4.92"),
        ("<OG>0.000</OG>", None, None, None),
        ("<OG>1055</OG>", "1.055", "1.014", "5.38"),
        ("<OG>12.5</OG><FG>3</FG>", "1.0505", "1.0117", "5.09"),
        ("<OG>12.5</OG><FG>1.0</FG>", "1.0505", "1.0039", "6.12"),
        ("<OG>12.5 °P</OG><FG>-0.5 °P</FG>", "1.0505", "0.9981", "6.88"),
        ("<OG>12,5 Plato</OG><FG>1.012</FG>", "1.0505", "1.012", "5.05"),
        ("<EST_OG>1050 kg/m3</EST_OG><EST_FG>1010 kg/m³</EST_FG>", "1.05", "1.01", "5.25"),
        ("<EST_OG>1050</EST_OG><EST_FG>1010</EST_FG>", "1.05", "1.01", "5.25"),
        ("<EST_OG>12.5 SG</EST_OG><EST_FG>1.2</EST_FG>", "1.0505", "1.0047", "6.01"),
        ("<OG>1.2</OG><FG>1.2</FG>", "1.2", "1.2", "0"),
        ("<OG>99</OG>", None, None, None),
    ],
)
def test_figures_that_the_recipe_says_come_first(
    inner: str, og: str | None, fg: str | None, abv: str | None
) -> None:
    record = of(inner).record
    assert (record["og"], record["fg"], record["abv"]) == (og, fg, abv)


def test_colour_in_ebc() -> None:
    record = of("<EST_COLOR>39.4 EBC</EST_COLOR>").record
    assert (record["srmmorey"], record["srmecbmorey"]) == ("20", "39.4")


def test_estimates_where_the_recipe_says_nothing() -> None:
    record = content((FILES / "brewtarget.xml").read_bytes()).record
    assert (record["og"], record["fg"], record["abv"]) == ("1.046", "1.011", "4.59")
    assert (record["ibutinseth"], record["srmmorey"], record["srmecbmorey"]) == ("22.19", "3.85", "7.58")


def test_sniffing() -> None:
    assert content(b"\xef\xbb\xbf\n " + (FILES / "beerjson.json").read_bytes()).title == "Breakwater Saison"
    assert content("<RECIPE><NAME>X</NAME></RECIPE>").title == "X"
    assert content("<RECIPE><NAME>X</NAME></RECIPE>".encode("utf-16")).title == "X"
    with pytest.raises(InvalidInput, match="beerjson"):
        parse(b"[]")
    with pytest.raises(InvalidInput):
        parse(b"")


def test_changes_are_handed_on() -> None:
    (parsed,) = parse(b"<RECIPE><NAME>X</NAME><TYPE>biab</TYPE></RECIPE>")
    assert (
        "RECIPE: TYPE 'biab' is not BeerXML; written as All Grain, kept as USER_RECIPE_TYPE" in parsed.changes
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_skeleton_says_what_the_api_says(name: str) -> None:
    found = content((FILES / name).read_bytes())
    element = skeleton(found.record, found.ingredients)
    back = read_back(element)
    check_record("RECIPE", back.record)
    assert back.changes == []
    again = content_of(back.record)
    assert again.record == found.record
    for kind in ("fermentables", "hops", "yeasts", "others"):
        assert again.ingredients[kind] == found.ingredients[kind]
    for step, before in zip(again.ingredients["mashsteps"], found.ingredients["mashsteps"], strict=True):
        assert {member: step[member] for member, value in before.items() if value} == {
            member: value for member, value in before.items() if value
        }
    (read,) = Parser().parse_from_string(beerxml.document([element]).decode())
    assert (read.name, len(read.hops)) == (found.title, len(found.ingredients["hops"]))


def test_skeleton_of_a_foreign_record_in_us_units() -> None:
    element = skeleton(
        {
            "title": "Foreign",
            "author": "F",
            "brewmethod": "partial mash",
            "batchsize": "5.5",
            "batchsizeunit": "gal",
            "boilsize": "7",
            "displayunits": "us",
            "sugar_scale": "plato",
            "og": "13.5",
            "fg": "3",
            "stylename": "Saison",
            "styleid": "40",
            "notes": None,
        },
        {
            "fermentables": [{"name": "M", "amount": "10", "unit": "lb", "ppg": "37", "lovibond": "2"}],
            "hops": [
                {"name": "H", "amount": "1", "unit": "oz", "aa": "5", "hopuse": "Whirlpool", "hoptime": "15"},
                {"name": "D", "amount": "2", "unit": "oz", "aa": "5", "hopuse": "dry hop", "hoptime": "4"},
            ],
            "yeasts": [{"name": "Y", "amount": "1", "unit": "each", "templo": "68", "attenuation": None}],
            "mashsteps": [
                {"mashtype": "Strike", "temp": "152.6", "mashtime": "60", "amount": "15", "unit": "qt"}
            ],
            "others": [{"name": "O", "amount": "1", "unit": "tsp", "otheruse": "Boil", "othertime": "10"}],
        },
    )
    recipe: Any = read_back(element).record
    check_record("RECIPE", recipe)
    assert (recipe["TYPE"], recipe["BATCH_SIZE"], recipe["OG"]) == (
        "Partial Mash",
        "20.8197648",
        "1.05471655",
    )
    assert (recipe["STYLE"]["NAME"], recipe["STYLE"]["CATEGORY_NUMBER"]) == ("Saison", "0")
    assert recipe["FERMENTABLES"][0]["AMOUNT"] == "4.5359237"
    assert recipe["FERMENTABLES"][0]["YIELD"] == "80.07"
    assert [(hop["USE"], hop["TIME"], hop["AMOUNT"]) for hop in recipe["HOPS"]] == [
        ("Aroma", "15", "0.0283495231"),
        ("Dry Hop", "5760", "0.0566990462"),
    ]
    assert recipe["HOPS"][0]["USER_HOP_USE"] == "Whirlpool"
    assert recipe["YEASTS"][0]["MIN_TEMPERATURE"] == "20"
    assert (recipe["YEASTS"][0]["AMOUNT"], recipe["YEASTS"][0]["DISPLAY_AMOUNT"]) == ("0", "1 each")
    assert recipe["MASH"]["MASH_STEPS"][0]["STEP_TEMP"] == "67"
    assert recipe["MASH"]["MASH_STEPS"][0]["INFUSE_AMOUNT"] == "14.1952942"
    assert recipe["MISCS"][0]["AMOUNT"] == "0.00492892159"
    assert content_of(recipe).record["displayunits"] == "us"


def test_skeleton_of_nothing() -> None:
    check_record("RECIPE", read_back(skeleton({}, {})).record)


ODD = ["1e400", "-5", "4,5 kg", "inf", "NaN", "gal", "plato", "us", "1e-400"]
OTHERS = ("name", "amount", "unit", "ppg", "hopuse", "hoptime", "aa", "temp", "templo", "mashtype")
cells = st.one_of(st.none(), st.text(max_size=8), st.sampled_from(ODD))
members = st.dictionaries(st.sampled_from([*CONTENT_MEMBERS, *OTHERS]), cells)


@given(members, st.dictionaries(st.sampled_from(INGREDIENT_KINDS), st.lists(members, max_size=3)))
def test_skeleton_of_anything_is_valid(record: Any, ingredients: Any) -> None:
    back = read_back(skeleton(record, ingredients))
    check_record("RECIPE", back.record)
    assert back.changes == []


@given(st.one_of(st.binary(), records().map(str.encode), st.binary().map(b"{".__add__)))
def test_any_bytes_give_recipes_or_a_refusal(body: bytes) -> None:
    try:
        parsed = parse(body)
    except GatewayError:
        return
    for recipe in parsed:
        assert tuple(recipe.content.record) == CONTENT_MEMBERS
        check_record("RECIPE", read_back(recipe.content.beerxml).record)


@each(
    "document, words",
    [
        ("<RECIPE><NAME>N</NAME><NOTES>%s</NOTES></RECIPE>", "NOTES of a recipe has more than 262144 bytes"),
        ("<RECIPE><NAME>N</NAME><STYLE><NOTES>%s</NOTES></STYLE></RECIPE>", "NOTES of a recipe has more"),
        ("<RECIPE><NAME>N</NAME><OWN><A>1</A><A>%s</A></OWN></RECIPE>", "of a recipe has more than"),
        ('{"beerjson": {"version": 1, "recipes": [{"name": "N", "notes": "%s"}]}}', "NOTES of a recipe has"),
    ],
)
def test_a_text_has_a_bound(document: str, words: str) -> None:
    """Measured in bytes: these letters have two each."""
    assert parse((document % ("é" * 131_072)).encode())
    with pytest.raises(InvalidInput, match=words):
        parse((document % ("é" * 131_073)).encode())
