"""A gateway with targets of other kinds than a Brewing Data Service, and the clock in the test's hand."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.domain.payload import Payload
from gateway.domain.target import Route, Target
from gateway.domain.totals import TargetTotals
from gateway.forward.forwarding import Forwarding
from gateway.forward.schedule import ForwardSettings
from gateway.services.build import Services, build_services
from gateway.services.mapped_targets import NewMapped
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.patience import PATIENCE_S

NAP_S = 20.0
STEP_S = 0.002


@dataclass
class Mapped:
    """A gateway. `send` makes readings of a device, one a minute."""

    services: Services
    clock: FakeClock
    folder: Path

    async def send(self, name: str, *gravities: float, **members: object) -> None:
        number = sum(name.encode()) % 100_000
        for gravity in gravities:
            self.clock.advance(60)
            body = {"name": name, "ID": number, "angle": 40.5, "temperature": 20.25, "temp_units": "C"}
            told = {**body, "battery": 3.98, "gravity": gravity, "interval": 60, **members}
            await self.services.intake.take(
                Payload(json.dumps(told).encode(), self.clock.now(), "http /ingest")
            )

    async def device(self, name: str) -> int:
        return next(each.id for each in await self.services.store.devices.all() if each.name == name)

    async def add(self, name: str, kind: str, url: str, *, key: str = "", **options: Any) -> Target:
        return await self.services.mapped.add(NewMapped(name, kind, url, key=key, options=options))

    async def map(self, name: str, what: Any = "all", id: int = 0, since: int | None = None) -> None:
        await self.services.mapped.add_route(name, Route(what, id), since)

    async def totals(self, url: str) -> TargetTotals:
        totals = await self.services.store.totals.totals({})
        return next(each for each in totals.targets if each.name == url)

    async def until(self, true: Callable[[], bool | Awaitable[bool]], nap_s: float = NAP_S) -> None:
        """Let time pass over short naps until it is so."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                done = true()
                if done if isinstance(done, bool) else await done:
                    return
                if self.clock.naps and min(self.clock.naps) <= nap_s:
                    self.clock.advance(min(self.clock.naps))
                await asyncio.sleep(STEP_S)

    async def settled(self, url: str, count: int) -> None:
        """Wait until that many readings are forwarded and nothing waits."""

        async def so() -> bool:
            totals = await self.totals(url)
            return totals.forwarded == count and not totals.pending

        await self.until(so)

    def state(self, name: str) -> str:
        state = self.services.targets.states.get(name)
        return "" if state is None else state.words


@asynccontextmanager
async def mapped(folder: Path) -> AsyncIterator[Mapped]:
    store = SqliteStore(folder / "data")
    await store.open()
    try:
        await store.keys.owner(0)
        clock = FakeClock()
        services = build_services(store, folder / "data", clock)
        await services.intake.start()
        yield Mapped(services, clock, folder)
    finally:
        await store.close()


@asynccontextmanager
async def forwarding(made: Mapped) -> AsyncIterator[None]:
    """As the composition root does it."""
    services = made.services
    service = Forwarding(
        services.store, services.notices, services.stats, services.clock, ForwardSettings(),
        changed=services.targets.changed, states=services.targets.states, around=services.targets.around,
    )  # fmt: skip
    task = asyncio.create_task(service.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), repr(task.exception())
