"""`/v1/recipes/:id/photos` and `/photo`: endpoints 6 and 7, the photos of a recipe, in any size."""

from typing import Any

from aiohttp import ETag, hdrs, web
from pydantic import Field

from gateway.domain.photo import EXTENSIONS, Photo
from gateway.domain.times import stamp
from gateway.errors import InvalidInput
from gateway.formats.image import SIDE_PIXELS, Sizing, check_sizing
from gateway.http.endpoint import AnswerModel, Call, Endpoint, Media, Page, Query
from gateway.http.parameters import NEEDED, Flag, Percent, Pixels
from gateway.http.records import own_recipe, photo_of

FRESH_S = 86_400
"""Seconds for which a client may keep its copy. The photo of a uuid never changes."""


class PhotoRecord(AnswerModel):
    """The record of a photo; every member is text."""

    uuid: str = Field(json_schema_extra={"format": "uuid"})
    recipe_id: str
    filename: str
    mimetype: str
    width: str
    height: str
    size: str
    caption: str
    created_at: str


class PhotoList(Page):
    """The photos of a recipe, oldest first."""

    photos: list[PhotoRecord]


class SizeQuery(Query):
    """The size of the returned image. Without a size, the original comes byte for byte."""

    width: Pixels | None = Field(default=None, description=f"1 to {SIDE_PIXELS}.")
    height: Pixels | None = Field(default=None, description=f"1 to {SIDE_PIXELS}.")
    scale: Percent = Field(default=0, description="Percent of that size; 0 does not scale.")
    bestfit: Flag = Field(default=False, description="Keep the aspect: fit into width and height.")
    crop: Flag = Field(default=False, description="Keep the aspect: cover width and height, cut the rest.")

    @property
    def sizing(self) -> Sizing:
        """Return the size as the image module takes it."""
        return Sizing(self.width, self.height, self.scale, self.bestfit, self.crop)


class PhotoQuery(SizeQuery):
    """The photo, and its size."""

    uuid: str = Field(
        default="",
        description="As the list of photos gives it.",
        json_schema_extra={NEEDED: True, "format": "uuid"},
    )


async def list_photos(call: Call[Query, None]) -> PhotoList:
    """Answer endpoint 6: the list of a recipe's photos."""
    recipe = await own_recipe(call)
    photos = await call.store.photos.of_recipe(recipe.id)
    return PhotoList(count=str(len(photos)), photos=[photo_record(photo) for photo in photos])


async def photo_by_query(call: Call[PhotoQuery, None]) -> web.StreamResponse:
    """Answer endpoint 7 for a uuid in the query."""
    recipe, asked = await own_recipe(call), call.query
    if not asked.uuid:
        raise InvalidInput("uuid is missing: the list of photos has it")
    return await _answer(call, await photo_of(call, recipe, asked.uuid), asked.sizing)


async def photo_by_path(call: Call[SizeQuery, None]) -> web.StreamResponse:
    """Answer endpoint 7 for a uuid in the path."""
    photo = await photo_of(call, await own_recipe(call), call.request.match_info["uuid"])
    return await _answer(call, photo, call.query.sizing)


async def _answer(call: Call[Any, None], photo: Photo, sizing: Sizing) -> web.StreamResponse:
    check_sizing(sizing)
    photos = call.services.photos
    tag = photos.tag(photo, sizing)
    headers = {
        hdrs.CACHE_CONTROL: f"private, max-age={FRESH_S}",
        hdrs.ETAG: f'"{tag}"',
        "X-Content-Type-Options": "nosniff",
        # An attachment, because the file may show in an `<img>`, but never as a page of this origin.
        hdrs.CONTENT_DISPOSITION: f'attachment; filename="{photo.file_name}"',
    }
    # Tags of the versions that the client has already.
    held = call.request.if_none_match or ()
    if any(candidate.value in {tag, "*"} for candidate in held if isinstance(candidate, ETag)):
        return web.Response(status=304, headers=headers)
    body, mimetype = await photos.image(photo, sizing)
    return web.Response(body=body, content_type=mimetype, headers=headers)


def photo_record(photo: Photo) -> PhotoRecord:
    """Make the photo's record for lists."""
    return PhotoRecord(
        uuid=photo.uuid,
        recipe_id=str(photo.recipe_id),
        filename=photo.filename,
        mimetype=photo.mimetype,
        width=str(photo.width),
        height=str(photo.height),
        size=str(photo.size),
        caption=photo.caption,
        created_at=stamp(photo.created_at),
    )


IMAGE = Media(tuple(EXTENSIONS))

ENDPOINTS = (
    Endpoint("GET", "/v1/recipes/{recipe_id}/photos", list_photos, "Photos of a recipe", Query, PhotoList),
    Endpoint(
        "GET",
        "/v1/recipes/{recipe_id}/photo",
        photo_by_query,
        "One photo, in any size",
        PhotoQuery,
        IMAGE,
        refusals=(304, 501),
    ),
    Endpoint(
        "GET",
        "/v1/recipes/{recipe_id}/photo/{uuid}",
        photo_by_path,
        "One photo, in any size; its uuid in the path",
        SizeQuery,
        IMAGE,
        refusals=(304, 501),
    ),
)
"""Endpoints 6 and 7 of the specification."""
