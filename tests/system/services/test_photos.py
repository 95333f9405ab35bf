"""Photos: the file before its row, the original unchanged, other sizes without metadata."""

import asyncio
import hashlib
import re
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from gateway.domain.photo import Photo
from gateway.errors import InvalidInput, NameTaken, NotFound, StoreUnavailable
from gateway.formats.image import Sizing
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services
from gateway.services.photos import BrewPhotos
from tests.system.api.library import content, picture

UUID = "3f1d9c1e-7c55-4b0e-9d3a-5f0a6f0f2b11"


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "photos").glob("*"))


@pytest.fixture
async def recipe_id(services: Services) -> int:
    return (await services.library.add(1, content())).id


@pytest.mark.parametrize(("kind", "ending"), [("JPEG", "jpg"), ("PNG", "png"), ("GIF", "gif")])
async def test_what_is_known_of_a_photo(
    services: Services, recipe_id: int, tmp_path: Path, kind: str, ending: str
) -> None:
    data = picture(40, 30, kind)
    photo = await services.photos.add(recipe_id, data, "İ.jpg", "🍺")
    assert photo == Photo(
        photo.uuid, recipe_id, "İ.jpg", f"image/{kind.lower()}", 40, 30, len(data),
        hashlib.sha256(data).hexdigest(), "🍺", 1_772_616_600,
    )  # fmt: skip
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", photo.uuid)
    assert files(tmp_path) == [f"{photo.uuid}.{ending}"]
    assert await services.store.photos.of_recipe(recipe_id) == [photo]
    assert await services.photos.image(photo, Sizing()) == (data, photo.mimetype)


async def test_a_photo_may_bring_its_uuid(services: Services, recipe_id: int) -> None:
    assert (await services.photos.add_copy(recipe_id, picture(4, 3), "", "", UUID, 1)).uuid == UUID
    with pytest.raises(NameTaken):
        await services.photos.add_copy(recipe_id, picture(4, 3), "", "", UUID, 1)


@pytest.mark.parametrize(
    ("data", "filename", "caption"),
    [
        (b"", "x", ""),
        (b"<svg/>", "x.svg", ""),
        (picture(4, 3)[:20], "x", ""),
        (picture(4, 3), "x" * 256, ""),
        (picture(4, 3), "x", "x" * 1001),
        (picture(4, 3), "a\0b", ""),
        (picture(4, 3), "\udcff.jpg", ""),
        (picture(4, 3), "x", "\ud83c"),
    ],
)
async def test_what_is_refused_leaves_nothing(
    services: Services, recipe_id: int, tmp_path: Path, data: bytes, filename: str, caption: str
) -> None:
    with pytest.raises(InvalidInput):
        await services.photos.add(recipe_id, data, filename, caption)
    assert files(tmp_path) == []
    assert await services.store.photos.of_recipe(recipe_id) == []


async def test_without_its_file_there_is_no_row(
    services: Services, recipe_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as failing:
        failing.setattr("os.fsync", refuse)
        with pytest.raises(StoreUnavailable, match="the disk is full"):
            await services.photos.add(recipe_id, picture(4, 3), "x")
    assert await services.store.photos.of_recipe(recipe_id) == []


async def test_a_file_without_its_row_is_swept(
    services: Services, recipe_id: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await services.photos.add(recipe_id, picture(4, 3), "x")

    async def refuse(_: Photo) -> None:
        raise StoreUnavailable("the disk is gone")

    with monkeypatch.context() as failing:
        failing.setattr(services.store.photos, "add", refuse)
        with pytest.raises(StoreUnavailable):
            await services.photos.add(recipe_id, picture(4, 3), "x")
    assert len(files(tmp_path)) == 2
    assert await services.photos.sweep() == 1
    assert files(tmp_path) == [kept.file_name]
    assert await services.photos.sweep() == 0


async def test_removing(services: Services, recipe_id: int, tmp_path: Path) -> None:
    photo = await services.photos.add(recipe_id, picture(4, 3), "x")
    with pytest.raises(NotFound, match=f"no photo {UUID}"):
        await services.photos.remove(recipe_id, UUID)
    with pytest.raises(NotFound):
        await services.photos.remove(recipe_id + 1, photo.uuid)
    await services.photos.remove(recipe_id, photo.uuid)
    assert (files(tmp_path), await services.store.photos.of_recipe(recipe_id)) == ([], [])


async def test_sizes_and_their_tags(services: Services, recipe_id: int) -> None:
    photo = await services.photos.add(recipe_id, picture(40, 30, "GIF"), "x")
    sizings = [Sizing(), Sizing(width=20), Sizing(20, 20), Sizing(20, 20, crop=True), Sizing(scale=50)]
    images = await asyncio.gather(*(services.photos.image(photo, sizing) for sizing in sizings))
    assert [mimetype for _, mimetype in images] == ["image/gif", *["image/png"] * 4]
    sizes = [Image.open(BytesIO(data)).size for data, _ in images]
    assert sizes == [(40, 30), (20, 15), (20, 20), (20, 20), (20, 15)]
    tags = [services.photos.tag(photo, sizing) for sizing in sizings]
    assert len(set(tags)) == len(tags)
    assert {len(tag) for tag in tags} == {32}
    twin = await services.photos.add(recipe_id, picture(40, 30, "GIF"), "y")
    assert [services.photos.tag(twin, sizing) for sizing in sizings] == tags
    other = await services.photos.add(recipe_id, picture(30, 40, "GIF"), "x")
    assert not {services.photos.tag(other, sizing) for sizing in sizings} & set(tags)


async def test_a_photo_whose_file_is_gone_says_so(services: Services, recipe_id: int, tmp_path: Path) -> None:
    photo = await services.photos.add(recipe_id, picture(40, 30), "x")
    (tmp_path / "photos" / photo.file_name).unlink()
    with pytest.raises(StoreUnavailable, match="restore it from a backup"):
        await services.photos.image(photo, Sizing())


async def test_a_caption_is_changed_and_stays_text(services: Services, recipe_id: int) -> None:
    photo = await services.photos.add(recipe_id, picture(4, 3), "x.jpg", "before")
    await services.photos.set_caption(recipe_id, photo.uuid, "after")
    assert [each.caption for each in await services.store.photos.of_recipe(recipe_id)] == ["after"]
    for caption in ("x" * 1001, "a\0b"):
        with pytest.raises(InvalidInput):
            await services.photos.set_caption(recipe_id, photo.uuid, caption)
    with pytest.raises(NotFound):
        await services.photos.set_caption(recipe_id + 1, photo.uuid, "no")


async def test_a_brew_has_the_photos_of_its_recipe_and_of_its_copy(
    services: Services, recipe_id: int
) -> None:
    brew = await services.brewsessions.add_session(1, SessionChange(recipe_id=recipe_id))
    bare = await services.brewsessions.add_session(1, SessionChange(batchcode="B"))
    of_recipe = await services.photos.add_copy(recipe_id, picture(4, 3), "", "", UUID, 2)
    of_copy = await services.photos.add_copy(brew.recipe_id, picture(4, 3), "", "", UUID.replace("3", "4"), 1)
    assert await services.photos.of_brew(brew) == BrewPhotos(recipe_id, (of_copy, of_recipe))
    assert await services.photos.of_brew(bare) == BrewPhotos(None, ())
    recipe = await services.store.recipes.get(recipe_id)
    assert recipe is not None
    await services.library.delete(recipe)
    assert await services.photos.of_brew(brew) == BrewPhotos(brew.recipe_id, (of_copy,))
