"""Photos of a recipe, on its own page and on the pages of its brews. Only copies without metadata go out."""

from typing import NamedTuple

from aiohttp import ETag, hdrs, web

from gateway.domain.brewsession import BrewSession
from gateway.domain.photo import CAPTION_CHARACTERS, FILENAME_CHARACTERS, Photo
from gateway.domain.texts import NOT_TEXT
from gateway.errors import InvalidInput, NotFound, NotInstalled, StoreUnavailable, TooLarge
from gateway.formats.image import Sizing
from gateway.formats.image_header import PHOTO_BYTES
from gateway.ui.forms import Filled, Form
from gateway.ui.pages import Answer, Moved, Page, Part, Row, Visit
from gateway.ui.views.recipe import own_recipe, title_of

UPLOAD_BYTES = 10 * PHOTO_BYTES
"""Bytes of all photos of one form."""

SMALL_PIXELS, LARGE_PIXELS = 208, 1280
"""Sides of a thumbnail, twice what the style sheet shows, and of a photo that is looked at."""

OF_BREW = 12
"""Photos on the page of a brew, the newest; the others are on the page of its recipe."""

FRESH_S = 86_400
"""Seconds for which a browser keeps a photo. The photo of a uuid never changes."""


class Thumb(NamedTuple):
    """A small photo, the page that shows it large, and what is to be seen."""

    small: str
    url: str
    caption: str


class Refusal(NamedTuple):
    """A photo that was not taken, and why, in English."""

    filename: str
    reason: str


class CaptionForm(Form):
    """A caption; none is a caption, too."""

    caption: str = ""


async def of_recipe(visit: Visit) -> Part:
    """Show the photos of a recipe."""
    recipe = await own_recipe(visit)
    photos = await visit.store.photos.of_recipe(recipe.id)
    values = {
        "thumbs": [_thumb(visit, photo) for photo in photos],
        "add": visit.url("recipe.photos.new", id=recipe.id),
        "belongs": True,
        "all_of_them": "",
    }
    return Part("parts/photos.html", (), values)


async def of_brew(visit: Visit) -> Part:
    """Show the photos of a brew's recipe."""
    session = await _own_brew(visit)
    found = await visit.services.photos.of_brew(session)
    values = {
        "thumbs": [_thumb(visit, photo) for photo in found.photos[-OF_BREW:]],
        "add": visit.url("brew.photos.new", id=session.id),
        "belongs": found.recipe_id is not None,
        "all_of_them": visit.url("recipe", id=found.recipe_id) if len(found.photos) > OF_BREW else "",
    }
    return Part("parts/photos.html", (f"brew:{session.id}",), values)


def _thumb(visit: Visit, photo: Photo) -> Thumb:
    caption = photo.caption or visit.t("photos.without_caption")
    return Thumb(_url(visit, "photo.small", photo), _url(visit, "photo", photo), caption)


def _url(visit: Visit, page: str, photo: Photo) -> str:
    return visit.url(page, id=photo.recipe_id, uuid=photo.uuid)


async def _own_brew(visit: Visit) -> BrewSession:
    session = await visit.store.sessions.get(visit.path_id("id"))
    if session is None or session.account_id != visit.viewer.account_id:
        raise NotFound
    return session


async def _own_photo(visit: Visit) -> Photo:
    recipe = await own_recipe(visit)
    photo = await visit.store.photos.get(recipe.id, visit.path_text("uuid").lower())
    if photo is None:
        raise NotFound(visit.t("photos.not_found"))
    return photo


async def choose_for_recipe(visit: Visit) -> Page:
    """Show the form that adds photos to a recipe."""
    recipe = await own_recipe(visit)
    return _form(visit, visit.url("recipe.photos.add", id=recipe.id), visit.url("recipe", id=recipe.id))


async def choose_for_brew(visit: Visit) -> Page:
    """Show the form that adds photos to a brew."""
    session = await _own_brew(visit)
    await _recipe_of(visit, session)
    return _brew_form(visit, session)


def _brew_form(visit: Visit, session: BrewSession, refused: list[Refusal] | None = None) -> Page:
    back = visit.url("brew", id=session.id) if visit.has("brew") else ""
    return _form(visit, visit.url("brew.photos.add", id=session.id), back, refused)


def _form(visit: Visit, action: str, back: str, refused: list[Refusal] | None = None) -> Page:
    values = {
        "action": action,
        "back": back,
        "refused": refused or [],
        "no_photo": refused is not None and not refused,
        "most": visit.words.count(PHOTO_BYTES >> 20),
        "caption_most": CAPTION_CHARACTERS,
    }
    status = 200 if refused is None else 422
    return Page("photos_add.html", visit.t("photos.add.title"), values, menu="recipes", status=status)


async def _recipe_of(visit: Visit, session: BrewSession) -> int:
    """Return the id of the recipe that the brew's new photos belong to."""
    found = await visit.services.photos.of_brew(session)
    if found.recipe_id is None:
        raise InvalidInput(visit.t("photos.no_recipe"))
    return found.recipe_id


async def add_to_recipe(visit: Visit) -> Answer:
    """Add photos to a recipe."""
    recipe = await own_recipe(visit)
    added, refused = await _take(visit, recipe.id)
    back = visit.url("recipe", id=recipe.id)
    if not added:
        return _form(visit, visit.url("recipe.photos.add", id=recipe.id), back, refused)
    return Moved(back, _notice(visit, added, refused))


async def add_to_brew(visit: Visit) -> Answer:
    """Add photos to the recipe of a brew, each as a mark on the brew's time line, too."""
    session = await _own_brew(visit)
    added, refused = await _take(visit, await _recipe_of(visit, session))
    for photo in added:
        author = visit.viewer.key_name
        await visit.services.timeline.add_photo(session, photo.uuid, photo.caption, author)
    if not added:
        return _brew_form(visit, session, refused)
    address = (
        visit.url("brew", id=session.id) if visit.has("brew") else visit.url("brew.photos", id=session.id)
    )
    return Moved(address, _notice(visit, added, refused))


async def _take(visit: Visit, recipe_id: int) -> tuple[list[Photo], list[Refusal]]:
    """Store the photos of an upload, each for itself; a text part before them is their caption."""
    caption, added, refused = "", [], []
    try:
        async for part in visit.uploads():
            if part.name == "caption":
                caption = (await part.text()).strip()[:CAPTION_CHARACTERS]
                caption = NOT_TEXT.sub("", caption)
            elif part.filename:
                filename = NOT_TEXT.sub("", part.filename)[:FILENAME_CHARACTERS]
                data = await part.read_up_to(PHOTO_BYTES)
                if data is None:
                    reason = visit.t("photos.too_large", most=PHOTO_BYTES >> 20)
                    refused.append(Refusal(filename, reason))
                    continue
                try:
                    added.append(await visit.services.photos.add(recipe_id, data, filename, caption))
                except (InvalidInput, TooLarge, NotInstalled, StoreUnavailable) as error:
                    refused.append(Refusal(filename, str(error)))
    except TooLarge:
        refused.append(Refusal("", visit.t("photos.too_much", most=UPLOAD_BYTES >> 20)))
    return added, refused


def _notice(visit: Visit, added: list[Photo], refused: list[Refusal]) -> str:
    sentences = [visit.t("photos.added", n=len(added))]
    sentences += [visit.t("photos.refused", name=each.filename, reason=each.reason) for each in refused]
    return " ".join(sentences)


async def one(visit: Visit) -> Page:
    """Show a photo large, with its caption."""
    return await _one_page(visit, await _own_photo(visit), Filled())


async def _one_page(visit: Visit, photo: Photo, filled: Filled[CaptionForm]) -> Page:
    recipe = await own_recipe(visit)
    names = [each.uuid for each in await visit.store.photos.of_recipe(recipe.id)]
    place = names.index(photo.uuid)

    def beside(number: int) -> str:
        there = 0 <= number < len(names)
        return visit.url("photo", id=recipe.id, uuid=names[number]) if there else ""

    width, height = _large(photo)
    values = {
        "large": _url(visit, "photo.large", photo),
        "width": width,
        "height": height,
        "caption": photo.caption,
        "filename": photo.filename,
        "taken": visit.words.moment(photo.created_at),
        "recipe": title_of(visit, recipe),
        "back": visit.url("recipe", id=recipe.id),
        "before": beside(place - 1),
        "after": beside(place + 1),
        "change": _url(visit, "photo.caption", photo),
        "delete": _url(visit, "photo.ask_delete", photo),
        "filled": filled,
    }
    title = visit.t("photos.one", place=place + 1, n=len(names))
    return Page("photo.html", title, values, menu="recipes", status=422 if filled.errors else 200)


def _large(photo: Photo) -> tuple[int, int]:
    """Return the sides of a photo that is looked at: never more than it has."""
    ratio = min(1.0, LARGE_PIXELS / max(photo.width, photo.height))
    return max(1, round(photo.width * ratio)), max(1, round(photo.height * ratio))


async def change_caption(visit: Visit) -> Answer:
    """Give a photo another caption."""
    photo, filled = await _own_photo(visit), visit.read(CaptionForm)
    caption = filled.value.caption if filled.value else ""
    if len(caption) > CAPTION_CHARACTERS or NOT_TEXT.search(caption):
        filled.wrong("caption", "photos.wrong.caption")
        return await _one_page(visit, photo, filled)
    await visit.services.photos.set_caption(photo.recipe_id, photo.uuid, caption)
    return Moved(_url(visit, "photo", photo), visit.t("photos.captioned"))


async def ask_delete(visit: Visit) -> Page:
    """Ask whether a photo is to be deleted."""
    photo = await _own_photo(visit)
    values = {
        "question": visit.t("photos.delete.ask"),
        "explain": photo.caption or photo.filename,
        "action": _url(visit, "photo.delete", photo),
        "button": visit.t("photos.delete"),
        "back": _url(visit, "photo", photo),
    }
    return Page("confirm.html", visit.t("photos.delete"), values, menu="recipes")


async def delete(visit: Visit) -> Moved:
    """Delete a photo and its file."""
    photo = await _own_photo(visit)
    await visit.services.photos.remove(photo.recipe_id, photo.uuid)
    return Moved(visit.url("recipe", id=photo.recipe_id), visit.t("photos.deleted"))


async def small(visit: Visit) -> web.StreamResponse:
    """Give a thumbnail."""
    side = SMALL_PIXELS
    return await _image(visit, Sizing(side, side, crop=True))


async def large(visit: Visit) -> web.StreamResponse:
    """Give a photo as large as a screen."""
    width, height = _large(await _own_photo(visit))
    return await _image(visit, Sizing(width, height))


async def _image(visit: Visit, sizing: Sizing) -> web.StreamResponse:
    photo, photos = await _own_photo(visit), visit.services.photos
    tag = photos.tag(photo, sizing)
    headers = {hdrs.CACHE_CONTROL: f"private, max-age={FRESH_S}", hdrs.ETAG: f'"{tag}"'}
    kept = visit.request.if_none_match or ()
    if any(each.value in {tag, "*"} for each in kept if isinstance(each, ETag)):
        return web.Response(status=304, headers=headers)
    body, mimetype = await photos.image(photo, sizing)
    return web.Response(body=body, content_type=mimetype, headers=headers)


async def one_of_brew(visit: Visit) -> Moved:
    """Lead from a brew to the page of one of its photos."""
    found = await visit.services.photos.of_brew(await _own_brew(visit))
    name = visit.path_text("uuid").lower()
    photo = next((photo for photo in found.photos if photo.uuid == name), None)
    if photo is None:
        raise NotFound(visit.t("photos.not_found"))
    return Moved(_url(visit, "photo", photo))


ONE = "/recipes/{id}/photos/{uuid}"


ROWS = (
    Row("GET", "/recipes/{id}/photos", of_recipe, "recipe.photos", "The photos of a recipe"),
    Row("GET", "/brews/{id}/photos", of_brew, "brew.photos", "The photos of a brew's recipe"),
    Row(
        "GET",
        "/recipes/{id}/photos/add",
        choose_for_recipe,
        "recipe.photos.new",
        "The form for photos of a recipe",
        scope="admin",
    ),
    Row(
        "POST",
        "/recipes/{id}/photos/add",
        add_to_recipe,
        "recipe.photos.add",
        "Add photos to a recipe",
        scope="admin",
        upload_bytes=UPLOAD_BYTES,
    ),
    Row(
        "GET",
        "/brews/{id}/photos/add",
        choose_for_brew,
        "brew.photos.new",
        "The form for photos of a brew",
        scope="admin",
    ),
    Row(
        "POST",
        "/brews/{id}/photos/add",
        add_to_brew,
        "brew.photos.add",
        "Add photos to a brew, and to its time line",
        scope="admin",
        upload_bytes=UPLOAD_BYTES,
    ),
    Row("GET", "/brews/{id}/photos/{uuid}", one_of_brew, "brew.photo", "The way to a photo of a brew"),
    Row("GET", ONE, one, "photo", "A photo with its caption"),
    Row("GET", f"{ONE}/small", small, "photo.small", "A thumbnail without metadata"),
    Row("GET", f"{ONE}/large", large, "photo.large", "A large photo without metadata"),
    Row("POST", f"{ONE}/caption", change_caption, "photo.caption", "Change a caption", scope="admin"),
    Row("GET", f"{ONE}/delete", ask_delete, "photo.ask_delete", "Ask before deleting", scope="admin"),
    Row("POST", f"{ONE}/delete", delete, "photo.delete", "Delete a photo", scope="admin"),
)
