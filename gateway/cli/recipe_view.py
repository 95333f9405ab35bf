"""A recipe as lists show it, and text from anywhere made safe for a terminal."""

from gateway.cli.output import iso
from gateway.domain.recipe import Recipe

GRAVITY_DECIMALS = 3
ALCOHOL_DECIMALS = 1
VOLUME_DECIMALS = 1

RECORD_MEMBERS = (
    "title",
    "author",
    "stylename",
    "brewmethod",
    "batchsize",
    "batchsizeunit",
    "og",
    "fg",
    "abv",
)
"""What the JSON list has of a recipe's record, text or null as in the API."""


def recipe_row(recipe: Recipe, snapshots: bool) -> tuple[object, ...]:
    """Cells of the table; with `snapshots`, the last says what it is a copy of."""
    record = recipe.content.record
    alcohol = _rounded(record.get("abv"), ALCOHOL_DECIMALS)
    batch = f"{_rounded(record.get('batchsize'), VOLUME_DECIMALS)} {record.get('batchsizeunit') or ''}"
    cells = (
        recipe.id,
        one_line(recipe.content.title),
        one_line(record.get("stylename")),
        _rounded(record.get("og"), GRAVITY_DECIMALS),
        f"{alcohol} %" if alcohol else "",
        batch.strip(),
        one_line(recipe.folder_name),
        len(recipe.brew_sessions),
    )
    return (*cells, recipe.parent_id if recipe.snapshot else None) if snapshots else cells


def _rounded(text: str | None, decimals: int) -> str:
    """A number of a record for reading; what is none, as it is."""
    try:
        return f"{float(text or ''):.{decimals}f}"
    except ValueError:
        return one_line(text)


def recipe_entry(recipe: Recipe) -> dict[str, object]:
    """The recipe's object in the JSON list."""
    return {
        "id": recipe.id,
        **{name: recipe.content.record.get(name) for name in RECORD_MEMBERS},
        "folder_id": recipe.folder_id,
        "folder_name": recipe.folder_name,
        "snapshot": recipe.snapshot,
        "copy_parent_id": recipe.parent_id,
        "brew_count": len(recipe.brew_sessions),
        "created_at": iso(recipe.created_at),
        "updated_at": iso(recipe.updated_at),
    }


def one_line(text: str | None) -> str:
    """Text from anywhere, safe for a line of a terminal: no line ends, no escape sequences."""
    return " ".join("".join(c if c.isprintable() else " " for c in text or "").split())
