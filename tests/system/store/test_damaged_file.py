"""A damaged database file: the store opens, takes readings, keeps the original, forwards no damage."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gateway.errors import SchemaTooNew, StoreUnavailable
from gateway.store.sqlite import recovery as salvage
from gateway.store.sqlite import repair
from gateway.store.sqlite.damaged import CHANNEL
from gateway.store.sqlite.engine import damaged_file as aside
from gateway.store.sqlite.engine import database
from gateway.store.sqlite.engine.connections import PAGE_BYTES
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from tests.system.store import damage
from tests.system.store.conftest import SECOND, arrival, in_session
from tests.system.store.damage import READINGS, TARGET, accepts, chance, fill, is_as_sent, repaired, sent

SEEDS = 6
"""Of each kind of random damage; `python -m tests.faults D8` takes 500 in all."""


@pytest.fixture(scope="module")
def brewery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed database; the log of it was checkpointed."""
    directory = tmp_path_factory.mktemp("brewery")
    asyncio.run(fill(directory))
    return directory


@pytest.fixture
def directory(brewery: Path, tmp_path: Path) -> Path:
    shutil.copy(brewery / DATABASE_NAME, tmp_path)
    return tmp_path


def kept(directory: Path) -> list[str]:
    return [path.name for path in aside.kept_aside(directory, DATABASE_NAME)]


def at_page(path: Path, number: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek((number - 1) * PAGE_BYTES)
        file.write(content)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("damage_it", [damage.flip, damage.wipe, damage.scribble, damage.cut])
async def test_whatever_is_damaged(directory: Path, damage_it: damage.Damage, seed: int) -> None:
    path = directory / DATABASE_NAME
    damage_it(path, chance(f"{damage_it.__name__} {seed}"))
    original = path.read_bytes()
    async with repaired(directory) as store:
        await accepts(store)
        assert all(is_as_sent(reading) for reading in await sent(store))
        condition = await store.upkeep.condition()
    for found in condition.damages:
        assert (directory / found.aside).read_bytes() == original
    async with repaired(directory) as store:  # no loop: the next start finds nothing new
        assert (await store.upkeep.condition()).damages == condition.damages


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
        lambda path: path.write_text("Dear diary, today I brewed a porter. " * 100),
        lambda path: path.write_bytes(b"SQLite format 3\0"),
        lambda path: path.write_bytes(chance("noise").randbytes(300_000)),
        _directory,
    ],
    ids=["empty", "zeros", "text", "magic alone", "noise", "directory"],
)
async def test_something_else_in_its_place(directory: Path, wrong: Callable[[Path], None]) -> None:
    async with repaired(directory) as store:
        await store.upkeep.tend()  # the ballast says that there was a database
    wrong(directory / DATABASE_NAME)
    async with repaired(directory) as store:
        await accepts(store)
        assert [found.aside for found in (await store.upkeep.condition()).damages] == kept(directory)
        [row] = await store.audit.page(about="database", limit=9)
        assert (row.actor, row.verb, row.detail.partition(":")[0]) == (
            "system",
            "set aside",
            *kept(directory),
        )
    assert len(kept(directory)) == 1


async def test_page_one_is_wiped(directory: Path) -> None:
    at_page(directory / DATABASE_NAME, 1, bytes(PAGE_BYTES))
    async with repaired(directory) as store:
        assert await store.readings.count() == READINGS
        assert [device.name for device in await store.devices.all()] == ["S1", "S2"]
        verbs = [row.verb for row in await store.audit.page(limit=99)]
        assert verbs[-1] == "set aside"
        assert "assign" in verbs[:-1], "rows of the damaged file are salvaged, and stand before the new one"


async def test_a_wiped_leaf_costs_the_readings_on_it(directory: Path) -> None:
    path = directory / DATABASE_NAME
    at_page(path, damage.leaf_of_readings(path), bytes(PAGE_BYTES))
    async with repaired(directory) as store:
        assert READINGS * 0.95 <= await store.readings.count() < READINGS
        (found,) = (await store.upkeep.condition()).damages
        assert (found.salvaged, found.bad_pages) == (await store.readings.count(), 1)
        assert found.finished_at is not None


async def test_lost_sessions_and_devices_get_stand_ins(directory: Path) -> None:
    path = directory / DATABASE_NAME
    with closing(sqlite3.connect(path)) as connection:
        roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_schema").fetchall())
    for table in ("brewsessions", "devices", "accounts"):
        at_page(path, roots[table], bytes(PAGE_BYTES))
    async with repaired(directory) as store:
        assert await store.readings.count() == READINGS
        assert [device.name for device in await store.devices.all()] == ["salvaged 1", "salvaged 2"]
        assert [session.batchcode for session in await store.sessions.all()] == ["salvaged 1"]
        assert len(json.loads(b"[" + await in_session(store, (await store.sessions.all())[0]) + b"]")) == 200
        await accepts(store)


async def test_a_wrong_checksum_goes_into_quarantine(directory: Path) -> None:
    path = directory / DATABASE_NAME
    data = path.read_bytes()
    assert data.count(b"n7" + b"1.0410") == 1
    path.write_bytes(data.replace(b"n7" + b"1.0410", b"n7" + b"1.0510"))
    at_page(path, 1, bytes(PAGE_BYTES))
    async with repaired(directory) as store:
        assert await store.readings.count() == READINGS - 1
        (item,) = await store.quarantine.newest(10)
        assert item.channel == CHANNEL
        assert json.loads(item.body)["damaged_reading"]["gravity"] == "1.0510"
        condition = await store.upkeep.condition()
        assert (condition.damaged, condition.damages[0].quarantined) == (1, 1)


async def test_what_waited_is_read_back_before_it_is_sent(directory: Path) -> None:
    at_page(directory / DATABASE_NAME, 1, bytes(PAGE_BYTES))
    async with repaired(directory) as store:
        (backlog,) = await store.outbox.backlogs(TARGET)
        assert (backlog.waiting, backlog.unsettled) == (100, True)
        batch = await store.outbox.begin(TARGET, 1, 100)
        assert batch is not None
        assert batch.unsettled
        await store.outbox.settle(batch)
        await accepts(store)
        fresh = await store.outbox.begin(TARGET, 1, 100)
        assert fresh is not None
        assert ([json.loads(row)["name"] for row in fresh.rows], fresh.unsettled) == (["fresh"], False)
        assert fresh.seqs[0] > READINGS


async def test_lost_watermarks_count_as_unsettled(directory: Path) -> None:
    path = directory / DATABASE_NAME
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'deliveries'"
        ).fetchone()
    at_page(path, root, bytes(PAGE_BYTES))
    async with repaired(directory) as store:
        batch = await store.outbox.begin(TARGET, 1, 100)
        assert batch is not None
        assert (len(batch.rows), batch.unsettled) == (200, True)
        await store.outbox.settle(batch)
        assert await store.outbox.begin(TARGET, 1, 100) is None
        await accepts(store)
        fresh = await store.outbox.begin(TARGET, 1, 100)
        assert fresh is not None
        assert not fresh.unsettled


@pytest.mark.parametrize("after", [2**62, -1, "text"])
async def test_a_route_whose_start_cannot_be_begins_with_the_next_reading(
    directory: Path, after: object
) -> None:
    path = directory / DATABASE_NAME
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO routes VALUES ('webhook:x', 'all', 0, ?)", (after,))
    at_page(path, 1, bytes(PAGE_BYTES))
    async with repaired(directory) as store:
        await accepts(store)
        (backlog,) = await store.routes.backlogs("webhook:x")
        batch = await store.routes.begin("webhook:x", backlog.session_id, 1000)
        assert batch is not None
        assert (backlog.waiting, len(batch.rows)) == (1, 1)


async def test_readings_follow_in_the_background(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "FOREGROUND_S", 0)
    monkeypatch.setattr(salvage, "SLICE_ROWS", 100)
    at_page(directory / DATABASE_NAME, 1, bytes(PAGE_BYTES))
    async with repaired(directory) as store:
        assert await store.readings.count() == 0
        await accepts(store)
        with pytest.raises(StoreUnavailable, match="salvaged"):
            await store.outbox.backlogs(TARGET)
        assert await store.upkeep.salvage()
        assert 1 < await store.readings.count() < READINGS
    async with repaired(directory) as store:  # the process ended in between
        while await store.upkeep.salvage():
            pass
        assert await store.readings.count() == READINGS + 1
        (found,) = (await store.upkeep.condition()).damages
        assert (found.salvaged, found.finished_at is None) == (READINGS, False)
        assert len(await store.outbox.backlogs(TARGET)) == 1


async def test_a_start_that_ended_between_the_two_renames_goes_on(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = directory / DATABASE_NAME
    at_page(path, 1, bytes(PAGE_BYTES))
    with monkeypatch.context() as crash:
        crash.setattr(aside, "sync_directory", lambda directory: directory.joinpath("nowhere").stat())
        with pytest.raises(StoreUnavailable):
            await SqliteStore(directory, repair=True).open()
    assert not path.exists()
    async with repaired(directory) as store:
        assert await store.readings.count() == READINGS


@pytest.mark.parametrize("garbage", [b"garbage" * 5000, bytes(40_000), b"\x37\x7f\x06\x82" + bytes(20_000)])
async def test_garbage_for_a_log(directory: Path, garbage: bytes) -> None:
    (directory / f"{DATABASE_NAME}-wal").write_bytes(garbage)
    async with repaired(directory) as store:
        assert await store.readings.count() == READINGS
    (name,) = kept(directory)
    assert (directory / name).read_bytes() == garbage


async def test_garbage_for_an_index(directory: Path) -> None:
    (directory / f"{DATABASE_NAME}-shm").write_bytes(chance("noise").randbytes(32_768))
    async with repaired(directory) as store:
        assert await store.readings.count() == READINGS
        await accepts(store)


async def test_the_log_of_another_database(tmp_path: Path) -> None:
    ours, other = tmp_path / "ours", tmp_path / "other"
    for directory in (ours, other):
        directory.mkdir()
        await fill(directory, keep_log=True)
    shutil.copy(other / f"{DATABASE_NAME}-wal", ours)
    with closing(sqlite3.connect(other / DATABASE_NAME)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    async with repaired(ours) as store:
        await accepts(store)
        assert all(is_as_sent(reading) for reading in await sent(store))
        assert len((await store.upkeep.condition()).damages) == 1


async def test_commits_behind_a_damaged_frame_of_the_log_are_salvaged(tmp_path: Path) -> None:
    await fill(tmp_path, keep_log=True)
    log = tmp_path / f"{DATABASE_NAME}-wal"
    with closing(sqlite3.connect(f"file:{tmp_path / DATABASE_NAME}?mode=ro&immutable=1", uri=True)) as old:
        before = len(old.execute("SELECT name FROM sqlite_schema").fetchall())
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    async with repaired(tmp_path) as store:
        assert before == 0 or await store.readings.count() > READINGS * 0.9
        assert (await store.upkeep.condition()).damages[0].reason == "its log is damaged"


async def test_one_flipped_bit_of_the_version_is_no_newer_schema(directory: Path) -> None:
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version ^ 64}")
    with pytest.raises(StoreUnavailable, match="schema"):
        await SqliteStore(directory).open()
    async with repaired(directory) as store:
        assert await store.readings.count() == READINGS


async def test_a_newer_schema_is_refused_also_where_damage_would_be_repaired(directory: Path) -> None:
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as connection:
        connection.execute("PRAGMA user_version = 9999")
    with pytest.raises(SchemaTooNew, match="nothing was changed"):
        await SqliteStore(directory, repair=True).open()
    assert kept(directory) == []


async def test_a_command_leaves_a_damaged_file_alone(directory: Path) -> None:
    path = directory / DATABASE_NAME
    path.write_bytes(b"no database")
    with pytest.raises(StoreUnavailable, match="start the gateway"):
        await SqliteStore(directory).open()
    assert path.read_bytes() == b"no database"


async def test_a_kill_at_creation_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).write_bytes(b"")
    async with repaired(tmp_path) as store:
        await accepts(store)
    assert kept(tmp_path) == []


def overwrite_everything(directory: Path) -> None:
    """Behind the back of those who have it open."""
    for suffix in ("", "-wal"):
        path = directory / f"{DATABASE_NAME}{suffix}"
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(PAGE_BYTES if not suffix else 0)
            file.write(b"\xff" * (size - file.tell()))


async def test_damage_while_running_is_repaired_without_a_restart(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with repaired(directory) as store:
        overwrite_everything(directory)
        with pytest.raises(StoreUnavailable):
            await store.readings.count()  # a reader meets it; the writer sets the file aside by itself
        await store.keys.owner(SECOND)
        await accepts(store)
        first = await store.upkeep.condition()
        assert (len(first.damages), first.repairs, first.trouble) == (1, 1, None)
        corrupt = sqlite3.DatabaseError("database disk image is malformed")
        corrupt.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        store._database.met(corrupt)
        with pytest.raises(
            StoreUnavailable, match="do not fit together"
        ):  # not again at once, and so on for ever
            await store.readings.add([arrival()])
        monkeypatch.setattr(database, "REPAIR_PAUSE_S", 0)
        await store.upkeep.tend()
        await accepts(store)


async def test_a_writer_that_meets_damage(directory: Path) -> None:
    async with repaired(directory) as store:
        overwrite_everything(directory)
        await store._writer.run(lambda connection: connection.execute("PRAGMA shrink_memory") and None)
        with pytest.raises(StoreUnavailable):
            await store.payloads.send_again(1, 0)
        await accepts(store)
        assert (await store.upkeep.condition()).repairs == 1
