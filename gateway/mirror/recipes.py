"""Copying recipes: record and ingredients as JSON, BeerXML beside it, snapshots after their originals."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from gateway.domain.recipe import CONTENT_MEMBERS, DOCUMENT_BYTES, Recipe, RecipeContent
from gateway.errors import InvalidInput, NameTaken, TooLarge
from gateway.formats.recipes import ParsedRecipe, parse, skeleton
from gateway.mirror.client import NotThere, Unreadable
from gateway.mirror.members import seconds
from gateway.mirror.pages import Listing, pages
from gateway.mirror.records import RemoteRecipe, recipe_of
from gateway.mirror.run import PENDING, Patience, Run
from gateway.mirror.tally import RECIPES
from gateway.services.library import new_token
from gateway.store.protocol import Mirrored
from gateway.store.queries import Days, RecipeSearch

KIND = "recipe"
"""Under which copied recipes are remembered."""

LISTED = "listed"
"""Under which is remembered how far lists were read to their end, by kind of record."""

PAGE = 20
"""Recipes in a page: the service's maximum with ingredients."""

CHAIN = 8
"""Recipes that were copied from one another and are fetched together at most."""

SAME_DAY = 10_000
"""Recipes made on one day that are looked through for one that a crash left unfinished."""


Elsewhere = Callable[[], Awaitable[Any]]
"""Gives the record of a recipe as something other than a recipe's own endpoint shows it, or None."""


class RecipeCopies:
    """The recipes of one run; `known` is what is here, by the id there."""

    def __init__(self, run: Run, known: dict[str, Mirrored]) -> None:
        self._run = run
        self.known = known
        self._counts = run.tally.counts[RECIPES]
        self._complete = True
        self._beerxml = Patience()
        self._under_way: set[str] = set()
        self._gone: set[str] = set()

    async def copy_all(self) -> None:
        """Every recipe that was changed since the last list which was read to its end without a failure."""
        listed = (await self._run.known(LISTED)).get(KIND)
        since = 0 if listed is None else seconds(listed.remote_updated_at) or 0
        query = {"ingredients": "true", "snapshots": "true", "sort": "created_at:1"}
        if since:
            query["updated_from"] = self._run.day_before(since)
        newest, done = since, 0
        async for page in pages(self._run.service, Listing("/v1/recipes", RECIPES, PAGE, query), self._lost):
            for value in page.records:
                remote = await self._copy(value)
                if remote is not None:
                    newest = max(newest, remote.recipe.updated_at)
            done += len(page.records)
            self._run.progress(done, max(done, page.total or 0), RECIPES)
        if self._complete and newest > since:
            stamp = datetime.fromtimestamp(newest, UTC).isoformat()
            await self._run.remember(LISTED, Mirrored(KIND, "", stamp))

    async def link(self, remote_id: str | None, shown: Elsewhere | None = None) -> tuple[int | None, bool]:
        """Our id of a recipe there, copied now if need be, and whether that is settled.

        None where there is none to be had; `shown` gives its record as something else shows it.
        """
        if remote_id is None:
            return None, True
        settled = True
        if remote_id not in self.known and self._may_fetch(remote_id):
            try:
                settled = await self._fetch(remote_id, shown)
            except Unreadable as error:
                self._lost(f"{remote_id}: {error}")
                settled = False
        entry = self.known.get(remote_id)
        return (int(entry.local_id) if entry is not None and entry.local_id != PENDING else None), settled

    def _may_fetch(self, remote_id: str) -> bool:
        followed = self._under_way
        return remote_id not in self._gone and remote_id not in followed and len(followed) < CHAIN

    async def _fetch(self, remote_id: str, shown: Elsewhere | None) -> bool:
        """Whether it was copied, or certainly is not there."""
        value: object = None
        try:
            document = await self._run.service.json(f"/v1/recipes/{remote_id}")
            found = document.get(RECIPES)
            value = found[0] if isinstance(found, list) and found else None
        except NotThere:
            pass
        if value is None and shown is not None:
            value = await shown()
        if value is None:
            self._gone.add(remote_id)
            return True
        return await self._copy(value) is not None

    async def _copy(self, value: object) -> RemoteRecipe | None:
        """One record, if it is new or changed; what was read of it."""
        try:
            remote = recipe_of(value, self._run.account_id, self._run.now)
            if not remote.deleted:
                await self._copy_read(remote)
        except (InvalidInput, Unreadable) as error:
            self._lost(f"{_id_in(value)}: {error}")
            return None
        return remote

    async def _copy_read(self, remote: RemoteRecipe) -> None:
        before = self.known.get(remote.id)
        if before is None:
            await self._write(remote, None)
            return
        if before.remote_updated_at == remote.version:
            self._counts.unchanged += 1
            return
        here = await self._here(before, remote)
        deleted_here = here is None and before.local_id != PENDING
        changed_here = here is not None and here.updated_at > remote.recipe.updated_at
        if deleted_here or changed_here:
            self._counts.kept += 1
            local_id = before.local_id if here is None else str(here.id)
            await self._remember(Mirrored(remote.id, local_id, remote.version))
        else:
            await self._write(remote, here)

    async def _here(self, before: Mirrored, remote: RemoteRecipe) -> Recipe | None:
        """The copy; one that was being added when we were interrupted is known by its token and time."""
        if before.local_id != PENDING:
            return await self._run.store.recipes.get(int(before.local_id))
        recipe = remote.recipe
        day = datetime.fromtimestamp(recipe.created_at, UTC).date()
        copies = {entry.local_id for entry in self.known.values()}
        _, found = await self._run.store.recipes.search(
            RecipeSearch(account_id=recipe.account_id, created=Days(day, day), snapshots=True, limit=SAME_DAY)
        )
        for candidate in found:
            same_time = candidate.created_at == recipe.created_at
            same_token = candidate.token == recipe.token or not recipe.token
            if same_time and same_token and str(candidate.id) not in copies:
                return candidate
        return None

    async def _write(self, remote: RemoteRecipe, here: Recipe | None) -> None:
        self._under_way.add(remote.id)
        try:
            parent_id, settled = await self.link(remote.parent_id)
        finally:
            self._under_way.discard(remote.id)
        content, finished = await self._content(remote)
        recipe = replace(
            remote.recipe,
            content=content,
            parent_id=parent_id,
            folder_id=await self._run.folder_id("recipe", remote.folder),
            token=remote.recipe.token or (new_token() if here is None else here.token),
        )
        if here is None:
            recipe = await self._add(remote.id, recipe)
            self._counts.copied += 1
        else:
            recipe = replace(recipe, id=here.id)
            await self._run.store.recipes.update(recipe)
            self._counts.updated += 1
        version = remote.version if finished and settled else PENDING
        await self._remember(Mirrored(remote.id, str(recipe.id), version))

    async def _add(self, remote_id: str, recipe: Recipe) -> Recipe:
        """Under its own id where that is free. What is about to be added is noted before, with it."""
        recipes = self._run.store.recipes
        pending = self._remember(Mirrored(remote_id, PENDING, PENDING))
        try:
            _, added = await asyncio.gather(pending, recipes.add(recipe))
        except NameTaken:
            added = await recipes.add(replace(recipe, id=0))
        return added

    async def _remember(self, entry: Mirrored) -> None:
        self.known[entry.remote_id] = entry
        await self._run.remember(KIND, entry)

    async def _content(self, remote: RemoteRecipe) -> tuple[RecipeContent, bool]:
        """What it says, and whether that is all there is to be had."""
        said = remote.recipe.content
        parsed, finished = await self._parsed(remote)
        record = {**dict.fromkeys(CONTENT_MEMBERS), **said.record}
        if parsed is None:
            return RecipeContent(record, said.ingredients, skeleton(record, said.ingredients)), finished
        full = parsed.content
        ingredients = said.ingredients if remote.with_ingredients else full.ingredients
        return RecipeContent({**full.record, **said.record}, ingredients, full.beerxml), finished

    async def _parsed(self, remote: RemoteRecipe) -> tuple[ParsedRecipe | None, bool]:
        """Its BeerXML, made valid, and whether asking again later would be of no use."""
        if self._beerxml.lost:
            self._complete = False
            return None, False
        try:
            path, media = f"/v1/recipes/{remote.id}.xml", "application/xml, */*"
            document = await self._run.service.document(path, None, media, DOCUMENT_BYTES)
            self._beerxml.succeeded()
            found = await asyncio.to_thread(parse, document)
            return (found[0], True) if found else self._without_beerxml(remote, "there is no recipe in it")
        except (NotThere, InvalidInput, TooLarge) as error:
            return self._without_beerxml(remote, str(error))
        except Unreadable as error:
            self._beerxml.failed()
            self._complete = False
            return self._without_beerxml(remote, str(error))[0], False

    def _without_beerxml(self, remote: RemoteRecipe, reason: str) -> tuple[None, bool]:
        self._run.tally.report(f"recipe {remote.id}: its BeerXML was made from its record, as: {reason}")
        return None, True

    def _lost(self, line: str) -> None:
        self._complete = False
        self._run.tally.failed(RECIPES, f"recipe {line}")


def _id_in(value: object) -> str:
    """What to call a record that cannot be read."""
    return str(value.get("id"))[:20] if isinstance(value, dict) else "without an id"
