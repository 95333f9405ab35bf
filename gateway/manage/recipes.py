"""`/manage/recipes`: importing recipes from BeerXML or BeerJSON, filing and deleting them."""

from typing import Any

from pydantic import Field

from gateway.api.recipes import OneRecipe, with_ingredients
from gateway.domain.recipe import DOCUMENT_BYTES
from gateway.http.endpoint import (
    JSON,
    AnswerModel,
    Body,
    Call,
    Document,
    Done,
    Endpoint,
    Page,
    Query,
    read_document,
)
from gateway.http.parameters import Number, RecordNumber
from gateway.http.records import own_recipe


class BeerJson(AnswerModel):
    """A BeerJSON 1.0 document; of all that it can hold, the recipes are taken."""

    beerjson: dict[str, Any]


DOCUMENT = Document(("application/xml", "text/xml", JSON), DOCUMENT_BYTES, BeerJson)


class ImportedRecipe(AnswerModel):
    """A recipe that was stored; `changes` says line by line what its document had to be corrected in."""

    id: str
    title: str
    changes: list[str]


class ImportedRecipes(Page):
    """All recipes of a document, in its order."""

    recipes: list[ImportedRecipe]


class ImportRecipesQuery(Query):
    """Where the recipes go."""

    folder_id: Number | None = Field(default=None, description="Recipe folder; none without it.")


class RecipeChange(Body):
    """What to change of a recipe: what it says comes from its document alone."""

    folder_id: RecordNumber = Field(description="Recipe folder; 0 takes it out of its folder.")


async def import_recipes(call: Call[ImportRecipesQuery, None]) -> ImportedRecipes:
    """Take all recipes of a BeerXML or BeerJSON document, or none."""
    body = await read_document(call.request, DOCUMENT)
    folder_id = call.query.folder_id or None
    imported = await call.services.library.import_document(call.caller.account_id, body, folder_id)
    recipes = [ImportedRecipe(id=str(r.id), title=r.title, changes=r.changes) for r in imported]
    return ImportedRecipes(count=str(len(recipes)), recipes=recipes)


async def file_recipe(call: Call[Query, RecipeChange]) -> OneRecipe:
    """Put a recipe into a folder, or take it out."""
    await call.services.library.file(await own_recipe(call), call.body.folder_id or None)
    return OneRecipe(recipes=[with_ingredients(await own_recipe(call))])


async def delete_recipe(call: Call[Query, None]) -> Done:
    """Delete a recipe; brew sessions keep the copies that they took."""
    await call.services.library.delete(await own_recipe(call))
    return Done()


ENDPOINTS = (
    Endpoint(
        "POST",
        "/manage/recipes",
        import_recipes,
        "Import recipes from BeerXML or BeerJSON, all or none",
        ImportRecipesQuery,
        ImportedRecipes,
        body=DOCUMENT,
        refusals=(404,),
    ),
    Endpoint(
        "PATCH",
        "/manage/recipes/{recipe_id}",
        file_recipe,
        "Put a recipe into a folder",
        Query,
        OneRecipe,
        body=RecipeChange,
    ),
    Endpoint(
        "DELETE",
        "/manage/recipes/{recipe_id}",
        delete_recipe,
        "Delete a recipe",
        Query,
        Done,
    ),
)
"""Recipes."""
