"""Photos on the page: copies without a place, captions, uploads, and marks on the time line of a brew."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from gateway.domain.brewsession import BrewSession
from gateway.services.brewsessions import SessionChange
from gateway.ui.views import photos as views
from tests.system.api.library import content
from tests.system.ui.site import Browser, logged_in, served

NASTY = '"><img src=x onerror=alert(1)>{{7*7}}'

PLACE = 0x8825
"""The tag of a JPEG under which the place of the camera stands."""


def with_place(width: int = 60, height: int = 40) -> bytes:
    """A JPEG as a phone takes it, with the place."""
    picture, out = Image.new("RGB", (width, height), "gold"), BytesIO()
    exif = picture.getexif()
    exif[0x010F] = "A camera"
    exif.get_ifd(PLACE)[1] = "N"
    exif.get_ifd(PLACE)[2] = (53.0, 33.0, 9.0)
    picture.save(out, "JPEG", exif=exif)
    assert Image.open(BytesIO(out.getvalue())).getexif().get_ifd(PLACE)
    return out.getvalue()


async def a_recipe(browser: Browser, account_id: int = 1) -> int:
    return (await browser.services.library.add(account_id, content())).id


async def a_brew(browser: Browser, recipe: int | None = None) -> BrewSession:
    change = SessionChange(batchcode="HP001", recipe_id=recipe)
    return await browser.services.brewsessions.add_session(1, change)


def upload(*files: tuple[str, bytes], caption: str = "") -> list[tuple[str, Any]]:
    return [("caption", caption), *(("photos", (name, data, "image/jpeg")) for name, data in files)]


async def image(browser: Browser, path: str, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
    async with browser.client.get(path, headers={**browser.headers, **headers}) as answer:
        return answer.status, answer.headers, await answer.read()


async def test_a_photo_with_its_place_goes_out_without(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        recipe = await a_recipe(browser)
        assert "No photo yet." in (await browser.get(f"/recipes/{recipe}")).text
        data = with_place()
        html = await browser.post(f"/recipes/{recipe}/photos/add", upload(("a.jpg", data), caption=NASTY))
        assert "1 photo is added." in html.text
        (thumb,) = html.page.one("ul", class_="thumbs").all("img")
        assert thumb.attributes["alt"] == NASTY
        assert NASTY not in html.raw
        shown = await browser.get(html.page.one("ul", class_="thumbs").one("a").attributes["href"])
        assert NASTY in shown.page.one("figcaption").text
        assert NASTY not in shown.raw
        large = shown.page.one("figure").one("img").attributes
        assert (large["width"], large["height"]) == ("60", "40")
        for path, size in ((thumb.attributes["src"], (208, 208)), (large["src"], (60, 40))):
            status, headers, body = await image(browser, path)
            picture = Image.open(BytesIO(body))
            assert (status, picture.size, dict(picture.getexif())) == (200, size, {})
            assert b"Exif" not in body
            assert headers["X-Content-Type-Options"] == "nosniff"
            again = await image(browser, path, **{"If-None-Match": headers["ETag"]})
            assert (again[0], again[2]) == (304, b"")
        (photo,) = await browser.services.store.photos.of_recipe(recipe)
        assert (tmp_path / "photos" / photo.file_name).read_bytes() == data


async def test_what_is_no_photo_is_named_and_the_others_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as browser:
        recipe = await a_recipe(browser)
        path, data = f"/recipes/{recipe}/photos/add", with_place()
        html = await browser.post(path, upload(("a.jpg", data), ("notes.txt", b"no photo"), ("b.jpg", data)))
        assert "2 photos are added. notes.txt was not taken: " in html.text
        html = await browser.post(path, upload(("notes.txt", b"no photo")), 422)
        assert "neither a JPEG nor a PNG nor a GIF" in html.text
        assert "Choose a photo first." in (await browser.post(path, upload(("", b"")), 422)).text
        monkeypatch.setattr(views, "PHOTO_BYTES", len(data) - 1)
        html = await browser.post(path, upload(("a.jpg", data)), 422)
        assert "The photo is larger than" in html.text
        assert len(await browser.services.store.photos.of_recipe(recipe)) == 2
        form = (await browser.get(path)).page
        camera = form.one("input", name="camera").attributes
        assert (camera["accept"], camera["capture"]) == ("image/*", "environment")


async def test_a_photo_of_a_brew_is_one_of_its_recipe_and_a_mark_on_its_time_line(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        recipe = await a_recipe(browser)
        brew = await a_brew(browser, recipe)
        assert "No photo yet." in (await browser.get(f"/brews/{brew.id}/photos")).text
        await browser.post(f"/brews/{brew.id}/photos/add", upload(("a.jpg", with_place()), caption="Foam"))
        (photo,) = await browser.services.store.photos.of_recipe(recipe)
        part = await browser.get(f"/brews/{brew.id}/photos")
        assert part.page.one("img").attributes["alt"] == "Foam"
        events = await browser.services.timeline.events(brew)
        assert [(e.kind, e.text, e.facts["uuid"]) for e in events if e.kind == "photo"] == [
            ("photo", "Foam", photo.uuid)
        ]
        line = await browser.get(f"/brews/{brew.id}/timeline")
        (link,) = [a for a in line.page.all("a") if a.text == "Look at the photo"]
        shown = await browser.get(link.attributes["href"])
        assert "Foam" in shown.page.one("figcaption").text
        await browser.services.photos.remove(recipe, photo.uuid)
        await browser.get(link.attributes["href"], 404)


async def test_a_brew_without_a_recipe_has_no_place_for_photos(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        brew, path = await a_brew(browser), "/brews/{}/photos"
        sentence = "Photos belong to a recipe; this brew has none."
        part = await browser.get(path.format(brew.id))
        assert sentence in part.text
        assert "/add" not in part.raw
        assert sentence in (await browser.get(f"{path.format(brew.id)}/add", 400)).text
        await browser.post(f"{path.format(brew.id)}/add", upload(("a.jpg", with_place())), 400)
        await browser.get(path.format(99), 404)


async def test_a_caption_is_changed_and_a_photo_deleted_after_a_question(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        recipe = await a_recipe(browser)
        photos = [
            await browser.services.photos.add(recipe, with_place(), f"{name}{NASTY}.jpg") for name in "ab"
        ]
        places = [f"/recipes/{recipe}/photos/{photo.uuid}" for photo in photos]
        pages = [await browser.get(place) for place in places]
        assert {page.page.one("h1").text for page in pages} == {"Photo 1 of 2", "Photo 2 of 2"}
        assert NASTY in pages[0].text
        assert NASTY not in pages[0].raw
        html = await browser.post(f"{places[0]}/caption", {"caption": NASTY})
        assert html.page.one("input", name="caption").attributes["value"] == NASTY
        html = await browser.post(f"{places[0]}/caption", {"caption": "x" * 1001}, 422)
        assert "A caption has 1000 characters at most." in html.text
        await browser.post(f"{places[0]}/caption", {"caption": ""})
        assert "Delete this photo?" in (await browser.get(f"{places[0]}/delete")).text
        assert len(await browser.services.store.photos.of_recipe(recipe)) == 2
        await browser.post(f"{places[0]}/delete")
        assert await browser.services.store.photos.of_recipe(recipe) == [photos[1]]
        for path in (places[0], f"{places[0]}/small", f"{places[0]}/delete", f"/recipes/{recipe}/photos/x"):
            await browser.get(path, 404)


async def test_a_reader_only_looks_and_another_account_does_not_even_that(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        recipe = await a_recipe(browser)
        brew = await a_brew(browser, recipe)
        photo = await browser.services.photos.add(recipe, with_place(), "a.jpg")
        place = f"/recipes/{recipe}/photos/{photo.uuid}"
        browser.client.session.cookie_jar.clear()
        browser.cookie = await logged_in(browser.services, frozenset({"read"}))
        html = await browser.get(place)
        assert "<textarea" not in html.raw
        assert "/delete" not in html.raw
        assert "/add" not in (await browser.get(f"/recipes/{recipe}/photos")).raw
        for path in (f"{place}/caption", f"{place}/delete", f"/recipes/{recipe}/photos/add"):
            await browser.post(path, {"caption": "no"}, 403)
        await browser.services.access.add_account("other")
        browser.client.session.cookie_jar.clear()
        browser.cookie = await logged_in(browser.services, account="other")
        for path in (place, f"{place}/small", f"{place}/large", f"/recipes/{recipe}/photos"):
            await browser.get(path, 404)
        await browser.get(f"/brews/{brew.id}/photos", 404)
        await browser.post(f"/recipes/{recipe}/photos/add", upload(("a.jpg", with_place())), 404)
        assert len(await browser.services.store.photos.of_recipe(recipe)) == 1
