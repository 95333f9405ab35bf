"""Commands on recipes, of any account: the command line belongs to whoever owns the data."""

from typing import Any

from gateway.commands.base import Arguments, Command, Progress, as_bytes
from gateway.commands.folders import folder_of
from gateway.domain.recipe import Recipe
from gateway.errors import NotFound
from gateway.services.build import Services

CHANGES_SENT = 10
"""Lines of a recipe's report, unless all are asked for: what is wrong is mostly wrong everywhere in it."""


async def _import(services: Services, arguments: Arguments, progress: Progress) -> list[dict[str, Any]]:
    folder_id, all_changes = arguments["folder_id"], arguments.get("all_changes", False)
    imported = await services.library.import_document(
        await _account_id(services, arguments["account"], folder_id),
        as_bytes(arguments["document"]),
        folder_id,
        progress,
        all_changes=all_changes,
    )
    most = None if all_changes else CHANGES_SENT
    return [
        {"id": r.id, "title": r.title, "changes": r.changes[:most], "changed": len(r.changes)}
        for r in imported
    ]


async def _account_id(services: Services, name: str | None, folder_id: int | None) -> int:
    """The named account, else the folder's, else the owner's."""
    if name is None and folder_id is not None:
        return (await folder_of(services, folder_id)).account_id
    return await services.access.account_id(name)


async def _file(services: Services, arguments: Arguments, _: Progress) -> None:
    folder_id = arguments["folder_id"] or None
    recipes = [await recipe_of(services, recipe_id) for recipe_id in arguments["recipe_ids"]]
    for recipe in recipes:
        if folder_id is not None:
            await services.library.own_folder(recipe.account_id, folder_id, "recipe")
    ids = [recipe.id for recipe in recipes]
    await services.store.recipes.file(ids, folder_id, int(services.clock.now()))


async def _delete(services: Services, arguments: Arguments, _: Progress) -> str:
    """Its title."""
    recipe = await recipe_of(services, arguments["recipe_id"])
    await services.library.delete(recipe)
    return recipe.content.title


async def recipe_of(services: Services, recipe_id: int) -> Recipe:
    """The recipe with this id, of whatever account."""
    recipe = await services.store.recipes.get(recipe_id)
    if recipe is None:
        raise no_recipe(recipe_id)
    return recipe


def no_recipe(recipe_id: int) -> NotFound:
    """What is said of an id that no recipe has."""
    return NotFound(f"no recipe {recipe_id}; `recipes list` shows them")


COMMANDS: dict[str, Command] = {
    "recipes.import": _import,
    "recipes.file": _file,
    "recipes.delete": _delete,
}
