"""Quarantine: what nobody understood, bounded, the oldest out first."""

import sqlite3
from dataclasses import astuple

from gateway.domain.quarantined import Quarantined
from gateway.store.sqlite.database import Database
from gateway.store.sqlite.writer import Writer

QUARANTINE_ROWS = 10_000
"""Payloads kept at most; with bodies of 64 KiB at most that bounds the disk as well."""

INSERT = """
INSERT INTO quarantine (body, reason, received_at, channel, source, driver, query, label)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
TRIM = "DELETE FROM quarantine WHERE id <= (SELECT max(id) FROM quarantine) - ?"


class SqliteQuarantine:
    """The `Quarantine` protocol on SQLite."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def add(self, item: Quarantined) -> None:
        """Keep it; beyond the bound the oldest goes."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(INSERT, astuple(item))
            connection.execute(TRIM, (QUARANTINE_ROWS,))

        await self._writer.run(work)

    async def count(self) -> int:
        """How many are kept."""
        async with self._database.reader() as reader:
            return await reader.run(lambda c: int(c.execute("SELECT count(*) FROM quarantine").fetchone()[0]))
