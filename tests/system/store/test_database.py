"""The SQLite file itself: schema, migrations, durability settings, the lock."""

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from gateway.errors import SchemaTooNew, StoreInUse
from gateway.store.sqlite.engine import connections
from gateway.store.sqlite.engine import schema as store_schema
from gateway.store.sqlite.engine.connections import open_reader, open_writer
from gateway.store.sqlite.engine.database import DATABASE_NAME, LOCK_NAME, Database, lock_directory
from gateway.store.sqlite.engine.schema import migrate, migrations
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew


def schema(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    return connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").fetchall()


def fresh(path: Path) -> sqlite3.Connection:
    connection = open_writer(path)
    migrate(connection)
    return connection


def version(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def test_migrations_are_numbered_without_gaps() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


@pytest.mark.parametrize("oldest", [number for number, _ in migrations()])
def test_fresh_schema_equals_migrated_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, oldest: int
) -> None:
    known = migrations()
    with monkeypatch.context() as past:
        past.setattr(store_schema, "migrations", lambda: known[:oldest])
        old = fresh(tmp_path / "old")
    assert version(old) == oldest
    migrate(old)
    new = fresh(tmp_path / "new")
    assert schema(old) == schema(new)
    assert version(old) == version(new) == known[-1][0]
    old.close()
    new.close()


def test_migrating_again_changes_nothing(tmp_path: Path) -> None:
    connection = fresh(tmp_path / "db")
    before = schema(connection)
    migrate(connection)
    assert schema(connection) == before
    connection.close()


def test_a_migration_that_fails_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrations()
    broken = (known[-1][0] + 1, "CREATE TABLE half (x);\nCREATE TABLE half (x);\n")
    connection = fresh(tmp_path / "db")
    before = schema(connection)
    monkeypatch.setattr(store_schema, "migrations", lambda: [*known, broken])
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection)
    assert (schema(connection), version(connection)) == (before, known[-1][0])
    connection.close()


def test_the_migration_knows_a_tilt_by_the_digits_of_its_mac(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations()
    connection = connections.open_writer(tmp_path / "db")
    with monkeypatch.context() as past:
        past.setattr(store_schema, "migrations", lambda: known[:6])
        migrate(connection)
    ids = ("AA:BB:CC:DD:EE:0F", "aabbccddee0f", "f6-bd-d3-46-3a-05", "RED", "5312877", "West Ale One")
    connection.executemany(
        "INSERT INTO devices (key, family, stable_id, name, first_seen_at) VALUES (?, 'tilt', ?, '', 1)",
        [(f"tilt:{one}", one) for one in ids],
    )
    with monkeypatch.context() as past:
        past.setattr(store_schema, "migrations", lambda: known[:7])
        migrate(connection)
    keys = [key for (key,) in connection.execute("SELECT key FROM devices ORDER BY id")]
    assert keys == [
        "tilt:AA:BB:CC:DD:EE:0F",  # it was known by both spellings: they stay two
        *("tilt:aabbccddee0f", "tilt:f6bdd3463a05", "tilt:RED", "tilt:5312877", "tilt:West Ale One"),
    ]
    connection.close()


async def test_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    connection = fresh(tmp_path / DATABASE_NAME)
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    with pytest.raises(SchemaTooNew, match="9999"):
        await SqliteStore(tmp_path).open()
    connection = sqlite3.connect(tmp_path / DATABASE_NAME)
    assert version(connection) == 9999
    connection.close()
    os.close(lock_directory(tmp_path / LOCK_NAME))  # the failed start let go of the directory


def test_durability_settings_read_back(tmp_path: Path) -> None:
    connection = fresh(tmp_path / "db")
    settings = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint", "page_size")
    }
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "wal_autocheckpoint": connections.WAL_PAGES,
        "page_size": connections.PAGE_BYTES,
    }
    connection.close()


async def test_settings_of_the_open_store(tmp_path: Path) -> None:
    opened = Database(tmp_path)
    await opened.open()
    journal = await opened.writer.run(lambda c: c.execute("PRAGMA journal_mode").fetchone()[0])
    synchronous = await opened.writer.run(lambda c: c.execute("PRAGMA synchronous").fetchone()[0])
    assert (journal, synchronous) == ("wal", 2)
    await opened.close()


def test_readers_cannot_write(tmp_path: Path) -> None:
    fresh(tmp_path / "db").close()
    reader = open_reader(tmp_path / "db")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM readings")
    reader.close()


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    fresh(tmp_path / "db").close()
    assert stat.S_IMODE((tmp_path / "db").stat().st_mode) == 0o600


async def test_one_process_at_a_time(tmp_path: Path) -> None:
    first, second = SqliteStore(tmp_path), SqliteStore(tmp_path)
    await first.open()
    with pytest.raises(StoreInUse):
        await second.open()
    await first.close()
    await second.open()
    await second.close()


async def test_what_was_stored_is_there_after_reopening(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.open()
    await store.keys.owner(1)
    session = await store.sessions.add(brew(account_id=1, batchcode="x", phase="y", upstream_id=None, now=1))
    await store.close()
    store = SqliteStore(tmp_path)
    await store.open()
    assert await store.sessions.all() == [session]
    assert await store.keys.owner(2) == (1, True)
    await store.close()
