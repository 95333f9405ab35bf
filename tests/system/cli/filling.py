"""A data directory with many readings, without a server."""

import asyncio
from pathlib import Path

from gateway.clock import SystemClock
from gateway.domain.payload import Payload
from gateway.events import StoredNotices
from gateway.intake.intake import Intake
from gateway.services.access import Access
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.program.program import ispindel

TOGETHER = 500


async def fill(data: Path, readings: int, session: bool = False) -> None:
    """Store so many readings of one device; with `session`, in brew session 1."""
    store, clock = SqliteStore(data), SystemClock()
    await store.open()
    try:
        access = Access(store, clock)
        await access.start()
        intake = Intake(store, StoredNotices(), Stats(), clock)
        await intake.start()
        for first in range(0, readings, TOGETHER):
            bodies = [ispindel(angle=f"{number}").encode() for number in range(first, first + TOGETHER)]
            payloads = [Payload(body, clock.now(), "http /ingest") for body in bodies[: readings - first]]
            await asyncio.gather(*map(intake.take, payloads))
        if session:
            session_made = await store.sessions.add(brew(batchcode="A", phase="P"))
            await store.devices.assign(1, session_made.id, 0)
    finally:
        await store.close()


async def fill_with(data: Path, bodies: list[str]) -> None:
    """Store what these posts hold, one after the other."""
    store, clock = SqliteStore(data), SystemClock()
    await store.open()
    try:
        await Access(store, clock).start()
        intake = Intake(store, StoredNotices(), Stats(), clock)
        await intake.start()
        for body in bodies:
            await intake.take(Payload(body.encode(), clock.now(), "http /ingest"))
    finally:
        await store.close()
