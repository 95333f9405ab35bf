"""Keys in memory: the first one is made exactly once, changes take effect at once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.errors import Unauthorized
from gateway.services.access import Access
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
