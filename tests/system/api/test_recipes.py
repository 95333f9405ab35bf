"""Endpoint 5 of the specification, one recipe, and the recipe record of api-decisions sections 5 and 6."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.recipe import RecipeContent
from tests.system.api.conftest import Service
from tests.system.api.library import (
    NOT_FOUND,
    PORTER_INGREDIENTS,
    PORTER_RECORD,
    Brewery,
    assert_texts,
    content,
    opened,
    porter,
    unix,
)

RECORD = [
    "id",
    "recipetoken",
    "brewer_author_id",
    "title",
    "folder_id",
    "folder_name",
    "author",
    "brewmethod",
    "styleid",
    "stylename",
    "batchsize",
    "batchsizeunit",
    "boilsize",
    "boiltime",
    "boilgravity",
    "efficiency",
    "displayunits",
    "sugar_scale",
    "og",
    "fg",
    "abv",
    "ibutinseth",
    "srmmorey",
    "srmecbmorey",
    "notes",
    "url",
    "public",
    "deleted",
    "copy_parent_id",
    "snapshot",
    "group_id",
    "created_at",
    "updated_at",
    "brew_sessions",
    "brew_count",
]
"""Members of a recipe record, in the order of api-decisions section 5."""

ARRAYS = ["fermentables", "hops", "yeasts", "mashsteps", "others"]

NEVER_NULL = set(
    [
        "id",
        "recipetoken",
        "brewer_author_id",
        "title",
        "stylename",
        "public",
        "deleted",
        "snapshot",
        "created_at",
        "updated_at",
        "brew_sessions",
        "brew_count",
    ]
)

NO_SUCH_ID = ["0", "999", "-1", "x", "1.0", "0x1", "1e0", "%D9%A1", "%20", "9" * 15, "9" * 30, "1%00", "1,2"]
"""What stands in a path and names no record."""

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


@pytest.fixture
async def brewery(service: Service) -> Brewery:
    return await opened(service)


def assert_record(record: dict[str, Any], *more: str) -> None:
    """Exactly the members of a recipe record, in order, all of them text or null, and `more` behind them."""
    assert list(record) == [*RECORD, *more]
    assert_texts({name: record[name] for name in RECORD}, null=set(RECORD) - NEVER_NULL)
    assert re.fullmatch(r"[0-9a-f]{13}", record["recipetoken"])
    assert STAMP.fullmatch(record["created_at"])
    assert STAMP.fullmatch(record["updated_at"])
    assert record["deleted"] == "0"
    assert record["snapshot"] in {"0", "1"}


async def one(brewery: Brewery, recipe_id: int) -> dict[str, Any]:
    """The one recipe of a single-entry envelope."""
    answer = await brewery.get(f"recipes/{recipe_id}")
    assert list(answer) == ["message", "count", "recipes"]
    assert (answer["message"], answer["count"]) == ("success", "1")
    (record,) = answer["recipes"]
    assert_record(record, *ARRAYS)
    found: dict[str, Any] = record
    return found


async def test_everything_that_a_recipe_says_comes_out(brewery: Brewery) -> None:
    stored = await brewery.recipe(
        porter(),
        token="69a47fd8a1b2c",
        created_at=unix("2026-02-20 08:00:00"),
        updated_at=unix("2026-02-27 19:30:00"),
    )
    record = await one(brewery, stored.id)
    assert record == {
        **PORTER_RECORD,
        **PORTER_INGREDIENTS,
        "id": str(stored.id),
        "recipetoken": "69a47fd8a1b2c",
        "brewer_author_id": str(brewery.account_id),
        "folder_id": None,
        "folder_name": None,
        "public": "0",
        "deleted": "0",
        "copy_parent_id": None,
        "snapshot": "0",
        "group_id": None,
        "created_at": "2026-02-20 08:00:00",
        "updated_at": "2026-02-27 19:30:00",
        "brew_sessions": "[]",
        "brew_count": "0",
    }


async def test_a_recipe_that_says_nothing_has_every_member(brewery: Brewery) -> None:
    stored = await brewery.recipe(RecipeContent({}, {}, "<RECIPE/>"))
    record = await one(brewery, stored.id)
    assert [record[kind] for kind in ARRAYS] == [[], [], [], [], []]
    assert {name for name in RECORD if record[name] is None} == set(RECORD) - NEVER_NULL
    assert (record["title"], record["stylename"]) == ("", "")


async def test_other_members_are_shown_where_they_are_stored(brewery: Brewery) -> None:
    stored = await brewery.recipe(content(waternotes="Soft.", ph="5.4", water_profile_id=None))
    answer = await brewery.get(f"recipes/{stored.id}")
    record = answer["recipes"][0]
    assert list(record)[: len(RECORD)] == RECORD
    assert (record["waternotes"], record["ph"], record["water_profile_id"]) == ("Soft.", "5.4", None)
    listed = (await brewery.get("recipes"))["recipes"][0]
    assert (listed["waternotes"], "hops" in listed) == ("Soft.", False)


async def test_nothing_that_a_record_says_takes_the_place_of_what_we_know(brewery: Brewery) -> None:
    foreign = {"id": "1", "deleted": "1", "snapshot": "1", "brewer_author_id": "55", "brew_count": "7"}
    stored = await brewery.recipe(content(**foreign, public="1"))
    record = await one(brewery, stored.id)
    assert {name: record[name] for name in foreign} == {
        "id": str(stored.id),
        "deleted": "0",
        "snapshot": "0",
        "brewer_author_id": str(brewery.account_id),
        "brew_count": "0",
    }
    assert record["public"] == "1"


async def test_folder_and_group(brewery: Brewery) -> None:
    folder = await brewery.service.services.library.add_folder(brewery.account_id, "recipe", "Winter")
    stored = await brewery.recipe(folder_id=folder.id, group_id="12")
    record = await one(brewery, stored.id)
    assert (record["folder_id"], record["folder_name"], record["group_id"]) == (
        str(folder.id),
        "Winter",
        "12",
    )
    await brewery.service.services.library.delete_folder(folder)
    record = await one(brewery, stored.id)
    assert (record["folder_id"], record["folder_name"]) == (None, None)


async def test_brew_sessions_is_json_text_of_the_sessions_that_brewed_it(brewery: Brewery) -> None:
    recipe, other = await brewery.recipe(), await brewery.recipe("Other")
    first = await brewery.session(recipe, userdate="2026-03-01")
    await brewery.session(other, userdate="2026-03-02")
    second = await brewery.session(recipe, userdate="2026-02-01")
    record = await one(brewery, recipe.id)
    assert record["brew_count"] == "2"
    assert record["brew_sessions"] == (
        f'[{{"breweventid":{first.id},"userdate":"2026-03-01"}},'
        f'{{"breweventid":{second.id},"userdate":"2026-02-01"}}]'
    )
    snapshot = await one(brewery, second.recipe_id)
    assert json.loads(snapshot["brew_sessions"]) == [{"breweventid": second.id, "userdate": "2026-02-01"}]
    assert snapshot["brew_count"] == "1"
    listed = (await brewery.get("recipes", {"id": str(recipe.id)}))["recipes"][0]
    assert listed["brew_sessions"] == record["brew_sessions"]
    await brewery.service.services.brewsessions.delete_session(first)
    assert json.loads((await one(brewery, recipe.id))["brew_sessions"])[0]["breweventid"] == second.id


async def test_a_session_takes_a_copy_that_later_changes_do_not_reach(brewery: Brewery) -> None:
    original = await brewery.recipe(porter())
    session = await brewery.session(original)
    before = await one(brewery, session.recipe_id)
    assert (before["snapshot"], before["copy_parent_id"]) == ("1", str(original.id))
    assert before["recipetoken"] != original.token
    assert {name: before[name] for name in PORTER_RECORD} == PORTER_RECORD
    assert {name: before[name] for name in ARRAYS} == PORTER_INGREDIENTS
    recipes = brewery.service.services.store.recipes
    await recipes.update(replace(original, content=content("Changed", notes="Burnt.")))
    assert (await one(brewery, original.id))["title"] == "Changed"
    assert await one(brewery, session.recipe_id) == before
    await recipes.delete(original.id, 0)
    assert await one(brewery, session.recipe_id) == before


@pytest.mark.parametrize("path_id", NO_SUCH_ID)
async def test_what_names_no_recipe_is_404(brewery: Brewery, path_id: str) -> None:
    await brewery.recipe()
    answer = await brewery.ask(f"recipes/{path_id}")
    assert (answer.status, answer.json) == (404, NOT_FOUND)


async def test_recipes_of_others_and_deleted_ones_are_404(brewery: Brewery) -> None:
    theirs = await brewery.recipe(account_id=1)
    gone = await brewery.recipe()
    await brewery.service.services.library.delete(gone)
    for recipe in (theirs, gone):
        answer = await brewery.ask(f"recipes/{recipe.id}")
        assert (answer.status, answer.json) == (404, NOT_FOUND)


async def test_odd_texts_come_out_as_they_went_in(brewery: Brewery) -> None:
    odd = 'İstanbul "ß" \\ \u2028 \U0001f37a </script> \t é'
    stored = await brewery.recipe(content(odd, notes=odd, hops=[{"name": odd, odd: odd}]))
    record = await one(brewery, stored.id)
    assert (record["title"], record["notes"], record["hops"]) == (odd, odd, [{"name": odd, odd: odd}])


async def test_query_parameters_of_others_are_ignored(brewery: Brewery) -> None:
    stored = await brewery.recipe()
    plain = await brewery.get(f"recipes/{stored.id}")
    assert await brewery.get(f"recipes/{stored.id}", {"ingredients": "x", "limit": "-1"}) == plain


async def test_head_has_the_headers_and_no_body(brewery: Brewery) -> None:
    stored = await brewery.recipe()
    for path in (f"recipes/{stored.id}", "recipes", f"recipes/{stored.id}/photos"):
        got, head = await brewery.ask(path), await brewery.ask(path, method="HEAD")
        assert (head.status, head.body) == (200, b"")
        for name in ("Content-Type", "Content-Length"):
            assert head.headers[name] == got.headers[name]
    head = await brewery.ask("recipes/999", method="HEAD")
    assert (head.status, head.body) == (404, b"")


@pytest.mark.parametrize("accept", ["application/json", "*/*", "text/plain", "image/png"])
async def test_never_406(brewery: Brewery, accept: str) -> None:
    stored = await brewery.recipe()
    for path, media in (("", "application/json"), (".xml", "application/xml; charset=UTF-8")):
        answer = await brewery.ask(f"recipes/{stored.id}{path}", Accept=accept)
        assert (answer.status, answer.headers["Content-Type"]) == (200, media)
