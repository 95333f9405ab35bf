"""Settings that the owner makes on the page."""

import sqlite3

from gateway.domain.audit import AuditEntry
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer

ALL = "SELECT name, value FROM page_settings"
SET = "INSERT OR REPLACE INTO page_settings (name, value) VALUES (?, ?)"


class SqlitePageSettings:
    """The `PageSettingStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def all(self) -> dict[str, str]:
        async with self._database.reader() as reader:
            rows = await reader.run(lambda c: c.execute(ALL).fetchall())
        return {name: value for name, value in rows if isinstance(name, str) and isinstance(value, str)}

    async def set(self, name: str, value: str) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(SET, (name, value))

        await self._writer.run(audited(work, AuditEntry("set", "page", f"{name}: {value}")))
