"""Endpoint 3 of the specification: a recipe as a BeerXML document, api-decisions sections 4 and 11."""

import pytest
from defusedxml.ElementTree import fromstring

from tests.system.api.conftest import Service
from tests.system.api.library import NOT_FOUND, Brewery, content, opened
from tests.system.api.test_recipes import NO_SUCH_ID

DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'
STOUT = " <RECIPE>\n  <NAME>Stöut &amp; \U0001f37a</NAME>\n  <VERSION>1</VERSION>\n </RECIPE>"


@pytest.fixture
async def brewery(service: Service) -> Brewery:
    return await opened(service)


async def test_a_recipe_is_a_document_of_one(brewery: Brewery) -> None:
    stored = await brewery.recipe(content(xml=STOUT))
    answer = await brewery.ask(f"recipes/{stored.id}.xml")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/xml; charset=UTF-8"
    assert answer.headers["Content-Length"] == str(len(answer.body))
    assert answer.body == DECLARATION + f"<RECIPES>\n{STOUT}\n</RECIPES>\n".encode()
    root = fromstring(answer.body)
    assert (root.tag, root.attrib) == ("RECIPES", {})
    (recipe,) = root
    assert (recipe.tag, recipe.findtext("NAME"), recipe.findtext("VERSION")) == (
        "RECIPE",
        "Stöut & \U0001f37a",
        "1",
    )


async def test_a_snapshot_has_its_own(brewery: Brewery) -> None:
    stored = await brewery.recipe(content(xml=STOUT))
    session = await brewery.session(stored)
    await brewery.service.services.library.delete(stored)
    answer = await brewery.ask(f"recipes/{session.recipe_id}.xml")
    assert (answer.status, STOUT.encode() in answer.body) == (200, True)


async def test_digits_alone_are_json(brewery: Brewery) -> None:
    stored = await brewery.recipe()
    assert (await brewery.ask(f"recipes/{stored.id}")).headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("path_id", [*NO_SUCH_ID, "1.xml", ""])
async def test_what_names_no_recipe_is_404_in_json(brewery: Brewery, path_id: str) -> None:
    await brewery.recipe()
    answer = await brewery.ask(f"recipes/{path_id}.xml")
    assert (answer.status, answer.json) == (404, NOT_FOUND)


@pytest.mark.parametrize("ending", [".XML", ".xml/", ".json", "xml", ".xml.xml"])
async def test_only_xml_is_an_ending(brewery: Brewery, ending: str) -> None:
    stored = await brewery.recipe()
    answer = await brewery.ask(f"recipes/{stored.id}{ending}")
    assert (answer.status, answer.json) == (404, NOT_FOUND)


async def test_recipes_of_others_and_deleted_ones_are_404(brewery: Brewery) -> None:
    theirs, gone = await brewery.recipe(account_id=1), await brewery.recipe()
    await brewery.service.services.library.delete(gone)
    for recipe in (theirs, gone):
        answer = await brewery.ask(f"recipes/{recipe.id}.xml")
        assert (answer.status, answer.json) == (404, NOT_FOUND)


async def test_head_has_the_headers_and_no_body(brewery: Brewery) -> None:
    stored = await brewery.recipe(content(xml=STOUT))
    got = await brewery.ask(f"recipes/{stored.id}.xml")
    head = await brewery.ask(f"recipes/{stored.id}.xml", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    for name in ("Content-Type", "Content-Length"):
        assert head.headers[name] == got.headers[name]


SPARSE = """<RECIPES><RECIPE><NAME>Stöut</NAME><TYPE>All Grain</TYPE>
<HOPS><HOP><NAME>Fuggle</NAME><ALPHA>4.8</ALPHA><AMOUNT>0.04</AMOUNT><USE>Boil</USE><TIME>60</TIME></HOP></HOPS>
<FERMENTABLES><FERMENTABLE><NAME>Pale Malt</NAME><AMOUNT>4.1</AMOUNT></FERMENTABLE></FERMENTABLES>
<YEASTS><YEAST><NAME>London Ale</NAME></YEAST></YEASTS>
<MASH><MASH_STEPS><MASH_STEP><NAME>Rest</NAME><STEP_TEMP>67</STEP_TEMP></MASH_STEP></MASH_STEPS></MASH>
</RECIPE></RECIPES>"""

NEEDED = {
    ".": [
        "NAME",
        "VERSION",
        "TYPE",
        "BREWER",
        "BATCH_SIZE",
        "BOIL_SIZE",
        "BOIL_TIME",
        "STYLE",
        "MISCS",
        "WATERS",
    ],
    "HOPS/HOP": ["NAME", "VERSION", "ALPHA", "AMOUNT", "USE", "TIME"],
    "FERMENTABLES/FERMENTABLE": ["NAME", "VERSION", "TYPE", "AMOUNT", "YIELD", "COLOR"],
    "YEASTS/YEAST": ["NAME", "VERSION", "TYPE", "FORM", "AMOUNT"],
    "MASH": ["GRAIN_TEMP", "MASH_STEPS"],
    "MASH/MASH_STEPS/MASH_STEP": ["NAME", "TYPE"],
}
"""What the strictest client of api-decisions section 4 reads."""


async def test_what_was_imported_has_all_that_a_strict_client_needs(brewery: Brewery) -> None:
    library = brewery.service.services.library
    (imported,) = await library.import_document(brewery.account_id, SPARSE.encode())
    recipe = fromstring((await brewery.ask(f"recipes/{imported.id}.xml")).body).find("RECIPE")
    assert recipe is not None
    for path, names in NEEDED.items():
        record = recipe.find(path)
        assert record is not None, path
        assert set(names) <= {element.tag for element in record}, path
    hop = recipe.find("HOPS/HOP")
    assert hop is not None
    assert [element.text for element in hop if element.tag != "VERSION"][:3] == ["Fuggle", "4.8", "0.04"]
