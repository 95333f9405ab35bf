"""Keys in memory: the first one is made exactly once, changes take effect at once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.audit import FIRST_LOGIN, WRONG_KEY
from gateway.errors import StoreUnavailable, Unauthorized
from gateway.network import Peer
from gateway.services.access import INGEST_ONLY, USES_IN_MEMORY, Access
from gateway.services.wrong_keys import SOURCES_IN_MEMORY
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path)
    await store.open()
    yield store
    await store.close()


async def test_the_first_key_is_made_even_where_a_command_made_the_owner(store: SqliteStore) -> None:
    await Access(store, FakeClock()).start()  # as `sessions add` does before the first `serve`
    first = await Access(store, FakeClock()).start(first_key="first")
    assert first is not None
    assert await Access(store, FakeClock()).start(first_key="first") is None


async def test_a_revoked_first_key_is_not_made_again(store: SqliteStore) -> None:
    access = Access(store, FakeClock())
    first = await access.start(first_key="first")
    assert first is not None
    assert access.check(f" {first.key_text} ", "admin").name == "first"
    await access.revoke("first")
    with pytest.raises(Unauthorized):
        access.check(first.key_text, "read")
    assert await Access(store, FakeClock()).start(first_key="first") is None


async def test_a_crash_at_any_place_of_the_first_start_costs_no_key(store: SqliteStore) -> None:
    kept: list[str] = []

    def full_disk(text: str) -> None:
        kept.append(text)
        raise StoreUnavailable("full")

    with pytest.raises(StoreUnavailable):
        await Access(store, FakeClock()).start(first_key="first", keep=full_disk)
    assert await store.keys.active() == [], "a key that nobody could read"
    access = Access(store, FakeClock())
    first = await access.start(first_key="first", keep=kept.append)
    assert first is not None
    assert kept[1] == first.key_text
    assert access.check(kept[1], "admin").name == "first"


async def test_a_key_ends_at_its_time_and_a_replaced_one_after_the_overlap(store: SqliteStore) -> None:
    clock = FakeClock()
    access = Access(store, clock)
    await access.start()
    ends = int(clock.now()) + 1_000
    text = await access.add("phone", expires_at=ends)
    clock.advance(400)
    new = await access.rotate("phone", 60)
    for again in (access, Access(store, clock)):
        await again.start()
        assert {again.check(text, "read").replaced, again.check(new, "read").replaced} == {True, False}
    clock.advance(60)
    with pytest.raises(Unauthorized):
        access.check(text, "read")
    assert [key.name for key in access.all()] == ["phone"], "a replaced key leaves the list at its end"
    assert access.check(new, "read").expires_at == ends + 400, "the new one lives as long as the old one did"
    clock.advance(940)
    with pytest.raises(Unauthorized):
        access.check(new, "read")
    assert [key.has_ended(clock.now()) for key in access.all()] == [True], "an ended key stays in the list"


async def test_the_key_of_a_device_does_nothing_but_report(store: SqliteStore) -> None:
    access = Access(store, FakeClock())
    await access.start()
    text = await access.add("vat", INGEST_ONLY, device="iSpindel042")
    assert access.check(text, "ingest").device == "iSpindel042"
    with pytest.raises(Unauthorized):
        access.check(text, "ingest", devices=False)
    with pytest.raises(Unauthorized):
        access.check(text, "read")


async def test_uses_and_wrong_keys_are_written_together_and_survive_a_full_disk(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    access = Access(store, clock)
    await access.start()
    text = await access.add("phone")
    for source in ("10.0.0.1", "10.0.0.2", "10.0.0.1"):
        access.check(text, "read", source)
        clock.advance(1)
    for _ in range(3):
        with pytest.raises(Unauthorized):
            access.admit("hg_wrong", "read", Peer("10.0.0.9"))
    with pytest.raises(Unauthorized):
        access.admit("", "read", Peer("10.0.0.9"))  # no key is no wrong key
    [shown] = access.all()
    assert (shown.last_used_at, shown.last_source) == (int(clock.now()) - 1, "10.0.0.1")
    assert (await store.keys.active())[0].last_used_at is None, "a request waits for no commit"

    async def full(_: object) -> None:
        raise StoreUnavailable("full")

    with monkeypatch.context() as patch:
        patch.setattr(store.keys, "note_uses", full)
        with pytest.raises(StoreUnavailable):
            await access.note()
        access.check(text, "read", "10.0.0.3")
    await access.note()
    [stored] = await store.keys.active()
    assert (stored.last_used_at, stored.last_source) == (int(clock.now()), "10.0.0.3")
    rows = await store.audit.page(limit=100)
    assert sorted(row.source for row in rows if row.verb == FIRST_LOGIN) == [
        *("10.0.0.1", "10.0.0.2", "10.0.0.3")
    ], "uses since the failure push none out"
    assert [(row.source, row.times) for row in rows if row.verb == WRONG_KEY] == [("10.0.0.9", 3)]
    await access.note()
    assert await store.audit.page(limit=100) == rows, "nothing happened since"


async def test_memory_for_addresses_is_bounded(store: SqliteStore) -> None:
    access = Access(store, FakeClock())
    await access.start()
    text = await access.add("phone")
    for number in range(2 * SOURCES_IN_MEMORY):
        access.check(text, "read", f"good {number}")
        with pytest.raises(Unauthorized):
            access.admit("hg_wrong", "read", Peer(f"bad {number}"))
    await access.note()
    rows = await store.audit.page(limit=1_000)
    assert len([row for row in rows if row.verb == FIRST_LOGIN]) == USES_IN_MEMORY
    wrong = [row for row in rows if row.verb == WRONG_KEY]
    assert len(wrong) == SOURCES_IN_MEMORY + 1
    assert sum(row.times for row in wrong) == 2 * SOURCES_IN_MEMORY
