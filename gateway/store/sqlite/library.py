"""The small tables around recipes and brew sessions: folders, photos, accounts, mirrored records."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import astuple, fields
from typing import Any

from gateway.domain.account import Account
from gateway.domain.audit import AuditEntry
from gateway.domain.folder import Folder, FolderKind
from gateway.domain.photo import Photo
from gateway.domain.recipe import Recipe
from gateway.errors import NameTaken
from gateway.store.records import Mirrored
from gateway.store.sqlite import recipes
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer

FOLDERS = """
SELECT f.id, f.account_id, f.kind, f.name, f.created_at,
    (SELECT count(*) FROM recipes r
     WHERE f.kind = 'recipe' AND r.folder_id = f.id AND r.deleted = 0 AND r.snapshot = 0)
    + (SELECT count(*) FROM brewsessions s
       WHERE f.kind = 'brewsession' AND s.folder_id = f.id AND s.deleted = 0)
FROM folders f
"""
ONE_FOLDER = f"{FOLDERS} WHERE f.id = ?"
ALL_FOLDERS = f"{FOLDERS} WHERE f.account_id = ifnull(?, f.account_id) ORDER BY f.kind DESC, f.name"
ADD_FOLDER = "INSERT INTO folders (account_id, kind, name, created_at) VALUES (?, ?, ?, ?)"
RENAME_FOLDER = "UPDATE folders SET name = ? WHERE id = ?"
DELETE_FOLDER = "DELETE FROM folders WHERE id = ?"

PHOTO_COLUMNS = "uuid, recipe_id, filename, mimetype, width, height, size, sha256, caption, created_at"
ADD_PHOTO = f"INSERT INTO photos ({PHOTO_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
ONE_PHOTO = f"SELECT {PHOTO_COLUMNS} FROM photos WHERE uuid = ? AND recipe_id = ?"
PHOTOS = f"SELECT {PHOTO_COLUMNS} FROM photos WHERE recipe_id = ? ORDER BY created_at, uuid"
ALL_PHOTOS = f"SELECT {PHOTO_COLUMNS} FROM photos"
SET_CAPTION = "UPDATE photos SET caption = ? WHERE uuid = ? AND recipe_id = ?"
UNMARK_PHOTO = "DELETE FROM brew_events WHERE kind = 'photo' AND json_extract(facts, '$.uuid') = ?"
DELETE_PHOTO = "DELETE FROM photos WHERE uuid = ? AND recipe_id = ?"

ADD_ACCOUNT = "INSERT INTO accounts (name, created_at) VALUES (?, ?)"
ACCOUNTS = "SELECT id, name, created_at FROM accounts ORDER BY id"

MIRRORED = tuple(field.name for field in fields(Mirrored))
ITS_COLUMNS = ", ".join(MIRRORED)
OF_KIND = "upstream = ? AND account_id = ? AND kind = ?"
KNOWN = f"SELECT {ITS_COLUMNS} FROM mirrored WHERE {OF_KIND}"
FORMER = f"SELECT {ITS_COLUMNS} FROM renumbered WHERE {OF_KIND}"
REMEMBER = f"""
INSERT INTO mirrored (upstream, account_id, kind, {ITS_COLUMNS}) VALUES (?, ?, ?{", ?" * len(MIRRORED)})
ON CONFLICT (upstream, account_id, kind, remote_id) DO UPDATE
SET {", ".join(f"{name} = excluded.{name}" for name in MIRRORED[1:])}
"""
ALL_COLUMNS = f"upstream, account_id, kind, {ITS_COLUMNS}"
PART = f"""
INSERT OR REPLACE INTO renumbered ({ALL_COLUMNS}) SELECT {ALL_COLUMNS} FROM mirrored
WHERE {OF_KIND} AND remote_id = ? AND local_id <> ''
"""
FORGET = f"DELETE FROM mirrored WHERE {OF_KIND} AND remote_id = ?"
NO_LONGER_FORMER = f"DELETE FROM renumbered WHERE {OF_KIND} AND remote_id = ? AND local_id = ?"
CUT = """
UPDATE brewsessions SET upstream_id = NULL
WHERE account_id = :account_id AND upstream_id = :number AND (upstream = :upstream OR upstream IS NULL AND (
    EXISTS (SELECT 1 FROM targets t WHERE t.url = :upstream AND t.unnamed)
    OR EXISTS (SELECT 1 FROM deliveries d WHERE d.target = :upstream AND d.session_id = brewsessions.id)))
RETURNING id
"""
UNMAP = """
DELETE FROM forwardings WHERE target = :upstream AND upstream_id = :number
AND session_id IN (SELECT id FROM brewsessions WHERE account_id = :account_id) RETURNING session_id
"""
OWE_NOTHING = """
DELETE FROM corrections WHERE target = ? AND seq IN (
    SELECT r.seq FROM readings r JOIN json_each(?) cut ON r.session_id = cut.value)
"""


class _Table:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def _rows(self, sql: str, *values: Any) -> list[Any]:
        async with self._database.reader() as reader:
            return await reader.run(lambda c: c.execute(sql, values).fetchall())

    async def _write(self, sql: str, *values: Any, taken: str = "", audit: AuditEntry | None = None) -> int:
        """Run a statement, return how many rows changed; `NameTaken(taken)` if a constraint forbids it.

        `audit` becomes a row if anything changed.
        """

        def work(connection: sqlite3.Connection) -> int:
            try:
                return connection.execute(sql, values).rowcount
            except sqlite3.IntegrityError as error:
                raise NameTaken(taken) from error

        return await self._writer.run(audited(work, lambda changed: audit if changed else None))


class SqliteFolders(_Table):
    """The `FolderStore` protocol on SQLite; the protocol describes the methods."""

    async def add(self, account_id: int, kind: FolderKind, name: str, now: int) -> Folder:
        def work(connection: sqlite3.Connection) -> Folder:
            try:
                cursor = connection.execute(ADD_FOLDER, (account_id, kind, name, now))
            except sqlite3.IntegrityError as error:
                raise NameTaken(f"there is a {kind} folder named {name!r}") from error
            return Folder(*connection.execute(ONE_FOLDER, (cursor.lastrowid,)).fetchone())

        return await self._writer.run(work)

    async def get(self, folder_id: int) -> Folder | None:
        rows = await self._rows(ONE_FOLDER, folder_id)
        return Folder(*rows[0]) if rows else None

    async def all(self, account_id: int | None = None) -> list[Folder]:
        return [Folder(*row) for row in await self._rows(ALL_FOLDERS, account_id)]

    async def rename(self, folder_id: int, name: str) -> None:
        await self._write(RENAME_FOLDER, name, folder_id, taken=f"there is a folder named {name!r}")

    async def delete(self, folder_id: int) -> None:
        await self._write(DELETE_FOLDER, folder_id)


class SqlitePhotos(_Table):
    """The `PhotoStore` protocol on SQLite; the protocol describes the methods."""

    async def add(self, photo: Photo) -> None:
        values = [getattr(photo, name) for name in PHOTO_COLUMNS.split(", ")]
        await self._write(ADD_PHOTO, *values, taken=f"there is a photo {photo.uuid}, or no such recipe")

    async def get(self, recipe_id: int, uuid: str) -> Photo | None:
        rows = await self._rows(ONE_PHOTO, uuid, recipe_id)
        return Photo(*rows[0]) if rows else None

    async def of_recipe(self, recipe_id: int) -> list[Photo]:
        return [Photo(*row) for row in await self._rows(PHOTOS, recipe_id)]

    async def set_caption(self, recipe_id: int, uuid: str, caption: str) -> bool:
        return await self._write(SET_CAPTION, caption, uuid, recipe_id) > 0

    async def delete(self, recipe_id: int, uuid: str) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            connection.execute(UNMARK_PHOTO, (uuid,))
            return connection.execute(DELETE_PHOTO, (uuid, recipe_id)).rowcount > 0

        entry = AuditEntry("delete photo", f"recipe:{recipe_id}", uuid)
        return await self._writer.run(audited(work, lambda gone: entry if gone else None))

    async def file_names(self) -> set[str]:
        return {Photo(*row).file_name for row in await self._rows(ALL_PHOTOS)}


class SqliteAccounts(_Table):
    """The `AccountStore` protocol on SQLite; the protocol describes the methods."""

    async def add(self, name: str, now: int) -> Account:
        taken = f"there is an account named {name!r} already; `accounts list` shows them"
        await self._write(ADD_ACCOUNT, name, now, taken=taken, audit=AuditEntry("add", f"account:{name}"))
        return next(account for account in await self.all() if account.name == name)

    async def all(self) -> list[Account]:
        return [Account(*row) for row in await self._rows(ACCOUNTS)]


class SqliteMirrors(_Table):
    """The `MirrorStore` protocol on SQLite; the protocol describes the methods."""

    async def copies(self, upstream: str, account_id: int, kind: str) -> Mapping[str, Mirrored]:
        rows = await self._rows(KNOWN, upstream, account_id, kind)
        return {row[0]: Mirrored(*row) for row in rows}

    async def former(self, upstream: str, account_id: int, kind: str) -> list[Mirrored]:
        return [Mirrored(*row) for row in await self._rows(FORMER, upstream, account_id, kind)]

    async def remember(self, upstream: str, account_id: int, kind: str, entry: Mirrored) -> None:
        which = (upstream, account_id, kind)
        await self._writer.run(lambda connection: _remember(connection, which, entry))

    async def add_recipe(self, upstream: str, kind: str, recipe: Recipe, entry: Mirrored) -> Recipe:
        def work(connection: sqlite3.Connection) -> Recipe:
            _remember(connection, (upstream, recipe.account_id, kind), entry)
            return recipes.insert(connection, recipe)

        return await self._writer.run(work)

    async def make_former(self, upstream: str, account_id: int, kind: str, remote_id: str) -> None:
        which = (upstream, account_id, kind, remote_id)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(PART, which)
            connection.execute(FORGET, which)

        await self._writer.run(work)

    async def stop_forwarding(self, upstream: str, account_id: int, number: int) -> list[int]:
        values = {"upstream": upstream, "account_id": account_id, "number": number}

        def work(connection: sqlite3.Connection) -> list[int]:
            found = connection.execute(CUT, values).fetchall() + connection.execute(UNMAP, values).fetchall()
            sessions = sorted({session_id for (session_id,) in found})
            connection.execute(OWE_NOTHING, (upstream, json.dumps(sessions)))
            return sessions

        return await self._writer.run(work)


def _remember(connection: sqlite3.Connection, which: tuple[str, int, str], entry: Mirrored) -> None:
    connection.execute(REMEMBER, (*which, *astuple(entry)))
    connection.execute(NO_LONGER_FORMER, (*which, entry.remote_id, entry.local_id))
