"""`/manage/recipes`: importing recipes from BeerXML or BeerJSON, filing and deleting them."""

import asyncio
from typing import Annotated, Any, Literal

from aiohttp import hdrs, web
from pydantic import BeforeValidator, Field, WithJsonSchema

from gateway.api.recipes import XML, OneRecipe, Recipes, record_of, with_ingredients
from gateway.domain.recipe import DOCUMENT_BYTES, Recipe
from gateway.domain.texts import decimal_digits
from gateway.errors import InvalidInput
from gateway.http.endpoint import (
    JSON,
    AnswerModel,
    Body,
    Call,
    Document,
    Done,
    Endpoint,
    Media,
    Page,
    Query,
    read_document,
)
from gateway.http.parameters import Count, Flag, Number, RecordNumber
from gateway.http.records import own_recipe
from gateway.store.queries import Order, RecipeSearch

LISTED = 1000
"""Recipes in one answer at most."""


def _ids(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    texts = [text.strip() for text in value.split(",")]
    if not all(map(decimal_digits, texts)) or len(texts) > LISTED:
        raise ValueError(f"must be at most {LISTED} ids of recipes, with commas between them")
    return [int(text) for text in texts]


Ids = Annotated[
    list[int],
    BeforeValidator(_ids),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,15}(,[0-9]{1,15})*$"}),
]


class BeerJson(AnswerModel):
    """A BeerJSON 1.0 document; only its recipes are imported."""

    beerjson: dict[str, Any]


DOCUMENT = Document(("application/xml", "text/xml", JSON), DOCUMENT_BYTES, BeerJson)


class ImportedRecipe(AnswerModel):
    """A recipe that was stored; `changes` lists the corrections to its document, one a line."""

    id: str
    title: str
    changes: list[str]


class ImportedRecipes(Page):
    """All recipes of a document, in its order."""

    recipes: list[ImportedRecipe]


class ImportRecipesQuery(Query):
    """Options of an import."""

    all_changes: Flag = Field(
        default=False, description="Tell every change of a recipe, not only the first few hundred."
    )

    folder_id: Number | None = Field(default=None, description="Recipe folder; none without it.")


class RecipeChange(Body):
    """A change to a recipe; only its folder can change, because its content is its document."""

    folder_id: RecordNumber = Field(description="Recipe folder; 0 takes it out of its folder.")


class RecipeListQuery(Query):
    """Choice of recipes."""

    keyword: str = Field(default="", description="Part of the title, an ingredient, the notes or the style.")
    snapshots: Flag = Field(default=False, description="Also the copies that brew sessions took.")
    limit: Count = Field(default=LISTED, description=f"Recipes in the answer; above {LISTED} it is {LISTED}.")
    offset: Count = Field(default=0, description="Recipes to leave out, from the oldest.")


class RecipesFiling(Body):
    """Recipes to put into a folder, all or none."""

    recipe_ids: list[RecordNumber] = Field(min_length=1, max_length=LISTED)
    folder_id: RecordNumber = Field(description="Recipe folder; 0 takes them out of their folders.")


class ExportQuery(Query):
    """Choice of the recipes to export."""

    ids: Ids = Field(description="Recipe ids with commas between them.")


class DeletedRecipe(AnswerModel):
    """The recipe that was deleted."""

    message: Literal["success"] = "success"
    title: str


async def list_recipes(call: Call[RecipeListQuery, None]) -> Recipes:
    """List a page of an account's recipes, the oldest first."""
    query = call.query
    search = RecipeSearch(
        account_id=call.caller.account_id,
        keyword=query.keyword,
        snapshots=query.snapshots,
        order=Order(descending=False),
        limit=min(query.limit, LISTED),
        offset=query.offset,
    )
    count, found = await call.store.recipes.search(search)
    records = [record_of(recipe) for recipe in found]
    return Recipes.model_construct(message="success", count=str(count), recipes=records)


async def file_recipes(call: Call[Query, RecipesFiling]) -> Done:
    """Put recipes into a folder, or take them out; all or none."""
    folder_id, library = call.body.folder_id or None, call.services.library
    recipes = [await _recipe(call, recipe_id) for recipe_id in call.body.recipe_ids]
    if folder_id is not None:
        for recipe in recipes:
            await library.own_folder(recipe.account_id, folder_id, "recipe")
    now = int(call.services.clock.now())
    await call.store.recipes.file([recipe.id for recipe in recipes], folder_id, now)
    return Done()


async def export_recipes(call: Call[ExportQuery, None]) -> web.Response:
    """Write recipes as one BeerXML document."""
    from gateway.formats import beerxml  # here, because it costs memory that most gateways need not pay

    recipes = [await _recipe(call, recipe_id) for recipe_id in call.query.ids]
    document = await asyncio.to_thread(beerxml.document, [recipe.content.beerxml for recipe in recipes])
    return web.Response(body=document, headers={hdrs.CONTENT_TYPE: f"{XML}; charset=UTF-8"})


async def _recipe(call: Call[Any, Any], recipe_id: int) -> Recipe:
    """Return one of several recipes; `InvalidInput` names the id if there is none."""
    recipe = await call.store.recipes.get(recipe_id)
    if recipe is None or not call.caller.may_see(recipe.account_id):
        # No 404, because its body does not say which of the recipes is missing.
        raise InvalidInput(f"no recipe {recipe_id}; `recipes list` shows them")
    return recipe


async def import_recipes(call: Call[ImportRecipesQuery, None]) -> ImportedRecipes:
    """Import all recipes of a BeerXML or BeerJSON document, or none."""
    body = await read_document(call.request, DOCUMENT)
    folder_id, account_id, progress = call.query.folder_id or None, call.caller.account_id, call.progress
    if folder_id is not None and (folder := await call.store.folders.get(folder_id)) is not None:
        account_id = call.caller.account_beside(folder.account_id)
    imported = await call.services.library.import_document(
        account_id,
        body,
        folder_id,
        progress,
        all_changes=call.query.all_changes,
    )
    recipes = [ImportedRecipe(id=str(r.id), title=r.title, changes=r.changes) for r in imported]
    return ImportedRecipes(count=str(len(recipes)), recipes=recipes)


async def file_recipe(call: Call[Query, RecipeChange]) -> OneRecipe:
    """Put a recipe into a folder, or take it out."""
    await call.services.library.file(await own_recipe(call), call.body.folder_id or None)
    return OneRecipe(recipes=[with_ingredients(await own_recipe(call))])


async def delete_recipe(call: Call[Query, None]) -> DeletedRecipe:
    """Delete a recipe; brew sessions keep the copies that they took."""
    recipe = await own_recipe(call)
    await call.services.library.delete(recipe)
    return DeletedRecipe(title=recipe.content.title)


ENDPOINTS = (
    Endpoint("GET", "/manage/recipes", list_recipes, "Recipes, the oldest first", RecipeListQuery, Recipes),
    Endpoint(
        "PATCH",
        "/manage/recipes",
        file_recipes,
        "Put recipes into a folder, all or none",
        Query,
        Done,
        body=RecipesFiling,
        refusals=(404,),
    ),
    Endpoint(
        "GET",
        "/manage/recipes.xml",
        export_recipes,
        "Recipes as one BeerXML document",
        ExportQuery,
        Media((XML,)),
    ),
    Endpoint(
        "POST",
        "/manage/recipes",
        import_recipes,
        "Import recipes from BeerXML or BeerJSON, all or none",
        ImportRecipesQuery,
        ImportedRecipes,
        body=DOCUMENT,
        refusals=(404,),
        long=True,
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
        DeletedRecipe,
    ),
)
"""Recipes."""
