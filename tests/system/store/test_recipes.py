"""The contract of `Recipes`, for every implementation."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.brewsession import BrewSession
from gateway.domain.recipe import CONTENT_MEMBERS, INGREDIENT_KINDS, Ingredient, Recipe, RecipeContent
from gateway.errors import NameTaken, NotFound
from gateway.store.protocol import Store
from gateway.store.queries import RecipeSearch
from gateway.store.sqlite.store import SqliteStore
from tests.system.store.conftest import SECOND


def content(title: str = "Porter", **record: str | None) -> RecipeContent:
    said = {**dict.fromkeys(CONTENT_MEMBERS), "title": title, **record}
    return RecipeContent(said, {kind: [] for kind in INGREDIENT_KINDS}, f"<RECIPE>{title}</RECIPE>")


def recipe(said: RecipeContent | str = "Porter", **row: Any) -> Recipe:
    members: dict[str, Any] = {
        "id": 0, "account_id": 1, "token": "69a47fd8a1b2c", "folder_id": None, "folder_name": None,
        "group_id": None, "parent_id": None, "snapshot": False, "created_at": SECOND, "updated_at": SECOND,
    }  # fmt: skip
    return Recipe(content=content(said) if isinstance(said, str) else said, **{**members, **row})


def session(recipe_id: int, day: str) -> BrewSession:
    return BrewSession(0, 1, "HP001", "", recipe_id, None, SECOND, SECOND, userdate=day)


async def found(store: Store, **asked: Any) -> list[str]:
    count, page = await store.recipes.search(RecipeSearch(account_id=1, **asked))
    assert count == len(page)
    return [one.content.title for one in page]


async def test_what_is_added_comes_back_whole(store: Store) -> None:
    folder = await store.folders.add(1, "recipe", "Winter", SECOND)
    odd = 'İ "ß" \\ \x00 \x1f 🍺\n'
    ingredients: dict[str, list[Ingredient]] = {
        "hops": [{"name": odd, "amount": None}, {}],
        "others": [{"name": "x"}],
    }
    sent = recipe(
        RecipeContent({"title": odd, "own": None}, ingredients, odd),
        folder_id=folder.id,
        group_id="12",
        parent_id=7,
        snapshot=True,
        updated_at=SECOND + 1,
    )
    stored = await store.recipes.add(sent)
    assert stored == replace(sent, id=stored.id, folder_name="Winter")
    assert stored.id > 0
    assert await store.recipes.get(stored.id) == stored
    search = RecipeSearch(account_id=1, snapshots=True)
    assert await store.recipes.search(search) == (1, [stored])
    record_alone = replace(stored, content=RecipeContent(stored.content.record, {}, ""))
    assert await store.recipes.search(replace(search, whole=False)) == (1, [record_alone])


async def test_ids_are_new_or_as_given_and_never_again_another_s(store: Store) -> None:
    first, given = await store.recipes.add(recipe()), await store.recipes.add(recipe(id=7301))
    assert given.id == 7301
    with pytest.raises(NameTaken, match="7301"):
        await store.recipes.add(recipe("Other", id=7301))
    assert (await store.recipes.add(recipe())).id == 7302
    await store.recipes.delete(7302, SECOND)
    with pytest.raises(NameTaken):
        await store.recipes.add(recipe(id=7302))
    assert (await store.recipes.add(recipe())).id == 7303
    assert first.id not in {7301, 7302, 7303}
    assert await store.recipes.get(7301) == given


@pytest.mark.parametrize("wrong", [{"folder_id": 99}, {"account_id": 99}])
async def test_what_belongs_nowhere_is_refused_and_leaves_nothing(
    store: Store, wrong: dict[str, int]
) -> None:
    with pytest.raises(NameTaken):
        await store.recipes.add(recipe("Wrong", **wrong))
    assert await found(store) == await found(store, keyword="wrong") == []


async def test_what_cannot_be_written_leaves_nothing_and_takes_nobody_along(store: Store) -> None:
    half = "\ud83c"
    outcomes = await asyncio.gather(
        store.recipes.add(recipe("Good")),
        store.recipes.add(recipe(content("Bad", notes=half))),
        store.recipes.add(recipe("Also good")),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [Recipe, UnicodeEncodeError, Recipe]
    assert await found(store) == ["Also good", "Good"]


async def test_unknown_ones(store: Store) -> None:
    assert await store.recipes.get(0) is None
    assert await store.recipes.get(-1) is None
    assert await store.recipes.get(1) is None
    await store.recipes.delete(1, SECOND)


async def test_an_update_writes_everything(store: Store) -> None:
    stored = await store.recipes.add(recipe(content("Before", author="A", notes="old notes")))
    changed = replace(
        stored,
        content=content("After", author="B"),
        group_id="1",
        parent_id=5,
        token="0" * 13,
        created_at=SECOND + 1,
        updated_at=SECOND + 2,
    )
    await store.recipes.update(changed)
    assert await store.recipes.get(stored.id) == changed
    assert await found(store, keyword="before") == await found(store, keyword="old notes") == []
    assert await found(store, keyword="after") == await found(store, author="b") == ["After"]
    assert await found(store, author="a") == []


async def test_deleting_hides_the_recipe_and_not_its_snapshots(store: Store) -> None:
    stored = await store.recipes.add(recipe("Original"))
    copy = await store.recipes.add(recipe("Copy", parent_id=stored.id, snapshot=True))
    await store.recipes.delete(stored.id, SECOND)
    assert await store.recipes.get(stored.id) is None
    assert await store.recipes.get(copy.id) == copy
    assert await found(store, keyword="original") == []
    assert await found(store, snapshots=True) == ["Copy"]


async def test_sessions_that_brewed_it_or_a_snapshot_of_it(store: Store) -> None:
    original = await store.recipes.add(recipe("Original"))
    copies = [await store.recipes.add(recipe("Copy", parent_id=original.id, snapshot=True)) for _ in range(2)]
    third = await store.sessions.add(session(copies[1].id, "2026-03-03"))
    first = await store.sessions.add(session(copies[0].id, "2026-03-01"))
    direct = await store.sessions.add(session(original.id, "2026-03-02"))
    await store.sessions.add(session(0, "2026-03-04"))

    async def brewed(recipe_id: int) -> tuple[tuple[int, str], ...]:
        one = await store.recipes.get(recipe_id)
        assert one is not None
        return one.brew_sessions

    assert await brewed(original.id) == (
        (third.id, "2026-03-03"),
        (first.id, "2026-03-01"),
        (direct.id, "2026-03-02"),
    )
    assert await brewed(copies[0].id) == ((first.id, "2026-03-01"),)
    _, listed = await store.recipes.search(RecipeSearch(account_id=1))
    assert [one.brew_sessions for one in listed] == [await brewed(original.id)]
    await store.sessions.delete(third.id, SECOND)
    assert [number for number, _ in await brewed(original.id)] == [first.id, direct.id]
    await store.recipes.delete(copies[0].id, SECOND)
    assert await brewed(original.id) == ((first.id, "2026-03-01"), (direct.id, "2026-03-02"))


async def test_control_characters_end_no_text_that_is_searched(store: Store) -> None:
    await store.recipes.add(recipe(content("A\0fter NUL\x1fand separator", notes="and notes")))
    for keyword in ("fter nul", "ft", "and separator", "and notes", "nul\x1fand", "nul and"):
        assert len(await found(store, keyword=keyword)) == 1, keyword
    for keyword in ("separator\x1fand notes", "r\x1fa"):
        assert await found(store, keyword=keyword) == [], keyword


async def test_the_index_agrees_with_the_texts_after_many_changes(store: SqliteStore) -> None:
    for number in range(30):
        stored = await store.recipes.add(recipe(f"Number {number}"))
        await store.recipes.update(replace(stored, content=content(f"Changed {number}", notes="x" * number)))
        if number % 3 == 0:
            await store.recipes.delete(stored.id, SECOND)
    check = "INSERT INTO recipe_trigrams (recipe_trigrams, rank) VALUES ('integrity-check', 1)"
    await store._writer.run(lambda connection: connection.execute(check) and None)
    assert await found(store, keyword="number") == []
    assert len(await found(store, keyword="changed")) == 20


async def test_folders_that_are_gone_file_nothing(store: Store) -> None:
    folder = await store.folders.add(1, "recipe", "Winter", SECOND)
    stored = await store.recipes.add(recipe(folder_id=folder.id))
    assert await found(store, folder_id=folder.id) == ["Porter"]
    await store.folders.rename(folder.id, "Summer")
    one = await store.recipes.get(stored.id)
    assert one is not None
    assert one.folder_name == "Summer"
    await store.folders.delete(folder.id)
    with pytest.raises(NotFound, match=f"no folder {folder.id}"):
        await store.recipes.update(stored)  # somebody filed it in the very moment
    assert await store.recipes.get(stored.id) == replace(stored, folder_id=None, folder_name=None)
