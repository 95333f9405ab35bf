"""`/v1/recipes`: endpoints 3 to 5, a recipe as BeerXML, the search for recipes, and one recipe."""

import json
from typing import Literal

from aiohttp import hdrs, web
from pydantic import ConfigDict, Field

from gateway.api.searching import LIMIT, SearchQuery
from gateway.domain.recipe import INGREDIENT_KINDS, Recipe
from gateway.domain.times import stamp
from gateway.http.endpoint import AnswerModel, Call, Endpoint, Media, Page, Query, Single
from gateway.http.parameters import Count, Flag, RecipeOrder
from gateway.http.records import own_recipe
from gateway.store.queries import Order, RecipeSearch

LIMIT_MAX = 100
LIMIT_MAX_WITH_INGREDIENTS = 20
"""The most recipes with ingredients in one answer. A higher limit is clamped, not refused."""

XML = "application/xml"

Ingredient = dict[str, str | None]


class RecipeRecord(AnswerModel):
    """A recipe without its ingredients. As in the service, every member is text or null."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str | None]

    id: str
    recipetoken: str
    brewer_author_id: str
    title: str
    folder_id: str | None
    folder_name: str | None
    author: str | None
    brewmethod: str | None
    styleid: str | None
    stylename: str
    batchsize: str | None
    batchsizeunit: str | None
    boilsize: str | None
    boiltime: str | None
    boilgravity: str | None
    efficiency: str | None
    displayunits: str | None
    sugar_scale: str | None
    og: str | None
    fg: str | None
    abv: str | None
    ibutinseth: str | None
    srmmorey: str | None
    srmecbmorey: str | None
    notes: str | None
    url: str | None
    public: str
    deleted: Literal["0"]
    copy_parent_id: str | None
    snapshot: Literal["0", "1"]
    group_id: str | None
    created_at: str
    updated_at: str
    brew_sessions: str = Field(description="JSON text: an array of objects with breweventid and userdate.")
    brew_count: str


class RecipeWithIngredients(RecipeRecord):
    """A recipe with its ingredients. The members of an ingredient are text or null."""

    fermentables: list[Ingredient]
    hops: list[Ingredient]
    yeasts: list[Ingredient]
    mashsteps: list[Ingredient]
    others: list[Ingredient]


class Recipes(Page):
    """Recipes; `count` is the number of all that match, whatever limit and offset are."""

    recipes: list[RecipeWithIngredients] | list[RecipeRecord]


class OneRecipe(Single):
    """A recipe with its ingredients, as the only record of an answer."""

    recipes: list[RecipeWithIngredients] = Field(min_length=1, max_length=1)


class RecipesQuery(SearchQuery):
    """A search for recipes. A recipe must match every member that is given."""

    ingredients: Flag = Field(default=False, description="With ingredients; then the limit is 20 at most.")
    author: str | None = Field(default=None, description="The author's name, in any case.")
    sort: RecipeOrder = Field(
        default_factory=Order,
        description="created_at, updated_at or title; then :1 for ascending or :-1 for descending.",
    )
    keyword: str = Field(default="", description="Part of the title, an ingredient, the notes or the style.")
    snapshots: Flag = Field(default=False, description="Also the copies that brew sessions took.")
    limit: Count = Field(default=LIMIT, description="Recipes in the answer; more than 100 is taken as 100.")


async def search_recipes(call: Call[RecipesQuery, None]) -> Recipes:
    """Answer endpoint 4: a page of the recipes that match."""
    asked = call.query
    filters = asked.filters(
        call.caller.account_id, LIMIT_MAX_WITH_INGREDIENTS if asked.ingredients else LIMIT_MAX
    )
    search = RecipeSearch(**filters, author=asked.author, snapshots=asked.snapshots, whole=asked.ingredients)
    count, found = await call.store.recipes.search(search)
    records = [with_ingredients(r) if asked.ingredients else record_of(r) for r in found]
    return Recipes.model_construct(message="success", count=str(count), recipes=records)


async def one_recipe(call: Call[Query, None]) -> OneRecipe:
    """Answer endpoint 5: one recipe with its ingredients."""
    return OneRecipe(recipes=[with_ingredients(await own_recipe(call))])


async def recipe_as_beerxml(call: Call[Query, None]) -> web.Response:
    """Answer endpoint 3: one recipe as a BeerXML document."""
    from gateway.formats import beerxml  # here, because it costs memory that most gateways need not pay

    recipe = await own_recipe(call)
    return web.Response(
        body=beerxml.document([recipe.content.beerxml]), headers={hdrs.CONTENT_TYPE: f"{XML}; charset=UTF-8"}
    )


def record_of(recipe: Recipe) -> RecipeRecord:
    """Make the recipe's record for lists and sessions."""
    return RecipeRecord.model_validate(_members(recipe))


def with_ingredients(recipe: Recipe) -> RecipeWithIngredients:
    """Make the recipe's record with the arrays of its ingredients."""
    arrays = {kind: recipe.content.ingredients.get(kind, []) for kind in INGREDIENT_KINDS}
    return RecipeWithIngredients.model_validate({**_members(recipe), **arrays})


def _members(recipe: Recipe) -> dict[str, str | None]:
    brewed = [{"breweventid": number, "userdate": day} for number, day in recipe.brew_sessions]
    return {
        **EMPTY_RECORD,
        **recipe.content.record,
        "id": str(recipe.id),
        "recipetoken": recipe.token,
        "brewer_author_id": str(recipe.account_id),
        "title": recipe.content.title,
        "folder_id": text_or_none(recipe.folder_id),
        "folder_name": recipe.folder_name,
        "stylename": recipe.content.record.get("stylename") or "",
        "public": recipe.content.record.get("public") or "0",
        "deleted": "0",
        "copy_parent_id": text_or_none(recipe.parent_id),
        "snapshot": "1" if recipe.snapshot else "0",
        "group_id": recipe.group_id,
        "created_at": stamp(recipe.created_at),
        "updated_at": stamp(recipe.updated_at),
        "brew_sessions": json.dumps(brewed, separators=(",", ":")),
        "brew_count": str(len(brewed)),
    }


EMPTY_RECORD: dict[str, str | None] = dict.fromkeys(RecipeRecord.model_fields)
"""A record in which every member is null, in the order of the answer."""


def text_or_none(number: int | None) -> str | None:
    """Write a number as the API has it: text, or null."""
    return None if number is None else str(number)


ENDPOINTS = (
    Endpoint("GET", "/v1/recipes", search_recipes, "Search recipes", RecipesQuery, Recipes),
    # Before the plain form, which would take the `.xml` for a part of the id.
    Endpoint(
        "GET", "/v1/recipes/{recipe_id}.xml", recipe_as_beerxml, "A recipe as BeerXML", Query, Media((XML,))
    ),
    Endpoint("GET", "/v1/recipes/{recipe_id}", one_recipe, "One recipe", Query, OneRecipe),
)
"""Endpoints 3 to 5 of the specification."""
