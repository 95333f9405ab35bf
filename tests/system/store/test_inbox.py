"""The inbox in the store: it outlives restarts, damage and copies, and has its part of the quota."""

import shutil
from pathlib import Path

from gateway.domain.inbox import WaitingName, WaitReason
from gateway.domain.payload import Payload
from gateway.store.sqlite import inbox, snapshot
from gateway.store.sqlite.engine.connections import PAGE_BYTES
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from tests.system.store import damage
from tests.system.store.damage import fill, repaired
from tests.system.store.test_damaged_file import at_page

BODY = b"\x00\xff as it came"
NAME = WaitingName("ispindel:9", "192.168.1.37", WaitReason.NEW, "ispindel", "9", "spindle9", 1)
MIB = 1024 * 1024


async def wait(directory: Path) -> None:
    store = SqliteStore(directory)
    await store.open()
    payload = Payload(BODY, 1_772_616_600.123, "http /", source="192.168.1.37", label="vat")
    assert await store.inbox.add(payload, [NAME]) == []
    other = WaitingName("ispindel:8", "", WaitReason.NEW, "ispindel", "8", "", 1)
    await store.inbox.add(payload, [other])
    await store.inbox.refuse(2, 1_772_616_600)
    await store.close()


async def is_all_there(store: SqliteStore) -> None:
    (name,) = await store.inbox.names()
    assert (name.device_key, name.source, name.readings, name.reason) == (
        *("ispindel:9", "192.168.1.37", 1),
        WaitReason.NEW,
    )
    (kept,) = await store.inbox.page([name.id], (0, 0), 10)
    assert (kept.payload.body, kept.payload.label) == (BODY, "vat")
    assert [refused.device_key for refused in await store.inbox.refused()] == ["ispindel:8"]


async def test_it_outlives_a_damaged_file_and_is_in_every_copy(tmp_path: Path) -> None:
    await fill(tmp_path)
    await wait(tmp_path)
    copy = tmp_path / "copy"
    copy.mkdir()
    snapshot.copy_of(tmp_path / DATABASE_NAME, copy / DATABASE_NAME, lambda: False)
    store = SqliteStore(copy)
    await store.open()
    await is_all_there(store)
    await store.close()
    shutil.rmtree(copy)
    path = tmp_path / DATABASE_NAME
    at_page(path, damage.leaf_of_readings(path), bytes(PAGE_BYTES))
    async with repaired(tmp_path) as store:
        await is_all_there(store)


async def test_its_size_is_a_part_of_the_quota_and_a_source_has_a_part_of_that(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, quota_bytes=16 * MIB)
    await store.open()
    assert (await store.inbox.state()).size_max == 16 * MIB // inbox.INBOX_SHARE
    payload = Payload(bytes(600_000), 1.0, "http /", source="192.168.1.37")
    assert await store.inbox.add(payload, [NAME]) == []
    assert await store.inbox.add(payload, [NAME]) == [NAME]
    state = await store.inbox.state()
    assert (state.names, state.readings, state.size) == (1, 1, 600_000 + inbox.ROW_BYTES)
    (name,) = await store.inbox.names()
    (kept,) = await store.inbox.page([name.id], (0, 0), 10)
    await store.inbox.remove([kept.id])
    state = await store.inbox.state()
    assert (state.names, state.readings, state.size) == (0, 0, 0)
    await store.close()
