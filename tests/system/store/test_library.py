"""The contracts of `Folders`, `Photos`, `Accounts` and `Mirrors`, for every implementation."""

from dataclasses import replace

import pytest

from gateway.domain.account import Account
from gateway.domain.folder import Folder
from gateway.domain.photo import Photo
from gateway.errors import NameTaken
from gateway.store.protocol import Store
from gateway.store.records import Mirrored
from tests.brew import brew
from tests.system.store.conftest import SECOND
from tests.system.store.test_recipes import recipe

UUID = "3f1d9c1e-7c55-4b0e-9d3a-5f0a6f0f2b11"
OTHER_UUID = "00000000-0000-4000-8000-000000000002"


def photo(recipe_id: int, uuid: str = UUID, mimetype: str = "image/jpeg", at: int = SECOND) -> Photo:
    return Photo(uuid, recipe_id, "glass.jpg", mimetype, 1600, 1200, 348_112, "ab" * 32, "İ 🍺", at)


async def test_folders_by_kind_and_name(store: Store) -> None:
    summer = await store.folders.add(1, "recipe", "Summer", SECOND)
    autumn = await store.folders.add(1, "recipe", "Autumn", SECOND)
    brewed = await store.folders.add(1, "brewsession", "Summer", SECOND + 1)
    assert summer == Folder(summer.id, 1, "recipe", "Summer", SECOND, 0)
    assert await store.folders.all() == [autumn, summer, brewed]
    assert await store.folders.get(brewed.id) == brewed
    assert await store.folders.get(99) is None
    for taken in (
        store.folders.add(1, "recipe", "Summer", SECOND),
        store.folders.rename(autumn.id, "Summer"),
    ):
        with pytest.raises(NameTaken, match="'Summer'"):
            await taken
    await store.folders.rename(autumn.id, "Fall")
    assert await store.folders.get(autumn.id) == replace(autumn, name="Fall")
    await store.folders.delete(autumn.id)
    assert await store.folders.all(1) == [summer, brewed]


async def test_each_account_has_folders_of_its_own(store: Store) -> None:
    second = await store.accounts.add("second", SECOND)
    mine = await store.folders.add(1, "recipe", "Winter", SECOND)
    theirs = await store.folders.add(second.id, "recipe", "Winter", SECOND)
    assert await store.folders.all(1) == [mine]
    assert await store.folders.all(second.id) == [theirs]


async def test_how_many_are_filed(store: Store) -> None:
    folder = await store.folders.add(1, "recipe", "Winter", SECOND)
    brewed = await store.folders.add(1, "brewsession", "Winter", SECOND)
    kept = [await store.recipes.add(recipe(folder_id=folder.id)) for _ in range(3)]
    await store.recipes.delete(kept[0].id, SECOND)
    session = await store.sessions.add(replace(brew(), folder_id=brewed.id))
    assert [one.filed for one in await store.folders.all()] == [2, 1]
    await store.sessions.delete(session.id, SECOND)
    assert [one.filed for one in await store.folders.all()] == [2, 0]


async def test_photos_of_a_recipe_oldest_first(store: Store) -> None:
    owner, other = await store.recipes.add(recipe()), await store.recipes.add(recipe())
    late, early = photo(owner.id, at=SECOND + 1), photo(owner.id, OTHER_UUID, "image/png")
    await store.photos.add(late)
    await store.photos.add(early)
    assert await store.photos.of_recipe(owner.id) == [early, late]
    assert await store.photos.of_recipe(other.id) == []
    assert await store.photos.get(owner.id, UUID) == late
    assert await store.photos.get(other.id, UUID) is None
    assert await store.photos.get(owner.id, UUID.upper()) is None
    assert await store.photos.file_names() == {f"{UUID}.jpg", f"{OTHER_UUID}.png"}
    with pytest.raises(NameTaken, match=UUID):
        await store.photos.add(photo(other.id))
    with pytest.raises(NameTaken):
        await store.photos.add(photo(99, "10000000-0000-4000-8000-000000000002"))


async def test_a_photo_is_forgotten_once_and_only_by_its_recipe(store: Store) -> None:
    owner, other = await store.recipes.add(recipe()), await store.recipes.add(recipe())
    await store.photos.add(photo(owner.id))
    assert not await store.photos.delete(other.id, UUID)
    assert await store.photos.delete(owner.id, UUID)
    assert not await store.photos.delete(owner.id, UUID)
    assert await store.photos.of_recipe(owner.id) == []
    assert await store.photos.file_names() == set()


async def test_a_caption_is_that_of_one_photo_of_one_recipe(store: Store) -> None:
    owner, other = await store.recipes.add(recipe()), await store.recipes.add(recipe())
    await store.photos.add(photo(owner.id))
    assert not await store.photos.set_caption(other.id, UUID, "no")
    assert await store.photos.set_caption(owner.id, UUID, "In the glass")
    assert [each.caption for each in await store.photos.of_recipe(owner.id)] == ["In the glass"]


async def test_accounts(store: Store) -> None:
    second = await store.accounts.add("Zoë", SECOND)
    assert second == Account(second.id, "Zoë", SECOND)
    with pytest.raises(NameTaken, match="Zoë"):
        await store.accounts.add("Zoë", SECOND)
    owner, last = await store.accounts.all()
    assert (owner.id, last) == (1, second)


async def test_what_was_mirrored_is_remembered_per_service_account_and_kind(store: Store) -> None:
    second = await store.accounts.add("second", SECOND)
    first = Mirrored("7301", "1", "2026-03-01 00:00:00")
    await store.mirrors.remember("https://a", 1, "recipe", first)
    await store.mirrors.remember("https://a", 1, "recipe", Mirrored("7302", "2", ""))
    newer = replace(first, local_id="9", remote_updated_at="2026-03-02 00:00:00")
    await store.mirrors.remember("https://a", 1, "recipe", newer)
    assert await store.mirrors.copies("https://a", 1, "recipe") == {
        "7301": newer,
        "7302": Mirrored("7302", "2", ""),
    }
    for upstream, account_id, kind in (
        ("https://b", 1, "recipe"), ("https://a", second.id, "recipe"), ("https://a", 1, "brewsession"),
    ):  # fmt: skip
        assert await store.mirrors.copies(upstream, account_id, kind) == {}
