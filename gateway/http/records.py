"""Find the record that a path names. A record of another account counts as missing."""

from typing import Any

from gateway.domain.brewsession import BrewSession
from gateway.domain.photo import Photo
from gateway.domain.recipe import Recipe
from gateway.errors import NotFound
from gateway.http.endpoint import Call


async def own_session(call: Call[Any, Any]) -> BrewSession:
    """Return the brew session that the path names; `NotFound` if the caller has none with that id."""
    session = await call.store.sessions.get(call.path_id("brew_session_id"))
    if session is None or not call.caller.may_see(session.account_id):
        raise NotFound
    return session


async def own_recipe(call: Call[Any, Any]) -> Recipe:
    """Return the recipe that the path names; `NotFound` if the caller has none with that id."""
    recipe = await call.store.recipes.get(call.path_id("recipe_id"))
    if recipe is None or not call.caller.may_see(recipe.account_id):
        raise NotFound
    return recipe


async def photo_of(call: Call[Any, Any], recipe: Recipe, uuid: str) -> Photo:
    """Return the recipe's photo with this uuid, in upper or lower case; `NotFound` if there is none."""
    photo = await call.store.photos.get(recipe.id, uuid.lower())
    if photo is None:
        raise NotFound
    return photo
