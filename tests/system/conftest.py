from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.services.build import Parts, put_together
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_772_616_600.0)  # 2026-03-04T09:30:00Z


@pytest.fixture
async def parts(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Parts]:
    store = SqliteStore(tmp_path)
    await store.open()
    parts = put_together(store, tmp_path, clock)
    await parts.access.start()
    yield parts
    await store.close()
