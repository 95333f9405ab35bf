"""Calls that store several things store all of them or none: each test lets one part fail."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.device import Device
from gateway.errors import NameTaken, NotFound, StoreUnavailable
from gateway.store.protocol import Store
from gateway.store.queries import RecipeSearch
from gateway.store.records import BootTime, Mirrored
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.system.store.conftest import SECOND, arrival, report
from tests.system.store.test_quarantine import item
from tests.system.store.test_recipes import content, recipe

TABLES = ("devices", "suspects", "readings", "suspect_payloads", "quarantine", "recipes", "brewsessions")
DEVICE = Device.first_seen(report(), SECOND)
COPY = Mirrored("7301", "-", "", SECOND)
HALF = "\ud83c"
"""Half a character, which SQLite does not take."""


async def rows(store: SqliteStore) -> dict[str, int]:
    """How many rows there are, in tables that have some."""

    def count(connection: sqlite3.Connection) -> dict[str, int]:
        sql = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in TABLES)  # noqa: S608
        return {table: number for table, number in connection.execute(sql) if number}

    return await store._writer.run(count)


async def refuse(store: SqliteStore, table: str) -> None:
    """Let every insert into a table fail."""
    sql = f"CREATE TEMP TRIGGER no BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END"
    await store._writer.run(lambda connection: connection.execute(sql) and None)


@pytest.fixture
async def boot(store: SqliteStore) -> BootTime:
    return BootTime((await store.retiming.boot("this one")).id, 5_000)


async def test_a_reading_arrives_with_its_device_and_its_arrival_time(
    store: SqliteStore, boot: BootTime
) -> None:
    saved = await store.take(arrival(), DEVICE, boot)
    assert saved == replace(DEVICE, id=1)
    assert await store.devices.all() == [saved]
    [waiting] = await store.retiming.page(boot.boot, 10)
    assert (waiting.arrival_time, waiting.device_id) == (boot, 1)
    session = await store.sessions.add(brew())
    await store.devices.assign(1, session.id, None)
    learned = replace(DEVICE, name="RED")
    assert await store.take(arrival(at=SECOND + 1), learned) == replace(learned, id=1, session_id=session.id)
    assert await store.take(arrival(at=SECOND + 2)) is None
    assert await store.totals.own_readings() == {session.id: 2}


@pytest.mark.parametrize("table", ["devices", "suspects", "readings"])
@pytest.mark.parametrize("neighbours", [0, 3])
async def test_a_reading_that_fails_in_part_leaves_nothing(
    store: SqliteStore, boot: BootTime, table: str, neighbours: int
) -> None:
    if neighbours:
        await store.take(arrival(), DEVICE)
    await refuse(store, table)
    before = await rows(store)
    other = Device.first_seen(report("2"), SECOND)
    bad = store.take(arrival(device="ispindel:2"), other, boot)
    good = [store.take(arrival(at=SECOND + n)) for n in range(neighbours)]
    first, *others = await asyncio.gather(bad, *good, return_exceptions=True)
    assert isinstance(first, sqlite3.IntegrityError | NotFound)
    if table == "readings":
        assert await rows(store) == before
    else:
        assert others == [None] * neighbours
        assert (await rows(store)).get("readings", 0) == before.get("readings", 0) + neighbours
    assert len(await store.devices.all()) == before.get("devices", 0)
    assert not await store.retiming.waits()


async def test_a_reading_of_nobody_brings_no_note(store: SqliteStore, boot: BootTime) -> None:
    with pytest.raises(NotFound):
        await store.take(arrival(), None, boot)
    assert await rows(store) == {}


@pytest.mark.parametrize("arrived", [True, False], ids=["commit arrived", "commit did not"])
async def test_an_arrival_of_unknown_outcome_and_its_retry_are_one(
    store: SqliteStore, boot: BootTime, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    def fails(self: Writer, connection: sqlite3.Connection, works: Any, rows: Any) -> Any:
        if arrived:
            self._kind.insert(connection, rows)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error

    with monkeypatch.context() as disk:
        disk.setattr(Writer, "_transact", fails)
        with pytest.raises(StoreUnavailable):
            await store.take(arrival(), DEVICE, boot)
    assert "readings" not in await rows(store)
    assert "suspects" not in await rows(store)
    saved = await store.take(arrival(), DEVICE, boot)
    assert saved is not None
    assert saved.id == 1
    assert await rows(store) == {"devices": 1, "readings": 1, "suspects": 1}


@pytest.mark.parametrize("table", ["suspect_payloads", "quarantine"])
async def test_a_payload_and_its_arrival_time_go_into_quarantine_together(
    store: SqliteStore, boot: BootTime, table: str
) -> None:
    await refuse(store, table)
    with pytest.raises(sqlite3.IntegrityError):
        await store.quarantine.add(item(), boot)
    assert await rows(store) == {}
    await store._writer.run(lambda connection: connection.execute("DROP TRIGGER no") and None)
    await store.quarantine.add(item(), boot)
    assert await store.retiming.payload_waits(item().received_at)
    assert await rows(store) == {"suspect_payloads": 1, "quarantine": 1}


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (recipe(content("Bad", notes=HALF)), UnicodeEncodeError),
        (recipe("Bad", folder_id=99), NameTaken),
        (recipe("Bad", id=7301), NameTaken),
    ],
)
async def test_recipes_come_all_or_none(store: SqliteStore, bad: Any, error: type[Exception]) -> None:
    await store.recipes.add(recipe("Mine", id=7301))
    with pytest.raises(error):
        await store.recipes.add_all([recipe(str(n)) for n in range(100)] + [bad, recipe("Last")])
    assert await rows(store) == {"recipes": 1}
    added = await store.recipes.add_all([recipe("First"), recipe("Second")])
    assert [(one.id, one.content.title) for one in added] == [(7302, "First"), (7303, "Second")]
    assert await store.recipes.add_all([]) == []


async def test_a_copied_recipe_and_what_is_known_of_it(store: SqliteStore) -> None:
    mirrors = store.mirrors
    await store.recipes.add(recipe("Mine", id=7301))
    with pytest.raises(NameTaken):
        await mirrors.add_recipe("https://a", "recipe", recipe(id=7301), COPY)
    assert await mirrors.copies("https://a", 1, "recipe") == {}
    added = await mirrors.add_recipe("https://a", "recipe", recipe("Theirs"), COPY)
    assert await store.recipes.get(added.id) == added
    assert await mirrors.copies("https://a", 1, "recipe") == {"7301": COPY}
    await refuse(store, "mirrored")
    with pytest.raises(sqlite3.IntegrityError):
        await mirrors.add_recipe("https://a", "recipe", recipe("Third"), replace(COPY, remote_id="7302"))
    assert await rows(store) == {"recipes": 2}


async def test_a_brew_session_begins_with_its_snapshot(store: SqliteStore) -> None:
    snapshot = recipe("Porter", snapshot=True, parent_id=5)
    with pytest.raises(NameTaken):
        await store.sessions.add(replace(brew(), folder_id=99), snapshot)
    with pytest.raises(NameTaken):
        await store.sessions.add(brew(), replace(snapshot, folder_id=99))
    assert await rows(store) == {}
    session = await store.sessions.add(brew(), snapshot)
    taken = await store.recipes.get(session.recipe_id)
    assert taken is not None
    assert (taken.snapshot, taken.parent_id, taken.content) == (True, 5, snapshot.content)
    assert await store.sessions.get(session.id) == session


async def filed(store: Store) -> list[tuple[int | None, int]]:
    _, found = await store.recipes.search(RecipeSearch(account_id=1))
    return sorted((one.folder_id, one.updated_at) for one in found)


async def test_recipes_are_filed_all_or_none(store: SqliteStore) -> None:
    folder = await store.folders.add(1, "recipe", "Winter", SECOND)
    ids = [(await store.recipes.add(recipe(str(n)))).id for n in range(3)]
    before = await filed(store)
    file: Callable[..., Awaitable[None]] = store.recipes.file
    for wrong, folder_id, why in ((*ids, 99), folder.id, "no recipe 99"), (ids, 99, "no folder 99"):
        with pytest.raises(NotFound, match=why):
            await file(wrong, folder_id, SECOND + 1)
        assert await filed(store) == before
    await file(ids, folder.id, SECOND + 1)
    assert await filed(store) == [(folder.id, SECOND + 1)] * 3
    await file(ids, None, SECOND + 2)
    assert await filed(store) == [(None, SECOND + 2)] * 3
