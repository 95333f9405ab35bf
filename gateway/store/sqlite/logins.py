"""Logins of browsers; the secret of a login's cookie is stored only as its SHA-256."""

import json
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from gateway.domain.audit import AuditEntry, page_actor
from gateway.domain.login import StoredLogin
from gateway.errors import NotFound
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.keys import note_use

CHOICES = "CASE WHEN json_valid(preferences) THEN preferences ELSE '{}' END"
"""Looked at before it is read: a row of a damaged file may hold anything, and the gateway has to start."""

ACTIVE = f"""
SELECT logins.id, logins.sha256, keys.sha256, logins.created_at, seen_at, agent, {CHOICES}
FROM logins JOIN keys ON keys.id = logins.key_id WHERE revoked_at IS NULL AND seen_at >= max(?, 1)
ORDER BY logins.id
"""
KEY = "SELECT id, name, account_id FROM keys WHERE sha256 = ? AND revoked_at IS NULL"
# By name, because a rotated key is a new row. Ended logins are seen at 0, so a living one goes before them.
LAST_CHOICES = f"""
SELECT {CHOICES} FROM logins JOIN keys ON keys.id = logins.key_id
WHERE account_id = ? AND name = ? ORDER BY seen_at DESC, logins.id DESC LIMIT 1
"""
SWEEP = """
DELETE FROM logins WHERE seen_at < ? AND (key_id = ? OR seen_at > 0)
OR key_id IN (SELECT id FROM keys WHERE revoked_at IS NOT NULL)
"""
ADD = """
INSERT INTO logins (sha256, key_id, created_at, seen_at, agent, preferences)
VALUES (?, ?, ?, ?, ?, ?) RETURNING id
"""
NOTE_VISIT = "UPDATE logins SET seen_at = ? WHERE id = ? AND seen_at < ?"
PREFER = "UPDATE logins SET preferences = ? WHERE id = ?"
# Another hash and not only the time, because a clock that goes wrong must not bring the login back.
END = "UPDATE logins SET sha256 = randomblob(32), seen_at = 0, agent = '' WHERE id = ?"
FORGET_ENDED = """
DELETE FROM logins WHERE seen_at = 0
AND id NOT IN (SELECT max(id) FROM logins WHERE seen_at = 0 GROUP BY key_id)
"""


class SqliteLogins:
    """The `LoginStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def active(self, since: int) -> list[StoredLogin]:
        async with self._database.reader() as reader:
            rows: list[Any] = await reader.run(lambda c: c.execute(ACTIVE, (since,)).fetchall())
        return [
            StoredLogin(login_id, sha256, key_sha256, created_at, seen_at, agent, _choices(text))
            for login_id, sha256, key_sha256, created_at, seen_at, agent, text in rows
        ]

    async def add(
        self, login: StoredLogin, source: str, since: int, ending: Collection[int] = ()
    ) -> StoredLogin:
        def work(connection: sqlite3.Connection) -> StoredLogin:
            key = connection.execute(KEY, (login.key_sha256,)).fetchone()
            if key is None:
                raise NotFound("the key was revoked")
            key_id, name, account_id = key
            last = connection.execute(LAST_CHOICES, (account_id, name)).fetchone()
            choices = {**login.preferences, **_choices(last[0] if last else "{}")}
            connection.executemany(END, [(login_id,) for login_id in ending])
            connection.execute(SWEEP, (since, key_id))
            values = (
                login.sha256, key_id, login.created_at, login.seen_at, login.agent, json.dumps(choices),
            )  # fmt: skip
            ((login_id,),) = connection.execute(ADD, values).fetchall()
            actor = page_actor(name, account_id, source)
            note_use(connection, login.key_sha256, {source: login.created_at}, lambda *_: actor)
            return replace(login, id=login_id, preferences=choices)

        return await self._writer.run(work)

    async def note_visits(self, visits: Mapping[int, int]) -> None:
        rows = [(at, login_id, at) for login_id, at in visits.items()]
        await self._writer.run(Apart(lambda c: c.executemany(NOTE_VISIT, rows) and None))

    async def prefer(self, login_id: int, preferences: Mapping[str, str]) -> None:
        values = (json.dumps(dict(preferences)), login_id)
        await self._writer.run(lambda c: c.execute(PREFER, values) and None)

    async def end(self, login_ids: Collection[int], detail: str = "") -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(END, [(login_id,) for login_id in login_ids])
            connection.execute(FORGET_ENDED)

        which = f"login:{next(iter(login_ids))}" if len(login_ids) == 1 else "login"
        await self._writer.run(audited(work, AuditEntry("log out", which, detail)))


def _choices(text: str) -> dict[str, str]:
    choices = json.loads(text)
    if not isinstance(choices, dict):
        return {}
    return {name: value for name, value in choices.items() if isinstance(value, str)}
