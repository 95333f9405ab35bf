"""Commands on photos of recipes."""

from gateway.commands.base import Arguments, Command, Progress, as_bytes
from gateway.commands.recipes import recipe_of
from gateway.services.build import Services


async def _add(services: Services, arguments: Arguments, _: Progress) -> str:
    """Its uuid."""
    recipe = await recipe_of(services, arguments["recipe_id"])
    data = as_bytes(arguments["data"])
    photo = await services.photos.add(recipe.id, data, arguments["filename"], arguments["caption"])
    return photo.uuid


async def _delete(services: Services, arguments: Arguments, _: Progress) -> None:
    recipe = await recipe_of(services, arguments["recipe_id"])
    await services.photos.remove(recipe.id, arguments["uuid"])


COMMANDS: dict[str, Command] = {"photos.add": _add, "photos.delete": _delete}
