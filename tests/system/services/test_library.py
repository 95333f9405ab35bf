"""Recipes and folders: whole documents or nothing, copies, and names that can be told apart."""

import pytest

from gateway.domain.recipe import Recipe
from gateway.errors import InvalidInput, NameTaken, NotFound, StoreUnavailable
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services
from gateway.services.library import new_token
from gateway.store.queries import RecipeSearch
from tests.clock import FakeClock
from tests.system.api.library import content

TWO = b"""<?xml version="1.0" encoding="ISO-8859-1"?>
<RECIPES><RECIPE><NAME>St\xf6ut</NAME><VERSION>1</VERSION><TYPE>All Grain</TYPE></RECIPE>
<RECIPE><NAME>Bitter</NAME><HOPS><HOP><NAME>Fuggle</NAME></HOP></HOPS></RECIPE></RECIPES>"""


async def all_of(services: Services, account_id: int = 1) -> list[Recipe]:
    return (await services.store.recipes.search(RecipeSearch(account_id=account_id, snapshots=True)))[1]


async def test_a_document_of_two_recipes(services: Services) -> None:
    folder = await services.library.add_folder(1, "recipe", "Winter")
    progress: list[tuple[int, int, str]] = []
    imported = await services.library.import_document(1, TWO, folder.id, lambda *done: progress.append(done))
    assert [recipe.title for recipe in imported] == ["Stöut", "Bitter"]
    assert all(recipe.changes for recipe in imported)
    assert progress[-1] == (2, 2, "recipes")
    stored = {recipe.id: recipe for recipe in await all_of(services)}
    assert [stored[recipe.id].content.title for recipe in imported] == ["Stöut", "Bitter"]
    for recipe in stored.values():
        assert (recipe.folder_name, recipe.snapshot, recipe.parent_id) == ("Winter", False, None)
        assert (recipe.created_at, recipe.updated_at) == (1_772_616_600, 1_772_616_600)
    assert len({recipe.token for recipe in stored.values()}) == 2


@pytest.mark.parametrize("document", [b"", b"not xml", TWO[:-20], b"{}", b"\xff" * 50])
async def test_what_cannot_be_read_leaves_nothing(services: Services, document: bytes) -> None:
    with pytest.raises(InvalidInput):
        await services.library.import_document(1, document)
    assert await all_of(services) == []


async def test_folders_of_others_or_of_another_kind_take_no_recipe(services: Services) -> None:
    second = await services.access.add_account("second")
    theirs = await services.library.add_folder(second.id, "recipe", "Winter")
    sessions = await services.library.add_folder(1, "brewsession", "Winter")
    recipe = await services.library.add(1, content())
    for folder_id in (theirs.id, sessions.id, 99, 0):
        with pytest.raises(NotFound, match="`folders list` shows them"):
            await services.library.import_document(1, TWO, folder_id)
        with pytest.raises(NotFound):
            await services.library.file(recipe, folder_id)
    assert await all_of(services) == [recipe]


async def test_no_disk_no_recipes(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: list[Recipe]) -> list[Recipe]:
        raise StoreUnavailable("the disk is gone")

    with monkeypatch.context() as failing:
        failing.setattr(services.store.recipes, "add_all", refuse)
        with pytest.raises(StoreUnavailable):
            await services.library.import_document(1, TWO)
    assert await all_of(services) == []


async def test_filing(services: Services, clock: FakeClock) -> None:
    folder = await services.library.add_folder(1, "recipe", " Winter ")
    assert folder.name == "Winter"
    recipe = await services.library.add(1, content())
    clock.advance(60)
    await services.library.file(recipe, folder.id)
    (filed,) = await all_of(services)
    assert (filed.folder_name, filed.updated_at) == ("Winter", recipe.updated_at + 60)
    await services.library.file(filed, None)
    (unfiled,) = await all_of(services)
    assert (unfiled.folder_id, unfiled.folder_name) == (None, None)
    await services.library.delete_folder(folder)
    assert await services.store.folders.all() == []


@pytest.mark.parametrize("name", ["", " \t", "x" * 201, "a\0b", "\ud83c"])
async def test_a_folder_s_name_is_text(services: Services, name: str) -> None:
    folder = await services.library.add_folder(1, "recipe", "Winter")
    with pytest.raises(InvalidInput, match="1 to 200 characters"):
        await services.library.add_folder(1, "recipe", name)
    with pytest.raises(InvalidInput):
        await services.library.rename_folder(folder, name)
    assert await services.store.folders.all() == [folder]


async def test_names_of_folders_are_taken_once(services: Services) -> None:
    await services.library.add_folder(1, "recipe", "Winter")
    other = await services.library.add_folder(1, "recipe", "Summer")
    with pytest.raises(NameTaken):
        await services.library.add_folder(1, "recipe", "Winter ")
    with pytest.raises(NameTaken):
        await services.library.rename_folder(other, " Winter")
    await services.library.rename_folder(other, "Autumn")
    assert [folder.name for folder in await services.store.folders.all()] == ["Autumn", "Winter"]


async def test_the_snapshot_of_a_session_cannot_be_deleted_while_the_session_is_there(
    services: Services,
) -> None:
    recipe = await services.library.add(1, content())
    session = await services.brewsessions.add_session(1, SessionChange(recipe_id=recipe.id))
    copy = await services.store.recipes.get(session.recipe_id)
    assert copy is not None
    with pytest.raises(InvalidInput, match=f"snapshot of brew session {session.id}"):
        await services.library.delete(copy)
    await services.library.delete(recipe)
    assert await all_of(services) == [copy]
    await services.brewsessions.delete_session(session)
    free = await services.store.recipes.get(session.recipe_id)
    assert free is not None
    await services.library.delete(free)
    assert await all_of(services) == []


def test_tokens_are_13_hex_digits() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) == 13 and int(token, 16) >= 0 for token in tokens)
