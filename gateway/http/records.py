"""Finding the record of a path for its owner: what belongs to another account does not exist."""

from typing import Any

from gateway.domain.brewsession import BrewSession
from gateway.domain.photo import Photo
from gateway.domain.recipe import Recipe
from gateway.errors import NotFound
from gateway.http.endpoint import Call


async def own_session(call: Call[Any, Any]) -> BrewSession:
    """The brew session that the path names."""
    session = await call.store.sessions.get(call.path_id("brew_session_id"))
    if session is None or not call.caller.may_see(session.account_id):
        raise NotFound
    return session


async def own_recipe(call: Call[Any, Any]) -> Recipe:
    """The recipe that the path names."""
    recipe = await call.store.recipes.get(call.path_id("recipe_id"))
    if recipe is None or not call.caller.may_see(recipe.account_id):
        raise NotFound
    return recipe


async def photo_of(call: Call[Any, Any], recipe: Recipe, uuid: str) -> Photo:
    """The recipe's photo; uuids are the same in any case."""
    photo = await call.store.photos.get(recipe.id, uuid.lower())
    if photo is None:
        raise NotFound
    return photo
