"""Brew sessions."""

import sqlite3

from gateway.domain.brewsession import BrewSession
from gateway.store.sqlite.database import Database
from gateway.store.sqlite.writer import Writer

COLUMNS = "id, account_id, batchcode, phase, recipe_id, upstream_id, created_at, updated_at"
ALL = f"SELECT {COLUMNS} FROM brewsessions WHERE deleted = 0 ORDER BY id"
ONE = f"SELECT {COLUMNS} FROM brewsessions WHERE deleted = 0 AND id = ?"
INSERT = """
INSERT INTO brewsessions (account_id, batchcode, phase, upstream_id, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?)
"""


class SqliteBrewSessions:
    """The `BrewSessions` protocol on SQLite."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def add(
        self, *, account_id: int, batchcode: str, phase: str, upstream_id: int | None, now: int
    ) -> BrewSession:
        """A new session."""

        def work(connection: sqlite3.Connection) -> BrewSession:
            cursor = connection.execute(INSERT, (account_id, batchcode, phase, upstream_id, now, now))
            return BrewSession(*connection.execute(ONE, (cursor.lastrowid,)).fetchone())

        return await self._writer.run(work)

    async def get(self, session_id: int) -> BrewSession | None:
        """One session, unless deleted."""
        async with self._database.reader() as reader:
            row = await reader.run(lambda c: c.execute(ONE, (session_id,)).fetchone())
        return row and BrewSession(*row)

    async def all(self) -> list[BrewSession]:
        """Every session that is not deleted, by id."""
        async with self._database.reader() as reader:
            return [BrewSession(*row) for row in await reader.run(lambda c: c.execute(ALL).fetchall())]
