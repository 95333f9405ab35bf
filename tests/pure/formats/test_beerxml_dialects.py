from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import pytest
from defusedxml.ElementTree import fromstring

from gateway.formats import beerxml
from gateway.formats.beerxml import XmlValue

Parser: Any = import_module("pybeerxml").Parser
FILES = Path(__file__).parent / "beerxml"
EMPTY_SETS = {"/RECIPE/MISCS", "/RECIPE/WATERS"}
"""Leaves where they hold no record; blanks in them are no text."""

DIALECTS = ["brewersfriend.xml", "beersmith.xml", "brewtarget.xml", "brewfather.xml", "full.xml"]


def one(document: bytes | str) -> beerxml.ReadRecipe:
    (recipe,) = beerxml.read(document.encode() if isinstance(document, str) else document)
    return recipe


def recipe(inner: str) -> beerxml.ReadRecipe:
    return one(f"<RECIPES><RECIPE><NAME>N</NAME>{inner}</RECIPE></RECIPES>")


def leaves(root: Element, path: str = "") -> dict[str, str]:
    """Text by path; elements of one name are counted among their siblings, records of sets too."""
    found: dict[str, str] = {}
    seen: dict[str, int] = {}
    for child in root:
        seen[child.tag] = seen.get(child.tag, 0) + 1
        here = f"{path}/{child.tag}{seen[child.tag] if seen[child.tag] > 1 else ''}"
        found |= leaves(child, here) if len(child) else {here: child.text or ""}
    return found


def as_xml(name: str) -> bytes:
    """The file as an XML library can read it: BeerSmith's has what is no XML."""
    text = (FILES / name).read_bytes()
    if name == "beersmith.xml":
        text = text.replace(b"& ", b"&amp; ").replace(b"&nbsp;&ndash;", b"&#160;&#8211;")
        text = text.replace(b"&deg;", b"&#176;")
    return text


def written(name: str) -> bytes:
    return beerxml.document([beerxml.write(one((FILES / name).read_bytes()).record)])


def at(record: XmlValue, *path: str | int) -> Any:
    found: Any = record
    for step in path:
        found = found[step]
    return found


REPAIRED: dict[str, dict[str, str | None]] = {
    "full.xml": {},
    "brewersfriend.xml": {
        "/RECIPE/PRIMING_SUGAR_EQUIV": None,
        "/RECIPE/HOPS/HOP3/FORM": "Leaf",
        "/RECIPE/FERMENTABLES/FERMENTABLE/ADD_AFTER_BOIL": "FALSE",
        "/RECIPE/FERMENTABLES/FERMENTABLE2/ADD_AFTER_BOIL": "FALSE",
        "/RECIPE/MISCS/MISC/AMOUNT_IS_WEIGHT": "FALSE",
        "/RECIPE/MASH/NAME": "Mash",
        "/RECIPE/MASH/MASH_STEPS/MASH_STEP/NAME": "Unknown",
        "/RECIPE/MASH/MASH_STEPS/MASH_STEP/TYPE": "Infusion",
        "/RECIPE/MASH/MASH_STEPS/MASH_STEP2/NAME": "Unknown",
        "/RECIPE/MASH/MASH_STEPS/MASH_STEP2/TYPE": "Infusion",
        "/RECIPE/MASH/MASH_STEPS/MASH_STEP2/STEP_TIME": "0",
        "/RECIPE/MASH/MASH_STEPS/MASH_STEP2/INFUSE_AMOUNT": "0",
        "/RECIPE/YEASTS/YEAST/TYPE": "Ale",
        "/RECIPE/YEASTS/YEAST/FLOCCULATION": "High",
    },
    "beersmith.xml": {
        "/RECIPE/IBU": "31.2",
        "/RECIPE/EST_ABV": "5.0",
        "/RECIPE/ABV": "4.9",
        "/RECIPE/ACTUAL_EFFICIENCY": "70.5",
    },
    "brewtarget.xml": {
        "/RECIPE/PRIMARY_AGE": "10",
        "/RECIPE/FORCED_CARBONATION": "FALSE",
        "/RECIPE/FERMENTABLES/FERMENTABLE/ADD_AFTER_BOIL": "FALSE",
        "/RECIPE/FERMENTABLES/FERMENTABLE/RECOMMEND_MASH": "TRUE",
        "/RECIPE/FERMENTABLES/FERMENTABLE2/ADD_AFTER_BOIL": "FALSE",
        "/RECIPE/YEASTS/YEAST/AMOUNT_IS_WEIGHT": "FALSE",
        "/RECIPE/YEASTS/YEAST/ADD_TO_SECONDARY": "FALSE",
        "/RECIPE/MASH/NAME": "Mash",
    },
    "brewfather.xml": {
        "/RECIPE/BREWER": "Unknown",
        "/RECIPE/STYLE/TYPE": "Ale",
        "/RECIPE/HOPS/HOP2/USE": "Aroma",
        "/RECIPE/HOPS/HOP2/FORM": None,
        "/RECIPE/FERMENTABLES/FERMENTABLE2/TYPE": "Adjunct",
        "/RECIPE/FERMENTABLES/FERMENTABLE3/YIELD": "100",
        "/RECIPE/FERMENTABLES/FERMENTABLE3/COLOR": "0",
        "/RECIPE/MISCS/MISC/USE": "Mash",
        "/RECIPE/MISCS/MISC/TIME": "0",
        "/RECIPE/MISCS/MISC/AMOUNT_IS_WEIGHT": "TRUE",
        "/RECIPE/YEASTS/YEAST/TYPE": "Ale",
        "/RECIPE/MASH/GRAIN_TEMP": "20",
    },
}
"""Per file every element that does not come out as it was, and what it is then; None where it is gone."""


@pytest.mark.parametrize("name", DIALECTS)
def test_every_element_comes_out_with_its_text(name: str) -> None:
    before, after = leaves(fromstring(as_xml(name))), leaves(fromstring(written(name)))
    expected: dict[str, str | None] = {
        path: text.replace("\r\n", "\n").replace("\r", "\n") for path, text in before.items()
    }
    expected |= dict.fromkeys(EMPTY_SETS & expected.keys(), "")
    expected |= REPAIRED[name]
    assert {path: after.get(path) for path in expected} == expected


@pytest.mark.parametrize("name", DIALECTS)
def test_a_second_round_changes_nothing(name: str) -> None:
    first = one((FILES / name).read_bytes())
    assert one(written(name)) == beerxml.ReadRecipe(first.record, [])


@pytest.mark.parametrize("name", DIALECTS)
def test_each_repair_is_reported(name: str) -> None:
    changes = one((FILES / name).read_bytes()).changes
    for path in REPAIRED[name]:
        record, _, element = path.removeprefix("/RECIPE/").rpartition("/")
        item = record.rpartition("/")[2].rstrip("0123456789")
        place = item or "RECIPE"
        assert any(place in line.partition(":")[0] and f": {element} " in line for line in changes), path


@pytest.mark.parametrize(
    ("name", "title", "counts", "figures"),
    [
        ("full.xml", "Full Tide Porter", (1, 1, 1, 1, 1, 1), (1.054, 1.013, 28.4, 5.4)),
        ("brewersfriend.xml", "Lantern Pale", (3, 2, 1, 1, 0, 2), (1.056, 1.012, 41.35, 5.78)),
        ("beersmith.xml", "Kühler Morgen Pils", (2, 1, 0, 1, 0, 2), (1.048, 1.011, 31.2, 4.9)),
        ("brewtarget.xml", "Señora Blonde", (1, 2, 0, 1, 1, 1), (1.046, 1.011, 22.19, 4.59)),
        ("brewfather.xml", "Fog Signal NEIPA 🍺", (3, 3, 1, 1, 0, 1), (1.063, 1.014, 38, 6.4)),
    ],
)
def test_another_library_reads_it(
    name: str, title: str, counts: tuple[int, ...], figures: tuple[float, ...]
) -> None:
    (read,) = Parser().parse_from_string(written(name).decode())
    assert read.name == title
    sets = (read.hops, read.fermentables, read.miscs, read.yeasts, read.waters, read.mash.steps)
    assert tuple(len(items) for items in sets) == counts
    assert (read.og, read.fg, read.ibu, read.abv) == figures
    assert all(hop.use and hop.time is not None for hop in read.hops)
    assert read.style.name


def test_encodings_and_figures_of_german_and_spanish_files() -> None:
    german, spanish = (one((FILES / name).read_bytes()) for name in ("beersmith.xml", "brewtarget.xml"))
    assert german.record["BREWER"] == "Jörg & Söhne"
    assert at(german.record, "HOPS", 0, "NOTES") == "Mild, floral\xa0– store below 5°C"
    assert german.changes[:2] == [
        "Document, from line 8 on: an & that begins no entity is text",
        "Document, from line 25 on: HTML entities are written as characters",
    ]
    assert at(spanish.record, "BREWNOTES", "BREWNOTE", 1) == {
        "VERSION": "1",
        "BREWDATE": "2026-04-02",
        "SG": "1.042",
    }
    assert at(german.record, "F_R_NAME") == "Kühler Morgen Pils"


NAME = "<RECIPE><NAME>Bräu – 5 € ”fein“</NAME></RECIPE>"


@pytest.mark.parametrize(
    ("document", "report"),
    [
        (NAME.encode(), ""),
        (b"\xef\xbb\xbf" + NAME.encode(), ""),
        (b'\xef\xbb\xbf<?xml version="1.0" encoding="UTF-8"?>' + NAME.encode(), ""),
        (b'\n <?xml version="1.0" encoding="utf-8"?>' + NAME.encode(), ""),
        (b'<?xml version="1.0" encoding="windows-1252"?>' + NAME.encode("cp1252"), ""),
        (b"<?xml version='1.0' encoding='iso-8859-1'?>" + NAME.encode("cp1252"), ""),
        (NAME.encode("cp1252"), "not all of it is utf-8; read as windows-1252"),
        (b'<?xml version="1.0" encoding="UTF-8"?>' + NAME.encode("cp1252"), "not all of it is utf-8"),
        (NAME.encode("utf-16"), ""),
        (("\ufeff<?xml version='1.0' encoding='UTF-16'?>" + NAME).encode("utf-16-be"), ""),
        (NAME.encode("utf-16-le"), ""),
        (b'<?xml version="1.0" encoding="x-unheard-of"?>' + NAME.encode(), ""),
    ],
)
def test_encodings(document: bytes, report: str) -> None:
    read = one(document)
    assert read.record["NAME"] == "Bräu – 5 € ”fein“"
    assert report in read.changes[0]
    assert bool(report) == read.changes[0].startswith("Document")


def test_characters_that_xml_forbids_are_dropped() -> None:
    read = one(b"<RECIPE><NAME>a\x00b\x0cc&#x1;d&#0;e&#xFFFF;f&#xD800;g&#9;h&#65;</NAME></RECIPE>")
    assert read.record["NAME"] == "abcdefg\thA"
    assert "characters that XML forbids are left out" in read.changes[0]


def test_line_ends() -> None:
    read = recipe("<NOTES>a\r\nb&#13;\nc&#xD;d\re</NOTES>")
    assert read.record["NOTES"] == "a\nb\nc\nd\ne"


def test_text_that_is_nearly_markup() -> None:
    read = recipe("<NOTES>5 < 6 & 7 &deg;C &unheard; &#38; <![CDATA[<b>&deg;]]> R&D; 3 &eacute;</NOTES>")
    assert read.record["NOTES"] == "5 < 6 & 7 °C &unheard; & <b>&deg; R&D; 3 é"


def test_markup_in_text_is_flattened() -> None:
    read = recipe("<NOTES>Use <b>cold</b> water</NOTES>")
    assert read.record["NOTES"] == "Use cold water"
    assert "RECIPE: NOTES has elements in its text; written as text alone" in read.changes


@pytest.mark.parametrize(
    "document",
    [
        "<RECIPES><RECIPE><NAME>A</NAME></RECIPE><RECIPE><NAME>B</NAME></RECIPE></RECIPES>",
        "<Recipes><Recipe><Name>A</Name></Recipe><recipe><name>B</name></recipe></Recipes>",
        "<RECIPE><NAME>A</NAME></RECIPE>\n<RECIPE><NAME>B</NAME></RECIPE>",
        "<?xml version='1.0'?><RECIPES><RECIPE><NAME>A</NAME></RECIPE></RECIPES>\n"
        "<?xml version='1.0'?><RECIPES><RECIPE><NAME>B</NAME></RECIPE></RECIPES>",
        "<RECIPES xmlns='urn:x'><RECIPE><NAME>A</NAME></RECIPE><RECIPE><NAME>B</NAME></RECIPE></RECIPES>",
        "<q:RECIPES xmlns:q='urn:x'><q:RECIPE><q:NAME>A</q:NAME></q:RECIPE>"
        "<q:RECIPE><q:NAME>B</q:NAME></q:RECIPE></q:RECIPES>",
        "<BEERXML><RECIPES><RECIPE><NAME>A</NAME></RECIPE></RECIPES>"
        "<RECIPES><RECIPE><NAME>B</NAME></RECIPE></RECIPES></BEERXML>",
    ],
)
def test_roots(document: str) -> None:
    assert [read.record["NAME"] for read in beerxml.read(document.encode())] == ["A", "B"]


def test_other_records_beside_recipes_are_reported() -> None:
    (first, second) = beerxml.read(
        b"<X><HOPS><HOP><NAME>h</NAME></HOP></HOPS><STYLES/><RECIPES><RECIPE><NAME>A</NAME></RECIPE>"
        b"<RECIPE><NAME>B</NAME></RECIPE></RECIPES></X>"
    )
    assert first.changes[:2] == [
        "Document: HOPS is not a recipe; left out",
        "Document: STYLES is not a recipe; left out",
    ]
    assert not any(line.startswith("Document") for line in second.changes)


@pytest.mark.parametrize(
    ("element", "text", "valid"),
    [
        ("BATCH_SIZE", "21", "21"),
        ("BATCH_SIZE", " 21.50 ", "21.50"),
        ("BATCH_SIZE", "21,5", "21.5"),
        ("BATCH_SIZE", "5 gal", "18.9270589"),
        ("BATCH_SIZE", "1,021.5 l", "1021.5"),
        ("BATCH_SIZE", "1.021,5 l", "1021.5"),
        ("BATCH_SIZE", "2.1E1", "21"),
        ("BATCH_SIZE", "about 21", "0"),
        ("BATCH_SIZE", "", "0"),
        ("OG", "1.060 SG", "1.060"),
        ("OG", "15 °P", "1.06112302"),
        ("PRIMARY_TEMP", "68 F", "20"),
        ("PRIMARY_TEMP", "20 °C", "20"),
        ("PRIMARY_AGE", "2 weeks", "14"),
        ("BOIL_TIME", "1 hr", "60"),
        ("BOIL_TIME", "60.0 min", "60.0"),
        ("EFFICIENCY", "72.5 %", "72.5"),
        ("IBU", "31 IBUs", "31"),
        ("FERMENTATION_STAGES", "2.0", "2"),
        ("FORCED_CARBONATION", "True", "TRUE"),
        ("FORCED_CARBONATION", "0", "FALSE"),
        ("TYPE", "all-grain", "All Grain"),
        ("TYPE", "BIAB", "All Grain"),
        ("TYPE", "Partial", "Partial Mash"),
    ],
)
def test_values(element: str, text: str, valid: str) -> None:
    read = recipe(f"<{element}>{text}</{element}>")
    assert read.record[element] == valid
    reports = [line for line in read.changes if line.startswith(f"RECIPE: {element} ")]
    assert len(reports) == (text.strip() != valid)


@pytest.mark.parametrize(
    ("record", "element", "text", "valid", "kept"),
    [
        ("HOPS/HOP", "USE", "Whirlpool", "Aroma", True),
        ("HOPS/HOP", "USE", "dry hop", "Dry Hop", False),
        ("HOPS/HOP", "USE", "DryHop", "Dry Hop", False),
        ("HOPS/HOP", "USE", "FWH", "First Wort", True),
        ("HOPS/HOP", "USE", "Tea", "Boil", True),
        ("HOPS/HOP", "FORM", "Pellets", "Pellet", False),
        ("YEASTS/YEAST", "TYPE", "Ales", "Ale", False),
        ("YEASTS/YEAST", "FLOCCULATION", "very high", "Very High", False),
        ("MISCS/MISC", "USE", "Packaging", "Bottling", True),
        ("MISCS/MISC", "TYPE", "Flavour", "Flavor", True),
        ("FERMENTABLES/FERMENTABLE", "TYPE", "LME", "Extract", True),
        ("FERMENTABLES/FERMENTABLE", "TYPE", "dry extract", "Dry Extract", False),
    ],
)
def test_choices(record: str, element: str, text: str, valid: str, kept: bool) -> None:
    outer, inner = record.split("/")
    read = recipe(f"<{outer}><{inner}><NAME>I</NAME><{element}>{text}</{element}></{inner}></{outer}>")
    item = at(read.record, outer, 0)
    user = f"USER_{inner}_{element}"
    assert (item[element], item.get(user)) == (valid, text if kept else None)
    also = f", kept as {user}" if kept else ""
    line = f"{record} 1 (I): {element} '{text}' is not BeerXML; written as {valid}{also}"
    assert line in read.changes


SAME_GRAVITY = ("12.5", "12.5 P", "12.5 °P", "12.5 Plato", "12,5 plato", "12.5 Bx", "12.5 SG")


@pytest.mark.parametrize(
    ("text", "sg"),
    [
        *((text, "1.05048351") for text in SAME_GRAVITY),
        ("1050", "1.05"),
        ("1050 kg/m3", "1.05"),
        ("1050.5 kg/m^3", "1.0505"),
        ("1,050 kg/m³", "1.05"),
        ("1050 g/l", "1.05"),
    ],
)
@pytest.mark.parametrize("element", ["OG", "STYLE/OG_MIN", "STYLE/OG_MAX"])
def test_gravities_in_other_units_become_sg_and_are_kept(element: str, text: str, sg: str) -> None:
    where, _, name = element.rpartition("/")
    inner = f"<{name}>{text}</{name}>"
    read = recipe(f"<STYLE><NAME>s</NAME>{inner}</STYLE>" if where else inner)
    record = at(read.record, where) if where else read.record
    user = f"USER_{where or 'RECIPE'}_{name}"
    if text.startswith("1,050"):
        assert (record[name], user in record) == ("1.050", False), "the unit makes no sense: SG"
        return
    assert (record[name], record[user]) == (sg, text)
    [line] = [line for line in read.changes if line.startswith(f"{where or 'RECIPE'}: {name} ")]
    assert line.startswith(f"{where or 'RECIPE'}: {name} '{text}' is n")
    assert line.endswith(f"written as {sg}, kept as {user}")
    assert read.changes[0] == line, "what became something else is told before what was merely missing"
    [again] = beerxml.read(beerxml.document([beerxml.write(read.record)]))
    assert again == beerxml.ReadRecipe(read.record, [])


@pytest.mark.parametrize("text", ["1.050", "1.05", "1.050 sg", "1.050 SG", "0.998", "0", "0.000"])
def test_gravities_in_sg_stay_as_they_are(text: str) -> None:
    read = recipe(f"<OG>{text}</OG><EST_OG>{text}</EST_OG>")
    assert (read.record["OG"], read.record["EST_OG"]) == (text.split()[0], text)
    assert not any(name.startswith("USER_") for name in read.record)


@pytest.mark.parametrize(
    ("og", "fg", "sg"),
    [
        ("12.5", "1.2", "1.00465939"),
        ("12.5", "0.9", "1.00349096"),
        ("12.5", "-0.5", "0.998069794"),
        ("12.500", "1.012", "1.0039269"),
        ("12.5", "1.012", "1.012"),
        ("12.5", "1012", "1.012"),
        ("1.050", "1.2", "1.2"),
        ("1050", "1012", "1.012"),
        ("1.050", "3", "1.01172052"),
    ],
)
@pytest.mark.parametrize(("before", "after"), [("OG", "FG"), ("OG_MAX", "FG_MAX")])
def test_the_original_gravity_tells_the_unit_of_the_final_one(
    before: str, after: str, og: str, fg: str, sg: str
) -> None:
    inner = f"<{before}>{og}</{before}><{after}>{fg}</{after}>"
    read = recipe(inner if before == "OG" else f"<STYLE><NAME>s</NAME>{inner}</STYLE>")
    assert (read.record if before == "OG" else at(read.record, "STYLE"))[after] == sg


def test_estimates_in_other_units_become_sg_with_its_name() -> None:
    read = recipe("<EST_OG>12.5 Plato</EST_OG><EST_FG>2.5 Plato</EST_FG>")
    assert (read.record["EST_OG"], read.record["EST_FG"]) == ("1.0505 SG", "1.0098 SG")
    assert (read.record["USER_RECIPE_EST_OG"], read.record["OG"]) == ("12.5 Plato", "1.0505")
    assert (
        "RECIPE: EST_OG '12.5 Plato' is not in SG; written as 1.0505 SG, kept as USER_RECIPE_EST_OG"
        in read.changes
    )


@pytest.mark.parametrize("text", ["75", "5000", "-1", "500 SG"])
def test_what_no_gravity_can_be_is_left_out_and_kept(text: str) -> None:
    read = recipe(f"<OG>{text}</OG><STYLE><NAME>s</NAME><OG_MIN>{text}</OG_MIN></STYLE>")
    assert "OG" not in read.record
    assert (read.record["USER_RECIPE_OG"], at(read.record, "STYLE", "OG_MIN")) == (text, "1.000")
    assert f"RECIPE: OG '{text}' is no gravity; left out, kept as USER_RECIPE_OG" in read.changes


def test_what_a_number_cannot_say_is_kept() -> None:
    read = recipe("<MASH><NAME>m</NAME><GRAIN_TEMP>room</GRAIN_TEMP><PH>low</PH></MASH>")
    assert at(read.record, "MASH", "GRAIN_TEMP") == "20"
    assert at(read.record, "MASH", "USER_MASH_PH") == "low"
    assert "MASH: PH 'low' is not a number; left out, kept as USER_MASH_PH" in read.changes


def test_amounts_in_other_units() -> None:
    read = recipe("<HOPS><HOP><NAME>h</NAME><AMOUNT>2 oz</AMOUNT><TIME>7 days</TIME></HOP></HOPS>")
    assert at(read.record, "HOPS", 0, "AMOUNT") == "0.0566990462"
    assert at(read.record, "HOPS", 0, "TIME") == "10080"


def test_yield_by_potential_or_type() -> None:
    read = recipe(
        "<FERMENTABLES><FERMENTABLE><NAME>a</NAME><POTENTIAL>1.036 SG</POTENTIAL></FERMENTABLE>"
        "<FERMENTABLE><NAME>b</NAME><TYPE>Sugar</TYPE></FERMENTABLE></FERMENTABLES>"
    )
    assert Decimal(at(read.record, "FERMENTABLES", 0, "YIELD")) == Decimal("77.91")
    assert at(read.record, "FERMENTABLES", 1, "YIELD") == "100"


def test_versions() -> None:
    read = recipe("<VERSION>2.0</VERSION><HOPS><HOP><NAME>h</NAME></HOP></HOPS>")
    assert "RECIPE: VERSION '2.0' is not 1; written as 1" in read.changes
    assert "HOPS/HOP 1 (h): VERSION is missing; written as 1" in read.changes


def test_elements_twice_and_strays() -> None:
    read = recipe(
        "<NAME>M</NAME><BREWER></BREWER><BREWER>b</BREWER>stray<HOPS><HOP/><YEAST/>stray</HOPS>"
        "<HOPS><HOP use='x'><NAME id='1'>h</NAME></HOP></HOPS>"
    )
    assert (read.record["NAME"], read.record["BREWER"]) == ("N", "b")
    assert [hop["NAME"] for hop in at(read.record, "HOPS")] == ["h"]
    for line in (
        "RECIPE: NAME came again; the first one is kept",
        "RECIPE: text between its elements is left out",
        "HOPS: YEAST is no HOP; left out",
        "HOPS: text between its records is left out",
        "HOPS/HOP 1: is empty; left out",
        "HOPS/HOP 1: attributes of NAME are left out",
    ):
        assert line in read.changes


def test_beersmith_names_stand_in_for_missing_texts() -> None:
    read = one(
        "<RECIPE><F_R_NAME>Own</F_R_NAME><F_R_BREWER>B</F_R_BREWER><HOPS><HOP><F_H_NAME>h</F_H_NAME>"
        "<F_H_AMOUNT>2</F_H_AMOUNT></HOP></HOPS></RECIPE>"
    )
    assert (read.record["NAME"], read.record["BREWER"]) == ("Own", "B")
    assert (at(read.record, "HOPS", 0, "NAME"), at(read.record, "HOPS", 0, "AMOUNT")) == ("h", "0")
    assert at(read.record, "HOPS", 0, "F_H_AMOUNT") == "2"
