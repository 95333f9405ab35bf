from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.brewsession import BrewSession
from gateway.domain.objectid import new_object_id
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.store.protocol import Store
from gateway.store.queries import ReadingsQuery
from gateway.store.records import Arrival
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew

SECOND = 1_772_616_600
"""2026-03-04T09:30:00Z."""


@pytest.fixture(params=["sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store with an owner; a second implementation becomes a second parameter."""
    store = SqliteStore(tmp_path)
    await store.open()
    await store.keys.owner(SECOND)
    yield store
    await store.close()


async def new_session(store: Store, *, upstream_id: int | None = None) -> BrewSession:
    return await store.sessions.add(brew(phase="Primary Fermentation", upstream_id=upstream_id, now=SECOND))


def reading(name: str = "", *, at: int = SECOND, oid: str | None = None, extra: str | None = None) -> Reading:
    return Reading(
        oid=oid or new_object_id(at), created_at=at, received_at=at * 1000, name=name, gravity="1.0410",
        gravity_unit="G", temp="66.5", temp_unit="F", comment="", beer="Porter", interval="46085.5",
        source="test", ip="192.0.2.10", sg=1.041, celsius=19.2, extra=extra,
    )  # fmt: skip


def report(stable_id: str = "1", name: str = "GREEN") -> Report:
    return Report(family="ispindel", stable_id=stable_id, name=name)


def arrival(
    name: str = "",
    *,
    device: str = "ispindel:1",
    at: int = SECOND,
    raw: bytes = b"{}",
    delivery: str | None = None,
) -> Arrival:
    return Arrival(reading(name, at=at), device, raw, "http /ingest/ispindel", delivery)


async def in_session(store: Store, session: BrewSession, **filters: object) -> bytes:
    query = ReadingsQuery(session, **filters)  # type: ignore[arg-type]
    return b"".join([chunk async for chunk in store.readings.json_chunks(query)])
