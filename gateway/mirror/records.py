"""Make our records of a service's records; `InvalidInput` names the fault. Pure."""

import hashlib
import json
import re
from dataclasses import dataclass

from gateway.domain.brewsession import DETAIL_MEMBERS, DEVICE_MEMBERS, BrewSession
from gateway.domain.reading import Reading
from gateway.domain.recipe import CONTENT_MEMBERS, INGREDIENT_KINDS, Ingredient, Recipe, RecipeContent
from gateway.errors import InvalidInput
from gateway.formats.readings import rows
from gateway.formats.readings.rows import ImportContext
from gateway.mirror.links import Identity
from gateway.mirror.validate import Record, checked, day_or, folder_of, plain, record_id, seconds, text_of

ENTRIES = 1000
"""Ingredients of one kind in a recipe at most."""

TOKEN_CHARACTERS = 64

OF_THE_COPY = frozenset(
    {
        "id",
        "recipetoken",
        "brewer_author_id",
        "folder_id",
        "folder_name",
        "deleted",
        "copy_parent_id",
        "snapshot",
        "group_id",
        "created_at",
        "updated_at",
        "brew_sessions",
        "brew_count",
        *INGREDIENT_KINDS,
    }
)
"""Members of a recipe record that are no content of the recipe; the gateway has its own values for them."""

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")

_PLACEHOLDER = "-"
"""Replaces an empty comment: an import refuses a reading without values, but a mirror keeps the reading."""


@dataclass(frozen=True, slots=True)
class SourceRecipe:
    """A recipe of the service, with the service's ids. `version` changes whenever the record does.

    `recipe` has no folder, no parent, and content without BeerXML.
    """

    id: str
    identity: Identity
    version: str
    parent_id: str | None
    folder: str | None
    deleted: bool
    with_ingredients: bool
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class SourceSession:
    """A brew session of the service, with the service's ids; `session` has no folder and no recipe."""

    id: str
    identity: Identity
    version: str
    recipe_id: str | None
    folder: str | None
    deleted: bool
    session: BrewSession


def recipe_of(value: object, account_id: int, now: int) -> SourceRecipe:
    """Read a recipe record, with ingredients or without. A time that the service does not give is `now`."""
    record = checked(value)
    remote_id, created_at, updated_at = _head(record, now)
    token = (text_of(record, "recipetoken") or "")[:TOKEN_CHARACTERS]
    # The known members, and any other that has a plain name.
    content = {name: text_of(record, name) for name in CONTENT_MEMBERS if name in record}
    others = record.keys() - OF_THE_COPY - content.keys()
    content |= {name: plain(record[name]) for name in record if name in others and _NAME.fullmatch(name)}
    recipe = Recipe(
        id=int(remote_id),
        account_id=account_id,
        token=token,
        content=RecipeContent(
            content, {kind: _entries(record.get(kind), kind) for kind in INGREDIENT_KINDS}, ""
        ),
        folder_id=None,
        folder_name=None,
        group_id=text_of(record, "group_id"),
        parent_id=None,
        snapshot=text_of(record, "snapshot") == "1",
        created_at=created_at,
        updated_at=updated_at,
    )
    return SourceRecipe(
        id=remote_id,
        identity=Identity(remote_id, seconds(text_of(record, "created_at")), token),
        version=_version(record),
        parent_id=record_id(record.get("copy_parent_id"), "copy_parent_id"),
        folder=folder_of(record),
        deleted=text_of(record, "deleted") == "1",
        with_ingredients=any(kind in record for kind in INGREDIENT_KINDS),
        recipe=recipe,
    )


def session_of(value: object, base_url: str, account_id: int, now: int) -> SourceSession:
    """Read a brew session's record. The session is forwarded to the service that it is copied from."""
    record = checked(value)
    remote_id, created_at, updated_at = _head(record, now)
    details = {name: text_of(record, name) for name in (*DETAIL_MEMBERS, *DEVICE_MEMBERS)}
    session = BrewSession(
        id=int(remote_id),
        account_id=account_id,
        batchcode=text_of(record, "batchcode") or "",
        phase=text_of(record, "phase") or "",
        recipe_id=0,
        upstream_id=int(remote_id),
        created_at=created_at,
        updated_at=updated_at,
        upstream=base_url,
        group_id=text_of(record, "group_id"),
        userdate=day_or(text_of(record, "userdate"), created_at),
        notes=text_of(record, "session_notes"),
        details={name: text for name, text in details.items() if text is not None},
    )
    return SourceSession(
        id=remote_id,
        identity=Identity(remote_id, seconds(text_of(record, "created_at"))),
        version=_version(record),
        recipe_id=record_id(record.get("recipeid"), "recipeid"),
        folder=folder_of(record),
        deleted=text_of(record, "deleted") == "1",
        session=session,
    )


def reading_of(value: object, now: float) -> Reading:
    """Read a reading as an import does, its texts untouched."""
    item = checked(value)
    # Refused without a time, because with the time of its arrival it would be new in every run.
    if not (text_of(item, "created_at") or "").strip():
        raise InvalidInput("created_at is missing")
    comment = rows.text(item.get("comment"), "comment")
    filled = item if comment.strip() else {**item, "comment": _PLACEHOLDER}
    reading = rows.reading_of(filled, ImportContext(now, ""))
    interval = item.get("interval")
    return reading._replace(
        oid=reading.oid.lower(),
        comment=comment,
        interval=str(interval) if isinstance(interval, str) else reading.interval,
    )


def _head(record: Record, now: int) -> tuple[str, int, int]:
    """Return id, created_at and updated_at; times in Unix seconds."""
    remote_id = record_id(record.get("id"))
    if remote_id is None:
        raise InvalidInput("id is missing")
    created_at, updated_at = (seconds(text_of(record, name)) for name in ("created_at", "updated_at"))
    if created_at is None:
        created_at = now if updated_at is None else updated_at
    return remote_id, created_at, created_at if updated_at is None else updated_at


def _version(record: Record) -> str:
    """Return `updated_at` as it was sent; without a usable one, a hash of the whole record."""
    stamp = text_of(record, "updated_at")
    if stamp is not None and seconds(stamp) is not None:
        return stamp.strip()
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _entries(value: object, kind: str) -> list[Ingredient]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise InvalidInput(f"{kind} is no list of ingredients")
    if len(value) > ENTRIES:
        raise InvalidInput(f"more than {ENTRIES} {kind}")
    return [
        {name: plain(member) for name, member in entry.items() if _NAME.fullmatch(name)} for entry in value
    ]
