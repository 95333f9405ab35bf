"""A recipe as lists show it, and text of any origin made safe for a terminal."""

from typing import Any

from gateway.cli.output import iso, unix

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
"""Members of a recipe's record in the JSON list, text or null as in the API."""


def recipe_row(recipe: dict[str, Any], snapshots: bool) -> tuple[object, ...]:
    """Return the table's cells for a recipe; with `snapshots`, the last cell is the copied recipe's id."""
    alcohol = _rounded(recipe["abv"], ALCOHOL_DECIMALS)
    batch = f"{_rounded(recipe['batchsize'], VOLUME_DECIMALS)} {recipe['batchsizeunit'] or ''}"
    cells = (
        recipe["id"],
        one_line(recipe["title"]),
        one_line(recipe["stylename"]),
        _rounded(recipe["og"], GRAVITY_DECIMALS),
        f"{alcohol} %" if alcohol else "",
        batch.strip(),
        one_line(recipe["folder_name"]),
        recipe["brew_count"],
    )
    return (*cells, recipe["copy_parent_id"] if recipe["snapshot"] == "1" else None) if snapshots else cells


def _rounded(text: str | None, decimals: int) -> str:
    """Round a number of a record; return any other text unchanged, as one line."""
    try:
        return f"{float(text or ''):.{decimals}f}"
    except ValueError:
        return one_line(text)


def recipe_entry(recipe: dict[str, Any]) -> dict[str, object]:
    """Return the recipe's object in the JSON list."""
    return {
        "id": int(recipe["id"]),
        **{name: recipe[name] for name in RECORD_MEMBERS},
        "stylename": recipe["stylename"] or None,
        "folder_id": _number(recipe["folder_id"]),
        "folder_name": recipe["folder_name"],
        "snapshot": recipe["snapshot"] == "1",
        "copy_parent_id": _number(recipe["copy_parent_id"]),
        "brew_count": int(recipe["brew_count"]),
        "created_at": iso(unix(recipe["created_at"])),
        "updated_at": iso(unix(recipe["updated_at"])),
    }


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def one_line(text: str | None) -> str:
    """Make text of any origin safe for a line of a terminal: no line ends, no escape sequences."""
    return " ".join("".join(c if c.isprintable() else " " for c in text or "").split())
