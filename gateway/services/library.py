"""Recipes and folders: importing, copying, filing. Callers check the owner first."""

import asyncio
import secrets
from dataclasses import dataclass, replace

from gateway.clock import Clock
from gateway.domain.folder import Folder, FolderKind
from gateway.domain.progress import Progress
from gateway.domain.recipe import Recipe, RecipeContent
from gateway.domain.texts import NAME_CHARACTERS, NOT_TEXT
from gateway.errors import InvalidInput, NotFound
from gateway.store.protocol import Store

TOKEN_DIGITS = 13
"""Hex digits of a recipe's token, as the service's own have."""


@dataclass(frozen=True, slots=True)
class StoredRecipe:
    """A recipe of an imported document: its id, and the changes that it needed, a line each."""

    id: int
    title: str
    changes: list[str]


class Library:
    """Recipes and folders of all accounts."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def import_document(
        self,
        account_id: int,
        document: bytes,
        folder_id: int | None = None,
        progress: Progress | None = None,
        *,
        all_changes: bool = False,
    ) -> list[StoredRecipe]:
        """Import the recipes of a BeerXML or BeerJSON document, all or none.

        The result lists a few hundred changes of each recipe, or with `all_changes` every change.
        """
        if folder_id is not None:
            await self.own_folder(account_id, folder_id, "recipe")
        from gateway.formats.recipes import parse  # here, because XML costs memory that readings need not pay

        parsed = await asyncio.to_thread(parse, document, all_changes=all_changes)
        if progress is not None:
            progress(0, len(parsed), "recipes")
        recipes = [self._new(account_id, recipe.content, folder_id) for recipe in parsed]
        stored = await self._store.recipes.add_all(recipes)
        if progress is not None:
            progress(len(parsed), len(parsed), "recipes")
        return [
            StoredRecipe(new.id, new.content.title, recipe.changes)
            for new, recipe in zip(stored, parsed, strict=True)
        ]

    async def add(self, account_id: int, content: RecipeContent, *, folder_id: int | None = None) -> Recipe:
        """Store a new recipe with this content."""
        return await self._store.recipes.add(self._new(account_id, content, folder_id))

    def _new(self, account_id: int, content: RecipeContent, folder_id: int | None) -> Recipe:
        now = int(self._clock.now())
        return Recipe(
            id=0,
            account_id=account_id,
            token=new_token(),
            content=content,
            folder_id=folder_id,
            folder_name=None,
            group_id=None,
            parent_id=None,
            snapshot=False,
            created_at=now,
            updated_at=now,
        )

    def snapshot_of(self, recipe: Recipe) -> Recipe:
        """Copy a recipe for a brew session that begins; later changes of the recipe do not reach the copy.

        Nothing is stored: the copy goes into the store with its session.
        """
        now = int(self._clock.now())
        return replace(
            recipe,
            id=0,
            token=new_token(),
            parent_id=recipe.parent_id if recipe.snapshot else recipe.id,
            snapshot=True,
            created_at=now,
            updated_at=now,
        )

    async def file(self, recipe: Recipe, folder_id: int | None) -> Recipe:
        """Put a recipe into a folder, or for None into no folder."""
        if folder_id is not None:
            await self.own_folder(recipe.account_id, folder_id, "recipe")
        filed = replace(recipe, folder_id=folder_id, updated_at=int(self._clock.now()))
        await self._store.recipes.update(filed)
        return filed

    async def delete(self, recipe: Recipe) -> None:
        """Delete a recipe; `InvalidInput` for a snapshot, which belongs to its brew session."""
        if recipe.snapshot and recipe.brew_sessions:
            raise InvalidInput(
                f"recipe {recipe.id} is the snapshot of brew session {recipe.brew_sessions[0][0]}"
            )
        await self._store.recipes.delete(recipe.id, int(self._clock.now()))

    async def add_folder(self, account_id: int, kind: FolderKind, name: str) -> Folder:
        """Add a folder for recipes or for brew sessions."""
        return await self._store.folders.add(account_id, kind, _checked(name), int(self._clock.now()))

    async def rename_folder(self, folder: Folder, name: str) -> None:
        """Rename a folder."""
        await self._store.folders.rename(folder.id, _checked(name))

    async def delete_folder(self, folder: Folder) -> None:
        """Remove a folder; its recipes and sessions stay, in no folder."""
        await self._store.folders.delete(folder.id)

    async def own_folder(self, account_id: int, folder_id: int, kind: FolderKind | None = None) -> Folder:
        """Return the account's folder with this id; `NotFound` if its account or kind differs."""
        folder = await self._store.folders.get(folder_id)
        if folder is None or folder.account_id != account_id or kind not in {None, folder.kind}:
            raise NotFound(f"no folder {folder_id} for that; `folders list` shows them")
        return folder


def new_token() -> str:
    """Make a recipe's token: 13 hex digits."""
    return secrets.token_hex(TOKEN_DIGITS)[:TOKEN_DIGITS]


def _checked(name: str) -> str:
    if not name.strip() or len(name) > NAME_CHARACTERS or NOT_TEXT.search(name):
        raise InvalidInput(f"a folder's name has 1 to {NAME_CHARACTERS} characters")
    return name.strip()
