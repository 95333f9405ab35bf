import time
import xml.etree.ElementTree as ElementTree
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.domain.recipe import DOCUMENT_BYTES
from gateway.errors import GatewayError, InvalidInput, TooLarge
from gateway.formats import beerxml
from gateway.formats.beerxml import XmlRecord, XmlValue
from gateway.formats.beerxml.elements import Element
from gateway.formats.beerxml.schema import RECORDS
from gateway.formats.beerxml.text import clean
from gateway.formats.quantities import is_plain
from tests.cases import each

Parser: Any = import_module("pybeerxml").Parser
FILES = Path(__file__).parent / "beerxml"
FULL = (FILES / "full.xml").read_bytes()
MILLISECONDS = 100


def one(document: bytes | str) -> beerxml.ReadRecipe:
    (recipe,) = beerxml.read(document.encode() if isinstance(document, str) else document)
    return recipe


def again(record: XmlRecord) -> beerxml.ReadRecipe:
    return one(beerxml.document([beerxml.write(record)]))


def leaves(root: ElementTree.Element, path: str = "") -> dict[str, str]:
    """Text by path; elements of one name are counted among their siblings."""
    found: dict[str, str] = {}
    seen: dict[str, int] = {}
    for child in root:
        seen[child.tag] = seen.get(child.tag, 0) + 1
        here = f"{path}/{child.tag}[{seen[child.tag]}]"
        found |= leaves(child, here) if len(child) else {here: child.text or ""}
    return found


def check_value(element: Element, value: XmlValue) -> None:
    """What the standard says of the element's values."""
    if element.kind == "set":
        assert isinstance(value, list)
        for item in value:
            check_record(element.record, item)
    elif element.kind == "record":
        assert isinstance(value, dict)
        check_record(element.record, value)
    else:
        assert isinstance(value, str)
        assert element.kind != "number" or is_plain(value)
        assert element.kind != "integer" or Decimal(value) % 1 == 0
        assert element.kind != "boolean" or value in {"TRUE", "FALSE"}
        assert element.kind != "choice" or value in element.choices


def check_record(name: str, record: XmlRecord) -> None:
    known = [key for key in record if key in RECORDS[name]]
    assert known == [key for key in RECORDS[name] if key in record], "in the standard's order"
    assert known == list(record)[: len(known)], "before all others"
    assert record["VERSION"] == "1"
    for element in RECORDS[name].values():
        if element.name in record:
            check_value(element, record[element.name])
        elif element.default is not None:
            assert element.only, f"{element.name} is required"
            assert record["TYPE"] not in element.only


def test_full_file_has_every_element_of_the_standard() -> None:
    text = FULL.decode()
    for elements in RECORDS.values():
        for name in elements:
            assert f"<{name}>" in text


def test_full_file_round_trips_unchanged() -> None:
    recipe = one(FULL)
    assert recipe.changes == []
    check_record("RECIPE", recipe.record)
    written = beerxml.document([beerxml.write(recipe.record)])
    assert leaves(fromstring(written)) == leaves(fromstring(FULL))
    assert one(written) == recipe


def test_document_looks_as_the_service_writes_it() -> None:
    lines = beerxml.document([beerxml.write(one(FULL).record)]).decode().splitlines()
    assert lines[:4] == [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<RECIPES>",
        " <RECIPE>",
        "  <NAME>Full Tide Porter</NAME>",
    ]
    assert lines[-2:] == [" </RECIPE>", "</RECIPES>"]


def test_document_without_recipes() -> None:
    assert beerxml.read(beerxml.document([])) == []


def test_other_xml_libraries_read_what_is_written() -> None:
    record = one(FULL).record
    recipe = Parser().parse_from_string(beerxml.document([beerxml.write(record)]).decode())[0]
    assert (recipe.name, recipe.og, recipe.fg, recipe.ibu, recipe.abv) == (
        "Full Tide Porter",
        1.054,
        1.013,
        28.4,
        5.4,
    )


def test_a_name_alone_becomes_a_valid_recipe() -> None:
    recipe = one("<RECIPE><NAME>Bare</NAME></RECIPE>")
    check_record("RECIPE", recipe.record)
    assert recipe.record["BREWER"] == "Unknown"
    assert recipe.record["HOPS"] == []
    assert "RECIPE: BREWER is missing; written as Unknown" in recipe.changes
    assert "RECIPE: HOPS is missing; written empty" in recipe.changes
    assert "RECIPE: STYLE is missing; written with defaults" in recipe.changes
    assert again(recipe.record) == beerxml.ReadRecipe(recipe.record, [])


def test_extract_recipes_need_no_efficiency_but_get_a_mash() -> None:
    recipe = one("<RECIPE><NAME>Bare</NAME><TYPE>Extract</TYPE></RECIPE>")
    assert "EFFICIENCY" not in recipe.record
    assert isinstance(recipe.record["MASH"], dict)


def test_what_programs_cannot_hold_is_not_written() -> None:
    text = beerxml.write({"NAME": "a\x00b\x0b]]>\r\n&<c>\ud800\ufffe\rd"})
    assert "<NAME>ab]]&gt;\n&amp;&lt;c&gt;\nd</NAME>" in text
    assert one(text).record["NAME"] == "ab]]>\n&<c>\nd"


def test_unknown_elements_come_out_again() -> None:
    document = """<RECIPE><X_LONG>  kept  </X_LONG><NAME>Kept</NAME><x_lower>1</x_lower>
    <HOPS><HOP><NAME>H</NAME><OIL>2.1</OIL><OIL>2.2</OIL></HOP></HOPS>
    <LOG>opening<DAY><AT>1</AT><AT> 2 </AT></DAY><DAY><AT>3</AT><NOTE>a &amp; b</NOTE></DAY>closing</LOG>
    <EMPTY/></RECIPE>"""
    record = one(document).record
    assert record["X_LONG"] == "  kept  "
    assert record["x_lower"] == "1"
    assert record["HOPS"][0]["OIL"] == [{"": "2.1"}, {"": "2.2"}]  # type: ignore[call-overload,index]
    assert record["LOG"] == {
        "": "openingclosing",
        "DAY": [{"AT": [{"": "1"}, {"": " 2 "}]}, {"AT": "3", "NOTE": "a & b"}],
    }
    assert list(record)[-4:] == ["X_LONG", "x_lower", "LOG", "EMPTY"]
    assert again(record) == beerxml.ReadRecipe(record, [])


def test_missing_figures_are_filled_in_for_other_readers() -> None:
    recipe = one(
        """<RECIPE><NAME>Figures</NAME><BATCH_SIZE>20</BATCH_SIZE><EFFICIENCY>70</EFFICIENCY>
        <FERMENTABLES><FERMENTABLE><NAME>M</NAME><TYPE>Grain</TYPE><AMOUNT>5</AMOUNT><YIELD>80</YIELD>
        <COLOR>3</COLOR></FERMENTABLE></FERMENTABLES>
        <HOPS><HOP><NAME>H</NAME><ALPHA>10</ALPHA><AMOUNT>0.03</AMOUNT><TIME>60</TIME><USE>Boil</USE></HOP>
        </HOPS><YEASTS><YEAST><NAME>Y</NAME><ATTENUATION>80</ATTENUATION></YEAST></YEASTS></RECIPE>"""
    )
    assert recipe.changes[-1] == (
        "RECIPE: OG, FG, EST_OG, EST_FG, EST_COLOR, IBU, IBU_METHOD, EST_ABV, ABV "
        "filled in from the rest of it"
    )
    read = Parser().parse_from_string(beerxml.document([beerxml.write(recipe.record)]).decode())[0]
    assert (read.og, read.fg, read.abv) == (1.054, 1.011, 5.64)
    assert read.ibu == pytest.approx(34, abs=1)


def test_counts_are_capped() -> None:
    recipes = b"<RECIPES>" + b"<RECIPE><NAME>N</NAME></RECIPE>" * (beerxml.RECIPES + 1) + b"</RECIPES>"
    with pytest.raises(TooLarge, match="recipes"):
        beerxml.read(recipes)
    with pytest.raises(TooLarge, match="elements"):
        beerxml.read(b"<RECIPES>" + b"<A/>" * beerxml.ELEMENTS + b"</RECIPES>")
    with pytest.raises(TooLarge, match="bytes"):
        beerxml.read(b" " * (DOCUMENT_BYTES + 1))


def attributes(number: int, value: str = "1") -> str:
    return " ".join(f'a{place}="{value}"' for place in range(number))


@each(
    "document, words",
    [
        (f"<RECIPES {attributes(65)}/>", "an element has more than 64 attributes"),
        ("<RECIPES>" + f"<A {attributes(64)}/>" * 3_907 + "</RECIPES>", "more than 250000 attributes"),
        (f"<RECIPES {attributes(1, 'x' * 65_537)}/>", "more than 65536 characters"),
        # The parser would read all of such a tag before it says a word, and let no other thread run.
        (f"<RECIPES {attributes(600_000)}/>", "a tag or comment is longer than 262144 bytes"),
        (f"<RECIPES>&nbsp;<A {attributes(600_000)}/></RECIPES>", "a tag or comment is longer"),
        (f"<RECIPES><!--{'x' * 700_000}--></RECIPES>", "a tag or comment is longer"),
    ],
)
def test_attributes_are_capped(document: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        beerxml.read(document.encode())


def test_attributes_within_the_limits_are_left_out_and_reported() -> None:
    notes = "é" * 300_000
    name = f"<NAME {attributes(64, 'ü' * 2_000)}>N</NAME>"
    recipe = one(f"<RECIPE>{name}<NOTES>{notes}</NOTES></RECIPE>")
    assert (recipe.record["NAME"], recipe.record["NOTES"]) == ("N", notes)
    assert "RECIPE: attributes of NAME are left out" in recipe.changes


def test_reports_are_capped() -> None:
    hops = "<HOP><NAME>H</NAME></HOP>" * 500
    changes = one(f"<RECIPE><NAME>N</NAME><HOPS>{hops}</HOPS></RECIPE>").changes
    assert len(changes) == 201
    assert changes[-1].startswith("... and ")


def test_depth_is_capped_at_64_levels() -> None:
    inner = b"<A>" * 62 + b"x" + b"</A>" * 62
    for entity in (b"", b"&nbsp;"):
        most = entity + b"<RECIPES><RECIPE>%b</RECIPE></RECIPES>"
        assert "A" in one(most % inner).record
        with pytest.raises(TooLarge, match="64"):
            beerxml.read(most % (b"<A>" + inner + b"</A>"))
        recipe = one(entity + b"<RECIPE>%b</RECIPE>" % inner)
        assert again(recipe.record).record == recipe.record
        with pytest.raises(TooLarge, match="64"):
            beerxml.read(entity + b"<RECIPE><A>%b</A></RECIPE>" % inner)


def test_messages_are_short_whatever_the_names() -> None:
    name = b"N" * 100_000
    with pytest.raises(InvalidInput) as refused:
        beerxml.read(b"<" + name + b">")
    assert len(str(refused.value)) < 100
    changes = one(b"<RECIPE><NAME>n</NAME><HOPS><" + name + b"/></HOPS></RECIPE>").changes
    assert max(len(line) for line in changes) <= 300


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
ATTRIBUTES = "".join(f'a{n} CDATA "v"\n' for n in range(60_000))

HOSTILE: dict[str, bytes] = {
    "billion laughs": f'<!DOCTYPE R [<!ENTITY l0 "ha">{LAUGHS}]><RECIPES>&l9;</RECIPES>'.encode(),
    "quadratic": f'<!DOCTYPE R [<!ENTITY a "{"x" * 100_000}">]><RECIPES>{"&a;" * 10_000}</RECIPES>'.encode(),
    "external entity": b'<!DOCTYPE R [<!ENTITY x SYSTEM "file:///etc/passwd">]><RECIPES>&x;</RECIPES>',
    "parameter entity": b'<!DOCTYPE R [<!ENTITY % x SYSTEM "http://192.0.2.1/x">%x;]><RECIPES/>',
    "attribute list": f"<!DOCTYPE R [<!ATTLIST RECIPES {ATTRIBUTES}>]><RECIPES/>".encode(),
    "document type": b'<!DOCTYPE RECIPES SYSTEM "http://192.0.2.1/beer.dtd"><RECIPES/>',
    "document type after text": b"x<!DOCTYPE RECIPES [<!ENTITY a 'b'>]><RECIPES>&a;</RECIPES>",
    "entity without type": b"<!ENTITY a 'b'><RECIPES>&a;</RECIPES>",
    "nesting": b"<A>" * 200_000 + b"</A>" * 200_000,
    "nesting without end": b"<RECIPES>" + b"<A>" * 200_000,
    "nesting in UTF-16": ("\ufeff" + "<A>" * 200_000).encode("utf-16-le"),
    "comments without end": b"<RECIPES>" + b"<!--" * 200_000,
    "ampersands": b"<RECIPES>" + b"&" * 300_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents_are_refused_at_once(name: str) -> None:
    begun = time.process_time()
    with pytest.raises((InvalidInput, TooLarge)):
        beerxml.read(HOSTILE[name])
    assert (time.process_time() - begun) * 1000 <= MILLISECONDS


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"no markup", "no RECIPE"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "no RECIPE"),
        (b"<RECIPES>\n<RECIPE>\n<NAME>x", "ends within NAME"),
        (b"<RECIPES>\n<RECIPE>\n</NAME>", "line 3: mismatched tag"),
        (b"<RECIPES>\n\n<RECIPE a=1/></RECIPES>", "line 3: not well-formed"),
        (b"<html><body/></html>", "no RECIPE"),
        (b"<!DOCTYPE html><html/>", "document type"),
        (b"<HOPS><HOP><NAME>x</NAME></HOP></HOPS>", "no RECIPE"),
        (b"\xff\xfe<", "UTF-16"),
        (
            b"<Recipes><Data><Recipe><F_R_NAME>x</F_R_NAME><Ingredients/></Recipe></Data></Recipes>",
            "BeerSmith's own format",
        ),
    ],
)
def test_what_is_no_beerxml_is_refused(document: bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        beerxml.read(document)


NAMES = sorted({name for record in RECORDS.values() for name in record} | {*RECORDS, "X", "y", "RECIPES"})
ODD = [
    "",
    " ",
    "1",
    "4,5",
    "1.060 SG",
    "12.5 °P",
    "12.50",
    "1.012",
    "-0.5",
    "0.9",
    "1050 kg/m3",
    "75",
    "true",
    "Whirlpool",
    "Ales",
    "1e-400",
    "9" * 400,
    "-",
    "\t",
    ".",
    "0.0",
]
TEXTS = st.one_of(st.sampled_from(ODD), st.text(max_size=12).map(clean))


def xml_of(name: str, content: str | list[str]) -> str:
    if isinstance(content, str):
        content = [content.replace("&", "&amp;").replace("<", "&lt;")]
    return f"<{name}>{''.join(content)}</{name}>"


@st.composite
def records(draw: st.DrawFn, name: str = "RECIPE") -> str:
    """A record of the standard with any of its elements, and others, holding anything."""
    parts = []
    for child in draw(st.lists(st.sampled_from([*RECORDS[name], "X", "y"]), max_size=10)):
        element = RECORDS[name].get(child)
        if element is not None and element.kind == "set":
            parts.append(xml_of(child, draw(st.lists(records(element.record), max_size=3))))
        elif element is not None and element.kind == "record":
            parts.append(draw(records(element.record)))
        elif element is None and draw(st.booleans()):
            parts.append(xml_of(child, [xml_of("Z", draw(TEXTS)) for _ in range(draw(st.integers(1, 3)))]))
        else:
            parts.append(xml_of(child, draw(TEXTS)))
    return xml_of(name, parts)


trees = st.recursive(
    st.builds(xml_of, st.sampled_from(NAMES), TEXTS),
    lambda children: st.builds(xml_of, st.sampled_from(NAMES), st.lists(children, max_size=5)),
    max_leaves=25,
)


def check_round_trip(document: str) -> None:
    for recipe in beerxml.read(document.encode()):
        check_record("RECIPE", recipe.record)
        assert again(recipe.record) == beerxml.ReadRecipe(recipe.record, [])


@given(records())
def test_any_record_that_was_read_round_trips(document: str) -> None:
    check_round_trip(document)


@given(trees)
def test_any_tree_that_was_read_round_trips(tree: str) -> None:
    check_round_trip(xml_of("RECIPES", [xml_of("RECIPE", [tree, xml_of("NAME", "n")])]))


MARKUP = (
    b"<RECIPE> </RECIPE> <NAME> </NAME> <HOPS> </HOPS> <HOP> </HOP> <FERMENTABLES> <YIELD/> & < > <!-- --> "
    b"<![CDATA[ ]]> <?xml\t?> &#x1; &deg; &amp; x \x00 \xff \xc3\xa9 <a\tb='c'/> <MASH> </MASH>"
).split(b" ")


@given(st.one_of(st.binary(), st.lists(st.sampled_from(MARKUP)).map(b"".join)))
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfe\x00\xd8")
@example(b"<\x00R\x00E\x00")
@example(b"<?xml version='1.0' encoding='utf-7'?><RECIPES/>")
@example(b"<?xml encoding='ISO-8859-1'?>\x81")
@example(b"<RECIPE xmlns:a='b'><a:NAME/></RECIPE>")
@example(b"<a:RECIPE/>")
@example(b"<RECIPE><NAME><NAME><NAME/></NAME></NAME><HOPS>x<HOPS><HOP/></HOPS></HOPS></RECIPE>")
def test_any_bytes_give_recipes_or_a_refusal(document: bytes) -> None:
    try:
        recipes = beerxml.read(document)
    except GatewayError:
        return
    for recipe in recipes:
        assert again(recipe.record) == beerxml.ReadRecipe(recipe.record, [])


@pytest.mark.parametrize("cut", range(0, len(FULL), 97))
def test_a_document_cut_anywhere_is_refused(cut: int) -> None:
    with pytest.raises(InvalidInput):
        beerxml.read(FULL[:cut])


def test_reading_a_large_document_takes_seconds_not_minutes() -> None:
    recipe = FULL[FULL.index(b"<RECIPE>") : FULL.index(b"</RECIPES>")]
    begun = time.process_time()
    assert len(beerxml.read(b"<RECIPES>" + recipe * 200 + b"</RECIPES>")) == 200
    assert time.process_time() - begun < 20
