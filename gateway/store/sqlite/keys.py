"""Accounts and API keys; a key is stored only as its SHA-256."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, cast

from gateway.domain.account import OWNER_ID
from gateway.domain.audit import FIRST_LOGIN, Actor, AuditEntry, key_actor
from gateway.domain.key import ApiKey, Scope
from gateway.domain.times import stamp
from gateway.errors import NameTaken
from gateway.store.sqlite.audit import audited, note
from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer

OWNER_NAME = "owner"

SOURCES_PER_KEY = 100
"""Addresses that are remembered of each key; the one that was quiet longest is forgotten first."""

FIND_OWNER = "SELECT id, NOT EXISTS (SELECT 1 FROM keys) FROM accounts WHERE name = ?"
ADD_OWNER = "INSERT INTO accounts (name, created_at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
SOURCES = "CASE WHEN json_valid(sources) AND json_type(sources) = 'array' THEN sources ELSE '[]' END"
"""Looked at before it is read: a row of a damaged file may hold anything, and the gateway has to start."""

ACTIVE = f"""
SELECT name, account_id, shown, sha256, scopes, created_at, device, expires_at, replaced_at IS NOT NULL,
    last_used_at, coalesce(json_extract({SOURCES}, '$[#-1]'), '')
FROM keys WHERE revoked_at IS NULL ORDER BY id
"""
ADD = """
INSERT INTO keys (name, account_id, shown, sha256, scopes, created_at, device, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
REPLACE = "UPDATE keys SET replaced_at = ?, expires_at = ? WHERE sha256 = ? AND revoked_at IS NULL"
REVOKE = "UPDATE keys SET revoked_at = ? WHERE account_id = ? AND name = ? AND revoked_at IS NULL"
USED = f"SELECT name, account_id, {SOURCES} FROM keys WHERE sha256 = ?"
NOTE_USE = "UPDATE keys SET last_used_at = ?, sources = ? WHERE sha256 = ?"


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
                name, account_id, shown, digest, frozenset(cast("list[Scope]", scopes.split())), created_at,
                device, expires_at, bool(replaced), last_used_at, last_source,
            )
            for name, account_id, shown, digest, scopes, created_at, device, expires_at, replaced,
            last_used_at, last_source in rows
        ]  # fmt: skip

    async def add(self, key: ApiKey) -> None:
        entry = AuditEntry("add", f"key:{key.name}", _in_words(key))
        await self._writer.run(audited(lambda connection: _add(connection, key), entry))

    async def rotate(self, old: ApiKey, new: ApiKey) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(REPLACE, (new.created_at, old.expires_at, old.sha256))
            _add(connection, new)

        until = "" if old.expires_at is None else f"; the old one is valid until {stamp(old.expires_at)}"
        entry = AuditEntry("rotate", f"key:{new.name}", f"{_in_words(new)}{until}")
        await self._writer.run(audited(work, entry))

    async def revoke(self, account_id: int, name: str, now: int) -> bool:
        entry = AuditEntry("revoke", f"key:{name}", _of_account(account_id))

        def work(connection: sqlite3.Connection) -> bool:
            return connection.execute(REVOKE, (now, account_id, name)).rowcount > 0

        return await self._writer.run(audited(work, lambda revoked: entry if revoked else None))

    async def note_uses(self, uses: Mapping[bytes, Mapping[str, int]]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for sha256, times in uses.items():
                note_use(connection, sha256, times, key_actor)

        await self._writer.run(Apart(work))


def note_use(
    connection: sqlite3.Connection,
    sha256: bytes,
    times: Mapping[str, int],
    actor_of: Callable[[str, int, str], Actor],
) -> None:
    """Note the last use of a key by address, in the transaction that is open; the latest address is last.

    `actor_of` gets the key's name, its account and the address, and makes the actor of a first login.
    """
    row = connection.execute(USED, (sha256,)).fetchone()
    if row is None:
        return  # of a file that was damaged since
    name, account_id, text = row
    before: list[str] = json.loads(text)
    sources = [*(s for s in before if s not in times), *times][-SOURCES_PER_KEY:]
    connection.execute(NOTE_USE, (max(times.values()), json.dumps(sources), sha256))
    for source, at in times.items():
        if source and source not in before:
            entry = AuditEntry(FIRST_LOGIN, f"key:{name}", f"from {source}")
            note(connection, entry, actor_of(name, account_id, source), at)


def _add(connection: sqlite3.Connection, key: ApiKey) -> None:
    scopes = " ".join(sorted(key.scopes))
    values = (
        key.name, key.account_id, key.shown, key.sha256, scopes, key.created_at, key.device, key.expires_at,
    )  # fmt: skip
    try:
        connection.execute(ADD, values)
    except sqlite3.IntegrityError as error:
        raise NameTaken(f"there is an active key named {key.name!r}; revoke it first") from error


def _in_words(key: ApiKey) -> str:
    words = [" ".join(sorted(key.scopes)), _of_account(key.account_id)]
    words.append(f"for {key.device}" if key.device else "")
    words.append("" if key.expires_at is None else f"until {stamp(key.expires_at)}")
    return ", ".join(filter(None, words))


def _of_account(account_id: int) -> str:
    return "" if account_id == OWNER_ID else f"of account {account_id}"
