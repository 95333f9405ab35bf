"""Endpoints 6 and 7 of the specification: photos of a recipe, as api-decisions section 7 has them."""

import itertools
import re
from fractions import Fraction
from io import BytesIO
from typing import Any

import pytest
from PIL import ExifTags, Image

from gateway.domain.photo import Photo
from gateway.domain.recipe import Recipe
from tests.system.api.conftest import Service
from tests.system.api.library import NOT_FOUND, Answer, Brewery, Query, assert_texts, opened, picture
from tests.system.api.test_recipes import NO_SUCH_ID

PHOTO = ["uuid", "recipe_id", "filename", "mimetype", "width", "height", "size", "caption", "created_at"]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
STRANGE_UUID = "00000000-0000-4000-8000-000000000000"
WIDTH, HEIGHT = 400, 300


@pytest.fixture
async def brewery(service: Service) -> Brewery:
    return await opened(service)


@pytest.fixture
async def recipe(brewery: Brewery) -> Recipe:
    return await brewery.recipe()


@pytest.fixture
async def photo(brewery: Brewery, recipe: Recipe) -> Photo:
    return await brewery.photo(recipe, picture(WIDTH, HEIGHT))


async def listed(brewery: Brewery, recipe: Recipe) -> list[dict[str, Any]]:
    """The photos of a list that has the shape it must have."""
    answer = await brewery.get(f"recipes/{recipe.id}/photos")
    assert list(answer) == ["message", "count", "photos"]
    assert (answer["message"], answer["count"]) == ("success", str(len(answer["photos"])))
    for record in answer["photos"]:
        assert list(record) == PHOTO
        assert_texts(record, null=set())
        assert UUID.fullmatch(record["uuid"])
    photos: list[dict[str, Any]] = answer["photos"]
    return photos


async def fetch(brewery: Brewery, photo: Photo, query: str = "", **headers: str) -> Answer:
    path = f"recipes/{photo.recipe_id}/photo"
    return await brewery.ask(path, f"uuid={photo.uuid}&{query}", **headers)


async def image(brewery: Brewery, photo: Photo, query: str = "") -> Image.Image:
    """The picture of an answer, whose media type is what the bytes are."""
    answer = await fetch(brewery, photo, query)
    assert answer.status == 200, answer.body
    opened = Image.open(BytesIO(answer.body))
    assert answer.headers["Content-Type"] == f"image/{(opened.format or '').lower()}"
    opened.load()
    return opened


async def test_the_list_of_photos(brewery: Brewery, recipe: Recipe) -> None:
    assert await listed(brewery, recipe) == []
    data = picture(WIDTH, HEIGHT)
    first = await brewery.photo(recipe, data, 'Glaß "1".jpg', caption="İt's 🍺")
    brewery.service.clock.wall += 1
    second = await brewery.photo(recipe, picture(3, 5, "PNG"), "")
    shown = await listed(brewery, recipe)
    assert [record["uuid"] for record in shown] == [first.uuid, second.uuid]
    assert shown[0] == {
        "uuid": first.uuid,
        "recipe_id": str(recipe.id),
        "filename": 'Glaß "1".jpg',
        "mimetype": "image/jpeg",
        "width": "400",
        "height": "300",
        "size": str(len(data)),
        "caption": "İt's 🍺",
        "created_at": "2026-03-04 09:30:00",
    }
    assert [shown[1][name] for name in ("mimetype", "width", "height", "filename")] == [
        "image/png",
        "3",
        "5",
        "",
    ]


async def test_a_removed_photo_is_gone(brewery: Brewery, recipe: Recipe, photo: Photo) -> None:
    await brewery.service.services.photos.remove(recipe.id, photo.uuid)
    assert await listed(brewery, recipe) == []
    answer = await fetch(brewery, photo)
    assert (answer.status, answer.json) == (404, NOT_FOUND)


@pytest.mark.parametrize("path_id", NO_SUCH_ID)
async def test_what_names_no_recipe_is_404(brewery: Brewery, photo: Photo, path_id: str) -> None:
    for path in ("photos", "photo", f"photo/{photo.uuid}"):
        answer = await brewery.ask(f"recipes/{path_id}/{path}", f"uuid={photo.uuid}")
        assert (answer.status, answer.json) == (404, NOT_FOUND)


async def test_photos_of_deleted_recipes_and_of_others_are_404(
    brewery: Brewery, recipe: Recipe, photo: Photo
) -> None:
    other, theirs = await brewery.recipe("Other"), await brewery.recipe("Theirs", account_id=1)
    foreign = await brewery.photo(theirs, picture(4, 4))
    await brewery.photo(other, picture(4, 4))
    for owner, uuid in ((other, photo.uuid), (theirs, foreign.uuid), (recipe, foreign.uuid)):
        for path, query in (("photo", f"uuid={uuid}"), (f"photo/{uuid}", "")):
            answer = await brewery.ask(f"recipes/{owner.id}/{path}", query)
            assert (answer.status, answer.json) == (404, NOT_FOUND)
    await brewery.service.services.library.delete(recipe)
    for path in ("photos", f"photo/{photo.uuid}"):
        assert (await brewery.ask(f"recipes/{recipe.id}/{path}")).status == 404


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF"])
async def test_without_a_size_the_bytes_are_those_that_came(
    brewery: Brewery, recipe: Recipe, kind: str
) -> None:
    data = picture(WIDTH, HEIGHT, kind, comment=b"mine")
    photo = await brewery.photo(recipe, data)
    for query in ("", "scale=0", "bestfit=false&crop=no", "unknown=1&quality=5"):
        answer = await fetch(brewery, photo, query)
        assert (answer.status, answer.body) == (200, data)
        assert answer.headers["Content-Type"] == f"image/{kind.lower()}"
        assert answer.headers["Content-Length"] == str(len(data))


@pytest.mark.parametrize(("kind", "resized"), [("JPEG", "JPEG"), ("PNG", "PNG"), ("GIF", "PNG")])
async def test_a_gif_becomes_a_png_when_it_is_resized(
    brewery: Brewery, recipe: Recipe, kind: str, resized: str
) -> None:
    photo = await brewery.photo(recipe, picture(WIDTH, HEIGHT, kind))
    found = await image(brewery, photo, "width=40")
    assert (found.format, found.size) == (resized, (40, 30))


async def test_the_uuid_stands_in_the_query_or_in_the_path_in_any_case(
    brewery: Brewery, photo: Photo
) -> None:
    base = f"recipes/{photo.recipe_id}/photo"
    expected = await fetch(brewery, photo, "width=40")
    for uuid in (photo.uuid, photo.uuid.upper()):
        for path, query in ((base, f"uuid={uuid}&width=40"), (f"{base}/{uuid}", "width=40")):
            answer = await brewery.ask(path, query)
            assert (answer.status, answer.body) == (200, expected.body)
            assert answer.headers["ETag"] == expected.headers["ETag"]


async def test_a_missing_uuid_is_400(brewery: Brewery, photo: Photo) -> None:
    for query in ("", "uuid=", "width=40", "UUID=x"):
        status, message, detail = await brewery.refusal(f"recipes/{photo.recipe_id}/photo", query)
        assert (status, message) == (400, "failure")
        assert detail.startswith("uuid ")


@pytest.mark.parametrize(
    "uuid", [STRANGE_UUID, "x", "../x", "%2E%2E%2Fgateway.sqlite3", "%20", "0" * 400, "%"]
)
async def test_an_unknown_uuid_is_404(brewery: Brewery, photo: Photo, uuid: str) -> None:
    answer = await brewery.ask(f"recipes/{photo.recipe_id}/photo", f"uuid={uuid}")
    assert (answer.status, answer.json) == (404, NOT_FOUND)
    answer = await brewery.ask(f"recipes/{photo.recipe_id}/photo/{uuid}")
    assert (answer.status, answer.json) == (404, NOT_FOUND)


SIDES = [None, 1, 100, 640]
SCALES = [None, "0", "50", "100", "0.5"]


def expected_size(
    width: int | None, height: int | None, scale: str | None, bestfit: bool, crop: bool
) -> tuple[int, int] | None:
    """What section 7 says of a photo of 400 x 300; None for a refusal."""
    across, down = Fraction(width or WIDTH), Fraction(height or HEIGHT)
    if (bestfit or crop) and not (width and height):
        return None
    if width and not height:
        down = across * HEIGHT / WIDTH
    elif height and not width:
        across = down * WIDTH / HEIGHT
    elif width and height and bestfit and not crop:
        if across / down > Fraction(WIDTH, HEIGHT):
            across = down * WIDTH / HEIGHT
        else:
            down = across * HEIGHT / WIDTH
    share = Fraction(scale or 0) / 100 or 1
    return max(1, int(across * share + Fraction(1, 2))), max(1, int(down * share + Fraction(1, 2)))


@pytest.mark.parametrize("bestfit", [None, "true"])
@pytest.mark.parametrize("crop", [None, "YES"])
async def test_every_combination_of_sizes(
    brewery: Brewery, photo: Photo, bestfit: str | None, crop: str | None
) -> None:
    for width, height, scale in itertools.product(SIDES, SIDES, SCALES):
        asked = {"width": width, "height": height, "scale": scale, "bestfit": bestfit, "crop": crop}
        query = "&".join(f"{name}={value}" for name, value in asked.items() if value is not None)
        expected = expected_size(width, height, scale, bool(bestfit), bool(crop))
        if expected is None:
            answer = await fetch(brewery, photo, query)
            assert answer.status == 400, query
            assert answer.json["message"] == "failure"
        else:
            assert (await image(brewery, photo, query)).size == expected, query


@pytest.mark.parametrize(
    ("query", "size", "left_edge"),
    [
        ("width=100", (100, 25), "white"),
        ("height=50", (200, 50), "white"),
        ("width=100&height=100", (100, 100), "white"),
        ("width=100&height=100&bestfit=true", (100, 25), "white"),
        ("width=100&height=100&crop=true", (100, 100), "red"),
        ("width=100&height=100&crop=true&bestfit=true", (100, 100), "red"),
        ("width=800&height=800&bestfit=true", (800, 200), "white"),
        ("width=400&height=400&crop=true&scale=25", (100, 100), "red"),
    ],
)
async def test_crop_cuts_both_sides_and_nothing_else_does(
    brewery: Brewery, recipe: Recipe, query: str, size: tuple[int, int], left_edge: str
) -> None:
    drawn = Image.open(BytesIO(picture(400, 100, "PNG")))
    drawn.paste("white", (0, 0, 40, 100))
    drawn.paste("white", (360, 0, 400, 100))
    out = BytesIO()
    drawn.save(out, "PNG")
    photo = await brewery.photo(recipe, out.getvalue())
    found = await image(brewery, photo, query)
    assert found.size == size
    middle = size[1] // 2
    colours = {"white": (255, 255, 255), "red": (255, 0, 0)}
    assert found.getpixel((1, middle)) == colours[left_edge]
    assert (found.getpixel((size[0] - 2, middle)) == colours["white"]) is (left_edge == "white")
    assert found.getpixel((size[0] * 2 // 5, middle)) == colours["red"]
    assert found.getpixel((size[0] * 3 // 5, middle)) == (0, 0, 255)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        *(
            (f"width={value}", "width")
            for value in ("0", "-1", "4097", "x", "1.5", "9" * 15, "9" * 40, "1e2")
        ),
        *((f"height={value}", "height") for value in ("0", "-1", "4097", "x", "%D9%A1")),
        *(
            (f"scale={value}", "scale")
            for value in ("-1", "101", "100.1", "x", "1e3", "nan", "inf", "9" * 40)
        ),
        *((f"width=9&height=9&bestfit={value}", "bestfit") for value in ("2", "x", "on")),
        *((f"width=9&height=9&crop={value}", "crop") for value in ("2", "x", "on")),
        ("crop=true", "bestfit and crop"),
        ("width=9&crop=true", "bestfit and crop"),
        ("height=9&bestfit=true", "bestfit and crop"),
        ("scale=50&bestfit=true", "bestfit and crop"),
    ],
)
async def test_sizes_are_strict(brewery: Brewery, photo: Photo, query: str, named: str) -> None:
    path = f"recipes/{photo.recipe_id}/photo"
    for asked in ((path, f"uuid={photo.uuid}&{query}"), (f"{path}/{photo.uuid}", query)):
        status, message, detail = await brewery.refusal(*asked)
        assert (status, message) == (400, "failure")
        assert detail.startswith(f"{named} ")


async def test_blank_flags_are_no(brewery: Brewery, photo: Photo) -> None:
    assert (await image(brewery, photo, "width=10&height=10&bestfit=&crop=")).size == (10, 10)


async def test_headers(brewery: Brewery, photo: Photo) -> None:
    for query in ("", "width=40"):
        answer = await fetch(brewery, photo, query)
        assert answer.headers["Cache-Control"] == "private, max-age=86400"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert re.fullmatch(r'"[0-9a-f]{32}"', answer.headers["ETag"])


async def test_each_size_has_a_tag_of_its_own(brewery: Brewery, recipe: Recipe, photo: Photo) -> None:
    queries = ["", "width=40", "height=40", "width=40&height=40", "scale=40"]
    queries += [f"width=40&height=40&{flag}=true" for flag in ("bestfit", "crop")]
    tags = [(await fetch(brewery, photo, query)).headers["ETag"] for query in queries]
    assert len(set(tags)) == len(queries)
    other = await brewery.photo(recipe, picture(40, 40))
    assert (await fetch(brewery, other, "width=40")).headers["ETag"] not in tags
    assert (await fetch(brewery, photo, "width=40")).headers["ETag"] == tags[1]


@pytest.mark.parametrize(
    ("sent", "known"),
    [
        ("{tag}", True),
        ("W/{tag}", True),
        ("*", True),
        ('"x", {tag}', True),
        ('"x",W/"y" , W/{tag}', True),
        ('"x"', False),
        ('W/"x", "y"', False),
        ("", False),
        ("nonsense", False),
    ],
)
@pytest.mark.parametrize("query", ["", "width=40"])
async def test_who_has_it_is_not_sent_it_again(
    brewery: Brewery, photo: Photo, query: str, sent: str, known: bool
) -> None:
    first = await fetch(brewery, photo, query)
    held = sent.format(tag=first.headers["ETag"])
    again = await fetch(brewery, photo, query, If_None_Match=held)
    assert (again.status, again.body) == ((304, b"") if known else (200, first.body))
    for name in ("ETag", "Cache-Control"):
        assert again.headers[name] == first.headers[name]


async def test_a_tag_of_another_size_is_not_known(brewery: Brewery, photo: Photo) -> None:
    original = (await fetch(brewery, photo)).headers["ETag"]
    assert (await fetch(brewery, photo, "width=40", If_None_Match=original)).status == 200


async def test_who_may_not_see_it_does_not_learn_that_it_is_there(brewery: Brewery) -> None:
    theirs = await brewery.recipe(account_id=1)
    photo = await brewery.photo(theirs, picture(4, 4))
    assert (await fetch(brewery, photo, If_None_Match="*")).status == 404


def located(width: int, height: int, orientation: int) -> bytes:
    """A JPEG as a telephone takes it: turned, and with the place."""
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    exif[ExifTags.Base.Make] = "Kamera"
    exif[ExifTags.IFD.GPSInfo] = {1: "N", 2: (54.0, 10.0, 0.0), 3: "E", 4: (7.0, 53.0, 0.0)}
    return picture(width, height, exif=exif)


async def test_a_resized_photo_is_upright_and_says_nothing_of_place_or_camera(
    brewery: Brewery, recipe: Recipe
) -> None:
    data = located(WIDTH, HEIGHT, 6)
    photo = await brewery.photo(recipe, data)
    assert Image.open(BytesIO(data)).getexif().get_ifd(ExifTags.IFD.GPSInfo)
    (shown,) = await listed(brewery, recipe)
    assert (shown["width"], shown["height"]) == ("300", "400")
    for query, size in (("width=150", (150, 200)), ("scale=100", (300, 400)), ("height=40", (30, 40))):
        found = await image(brewery, photo, query)
        assert found.size == size
        assert len(found.getexif()) == 0
        assert not {"exif", "comment", "xmp"} & set(found.info)
        # Turned to the right: what was left is on top.
        top, bottom = (found.convert("RGB").getpixel((size[0] // 2, y)) for y in (2, size[1] - 3))
        assert isinstance(top, tuple)
        assert isinstance(bottom, tuple)
        assert top[0] > 200 > 50 > top[2]
        assert bottom[2] > 200 > 50 > bottom[0]
    assert (await fetch(brewery, photo)).body == data


async def test_head_has_the_headers_and_no_body(brewery: Brewery, photo: Photo) -> None:
    path = f"recipes/{photo.recipe_id}/photo"
    queries: list[Query] = [f"uuid={photo.uuid}", f"uuid={photo.uuid}&width=40"]
    for query in queries:
        got, head = await brewery.ask(path, query), await brewery.ask(path, query, "HEAD")
        assert (head.status, head.body) == (200, b"")
        for name in ("Content-Type", "Content-Length", "ETag", "Cache-Control"):
            assert head.headers[name] == got.headers[name]
        again = await brewery.ask(path, query, "HEAD", If_None_Match=got.headers["ETag"])
        assert (again.status, again.body) == (304, b"")
