"""`/manage/recipes/:id/photos`: adding photos to a recipe, changing and removing them."""

from pydantic import Field

from gateway.api.photos import PhotoList, photo_record
from gateway.domain.photo import CAPTION_CHARACTERS, EXTENSIONS, FILENAME_CHARACTERS
from gateway.formats.image_header import PHOTO_BYTES
from gateway.http.endpoint import Body, Call, Document, Done, Endpoint, Query, read_document
from gateway.http.parameters import Text
from gateway.http.records import own_recipe, photo_of

PICTURE = Document(tuple(EXTENSIONS), PHOTO_BYTES)


class NewPhotoQuery(Query):
    """File name and caption of a new photo."""

    filename: Text = Field(
        default="", max_length=FILENAME_CHARACTERS, description="What the file was called."
    )
    caption: Text = Field(default="", max_length=CAPTION_CHARACTERS, description="What is to be seen.")


async def add_photo(call: Call[NewPhotoQuery, None]) -> PhotoList:
    """Add a photo to a recipe; the bytes decide the media type."""
    recipe = await own_recipe(call)
    data = await read_document(call.request, PICTURE)
    photo = await call.services.photos.add(recipe.id, data, call.query.filename, call.query.caption)
    return PhotoList(count="1", photos=[photo_record(photo)])


class PhotoChange(Body):
    """A change to a photo."""

    caption: Text = Field(max_length=CAPTION_CHARACTERS, description="What is to be seen.")


async def change_photo(call: Call[Query, PhotoChange]) -> PhotoList:
    """Give a photo another caption."""
    recipe = await own_recipe(call)
    photo = await photo_of(call, recipe, call.request.match_info["uuid"])
    await call.services.photos.set_caption(recipe.id, photo.uuid, call.body.caption)
    return PhotoList(count="1", photos=[photo_record(await photo_of(call, recipe, photo.uuid))])


async def remove_photo(call: Call[Query, None]) -> Done:
    """Remove a photo and its file."""
    photo = await photo_of(call, await own_recipe(call), call.request.match_info["uuid"])
    await call.services.photos.remove(photo.recipe_id, photo.uuid)
    return Done()


ENDPOINTS = (
    Endpoint(
        "POST",
        "/manage/recipes/{recipe_id}/photos",
        add_photo,
        "Add a photo to a recipe",
        NewPhotoQuery,
        PhotoList,
        body=PICTURE,
        refusals=(501,),
    ),
    Endpoint(
        "PATCH",
        "/manage/recipes/{recipe_id}/photos/{uuid}",
        change_photo,
        "Give a photo another caption",
        Query,
        PhotoList,
        body=PhotoChange,
    ),
    Endpoint(
        "DELETE",
        "/manage/recipes/{recipe_id}/photos/{uuid}",
        remove_photo,
        "Remove a photo",
        Query,
        Done,
    ),
)
"""Photos of recipes."""
