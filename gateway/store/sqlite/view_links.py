"""Links that need no login; a link's token is stored only as its SHA-256."""

import json
import sqlite3
from dataclasses import replace
from typing import Any

from gateway.domain.audit import AuditEntry
from gateway.domain.view_link import VIEW_LINK_KINDS, ViewLink
from gateway.errors import NotFound
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer

# Looked at before it is read: a row of a damaged file may hold anything, and the gateway has to start.
ALL = """
SELECT id, sha256, account_id, kind, session_id, name, created_at,
    CASE WHEN json_valid(options) THEN options ELSE '{}' END
FROM view_links ORDER BY id
"""
ADD = """
INSERT INTO view_links (sha256, account_id, kind, session_id, name, options, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id
"""
REMOVE = "DELETE FROM view_links WHERE id = ? AND account_id = ? RETURNING name"


class SqliteViewLinks:
    """The `ViewLinkStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def all(self) -> list[ViewLink]:
        async with self._database.reader() as reader:
            rows: list[Any] = await reader.run(lambda c: c.execute(ALL).fetchall())
        return [
            ViewLink(link_id, sha256, account_id, kind, session_id, name, created_at, _texts(options))
            for link_id, sha256, account_id, kind, session_id, name, created_at, options in rows
            if kind in VIEW_LINK_KINDS
        ]

    async def add(self, link: ViewLink) -> ViewLink:
        def work(connection: sqlite3.Connection) -> ViewLink:
            options = json.dumps(dict(link.options))
            values = (
                link.sha256, link.account_id, link.kind, link.session_id, link.name, options, link.created_at,
            )  # fmt: skip
            ((link_id,),) = connection.execute(ADD, values).fetchall()
            return replace(link, id=link_id)

        def entry(made: ViewLink) -> AuditEntry:
            which = "the running brews" if made.session_id is None else f"brew session {made.session_id}"
            return AuditEntry("make", f"link:{made.id}", f"{made.kind} {made.name!r} of {which}")

        return await self._writer.run(audited(work, entry))

    async def remove(self, link_id: int, account_id: int) -> None:
        def work(connection: sqlite3.Connection) -> str:
            rows = connection.execute(REMOVE, (link_id, account_id)).fetchall()
            if not rows:
                raise NotFound(f"no link {link_id}")
            return str(rows[0][0])

        def entry(name: str) -> AuditEntry:
            return AuditEntry("revoke", f"link:{link_id}", repr(name))

        await self._writer.run(audited(work, entry))


def _texts(options: str) -> dict[str, str]:
    found = json.loads(options)
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)}
