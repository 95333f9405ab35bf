"""A forwarder on a real store and a scripted cloud, with the clock in the test's hand."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import aiohttp

from gateway.domain.brewsession import BrewSession
from gateway.domain.objectid import new_object_id
from gateway.domain.reading import Reading
from gateway.events import StoredNotices
from gateway.forward.forwarder import Forwarder, ForwardSettings, Wait
from gateway.forward.kinds.service import ImportTarget
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.clock import FakeClock
from tests.cloud import KEY, Row, ScriptedCloud, running

UPSTREAM = 77
DEADLINE_S = 2.0
"""Real seconds that the target waits for a cloud that hangs; a busy machine needs more than half a second."""
UNLIMITED = 1_000_000
"""Requests per minute: `step` could not wait for its turn while the clock stands still."""
SETTLED_AFTER = 200
"""Steps within which every test's queue must be empty."""


def reading(number: int, *, received_at: float = 0.0) -> Reading:
    """One that differs from those of other numbers."""
    created_at = 1_769_900_000 + number
    return Reading(
        oid=new_object_id(created_at), created_at=created_at, received_at=int(received_at * 1000),
        name="GREEN", gravity=f"1.{number:05d}", gravity_unit="G", temp="66.5", temp_unit="F",
        comment=f"no. {number}", beer="Porter", interval="46085.4", source="meter", ip="192.0.2.10",
        sg=None, celsius=None,
    )  # fmt: skip


def number_of(row: Row) -> int:
    return int(str(row["comment"]).removeprefix("no. "))


def bad(*numbers: int) -> Callable[[Row], bool]:
    return lambda row: number_of(row) in numbers


@dataclass
class Bench:
    """Everything of one gateway; `restart` puts a new forwarder on the same store."""

    store: SqliteStore
    cloud: ScriptedCloud
    client: aiohttp.ClientSession
    settings: ForwardSettings = field(default_factory=ForwardSettings)
    clock: FakeClock = field(default_factory=FakeClock)
    stats: Stats = field(default_factory=Stats)
    notices: StoredNotices = field(default_factory=StoredNotices)
    per_minute: int = UNLIMITED
    deadline_s: float = DEADLINE_S

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.target = ImportTarget(
            self.client,
            self.cloud.url,
            KEY,
            self.clock,
            per_minute=self.per_minute,
            deadline_s=self.deadline_s,
        )
        self.forwarder = Forwarder(
            self.store.outbox,
            self.target,
            self.notices,
            self.stats,
            self.clock,
            self.settings,
            draw=lambda: 1.0,
        )

    async def session(self, upstream_id: int = UPSTREAM) -> BrewSession:
        return await self.store.sessions.add(brew(batchcode="A1", upstream_id=upstream_id))

    async def arrive(self, session: BrewSession, numbers: range | list[int]) -> None:
        """These readings arrive now."""
        now = self.clock.now()
        readings = [reading(number, received_at=now) for number in numbers]
        await self.store.readings.import_readings(session, readings, reset=False)

    async def step(self) -> Wait:
        """One look, and the clock moves over the rest."""
        rest = await self.forwarder.step()
        self.clock.advance(rest.seconds or 0.0)
        return rest

    async def waiting(self) -> int:
        return sum(backlog.waiting for backlog in await self.store.outbox.backlogs(self.target.name))

    async def drain(self) -> None:
        """Step until nothing waits."""
        for _ in range(SETTLED_AFTER):
            if not await self.waiting():
                return
            await self.step()
        raise AssertionError(f"still waiting: {self.stats.parts}")

    async def drain_all_but(self, session_id: int) -> None:
        """Step until only this brew session waits."""
        for _ in range(SETTLED_AFTER):
            backlogs = await self.store.outbox.backlogs(self.target.name)
            if {backlog.session_id for backlog in backlogs} <= {session_id}:
                return
            await self.step()
        raise AssertionError(f"still waiting: {self.stats.parts}")

    def arrived(self, upstream_id: int = UPSTREAM) -> list[int]:
        """Numbers of the readings that the cloud holds, in its order."""
        return [number_of(row) for row in self.cloud.kept(upstream_id)]

    async def quarantined(self) -> list[tuple[str, str, int]]:
        """Channel, reason and number of what is in quarantine."""
        database = self.store._database
        async with database.reader() as reader:
            rows = await reader.run(
                lambda connection: connection.execute(
                    "SELECT channel, reason, body FROM quarantine ORDER BY id"
                ).fetchall()
            )
        return [(channel, reason, number_of(json.loads(body))) for channel, reason, body in rows]


@asynccontextmanager
async def bench(
    directory: Path,
    settings: ForwardSettings | None = None,
    *,
    keeps_ids: bool = True,
    cloud: ScriptedCloud | None = None,
    per_minute: int = UNLIMITED,
) -> AsyncIterator[Bench]:
    store = SqliteStore(directory)
    await store.open()
    try:
        await store.keys.owner(0)
        async with (
            running(cloud or ScriptedCloud(keeps_ids=keeps_ids)) as cloud,
            aiohttp.ClientSession() as client,
        ):
            yield Bench(store, cloud, client, settings or ForwardSettings(), per_minute=per_minute)
    finally:
        await store.close()


def row_of(
    number: int, *, oid: str | None = None, gravity: object = "1.050", created_at: str | None = None
) -> Row:
    """A reading in the specification's shape, as far as the forwarder looks at it."""
    moment = datetime.fromtimestamp(1_769_900_000 + number, UTC).isoformat()
    return {
        "_id": {"$oid": oid or f"{number:024x}"},
        "name": "GREEN",
        "gravity": gravity,
        "gravity_unit": "G",
        "temp": "66.5",
        "temp_unit": "F",
        "comment": f"no. {number}",
        "created_at": created_at or moment,
    }
