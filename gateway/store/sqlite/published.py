"""Retained messages of ours on the user's broker."""

import json
import sqlite3
from collections.abc import Collection, Mapping

from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer

ALL = "SELECT topic, components FROM published ORDER BY topic"
ADD = """
INSERT INTO published (topic, components) VALUES (?, ?)
ON CONFLICT (topic) DO UPDATE SET components = excluded.components
"""
REMOVE = "DELETE FROM published WHERE topic = ?"
LAST_EVENT = "SELECT max(event_id) FROM published_event"
FORGET_EVENT = "DELETE FROM published_event"
NOTE_EVENT = "INSERT INTO published_event (event_id) VALUES (?)"


class SqlitePublished:
    """The `PublishedStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def all(self) -> dict[str, frozenset[str]]:
        async with self._database.reader() as reader:
            rows = await reader.run(lambda connection: connection.execute(ALL).fetchall())
        return {topic: frozenset(json.loads(components)) for topic, components in rows}

    async def add(self, topics: Mapping[str, Collection[str]]) -> None:
        rows = [(topic, json.dumps(sorted(components))) for topic, components in topics.items()]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(ADD, rows)

        await self._writer.run(Apart(work))

    async def remove(self, topics: Collection[str]) -> None:
        rows = [(topic,) for topic in topics]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(REMOVE, rows)

        await self._writer.run(Apart(work))

    async def last_event(self) -> int | None:
        async with self._database.reader() as reader:
            ((event_id,),) = await reader.run(lambda connection: connection.execute(LAST_EVENT).fetchall())
        return None if event_id is None else int(event_id)

    async def note_event(self, event_id: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(FORGET_EVENT)
            connection.execute(NOTE_EVENT, (event_id,))

        await self._writer.run(Apart(work))
