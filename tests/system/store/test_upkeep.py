"""Backups before migrations, the verdict on SQLite, retention, and upkeep beside a gateway."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.domain.device import Device
from gateway.domain.target import Target
from gateway.errors import StoreUnavailable
from gateway.services.build import Services, build_services
from gateway.services.upkeep import DAY_S, Retention, Upkeep
from gateway.store.sqlite.engine import copying, schema
from gateway.store.sqlite.engine.connections import PAGE_BYTES, has_wal_reset_bug, open_writer
from gateway.store.sqlite.engine.copying import BEFORE, verified_copy
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.engine.schema import migrate, migrations
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.system.store import damage
from tests.system.store.conftest import SECOND, arrival, new_session, report

TARGET = "http://cloud"


def old_database(directory: Path, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    with monkeypatch.context() as past:
        past.setattr(schema, "migrations", lambda: migrations()[:version])
        connection = open_writer(directory / DATABASE_NAME)
        migrate(connection)
    connection.execute("INSERT INTO accounts (name, created_at) VALUES ('anna', 1)")
    connection.close()


def copies(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"*{BEFORE}*"))


async def test_a_verified_copy_is_kept_before_a_migration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_database(tmp_path, monkeypatch, 1)
    store = SqliteStore(tmp_path)
    await store.open()
    await store.close()
    (copy,) = copies(tmp_path)
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT name FROM accounts").fetchall() == [("anna",)]
    store = SqliteStore(tmp_path)
    await store.open()  # nothing to migrate, nothing to copy
    await store.close()
    assert copies(tmp_path) == [copy]


def test_the_last_two_copies_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = open_writer(tmp_path / DATABASE_NAME)
    migrate(connection)
    for version in (1, 2, 3):
        copying.copy_before_migration(connection, version)
    connection.close()
    assert sorted(path.name.split("-")[2] for path in tmp_path.glob(f"*{BEFORE}*")) == ["2", "3"]


def test_a_copy_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / DATABASE_NAME)
    migrate(connection)
    with pytest.raises(StoreUnavailable, match="copy"):
        verified_copy(connection, tmp_path / "missing" / "copy")
    connection.close()
    size = (tmp_path / DATABASE_NAME).stat().st_size
    with (tmp_path / DATABASE_NAME).open("r+b") as file:
        file.seek(PAGE_BYTES)
        file.write(b"\xff" * (size - PAGE_BYTES))
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as broken, pytest.raises(StoreUnavailable):
        verified_copy(broken, tmp_path / "copy")
    assert {path.name for path in tmp_path.iterdir()} <= {
        DATABASE_NAME,
        f"{DATABASE_NAME}-wal",
        f"{DATABASE_NAME}-shm",
    }


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ((3, 6, 23), False), ((3, 7, 0), True), ((3, 40, 1), True), ((3, 44, 5), True), ((3, 44, 6), False),
        ((3, 45, 0), True), ((3, 50, 6), True), ((3, 50, 7), False), ((3, 51, 0), True), ((3, 51, 2), True),
        ((3, 51, 3), False), ((3, 52, 0), False),
    ],
)  # fmt: skip
def test_which_versions_have_the_wal_reset_bug(version: tuple[int, ...], affected: bool) -> None:
    assert has_wal_reset_bug(version) is affected


async def old_readings(store: SqliteStore, *, settled: bool) -> int:
    """Ten readings of a session that no device is in any more, in a year of their own; the session's id."""
    await store.targets.add(Target("cloud", TARGET, "key", unnamed=True))
    session = await new_session(store, upstream_id=7)
    device = await store.devices.save(Device.first_seen(report(), SECOND))
    await store.devices.assign(device.id, session.id, None)
    await store.readings.add([arrival(at=SECOND + number) for number in range(10)])
    await store.devices.release(device.id)
    batch = await store.outbox.begin(TARGET, session.id, 10)
    assert batch is not None
    if settled:
        await store.outbox.settle(batch)
    return session.id


async def test_retention_deletes_what_every_target_has(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await old_readings(store, settled=True)
    retention = Retention(store, 30)
    assert await retention.run_once(SECOND + 30 * DAY_S) == 0
    assert await retention.run_once(SECOND + 31 * DAY_S) == 10
    assert await store.readings.count() == 0
    assert (await store.upkeep.condition()).pruned == 10
    assert "deleted 10 readings of brew session 1" in caplog.text


@pytest.mark.parametrize(
    "reason",
    ["unsettled", "a device is in it", "a newer reading", "another target lacks it", "not forwarded"],
)
async def test_retention_keeps(store: SqliteStore, reason: str) -> None:
    session_id = await old_readings(store, settled=reason != "unsettled")
    match reason:
        case "a device is in it":
            await store.devices.assign(1, session_id, None)
        case "a newer reading":
            await store.devices.assign(1, session_id, None)
            await store.readings.add([arrival(at=SECOND + 30 * DAY_S)])
            await store.devices.release(1)
        case "another target lacks it":
            await store.targets.add(Target("other", "http://other", "key", unnamed=True))
        case "not forwarded":
            await store.sessions.delete(session_id, SECOND)
    assert await Retention(store, 20).run_once(SECOND + 40 * DAY_S) == 0
    assert await store.readings.count() >= 10


async def test_retention_keeps_what_is_behind_the_slowest_target(store: SqliteStore) -> None:
    session_id = await old_readings(store, settled=True)
    await store.targets.add(Target("other", "http://other", "key", unnamed=True))
    half = await store.outbox.begin("http://other", session_id, 5)
    assert half is not None
    await store.outbox.settle(half)
    assert await Retention(store, 20).run_once(SECOND + 40 * DAY_S) == 5
    assert await store.readings.count() == 5


async def started(directory: Path, clock: FakeClock) -> tuple[SqliteStore, Services]:
    store = SqliteStore(directory, repair=True)
    await store.open()
    services = build_services(store, directory, clock)
    await services.access.start(first_key="first")
    await services.intake.start()
    return store, services


async def test_upkeep_says_how_the_store_is_and_learns_devices_anew(tmp_path: Path) -> None:
    await damage.fill(tmp_path)
    clock = FakeClock()
    store, services = await started(tmp_path, clock)
    upkeep = Upkeep(store, services.access, services.logins, services.intake, services.stats, clock)
    await upkeep.tend()
    assert services.stats.in_trouble == set(), "a bug that does no harm here is advice"
    assert services.stats.parts["store"] == "ok"
    assert services.stats.parts["sqlite"].startswith(f"{sqlite3.sqlite_version}: ok")
    corrupt = sqlite3.DatabaseError("database disk image is malformed")
    corrupt.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    store._database.met(corrupt)
    await upkeep.tend()
    assert "a damaged file is kept as gateway.sqlite3.damaged-" in services.stats.parts["store"]
    assert "400 readings were salvaged" in services.stats.parts["store"]
    assert services.intake.devices.get("ispindel:1") is not None
    await store.close()


async def test_upkeep_that_the_store_refuses_is_in_trouble_until_it_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await damage.fill(tmp_path)
    clock = FakeClock()
    store, services = await started(tmp_path, clock)
    retention = Retention(store, 20)
    upkeep = Upkeep(
        store, services.access, services.logins, services.intake, services.stats, clock, retention
    )
    stats = services.stats

    async def fail(*_: object) -> None:
        raise StoreUnavailable("disk full")

    running = asyncio.create_task(upkeep.run())
    await clock.run_until(lambda: stats.parts.keys() == {"store", "sqlite", "scrub", "retention"})
    await clock.run_until(lambda: stats.parts["scrub"] == "ok")
    assert stats.in_trouble == set()
    with monkeypatch.context() as patch:
        patch.setattr(store.upkeep, "tend", fail)
        patch.setattr(store.upkeep, "scrub", fail)
        patch.setattr(retention, "run_once", fail)
        await clock.run_until(lambda: stats.in_trouble == {"store", "scrub", "retention"})
        assert stats.parts["store"] == stats.parts["scrub"] == stats.parts["retention"] == "disk full"
    await clock.run_until(lambda: stats.in_trouble == set())
    running.cancel()
    await asyncio.wait([running])
    await store._writer.run(lambda _: None)  # what was being written ends first, and with it all trouble
    with monkeypatch.context() as patch:
        patch.setattr(store._writer, "trouble", "the disk is full")
        patch.setattr(store.upkeep, "tend", store.upkeep.condition)
        await upkeep.tend()
        assert stats.in_trouble == {"store"}
    await store.close()


async def test_the_scrub_goes_round_once_a_day_and_on_where_it_was(tmp_path: Path) -> None:
    await damage.fill(tmp_path)
    clock = FakeClock()
    store, services = await started(tmp_path, clock)
    upkeep = Upkeep(store, services.access, services.logins, services.intake, services.stats, clock)
    await store._writer.run(
        lambda c: c.execute("UPDATE readings SET beer = 'x' WHERE seq IN (10, 300)") and None
    )
    await store.upkeep.note_scrub(200, None)
    round_ = asyncio.create_task(upkeep.scrub_round())
    await clock.run_until(round_.done)
    assert [item.label for item in await store.quarantine.newest(5)] == ["reading 300"]
    condition = await store.upkeep.condition()
    assert (condition.scrubbed_until, condition.scrubbed_at > 0) == (0, True)
    await upkeep.scrub_round()
    assert len(await store.quarantine.newest(5)) == 1  # not again on the same day
    await store.close()
