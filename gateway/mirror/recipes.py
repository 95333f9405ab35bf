"""Copy recipes: record and ingredients as JSON, BeerXML with them, snapshots after their originals."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from gateway.domain.recipe import CONTENT_MEMBERS, DOCUMENT_BYTES, INGREDIENT_KINDS, Recipe, RecipeContent
from gateway.errors import InvalidInput, NameTaken, TooLarge
from gateway.formats.recipes import ParsedRecipe, parse, skeleton
from gateway.mirror.client import NotThere, RemoteUnreadable
from gateway.mirror.counts import RECIPES
from gateway.mirror.links import Links, edited_since, went_back
from gateway.mirror.merging import Members, compare, digests_from_json, digests_of, digests_to_json
from gateway.mirror.pages import Listing, read_first_page, read_pages
from gateway.mirror.records import SourceRecipe, recipe_of
from gateway.mirror.run import PENDING, FailureLimit, Run
from gateway.mirror.validate import seconds
from gateway.services.library import new_token
from gateway.store.queries import Days, RecipeSearch
from gateway.store.records import Mirrored

KIND = "recipe"
"""The kind of note under which copied recipes are remembered."""

LISTED = "listed"
"""The kind of note under which the state of lists that were read to their end is remembered."""

PAGE = 20
"""Recipes in a page: the service's maximum with ingredients."""

DOCUMENT, FOLDER = "<RECIPE>", "<folder>"
"""Names of BeerXML and folder among a recipe's members; no member of a record can have such a name."""

CHAIN = 8
"""Originals that are followed at most, from a copy to the recipe that it was copied from."""

SAME_DAY = 10_000
"""Recipes of one day that are searched at most for one that a crash left unfinished."""


Fallback = Callable[[], Awaitable[Any]]
"""Returns the record of a recipe from another place than the recipe's own endpoint, or None."""


class RecipeCopies:
    """Copies the recipes of one run; `links` hold the copies by the id at the service."""

    def __init__(self, run: Run, links: Links) -> None:
        self._run = run
        self.links = links
        self.seen: set[str] = set()
        """Ids whose records were read in this run: the recipes of these numbers are certain."""
        self.read_whole = False
        """True once the whole list was read in this run."""
        self._counts = run.result.counts[RECIPES]
        self._complete = True
        self._beerxml = FailureLimit()
        self._under_way: set[str] = set()
        self._gone: set[str] = set()
        self._newest = 0

    async def copy_all(self) -> None:
        """Copy recipes that were changed since the last list that was read without a failure.

        Copy the whole list if more must have changed: recipes with older times, or under other numbers.
        """
        listed = (await self._run.mirrored(LISTED)).get(KIND)
        self._newest = 0 if listed is None else seconds(listed.remote_updated_at) or 0
        if listed is None or not self._newest:
            await self.copy_whole()
            return
        copied = self._counts.copied
        await self._copy_list({"updated_from": self._run.day_before(self._newest)})
        total = json.loads(listed.said or "{}").get("total")
        expected = None if total is None else total + self._counts.copied - copied
        page = await read_first_page(self._run.service, _listing({}, 1))
        if page.total == expected and await self._begins_as_before(page.records):
            await self._remember_list(page.total)
        else:
            await self.copy_whole()

    async def copy_whole(self) -> None:
        """Copy every recipe of the service."""
        self.read_whole = True
        await self._remember_list(await self._copy_list({}))

    async def _copy_list(self, query: dict[str, str]) -> int | None:
        """Copy the recipes of a list. Return their number if the service gives it."""
        done, total = 0, None
        listing = _listing({"ingredients": "true", **query}, PAGE)
        async for page in read_pages(self._run.service, listing, self._lost):
            for value in page.records:
                remote = await self._copy(value)
                if remote is not None:
                    self._newest = max(self._newest, remote.recipe.updated_at)
            done, total = done + len(page.records), page.total
            self._run.progress(done, max(done, page.total or 0), RECIPES)
        return total

    async def _remember_list(self, total: int | None) -> None:
        if self._complete and self._newest:
            stamp = datetime.fromtimestamp(self._newest, UTC).isoformat()
            await self._run.remember(LISTED, Mirrored(KIND, "", stamp, said=json.dumps({"total": total})))

    async def _begins_as_before(self, oldest: list[Any]) -> bool:
        """Return whether the oldest recipe is as in earlier runs; a service that began afresh has another."""
        if not oldest:
            return True
        try:
            identity = recipe_of(oldest[0], self._run.account_id, self._run.now).identity
        except InvalidInput:
            return True
        entry = self.links.get(identity.id)
        return entry is not None and identity.is_of(entry)

    async def resolve(
        self, remote_id: str | None, fallback: Fallback | None = None
    ) -> tuple[int | None, bool]:
        """Return our id of a recipe of the service, copied now if need be, and whether the id is final.

        The id is None if the recipe cannot be copied. `fallback` gives its record from another place.
        """
        if remote_id is None:
            return None, True
        settled = True
        # A number that was not seen in this run is asked for, because it may be another recipe's by now.
        may_fetch = remote_id not in self._gone | self._under_way and len(self._under_way) < CHAIN
        if remote_id not in self.seen and may_fetch:
            try:
                settled = await self._fetch(remote_id, None if self.links.get(remote_id) else fallback)
            except RemoteUnreadable as error:
                self._lost(f"{remote_id}: {error}")
                settled = False
        entry = self.links.get(remote_id)
        if entry is None or entry.local_id == PENDING:
            return None, settled
        certain = remote_id in self.seen or not self._run.result.renumbered
        return int(entry.local_id) if certain else None, settled

    def copies(self) -> dict[str, int]:
        """Return our ids by the ids at the service; after a renumbering, of recipes seen in this run."""
        return {
            remote_id: int(local_id)
            for remote_id, local_id in self.links.copies().items()
            if remote_id in self.seen or not self._run.result.renumbered
        }

    async def _fetch(self, remote_id: str, fallback: Fallback | None) -> bool:
        """Fetch and copy a recipe. Return whether it was copied, or certainly does not exist."""
        value: object = None
        try:
            document = await self._run.service.json(f"/v1/recipes/{remote_id}")
            found = document.get(RECIPES)
            value = found[0] if isinstance(found, list) and found else None
        except NotThere:
            pass
        if value is None and fallback is not None:
            value = await fallback()
        if value is None:
            self._gone.add(remote_id)
            return True
        return await self._copy(value) is not None

    async def _copy(self, value: object) -> SourceRecipe | None:
        """Copy a record if it is new or changed. Return it as it was read; None if it is unreadable."""
        try:
            remote = recipe_of(value, self._run.account_id, self._run.now)
            if not remote.deleted:
                await self._copy_read(remote)
        except (InvalidInput, RemoteUnreadable) as error:
            name = str(value.get("id"))[:20] if isinstance(value, dict) else "without an id"
            self._lost(f"{name}: {error}")
            return None
        return remote

    async def _copy_read(self, remote: SourceRecipe) -> None:
        before = await self.links.find(remote.identity)
        self.seen.add(remote.id)
        if before is None:
            await self._write(remote, None)
        elif before.remote_updated_at == remote.version:
            self._counts.unchanged += 1
        elif went_back(before, remote.version):
            self._counts.kept += 1
        else:
            await self._write(remote, before)

    async def _find_copy(self, before: Mirrored, remote: SourceRecipe) -> Recipe | None:
        """Return the copy of a recipe; find a copy that a crash left unfinished by its token and time."""
        if before.local_id != PENDING:
            return await self._run.store.recipes.get(int(before.local_id))
        recipe = remote.recipe
        day = datetime.fromtimestamp(recipe.created_at, UTC).date()
        copies = set(self.links.local_ids())
        _, found = await self._run.store.recipes.search(
            RecipeSearch(account_id=recipe.account_id, created=Days(day, day), snapshots=True, limit=SAME_DAY)
        )
        for candidate in found:
            same_time = candidate.created_at == recipe.created_at
            same_token = candidate.token == recipe.token or not recipe.token
            if same_time and same_token and str(candidate.id) not in copies:
                return candidate
        return None

    async def _write(self, remote: SourceRecipe, before: Mirrored | None) -> None:
        self._under_way.add(remote.id)
        try:
            parent_id, settled = await self.resolve(remote.parent_id)
        finally:
            self._under_way.discard(remote.id)
        content, finished = await self._content(remote)
        there = replace(
            remote.recipe,
            content=content,
            parent_id=parent_id,
            folder_id=await self._run.folder_id("recipe", remote.folder),
            folder_name=remote.folder,
            token=remote.recipe.token or new_token(),
        )
        local_id = "" if before is None else before.local_id
        digests = digests_to_json(digests_of(_members(there)))
        # Read only now, because requests took their time and the copy may have changed.
        here = None if before is None else await self._find_copy(before, remote)
        if before is None or (here is None and local_id == PENDING):
            try:
                added = await self.links.add_recipe(remote.identity, there)
            except NameTaken:  # its own id is not free: a new id
                added = await self.links.add_recipe(remote.identity, replace(there, id=0))
            local_id = str(added.id)
            self._counts.copied += 1
        elif here is None:
            self._counts.kept += 1  # deleted here
        else:
            local_id = str(here.id)
            await self._merge(here, there, before)
        version = remote.version if finished and settled else PENDING
        await self.links.remember(remote.identity, local_id, version, digests)

    async def _merge(self, here: Recipe, there: Recipe, before: Mirrored) -> None:
        """Take over members that changed there. Of members that both changed, the later change wins."""
        ours, theirs = _members(here), _members(there)
        last = digests_from_json(before.said)
        if last is None and not edited_since(before, here.updated_at):
            last = digests_of(ours)
        found = compare(last, ours, theirs, ours_is_later=here.updated_at > there.updated_at)
        if found.stay and not found.taken:
            self._counts.kept += 1
            return
        self._counts.updated += 1
        merged = _merged(here, there, found.taken)
        if found.stay:
            merged = replace(merged, updated_at=max(here.updated_at, there.updated_at))
        await self._run.store.recipes.update(merged)

    async def _content(self, remote: SourceRecipe) -> tuple[RecipeContent, bool]:
        """Return the content of a recipe, and whether it is complete."""
        given = remote.recipe.content
        parsed, finished = await self._parsed(remote)
        record = {**dict.fromkeys(CONTENT_MEMBERS), **given.record}
        if parsed is None:
            return RecipeContent(record, given.ingredients, skeleton(record, given.ingredients)), finished
        full = parsed.content
        ingredients = given.ingredients if remote.with_ingredients else full.ingredients
        return RecipeContent({**full.record, **given.record}, ingredients, full.beerxml), finished

    async def _parsed(self, remote: SourceRecipe) -> tuple[ParsedRecipe | None, bool]:
        """Return the BeerXML of a recipe, made valid, and whether that is final."""
        if self._beerxml.reached:
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
        except RemoteUnreadable as error:
            self._beerxml.failed()
            self._complete = False
            return self._without_beerxml(remote, str(error))[0], False

    def _without_beerxml(self, remote: SourceRecipe, reason: str) -> tuple[None, bool]:
        self._run.result.report(f"recipe {remote.id}: its BeerXML was made from its record, as: {reason}")
        return None, True

    def _lost(self, line: str) -> None:
        self._complete = False
        self._run.result.failed(RECIPES, f"recipe {line}")


def _listing(query: dict[str, str], size: int) -> Listing:
    return Listing("/v1/recipes", RECIPES, size, {"snapshots": "true", "sort": "created_at:1", **query})


def _members(recipe: Recipe) -> Members:
    """Return the members that can be changed on either side."""
    content = recipe.content
    lists = {kind: json.dumps(found, sort_keys=True) for kind, found in content.ingredients.items() if found}
    return {**content.record, **lists, DOCUMENT: content.beerxml, FOLDER: recipe.folder_name}


def _merged(here: Recipe, there: Recipe, taken: frozenset[str]) -> Recipe:
    def side(name: str) -> Recipe:
        return there if name in taken else here

    names = {**there.content.record, **here.content.record}
    content = RecipeContent(
        {name: side(name).content.record.get(name) for name in names},
        {kind: side(kind).content.ingredients.get(kind, []) for kind in INGREDIENT_KINDS},
        side(DOCUMENT).content.beerxml,
    )
    return replace(there, id=here.id, content=content, token=here.token, folder_id=side(FOLDER).folder_id)
