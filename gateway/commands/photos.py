"""Commands on photos of recipes."""

from gateway.commands.base import Arguments, Command, Progress, as_bytes
from gateway.commands.recipes import recipe_of
from gateway.services.build import Parts


async def _add(parts: Parts, arguments: Arguments, _: Progress) -> str:
    """Its uuid."""
    recipe = await recipe_of(parts, arguments["recipe_id"])
    data = as_bytes(arguments["data"])
    photo = await parts.photos.add(recipe.id, data, arguments["filename"], arguments["caption"])
    return photo.uuid


async def _delete(parts: Parts, arguments: Arguments, _: Progress) -> None:
    recipe = await recipe_of(parts, arguments["recipe_id"])
    await parts.photos.remove(recipe.id, arguments["uuid"])


COMMANDS: dict[str, Command] = {"photos.add": _add, "photos.delete": _delete}
