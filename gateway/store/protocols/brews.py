"""The protocols of a store's part for brew sessions, recipes, folders and photos.

The rules of `gateway.store.protocol` hold here, too.
"""

from collections.abc import Sequence
from typing import Protocol

from gateway.domain.brewsession import BrewSession, DeletedSession, Milestones, SessionEntry
from gateway.domain.folder import Folder, FolderKind
from gateway.domain.photo import Photo
from gateway.domain.recipe import Recipe
from gateway.store.queries import RecipeSearch, Search


class BrewSessionStore(Protocol):
    """Brew sessions."""

    async def add(
        self,
        session: BrewSession,
        snapshot: Recipe | None = None,
        *,
        device_id: int | None = None,
        since: int | None = None,
    ) -> BrewSession:
        """Insert a brew session, under a new id if its own is 0; `NameTaken` if that id is in use.

        With `snapshot`, insert that recipe, too, and let the session refer to it. With `device_id`, put that
        device into it, with its readings since `since` (Unix seconds) that are in no session, or in the one
        that the device leaves.
        """

    async def follow(
        self, old: BrewSession, new: BrewSession, snapshot: Recipe | None, since: int | None, now: int
    ) -> tuple[BrewSession, list[int]]:
        """Insert the session of the next beer as `add` does, and write `old`, which is done.

        Every device of `old` goes into the new session, with its readings since `since`. Return the new
        session and the ids of these devices. Times are Unix seconds.
        """

    async def end(self, session: BrewSession, now: int) -> None:
        """Write a session that is done, and take its devices out; `now` is Unix seconds."""

    async def reopen(self, session: BrewSession, now: int) -> None:
        """Write a session that is not done after all; devices that its end took out go back if they are free.

        Their readings since then that are in no session come along. `now` is Unix seconds.
        """

    async def update(self, session: BrewSession) -> None:
        """Write all members of a session over the stored ones; `NotFound` if there is no such folder."""

    async def delete(self, session_id: int, now: int) -> None:
        """Mark a session deleted (Unix seconds) and take its devices out; its readings stay."""

    async def deleted(self) -> list[DeletedSession]:
        """Return the sessions that are deleted and not purged, by id, each with its number of readings."""

    async def undelete(self, session_id: int, now: int) -> None:
        """Bring a deleted session back without its devices; `NotFound` if there is none with this id."""

    async def purge(self, session_id: int, limit: int) -> int:
        """Delete up to `limit` readings of a deleted session for good; return how many.

        Fewer than `limit` were the last ones: then the session cannot be brought back.
        """

    async def get(self, session_id: int) -> BrewSession | None:
        """Return a session, None if there is none or it is deleted."""

    async def all(self) -> list[BrewSession]:
        """Return every session that is not deleted, by id."""

    async def entry(self, session_id: int) -> SessionEntry | None:
        """Return a session as lists show it, None if there is none or it is deleted."""

    async def entries(self, session_ids: Sequence[int]) -> list[SessionEntry]:
        """Return sessions as lists show them, in the order of their ids; deleted ones are left out."""

    async def search(self, search: Search) -> tuple[int, list[SessionEntry]]:
        """Return how many sessions match, and the requested page of them."""

    async def milestones(self, session_id: int) -> Milestones:
        """Return the readings that a session's statistics need; as fast for many readings as for few."""


class RecipeStore(Protocol):
    """Recipes, snapshots among them."""

    async def add(self, recipe: Recipe) -> Recipe:
        """Insert a recipe, under a new id if its own is 0; return it as stored.

        `NameTaken` if the id is in use, or there is no such folder.
        """

    async def add_all(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        """Insert several recipes as `add` does, all or none."""

    async def file(self, recipe_ids: Sequence[int], folder_id: int | None, now: int) -> None:
        """Put recipes into a folder, or into none, all or none; `now` is Unix seconds.

        `NotFound` if there is no such folder, or no recipe with one of the ids.
        """

    async def update(self, recipe: Recipe) -> None:
        """Write all members of a recipe over the stored ones; `NotFound` if there is no such folder."""

    async def delete(self, recipe_id: int, now: int) -> None:
        """Mark a recipe deleted (Unix seconds); its snapshots stay."""

    async def get(self, recipe_id: int) -> Recipe | None:
        """Return a recipe, None if there is none or it is deleted."""

    async def search(self, search: RecipeSearch) -> tuple[int, list[Recipe]]:
        """Return how many recipes match, and the requested page of them."""


class FolderStore(Protocol):
    """Folders of recipes and of brew sessions."""

    async def add(self, account_id: int, kind: FolderKind, name: str, now: int) -> Folder:
        """Add a folder (`now` is Unix seconds); `NameTaken` if the account has one of that kind and name."""

    async def get(self, folder_id: int) -> Folder | None:
        """Return a folder, None if there is none with this id."""

    async def all(self, account_id: int | None = None) -> list[Folder]:
        """Return an account's folders, or all, by kind and name."""

    async def rename(self, folder_id: int, name: str) -> None:
        """Rename a folder; `NameTaken` as for `add`."""

    async def delete(self, folder_id: int) -> None:
        """Remove a folder; its recipes and sessions are in none then."""


class PhotoStore(Protocol):
    """Records of photos; their bytes are files."""

    async def add(self, photo: Photo) -> None:
        """Store the record of a photo, whose file exists already."""

    async def get(self, recipe_id: int, uuid: str) -> Photo | None:
        """Return a photo of a recipe, None if there is none."""

    async def of_recipe(self, recipe_id: int) -> list[Photo]:
        """Return a recipe's photos, oldest first."""

    async def set_caption(self, recipe_id: int, uuid: str, caption: str) -> bool:
        """Give a photo another caption; return whether there was such a photo."""

    async def delete(self, recipe_id: int, uuid: str) -> bool:
        """Remove the record of a photo; return whether there was one."""

    async def file_names(self) -> set[str]:
        """Return the names of the files that photos need."""
