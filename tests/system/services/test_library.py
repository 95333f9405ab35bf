"""Recipes and folders: whole documents or nothing, copies, and names that can be told apart."""

import pytest

from gateway.domain.recipe import Recipe
from gateway.errors import InvalidInput, NameTaken, NotFound, StoreUnavailable
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Parts
from gateway.services.library import new_token
from gateway.store.queries import RecipeSearch
from tests.clock import FakeClock
from tests.system.api.library import content

TWO = b"""<?xml version="1.0" encoding="ISO-8859-1"?>
<RECIPES><RECIPE><NAME>St\xf6ut</NAME><VERSION>1</VERSION><TYPE>All Grain</TYPE></RECIPE>
<RECIPE><NAME>Bitter</NAME><HOPS><HOP><NAME>Fuggle</NAME></HOP></HOPS></RECIPE></RECIPES>"""


async def all_of(parts: Parts, account_id: int = 1) -> list[Recipe]:
    return (await parts.store.recipes.search(RecipeSearch(account_id=account_id, snapshots=True)))[1]


async def test_a_document_of_two_recipes(parts: Parts) -> None:
    folder = await parts.library.add_folder(1, "recipe", "Winter")
    progress: list[tuple[int, int]] = []
    imported = await parts.library.import_document(1, TWO, folder.id, lambda *done: progress.append(done))
    assert [recipe.title for recipe in imported] == ["Stöut", "Bitter"]
    assert all(recipe.changes for recipe in imported)
    assert progress[-1] == (2, 2)
    stored = {recipe.id: recipe for recipe in await all_of(parts)}
    assert [stored[recipe.id].content.title for recipe in imported] == ["Stöut", "Bitter"]
    for recipe in stored.values():
        assert (recipe.folder_name, recipe.snapshot, recipe.parent_id) == ("Winter", False, None)
        assert (recipe.created_at, recipe.updated_at) == (1_772_616_600, 1_772_616_600)
    assert len({recipe.token for recipe in stored.values()}) == 2


@pytest.mark.parametrize("document", [b"", b"not xml", TWO[:-20], b"{}", b"\xff" * 50])
async def test_what_cannot_be_read_leaves_nothing(parts: Parts, document: bytes) -> None:
    with pytest.raises(InvalidInput):
        await parts.library.import_document(1, document)
    assert await all_of(parts) == []


async def test_folders_of_others_or_of_another_kind_take_no_recipe(parts: Parts) -> None:
    second = await parts.access.add_account("second")
    theirs = await parts.library.add_folder(second.id, "recipe", "Winter")
    sessions = await parts.library.add_folder(1, "brewsession", "Winter")
    recipe = await parts.library.add(1, content())
    for folder_id in (theirs.id, sessions.id, 99, 0):
        with pytest.raises(NotFound, match="`folders list` shows them"):
            await parts.library.import_document(1, TWO, folder_id)
        with pytest.raises(NotFound):
            await parts.library.file(recipe, folder_id)
    assert await all_of(parts) == [recipe]


async def test_no_disk_no_recipes(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: Recipe) -> Recipe:
        raise StoreUnavailable("the disk is gone")

    with monkeypatch.context() as failing:
        failing.setattr(parts.store.recipes, "add", refuse)
        with pytest.raises(StoreUnavailable):
            await parts.library.import_document(1, TWO)
    assert await all_of(parts) == []


async def test_filing(parts: Parts, clock: FakeClock) -> None:
    folder = await parts.library.add_folder(1, "recipe", " Winter ")
    assert folder.name == "Winter"
    recipe = await parts.library.add(1, content())
    clock.advance(60)
    await parts.library.file(recipe, folder.id)
    (filed,) = await all_of(parts)
    assert (filed.folder_name, filed.updated_at) == ("Winter", recipe.updated_at + 60)
    await parts.library.file(filed, None)
    (unfiled,) = await all_of(parts)
    assert (unfiled.folder_id, unfiled.folder_name) == (None, None)
    await parts.library.delete_folder(folder)
    assert await parts.store.folders.all() == []


@pytest.mark.parametrize("name", ["", " \t", "x" * 201, "a\0b", "\ud83c"])
async def test_a_folder_s_name_is_text(parts: Parts, name: str) -> None:
    folder = await parts.library.add_folder(1, "recipe", "Winter")
    with pytest.raises(InvalidInput, match="1 to 200 characters"):
        await parts.library.add_folder(1, "recipe", name)
    with pytest.raises(InvalidInput):
        await parts.library.rename_folder(folder, name)
    assert await parts.store.folders.all() == [folder]


async def test_names_of_folders_are_taken_once(parts: Parts) -> None:
    await parts.library.add_folder(1, "recipe", "Winter")
    other = await parts.library.add_folder(1, "recipe", "Summer")
    with pytest.raises(NameTaken):
        await parts.library.add_folder(1, "recipe", "Winter ")
    with pytest.raises(NameTaken):
        await parts.library.rename_folder(other, " Winter")
    await parts.library.rename_folder(other, "Autumn")
    assert [folder.name for folder in await parts.store.folders.all()] == ["Autumn", "Winter"]


async def test_the_snapshot_of_a_session_cannot_be_deleted_while_the_session_is_there(parts: Parts) -> None:
    recipe = await parts.library.add(1, content())
    session = await parts.brewing.add_session(1, SessionChange(recipe_id=recipe.id))
    copy = await parts.store.recipes.get(session.recipe_id)
    assert copy is not None
    with pytest.raises(InvalidInput, match=f"snapshot of brew session {session.id}"):
        await parts.library.delete(copy)
    await parts.library.delete(recipe)
    assert await all_of(parts) == [copy]
    await parts.brewing.delete_session(session)
    free = await parts.store.recipes.get(session.recipe_id)
    assert free is not None
    await parts.library.delete(free)
    assert await all_of(parts) == []


def test_tokens_are_13_hex_digits() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) == 13 and int(token, 16) >= 0 for token in tokens)
