"""Recipes: small rows for searches, their texts in a table of their own, and an index for keywords."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from gateway.domain.audit import AuditEntry
from gateway.domain.recipe import Recipe, RecipeContent
from gateway.errors import NameTaken, NotFound
from gateway.store.queries import RecipeSearch
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.searching import SEPARATOR, Parameters, conditions, folded, order_by

BY_IDS = """
SELECT r.id, r.account_id, r.token, r.folder_id, f.name, r.group_id, r.parent_id, r.snapshot, r.created_at,
       r.updated_at, t.record, {texts}
FROM json_each(?) wanted JOIN recipes r ON r.id = wanted.value
JOIN recipe_texts t ON t.recipe_id = r.id LEFT JOIN folders f ON f.id = r.folder_id
WHERE r.deleted = 0 ORDER BY wanted.key
"""
WHOLE = BY_IDS.format(texts="t.ingredients, t.beerxml")
RECORD_ALONE = BY_IDS.format(texts="'{}', ''")
"""The long texts lie on pages of their own, which a list need not read."""
BREWED = """
SELECT wanted.value, s.id, s.userdate FROM json_each(:wanted) wanted
JOIN brewsessions s ON s.recipe_id = wanted.value AND s.deleted = 0
UNION ALL
SELECT wanted.value, s.id, s.userdate FROM json_each(:wanted) wanted
JOIN recipes snapshot ON snapshot.parent_id = wanted.value
JOIN brewsessions s ON s.recipe_id = snapshot.id AND s.deleted = 0
ORDER BY 2
"""
INSERT = """
INSERT INTO recipes (id, account_id, token, folder_id, group_id, parent_id, snapshot, created_at, updated_at,
                     title_folded, author_folded)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
UPDATE = """
UPDATE recipes SET account_id = ?, token = ?, folder_id = ?, group_id = ?, parent_id = ?, snapshot = ?,
                   created_at = ?, updated_at = ?, title_folded = ?, author_folded = ? WHERE id = ?
"""
FILE = "UPDATE recipes SET folder_id = ?, updated_at = ? WHERE id = ? AND deleted = 0"
TEXTS = """
INSERT INTO recipe_texts (recipe_id, record, ingredients, beerxml) VALUES (?, ?, ?, ?)
ON CONFLICT (recipe_id) DO UPDATE
SET record = excluded.record, ingredients = excluded.ingredients, beerxml = excluded.beerxml
"""
FIND = """
INSERT INTO recipe_search (recipe_id, folded) VALUES (?, ?)
ON CONFLICT (recipe_id) DO UPDATE SET folded = excluded.folded
"""
DELETE = "UPDATE recipes SET deleted = 1, updated_at = ? WHERE id = ?"

SORTED_BY = {"created_at": "r.created_at", "updated_at": "r.updated_at", "title": "r.title_folded"}

TRIGRAM = 3
"""Characters that a keyword needs for the index; a shorter keyword is searched in every text."""

INDEXED = "r.id IN (SELECT rowid FROM recipe_trigrams WHERE recipe_trigrams MATCH :phrase)"
SCANNED = "r.id IN (SELECT recipe_id FROM recipe_search WHERE folded GLOB :pattern)"
"""GLOB, because `instr` takes twice as long over ten thousand recipes."""

_LITERALLY = str.maketrans({wildcard: f"[{wildcard}]" for wildcard in "*?["})


class SqliteRecipes:
    """The `RecipeStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def add(self, recipe: Recipe) -> Recipe:
        return await self._writer.run(lambda connection: insert(connection, recipe))

    async def add_all(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        return await self._writer.run(lambda connection: [insert(connection, recipe) for recipe in recipes])

    async def file(self, recipe_ids: Sequence[int], folder_id: int | None, now: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for recipe_id in recipe_ids:
                try:
                    found = connection.execute(FILE, (folder_id, now, recipe_id)).rowcount
                except sqlite3.IntegrityError as error:
                    raise NotFound(f"there is no folder {folder_id}") from error
                if not found:
                    raise NotFound(f"no recipe {recipe_id}; `recipes list` shows them")

        await self._writer.run(work)

    async def update(self, recipe: Recipe) -> None:
        def work(connection: sqlite3.Connection) -> None:
            try:
                connection.execute(UPDATE, (*_values(recipe), recipe.id))
            except sqlite3.IntegrityError as error:
                raise NotFound(f"there is no folder {recipe.folder_id}") from error
            _write_texts(connection, recipe.id, recipe.content)

        await self._writer.run(work)

    async def delete(self, recipe_id: int, now: int) -> None:
        entry = AuditEntry("delete", f"recipe:{recipe_id}")
        await self._writer.run(audited(lambda c: c.execute(DELETE, (now, recipe_id)) and None, entry))

    async def get(self, recipe_id: int) -> Recipe | None:
        async with self._database.reader() as reader:
            found = await reader.run(_fetch, [recipe_id])
        return found[0] if found else None

    async def search(self, search: RecipeSearch) -> tuple[int, list[Recipe]]:
        sql, values = search_sql(search)

        def page(connection: sqlite3.Connection) -> tuple[int, list[Recipe]]:
            ids = [row[0] for row in connection.execute(sql, values).fetchall()]
            wanted = ids[search.offset : search.offset + search.limit]
            return len(ids), _fetch(connection, wanted, WHOLE if search.whole else RECORD_ALONE)

        async with self._database.reader() as reader:
            return await reader.run(page)


def insert(connection: sqlite3.Connection, recipe: Recipe) -> Recipe:
    """Insert a recipe, in the transaction that is open; return it as stored."""
    try:
        new_id = connection.execute(INSERT, (recipe.id or None, *_values(recipe))).lastrowid or 0
    except sqlite3.IntegrityError as error:
        raise NameTaken(f"there is a recipe {recipe.id} already, or no such folder") from error
    _write_texts(connection, new_id, recipe.content)
    return _fetch(connection, [new_id])[0]


def search_sql(search: RecipeSearch) -> tuple[str, Parameters]:
    """Return the statement that finds the ids of all matches in order, and its values."""
    terms, values = conditions(search)
    if not search.snapshots:
        terms.append("r.snapshot = 0")
    if search.author is not None:
        terms.append("r.author_folded = :author")
        values["author"] = search.author.casefold()
    keyword = folded(search.keyword)
    if len(keyword) >= TRIGRAM:
        terms.append(INDEXED)
        values["phrase"] = '"' + keyword.replace('"', '""') + '"'
    elif keyword:
        terms.append(SCANNED)
        values["pattern"] = f"*{keyword.translate(_LITERALLY)}*"
    order = order_by(search.order, SORTED_BY)
    return f"SELECT r.id FROM recipes r WHERE {' AND '.join(terms)} {order}", values


def _fetch(connection: sqlite3.Connection, ids: Sequence[int], by_ids: str = WHOLE) -> list[Recipe]:
    """Return recipes by their ids, in that order; two queries for any number of recipes."""
    if not ids:
        return []
    wanted = json.dumps(ids)
    brewed: dict[int, list[tuple[int, str]]] = {}
    for recipe_id, session_id, day in connection.execute(BREWED, {"wanted": wanted}):
        brewed.setdefault(recipe_id, []).append((session_id, day))
    rows = connection.execute(by_ids, (wanted,)).fetchall()
    return [_recipe(row, brewed.get(row[0], ())) for row in rows]


def _recipe(row: Sequence[Any], brewed: Iterable[tuple[int, str]]) -> Recipe:
    (recipe_id, account_id, token, folder_id, folder_name, group_id, parent_id, snapshot) = row[:8]
    created_at, updated_at, record, ingredients, beerxml = row[8:]
    return Recipe(
        id=recipe_id,
        account_id=account_id,
        token=token,
        content=RecipeContent(json.loads(record), json.loads(ingredients), beerxml),
        folder_id=folder_id,
        folder_name=folder_name,
        group_id=group_id,
        parent_id=parent_id,
        snapshot=bool(snapshot),
        created_at=created_at,
        updated_at=updated_at,
        brew_sessions=tuple(brewed),
    )


def _values(recipe: Recipe) -> tuple[Any, ...]:
    return (
        recipe.account_id,
        recipe.token,
        recipe.folder_id,
        recipe.group_id,
        recipe.parent_id,
        recipe.snapshot,
        recipe.created_at,
        recipe.updated_at,
        recipe.content.title.casefold(),
        (recipe.content.record.get("author") or "").casefold(),
    )


def _write_texts(connection: sqlite3.Connection, recipe_id: int, content: RecipeContent) -> None:
    record, ingredients = _json(content.record), _json(content.ingredients)
    connection.execute(TEXTS, (recipe_id, record, ingredients, content.beerxml))
    connection.execute(FIND, (recipe_id, folded_text(content)))


def folded_text(content: RecipeContent) -> str:
    """Return the text for keyword searches: title, style, notes and names of ingredients, case-folded."""
    record = content.record
    texts = [record.get("title"), record.get("stylename"), record.get("notes")]
    texts += [entry.get("name") for entries in content.ingredients.values() for entry in entries]
    return SEPARATOR.join(folded(text) for text in texts if text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
