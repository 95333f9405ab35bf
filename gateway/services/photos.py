"""Photos of recipes: the file of an original is stored before its row; other sizes are made on demand."""

import asyncio
import hashlib
import uuid
from dataclasses import astuple, dataclass

from gateway.clock import Clock
from gateway.domain.brewsession import BrewSession
from gateway.domain.photo import CAPTION_CHARACTERS, FILENAME_CHARACTERS, Photo
from gateway.domain.texts import NOT_TEXT
from gateway.errors import InvalidInput, NotFound, NotInstalled
from gateway.formats import pillow
from gateway.formats.image import Sizing
from gateway.formats.image_header import inspect
from gateway.services.resizing import ResizeProcess
from gateway.store.files import PhotoFiles
from gateway.store.protocol import Store

RESIZING = 1
"""Photos resized at once: each may hold a decoded picture of 25 million pixels."""

TAG_DIGITS = 32
"""Hex digits of an ETag."""


@dataclass(frozen=True, slots=True)
class BrewPhotos:
    """The photos of a brew, oldest first. New ones belong to the recipe with this id; None: it has none."""

    recipe_id: int | None
    photos: tuple[Photo, ...]


class PhotoService:
    """Photos of all accounts; callers check first that the recipe is the account's own."""

    def __init__(self, store: Store, files: PhotoFiles, clock: Clock) -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._turn = asyncio.Semaphore(RESIZING)
        self._resizing = ResizeProcess(files)

    async def add(self, recipe_id: int, data: bytes, filename: str, caption: str = "") -> Photo:
        """Store a photo; its file is on the disk before a list shows it.

        Raise `NotInstalled` where the photo could not be shown in other sizes.
        """
        if not pillow.is_installed():
            raise NotInstalled(pillow.REMEDY)
        now = int(self._clock.now())
        return await self.add_copy(recipe_id, data, filename, caption, str(uuid.uuid4()), now)

    async def add_copy(
        self, recipe_id: int, data: bytes, filename: str, caption: str, name: str, created_at: int
    ) -> Photo:
        """Store a photo that has a uuid and a time (Unix seconds); no other photo may have that uuid."""
        facts = inspect(data)
        _check_texts(filename, caption)
        photo = Photo(
            uuid=name,
            recipe_id=recipe_id,
            filename=filename,
            mimetype=facts.mimetype,
            width=facts.width,
            height=facts.height,
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            caption=caption,
            created_at=created_at,
        )
        await asyncio.to_thread(self._files.save, photo.file_name, data)
        await self._store.photos.add(photo)
        return photo

    async def of_brew(self, session: BrewSession) -> BrewPhotos:
        """Return the photos of a brew: of its recipe, and of the copy of the recipe that the brew took."""
        copy = await self._store.recipes.get(session.recipe_id) if session.recipe_id else None
        if copy is None:
            return BrewPhotos(None, ())
        original = await self._store.recipes.get(copy.parent_id) if copy.snapshot and copy.parent_id else None
        home = copy if original is None or original.account_id != session.account_id else original
        photos = await self._store.photos.of_recipe(home.id)
        if home is not copy:
            photos += await self._store.photos.of_recipe(copy.id)
        return BrewPhotos(home.id, tuple(sorted(photos, key=lambda photo: (photo.created_at, photo.uuid))))

    async def set_caption(self, recipe_id: int, name: str, caption: str) -> None:
        """Give a photo another caption; `NotFound` if the recipe has none with that uuid."""
        _check_texts("", caption)
        if not await self._store.photos.set_caption(recipe_id, name, caption):
            raise NotFound(f"recipe {recipe_id} has no photo {name}")

    async def remove(self, recipe_id: int, name: str) -> None:
        """Remove a photo; `NotFound` if the recipe has none with that uuid."""
        photo = await self._store.photos.get(recipe_id, name)
        if photo is None:
            raise NotFound(f"recipe {recipe_id} has no photo {name}")
        # Two steps, not one: a crash between them leaves only a file that the next start sweeps.
        await self._store.photos.delete(recipe_id, name)
        await asyncio.to_thread(self._files.remove, photo.file_name)

    async def image(self, photo: Photo, sizing: Sizing) -> tuple[bytes, str]:
        """Return bytes and media type: the original as it was sent, or a smaller copy without metadata."""
        if sizing.unchanged:
            return await asyncio.to_thread(self._files.load, photo.file_name), photo.mimetype
        async with self._turn:
            return await asyncio.to_thread(self._resizing.resized, photo.file_name, sizing)

    def stop(self) -> None:
        """End the process that resizes photos."""
        self._resizing.stop()

    def tag(self, photo: Photo, sizing: Sizing) -> str:
        """Return an ETag, which differs for every picture and size."""
        if sizing.unchanged:
            return photo.sha256[:TAG_DIGITS]
        return hashlib.sha256(f"{photo.sha256} {astuple(sizing)}".encode()).hexdigest()[:TAG_DIGITS]

    async def sweep(self) -> int:
        """Remove files that a crash left without a row; return how many."""
        return await asyncio.to_thread(self._files.sweep, await self._store.photos.file_names())


def _check_texts(filename: str, caption: str) -> None:
    """Raise `InvalidInput` for a file name or a caption that no photo can have."""
    if len(filename) > FILENAME_CHARACTERS or len(caption) > CAPTION_CHARACTERS:
        raise InvalidInput(
            f"a file name has {FILENAME_CHARACTERS} characters at most, a caption {CAPTION_CHARACTERS}"
        )
    if NOT_TEXT.search(filename + caption):
        raise InvalidInput("NUL and halves of surrogate pairs are no text")
