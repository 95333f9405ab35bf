"""Accounts and API keys; a key is stored only as its SHA-256."""

import sqlite3
from typing import Any, cast

from gateway.domain.key import ApiKey, Scope
from gateway.errors import NameTaken
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer

OWNER_NAME = "owner"

FIND_OWNER = "SELECT id, NOT EXISTS (SELECT 1 FROM keys) FROM accounts WHERE name = ?"
ADD_OWNER = "INSERT INTO accounts (name, created_at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
ACTIVE = """
SELECT name, account_id, shown, sha256, scopes, created_at FROM keys WHERE revoked_at IS NULL ORDER BY id
"""
ADD = "INSERT INTO keys (name, account_id, shown, sha256, scopes, created_at) VALUES (?, ?, ?, ?, ?, ?)"
REVOKE = "UPDATE keys SET revoked_at = ? WHERE account_id = ? AND name = ? AND revoked_at IS NULL"


class SqliteKeys:
    """The `KeyStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def owner(self, now: int) -> tuple[int, bool]:
        def work(connection: sqlite3.Connection) -> tuple[int, bool]:
            connection.execute(ADD_OWNER, (OWNER_NAME, now))
            owner_id, keyless = connection.execute(FIND_OWNER, (OWNER_NAME,)).fetchone()
            return owner_id, bool(keyless)

        return await self._writer.run(work)

    async def active(self) -> list[ApiKey]:
        async with self._database.reader() as reader:
            rows: list[Any] = await reader.run(lambda c: c.execute(ACTIVE).fetchall())
        return [
            ApiKey(
                name, account_id, shown, digest, frozenset(cast("list[Scope]", scopes.split())), created_at
            )
            for name, account_id, shown, digest, scopes, created_at in rows
        ]

    async def add(self, key: ApiKey) -> None:
        scopes = " ".join(sorted(key.scopes))
        values = (key.name, key.account_id, key.shown, key.sha256, scopes, key.created_at)

        def work(connection: sqlite3.Connection) -> None:
            try:
                connection.execute(ADD, values)
            except sqlite3.IntegrityError as error:
                raise NameTaken(f"there is an active key named {key.name!r}; revoke it first") from error

        await self._writer.run(work)

    async def revoke(self, account_id: int, name: str, now: int) -> bool:
        return await self._writer.run(lambda c: c.execute(REVOKE, (now, account_id, name)).rowcount > 0)
