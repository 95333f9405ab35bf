"""`/manage/brewsessions` and `/manage/recipes`: the next beer, deleted ones, lists, several at once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.api.everything import running
from tests.system.api.test_manage import Desk


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with running(tmp_path) as service:
        yield Desk(service)


async def test_a_deleted_brew_session_comes_back_or_goes_for_good(desk: Desk) -> None:
    await desk.session()
    await desk.service.ask("POST", "/v1/fermentation/1/import", json=[{"gravity": 1.05}, {"gravity": 1.04}])
    path = "/manage/brewsessions/1"
    for verb in ("undelete", "purge"):
        assert (await desk.refused("POST", f"{path}/{verb}"))[0] == 404
    assert await desk.done("DELETE", path) == {"batchcode": "HP001", "devices": []}
    [deleted] = (await desk.done("GET", "/manage/brewsessions?deleted=true"))["brewsessions"]
    assert (deleted["id"], deleted["batchcode"], deleted["readings"]) == (1, "HP001", 2)
    assert (await desk.done("GET", "/manage/brewsessions"))["count"] == 0
    assert (await desk.refused("GET", path))[0] == 404
    theirs = await desk.account("anna")
    for verb in ("undelete", "purge"):
        assert (await desk.refused("POST", f"{path}/{verb}", key=theirs))[0] == 404
    assert await desk.done("POST", f"{path}/undelete") == {"batchcode": "HP001", "readings": 2}
    await desk.done("DELETE", path)
    assert await desk.done("POST", f"{path}/purge") == {"readings": 2}
    assert (await desk.done("GET", "/manage/brewsessions?deleted=true"))["count"] == 0


async def test_the_next_beer_gets_a_brew_session(desk: Desk) -> None:
    await desk.session()
    made = await desk.done("POST", "/manage/brewsessions/1/next", {"batchcode": "HP002"})
    assert (made["brewsessions"][0]["id"], made["devices"], made["warnings"]) == ("2", [], [])
    old = (await desk.done("GET", "/manage/brewsessions/1"))["brewsession"]
    assert (old["phase"], old["account"], old["has_gravity"]) == ("Conditioning", "owner", False)
    status, detail = await desk.refused("POST", "/manage/brewsessions/1/next", {})
    assert (status, detail) == (400, "a brew session needs a batch code, or a recipe to make one from")
    assert (await desk.refused("POST", "/manage/brewsessions/1/next", {"recipe_id": 9}))[0] == 404
    assert (await desk.refused("POST", "/manage/brewsessions/1/next", {"batch": "x"}))[0] == 400
    assert (await desk.refused("POST", "/manage/brewsessions/9/next", {"batchcode": "x"}))[0] == 404


async def test_brew_sessions_of_everyone_are_for_the_owner(desk: Desk) -> None:
    theirs = await desk.account("anna")
    await desk.session()
    await desk.done("POST", "/manage/brewsessions", {"batchcode": "ANNA1"}, key=theirs)

    async def codes(query: str, key: str | None = None) -> list[str]:
        found = (await desk.done("GET", f"/manage/brewsessions{query}", key=key))["brewsessions"]
        return [session["batchcode"] for session in found]

    assert await codes("") == ["HP001"]
    assert await codes("", theirs) == ["ANNA1"]
    assert await codes("?everyone=true") == ["HP001", "ANNA1"]
    for path in ("/manage/brewsessions?everyone=true", "/manage/keys?everyone=true"):
        assert (await desk.refused("GET", path, key=theirs))[0] == 403


async def test_everybodys_keys_and_their_number(desk: Desk) -> None:
    await desk.account("anna")
    keys = (await desk.done("GET", "/manage/keys?everyone=true"))["keys"]
    assert [(key["name"], key["account"]) for key in keys] == [("test", "owner"), ("anna's", "anna")]
    accounts = (await desk.done("GET", "/manage/accounts"))["accounts"]
    assert [(account["name"], account["keys"]) for account in accounts] == [("owner", 1), ("anna", 1)]


async def test_recipes_are_filed_all_or_none(desk: Desk) -> None:
    first, second, folder = await desk.recipe(), await desk.recipe(), await desk.folder()

    async def filed() -> list[str | None]:
        listed = await desk.done("GET", "/manage/recipes")
        return [recipe["folder_id"] for recipe in listed["recipes"]]

    path = "/manage/recipes"
    status, detail = await desk.refused("PATCH", path, {"recipe_ids": [first, 9], "folder_id": folder})
    assert (status, detail) == (400, "no recipe 9; `recipes list` shows them")
    assert (await desk.refused("PATCH", path, {"recipe_ids": [first], "folder_id": 9}))[0] == 404
    assert (await desk.refused("PATCH", path, {"recipe_ids": [], "folder_id": folder}))[0] == 400
    assert await filed() == [None, None]
    await desk.done("PATCH", path, {"recipe_ids": [first, second], "folder_id": folder})
    assert await filed() == [folder, folder]
    await desk.done("PATCH", path, {"recipe_ids": [first], "folder_id": 0})
    assert await filed() == [None, folder]


async def test_recipes_are_listed_by_pages_and_written_as_one_document(desk: Desk) -> None:
    await desk.recipe()
    await desk.recipe()
    await desk.done("POST", "/manage/brewsessions", {"recipe_id": 1})
    listed = await desk.done("GET", "/manage/recipes?limit=1&offset=1")
    assert (listed["count"], [recipe["id"] for recipe in listed["recipes"]]) == ("2", ["2"])
    assert (await desk.done("GET", "/manage/recipes?snapshots=true"))["count"] == "3"
    answer = await desk.send("GET", "/manage/recipes.xml?ids=1,2")
    assert (answer.status, answer.body.count(b"<RECIPE>")) == (200, 2)
    assert answer.headers["Content-Type"].startswith("application/xml")
    for query in ("", "?ids=one", "?ids=1,9"):
        assert (await desk.refused("GET", f"/manage/recipes.xml{query}"))[0] == 400


async def test_what_was_removed_is_named(desk: Desk) -> None:
    recipe, folder = await desk.recipe(), await desk.folder(name="Winter")
    assert await desk.done("DELETE", f"/manage/folders/{folder}") == {"name": "Winter"}
    assert (await desk.done("DELETE", f"/manage/recipes/{recipe}"))["title"]
