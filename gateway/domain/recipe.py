"""A recipe in the words of the API and of BeerXML. Its content is kept apart from its owner."""

from collections.abc import Mapping
from dataclasses import dataclass

Ingredient = Mapping[str, str | None]
"""An ingredient or a mash step: members of the API by name, text or None."""

INGREDIENT_KINDS = ("fermentables", "hops", "yeasts", "mashsteps", "others")
"""The arrays of a recipe with ingredients, in the API's order."""

DOCUMENT_BYTES = 10 * 1024 * 1024
"""The most bytes of a document with recipes."""

CONTENT_MEMBERS = (
    "title",
    "author",
    "brewmethod",
    "styleid",
    "stylename",
    "batchsize",
    "batchsizeunit",
    "boilsize",
    "boiltime",
    "boilgravity",
    "efficiency",
    "displayunits",
    "sugar_scale",
    "og",
    "fg",
    "abv",
    "ibutinseth",
    "srmmorey",
    "srmecbmorey",
    "notes",
    "url",
)
"""Members of a recipe record that come from the recipe's content."""


@dataclass(frozen=True, slots=True)
class RecipeContent:
    """A recipe's content, without its owner.

    `record` has the `CONTENT_MEMBERS`, text or None, and further members that a mirrored service sent.
    `ingredients` has every one of `INGREDIENT_KINDS`. `beerxml` is one valid RECIPE element of BeerXML 1.0.
    """

    record: Mapping[str, str | None]
    ingredients: Mapping[str, list[Ingredient]]
    beerxml: str

    @property
    def title(self) -> str:
        """Return the recipe's name."""
        return self.record.get("title") or ""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe of an account. Times are Unix seconds.

    A snapshot is the copy that a brew session took when it began; `parent_id` is the recipe that was copied.
    `brew_sessions` are id and brewing date of the sessions that brewed the recipe, or a snapshot of it.
    """

    id: int
    account_id: int
    token: str
    content: RecipeContent
    folder_id: int | None
    folder_name: str | None
    group_id: str | None
    parent_id: int | None
    snapshot: bool
    created_at: int
    updated_at: int
    brew_sessions: tuple[tuple[int, str], ...] = ()
