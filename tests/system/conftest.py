from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.services.build import Services, build_services
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_772_616_600.0)  # 2026-03-04T09:30:00Z


@pytest.fixture
async def services(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Services]:
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, clock)
    await services.access.start()
    yield services
    await store.close()
