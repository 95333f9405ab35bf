"""Copy the photos of recipes: the original bytes, under their own uuid if that is free."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from gateway.domain.photo import EXTENSIONS, Photo
from gateway.domain.texts import NAME_CHARACTERS
from gateway.errors import InvalidInput, TooLarge
from gateway.formats.image_header import PHOTO_BYTES
from gateway.mirror.client import NotThere, RemoteUnreadable
from gateway.mirror.counts import PHOTOS
from gateway.mirror.links import Identity, Links
from gateway.mirror.recipes import RecipeCopies
from gateway.mirror.run import FailureLimit, Run
from gateway.mirror.validate import checked, seconds, text_of

KIND = "photo"
"""The kind of note under which copied photos are remembered."""

MEDIA = ", ".join(EXTENSIONS)

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class PhotoCopies:
    """Copies the photos of one run; `links` hold the copies by the uuid at the service."""

    def __init__(self, run: Run, links: Links, recipes: RecipeCopies) -> None:
        self._run = run
        self._links = links
        self._recipes = recipes
        self._counts = run.result.counts[PHOTOS]
        self._uuids: set[str] = set()

    async def copy_all(self) -> None:
        """Copy the photos of all recipes. Ask for each recipe, because a photo is no change of its recipe."""
        self._uuids = {name.partition(".")[0] for name in await self._run.store.photos.file_names()}
        limit, recipes = FailureLimit(), self._recipes.copies()
        for done, (remote_id, local_id) in enumerate(recipes.items(), 1):
            try:
                await self._copy_of(remote_id, local_id)
                limit.succeeded()
            except NotThere:
                limit.succeeded()  # the recipe was deleted there: its copies stay
            except RemoteUnreadable as error:
                self._run.result.failed(PHOTOS, f"photos of recipe {remote_id}: {error}")
                limit.failed()
            if limit.reached:
                self._run.result.report("photos: too many failures, the rest is left to the next run")
                return
            self._run.progress(done, len(recipes), PHOTOS)

    async def _copy_of(self, remote_id: str, local_id: int) -> None:
        document = await self._run.service.json(f"/v1/recipes/{remote_id}/photos")
        found = document.get(PHOTOS)
        if not isinstance(found, list):
            raise RemoteUnreadable(f"an answer without {PHOTOS}")
        if found and await self._run.store.recipes.get(local_id) is None:
            return  # deleted here
        for value in found:
            try:
                await self._copy(remote_id, local_id, checked(value))
            except (InvalidInput, TooLarge, RemoteUnreadable) as error:
                self._run.result.failed(PHOTOS, f"a photo of recipe {remote_id}: {error}")

    async def _copy(self, remote_id: str, local_id: int, record: Mapping[str, Any]) -> None:
        name = (text_of(record, "uuid") or "").strip()
        if not name or len(name) > NAME_CHARACTERS:
            raise InvalidInput("it has no uuid")
        identity = Identity(name, seconds(text_of(record, "created_at")))
        before = await self._links.find(identity)
        # Not by its uuid alone, because a copy may belong to a recipe whose number is another's now.
        recipe = "" if before is None else str(json.loads(before.said or "{}").get("recipe", ""))
        if before is not None and not self._recipes.links.is_former(recipe):
            self._counts.unchanged += 1
            return
        if (await self._recipes.resolve(remote_id))[0] != local_id:
            return  # the number is another recipe's by now: the next run asks for that one's photos
        here = await self._run.store.photos.get(local_id, name.lower())  # left by a crash, or another photo
        if here is None or here.uuid in set(self._links.local_ids()):
            here = await self._fetch(remote_id, local_id, name, record)
        note = json.dumps({"recipe": local_id})
        await self._links.remember(identity, here.uuid, str(here.created_at), note)

    async def _fetch(self, remote_id: str, local_id: int, name: str, record: Mapping[str, Any]) -> Photo:
        """Fetch a photo and store it, unless a crash left the same photo here."""
        path, query = f"/v1/recipes/{remote_id}/photo", {"uuid": name}
        data = await self._run.service.document(path, query, MEDIA, PHOTO_BYTES)
        copies = set(self._links.local_ids())
        sha256 = hashlib.sha256(data).hexdigest()
        for photo in await self._run.store.photos.of_recipe(local_id):
            if photo.sha256 == sha256 and photo.uuid not in copies:
                return photo  # stored under a uuid of ours, and a crash came before it was remembered
        filename, caption = (text_of(record, member) or "" for member in ("filename", "caption"))
        created_at = seconds(text_of(record, "created_at"))
        created_at = self._run.now if created_at is None else created_at
        uuid = name.lower()
        if not _UUID.fullmatch(uuid) or uuid in self._uuids:
            uuid = str(uuid4())
        photo = await self._run.services.photos.add_copy(local_id, data, filename, caption, uuid, created_at)
        self._uuids.add(photo.uuid)
        self._counts.copied += 1
        return photo
