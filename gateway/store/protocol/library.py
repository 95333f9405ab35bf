"""What the API serves beside readings, whose it is, and what is a copy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.account import Account
from gateway.domain.brewsession import BrewSession, DeletedSession, Milestones, SessionEntry
from gateway.domain.folder import Folder, FolderKind
from gateway.domain.key import ApiKey
from gateway.domain.photo import Photo
from gateway.domain.recipe import Recipe
from gateway.store.queries import RecipeSearch, Search


class BrewSessions(Protocol):
    """Brew sessions."""

    async def add(self, session: BrewSession) -> BrewSession:
        """A new session, under a new id where its own is 0; `NameTaken` where that id is in use."""

    async def update(self, session: BrewSession) -> None:
        """Write everything that this session says, over what was."""

    async def delete(self, session_id: int, now: int) -> None:
        """Mark it deleted and take the devices out of it; its readings stay."""

    async def deleted(self) -> list[DeletedSession]:
        """Sessions that are deleted and not purged, by id; counts the readings of each."""

    async def undelete(self, session_id: int, now: int) -> None:
        """Bring a deleted session back, as it was but for its devices; `NotFound` where it is none."""

    async def purge(self, session_id: int, limit: int) -> int:
        """Delete so many readings of a deleted session for good; fewer than `limit`: they were the last.

        Returns how many. After the last ones the session cannot be brought back.
        """

    async def get(self, session_id: int) -> BrewSession | None:
        """One session, unless deleted."""

    async def all(self) -> list[BrewSession]:
        """Every session that is not deleted, by id."""

    async def entry(self, session_id: int) -> SessionEntry | None:
        """One session as lists show it, unless deleted."""

    async def search(self, search: Search) -> tuple[int, list[SessionEntry]]:
        """How many match, and the page of them that was asked for."""

    async def milestones(self, session_id: int) -> Milestones:
        """What the session's statistics are made of; takes as long for many readings as for few."""


class Recipes(Protocol):
    """Recipes, snapshots among them."""

    async def add(self, recipe: Recipe) -> Recipe:
        """A new recipe, under a new id where its own is 0; `NameTaken` where that id is in use."""

    async def update(self, recipe: Recipe) -> None:
        """Write everything that this recipe says, over what was."""

    async def delete(self, recipe_id: int, now: int) -> None:
        """Mark it deleted; snapshots of it stay."""

    async def get(self, recipe_id: int) -> Recipe | None:
        """One recipe, unless deleted."""

    async def search(self, search: RecipeSearch) -> tuple[int, list[Recipe]]:
        """How many match, and the page of them that was asked for."""


class Folders(Protocol):
    """Folders of recipes and of brew sessions."""

    async def add(self, account_id: int, kind: FolderKind, name: str, now: int) -> Folder:
        """A new folder; `NameTaken` where the account has one of that kind and name."""

    async def get(self, folder_id: int) -> Folder | None:
        """One folder."""

    async def all(self, account_id: int | None = None) -> list[Folder]:
        """An account's folders, or everybody's, by kind and name."""

    async def rename(self, folder_id: int, name: str) -> None:
        """Another name; `NameTaken` as for a new one."""

    async def delete(self, folder_id: int) -> None:
        """Remove it; what was in it is filed nowhere."""


class Photos(Protocol):
    """What is known of photos; their bytes are files."""

    async def add(self, photo: Photo) -> None:
        """Keep it; its file is there already."""

    async def get(self, recipe_id: int, uuid: str) -> Photo | None:
        """One photo of a recipe."""

    async def of_recipe(self, recipe_id: int) -> list[Photo]:
        """A recipe's photos, oldest first."""

    async def delete(self, recipe_id: int, uuid: str) -> bool:
        """Forget it; whether there was one."""

    async def file_names(self) -> set[str]:
        """The files that photos need."""


class Accounts(Protocol):
    """Accounts."""

    async def add(self, name: str, now: int) -> Account:
        """A new account; `NameTaken` where there is one of that name."""

    async def all(self) -> list[Account]:
        """Every account, by id."""


class Keys(Protocol):
    """Accounts and their API keys."""

    async def owner(self, now: int) -> tuple[int, bool]:
        """The owner account's id, made where there is none; and whether no key was ever made."""

    async def active(self) -> list[ApiKey]:
        """Keys that are not revoked, oldest first."""

    async def add(self, key: ApiKey) -> None:
        """Keep a key; `NameTaken` where an active one of its account has that name."""

    async def revoke(self, account_id: int, name: str, now: int) -> bool:
        """Whether the account had such an active key."""


@dataclass(frozen=True, slots=True)
class Mirrored:
    """One copied record: its id there and here, and its `updated_at` there when it was copied.

    It is the same record while `created_at` (Unix seconds) and `token` there are the same, as far as the
    service says them. `said` is a JSON object of the mirror's own.
    """

    remote_id: str
    local_id: str
    remote_updated_at: str
    created_at: int | None = None
    token: str | None = None
    said: str | None = None


class Mirrors(Protocol):
    """Which record of which service became which record here."""

    async def known(self, upstream: str, account_id: int, kind: str) -> Mapping[str, Mirrored]:
        """What was copied so far of a kind, by the id there."""

    async def former(self, upstream: str, account_id: int, kind: str) -> list[Mirrored]:
        """Copies of a kind whose ids the service has given to other records since."""

    async def remember(self, upstream: str, account_id: int, kind: str, entry: Mirrored) -> None:
        """That this was copied; over what was known before."""

    async def part(self, upstream: str, account_id: int, kind: str, remote_id: str) -> None:
        """That id is another record's there: what was copied is a former copy from now on."""

    async def cut(self, upstream: str, account_id: int, number: int) -> list[int]:
        """Forward no brew session of the account to this number there; returns which these were."""
