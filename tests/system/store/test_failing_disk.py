"""A disk that fails or fills up: nobody is told yes for nothing, and it recovers by itself."""

import asyncio
import errno
import logging
import os
import resource
import select
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.device import Device
from gateway.errors import QuotaFull, StoreUnavailable
from gateway.store.sqlite.engine import quota, wal
from gateway.store.sqlite.engine.quota import BALLAST, DiskQuota
from gateway.store.sqlite.engine.writer import GROUP_ROWS, Writer
from gateway.store.sqlite.store import SqliteStore
from tests.patience import PATIENCE_S
from tests.system.store.conftest import SECOND, arrival, new_session, report
from tests.system.store.test_quarantine import item

TARGET = "http://cloud"
MIB = 1024 * 1024


LIMIT_BYTES = 64 * 1024
"""More than pytest's own files have, less than the log after `with_device`."""


@contextmanager
def no_log_may_grow() -> Iterator[None]:
    """Every write behind 64 KiB of a file fails with EFBIG, as those of a dying disk do with EIO."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def with_device(store: SqliteStore) -> None:
    """A device, and a log of more than `LIMIT_BYTES`."""
    await store.devices.save(Device.first_seen(report(), SECOND))
    await store.readings.add([arrival(at=SECOND + n, raw=bytes(2000)) for n in range(50)])
    await clear(store)


async def in_database(store: SqliteStore, sql: str) -> Any:
    return await store._writer.run(lambda connection: connection.execute(sql).fetchone()[0])


async def test_a_write_error_is_told_reads_go_on_and_it_recovers(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    await with_device(store)
    await store.readings.add([arrival()])
    handle = store._database.writer
    with no_log_may_grow():
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await store.readings.add([arrival(at=SECOND + 1)])
        assert await store.readings.count() == 1
        assert (await store.upkeep.condition()).trouble is not None
    await store.upkeep.tend()  # nobody sends anything: the look that is taken every few seconds is enough
    await store.readings.add([arrival(at=SECOND + 2)])
    assert await store.readings.count() == 2
    assert store._database.writer is not handle
    assert (await store.upkeep.condition()).trouble is None
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [line.split(":")[1] for line in told] == [" nothing can be stored", " data is stored again"]


@pytest.mark.parametrize("arrived", [True, False], ids=["commit arrived", "commit did not"])
async def test_a_commit_of_unknown_outcome_and_its_retry_are_one_row(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    await with_device(store)

    def fails(self: Writer, connection: sqlite3.Connection, works: Any, rows: Any) -> Any:
        if arrived:
            self._kind.insert(connection, rows)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error

    with monkeypatch.context() as disk:
        disk.setattr(Writer, "_transact", fails)
        with pytest.raises(StoreUnavailable):
            await store.readings.add([arrival(raw=b"same")])
    assert await in_database(store, "SELECT count(*) FROM readings") == 0
    await store.readings.add([arrival(raw=b"same")])
    assert await store.readings.count() == 1


async def test_after_an_error_the_log_is_written_anew(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_device(store)
    rewritten: list[bytes] = []
    real = wal.rewrite

    def watched(database: Path) -> None:
        before = wal.wal_path(database).read_bytes()
        real(database)
        assert wal.wal_path(database).read_bytes() == before
        rewritten.append(before)

    monkeypatch.setattr(wal, "rewrite", watched)
    with no_log_may_grow(), pytest.raises(StoreUnavailable):
        await store.readings.add([arrival()])
    await store.readings.add([arrival()])
    assert [len(content) > 0 for content in rewritten] == [True]


async def test_while_the_disk_fails_nothing_is_begun_to_be_forwarded(store: SqliteStore) -> None:
    session = await new_session(store, upstream_id=7)
    await with_device(store)
    await store.devices.assign(1, session.id, None)
    await store.readings.add([arrival()])
    with no_log_may_grow(), pytest.raises(StoreUnavailable):
        await store.outbox.begin(TARGET, session.id, 10)
    batch = await store.outbox.begin(TARGET, session.id, 10)
    assert batch is not None
    assert not batch.unsettled


async def test_the_quota_holds_and_deleting_makes_room(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, quota_bytes=6 * MIB)
    await store.open()
    await store.keys.owner(SECOND)
    await with_device(store)
    stored = 0
    stored = await until_refused(store)
    assert stored > 300
    assert bytes_in(tmp_path) <= 6 * MIB * 1.01 + 4 * MIB
    assert await until_refused(store) < 64
    await store._writer.run(lambda c: c.execute("DELETE FROM readings WHERE seq < 100") and None)
    await store.readings.add([arrival()])
    await store.close()


async def test_a_full_quota_refuses_at_once_until_a_fiftieth_of_it_is_free(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(tmp_path, quota_bytes=6 * MIB)
    await store.open()
    await store.keys.owner(SECOND)
    await with_device(store)
    await store.upkeep.tend()  # the ballast is in the quota, too
    await until_refused(store)
    for refused in (store.readings.add([arrival()]), store.quarantine.add(item())):
        with pytest.raises(QuotaFull):
            await refused
    assert not [*store._writer._rows, *store._writer._works], "nothing waits for a commit that must fail"
    assert (await store.upkeep.condition()).quota_full
    session = await new_session(store)  # the last fiftieth is for that
    await store._writer.run(lambda c: c.execute("DELETE FROM readings WHERE seq = 60") and None)
    await store.upkeep.tend()
    with pytest.raises(QuotaFull):
        await store.readings.add([arrival()])
    await store._writer.run(lambda c: c.execute("DELETE FROM readings WHERE seq < 100") and None)
    await store.readings.add([arrival()])
    await store.sessions.delete(session.id, SECOND)
    said = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert [line.partition(":")[2][:20] for line in said] == [" no reading is taken", " the quota has room "]
    await store.close()


async def test_of_a_group_that_is_too_large_the_readings_that_fit_are_stored(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, quota_bytes=6 * MIB)
    await store.open()
    await store.keys.owner(SECOND)
    await store.devices.save(Device.first_seen(report(), SECOND))
    large = [arrival(at=SECOND + number, raw=bytes(60_000)) for number in range(200)]
    async with asyncio.timeout(PATIENCE_S):
        results = await asyncio.gather(*map(store.take, large), return_exceptions=True)
    refused = [result for result in results if result is not None]
    assert all(isinstance(result, QuotaFull) for result in refused)
    assert len(refused) > 90
    assert await store.readings.count() == 200 - len(refused) > 60
    await store.close()


async def test_the_quota_counts_deleted_sessions_until_they_are_purged(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, quota_bytes=6 * MIB)
    await store.open()
    await store.keys.owner(SECOND)
    await with_device(store)
    session = await new_session(store)
    await store.devices.assign(1, session.id, None)
    stored = await until_refused(store)
    await store.sessions.delete(session.id, SECOND)
    assert await until_refused(store) < 64
    [deleted] = await store.sessions.deleted()
    assert deleted.readings >= stored
    while await store.sessions.purge(session.id, 50) == 50:
        pass
    assert await until_refused(store) > stored / 2
    await store.close()


def test_the_default_quota_is_four_gibibytes_or_half_of_the_disk(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    half = disk.f_blocks * disk.f_frsize // 2
    assert DiskQuota(tmp_path).quota_bytes == min(half, 4096 * MIB)


async def test_below_the_reserve_readings_are_refused_and_the_rest_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path)
    await store.open()
    await store.keys.owner(SECOND)
    session = await new_session(store, upstream_id=7)
    await with_device(store)
    await store.devices.assign(1, session.id, None)
    await store.readings.add([arrival()])
    monkeypatch.setattr(quota, "LOOK_AGAIN_S", 0)
    with monkeypatch.context() as full:
        full.setattr(DiskQuota, "free_bytes", lambda room: 30 * MIB)
        with pytest.raises(StoreUnavailable, match="make room"):
            await store.readings.add([arrival()])
        with pytest.raises(StoreUnavailable, match="make room"):
            await store.readings.import_readings(session, [], reset=False)
        batch = await store.outbox.begin(TARGET, session.id, 10)
        assert batch is not None
        await store.outbox.settle(batch)
    await store.readings.add([arrival()])
    await store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own: 5 MiB, 40 directory entries."""
    mount = shutil.which("mount")
    if mount is None:
        pytest.skip("needs mount")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=5m,nr_inodes=40", "tmpfs", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"may not mount a tmpfs: {done.stderr.decode().strip()}")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


async def test_a_disk_that_others_fill(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "LOOK_AGAIN_S", 0)
    monkeypatch.setattr(quota, "RESERVE_SHARE", 10**9)  # or it would be refused before the disk is full
    store = SqliteStore(small_disk)
    await store.open()
    await store.keys.owner(SECOND)
    session = await new_session(store, upstream_id=7)
    await with_device(store)
    await store.devices.assign(1, session.id, None)
    await store.upkeep.tend()
    assert all((small_disk / name).exists() for name in BALLAST)
    for cycle in range(3):
        at = SECOND + 1000 * cycle
        await store.readings.add([arrival(at=at)])
        fill(small_disk / "others")
        told_no = 0
        for number in range(1, 600):
            try:
                await store.readings.add([arrival(at=at + number, raw=bytes(4000))])
            except StoreUnavailable:
                told_no += 1
        assert told_no > 0
        assert not any((small_disk / name).exists() for name in BALLAST)
        (small_disk / "others").unlink()
        await store.upkeep.tend()
        await store.upkeep.tend()
        assert all((small_disk / name).exists() for name in BALLAST)
        rows = await store.readings.count()
        await store.readings.add([arrival(at=at + 999)])
        assert await store.readings.count() == rows + 1
        await clear(store)
    await store.close()


async def test_ballast_makes_room_for_deleting(small_disk: Path) -> None:
    store = SqliteStore(small_disk)
    await store.open()
    await store.keys.owner(SECOND)
    await with_device(store)
    await store.readings.add([arrival(at=SECOND + n, raw=bytes(3000)) for n in range(64)])
    await store.upkeep.tend()
    fill(small_disk / "others")
    with suppress(StoreUnavailable):  # throws the ballast off
        await clear(store)
    await clear(store)
    assert await store.readings.count() == 0
    await store.close()


async def test_a_start_without_directory_entries(small_disk: Path) -> None:
    store = SqliteStore(small_disk, repair=True)
    await store.open()
    await store.keys.owner(SECOND)
    await store.upkeep.tend()
    await store.close()
    number = 0
    while True:
        try:
            (small_disk / f"other{number}").touch(exist_ok=False)
        except OSError:
            break
        number += 1
    store = SqliteStore(small_disk, repair=True)
    await store.open()
    assert await store.readings.count() == 0
    await with_device(store)
    await store.close()


async def until_refused(store: SqliteStore) -> int:
    """Readings of 4 kB, one after another, until the quota is full; how many went in."""
    for number in range(20_000):
        try:
            await store.readings.add([arrival(at=SECOND + number, raw=bytes(4000))])
        except StoreUnavailable as error:
            return number if "--keep-days" in str(error) else 0
    raise AssertionError("there is no quota")


def bytes_in(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


async def clear(store: SqliteStore) -> None:
    await store._writer.run(lambda connection: connection.execute("DELETE FROM readings") and None)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 512):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


async def test_an_error_between_two_groups_takes_nothing_back(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_device(store)
    refused: list[float] = []

    def fails(*waited: Any) -> None:
        refused.append(waited[-1])
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(select, "select", fails)
    readings = [arrival(at=SECOND + number) for number in range(GROUP_ROWS + 6)]
    await asyncio.gather(*(store.readings.add([reading]) for reading in readings))
    assert await store.readings.count() == len(readings)
    assert refused
