"""Placeholder until the real module is written in the next minutes: replace the whole file."""

from dataclasses import dataclass

from gateway.domain.recipe import RecipeContent
from gateway.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class ParsedRecipe:
    """A recipe of a document and what was changed in it."""

    content: RecipeContent
    changes: list[str]


def parse(body: bytes) -> list[ParsedRecipe]:
    """The recipes of a document."""
    raise InvalidInput("not yet")
