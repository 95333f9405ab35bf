"""A gateway with three targets, a scripted cloud behind each, and the clock in the test's hand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.domain.brewsession import BrewSession
from gateway.forward.forwarding import Forwarding
from gateway.forward.schedule import ForwardSettings
from gateway.services.build import Services, build_services
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.clock import FakeClock
from tests.cloud import KEY, ScriptedCloud, running
from tests.patience import PATIENCE_S
from tests.system.forward.bench import number_of, reading

NAMES = ("a", "b", "c")
NAP_S = 2.0
STEP_S = 0.002
READBACK_S = 10.0


@dataclass
class Several:
    """A gateway with three targets, and what stands behind them."""

    services: Services
    clock: FakeClock
    clouds: dict[str, ScriptedCloud]
    key_files: dict[str, Path]
    session: BrewSession

    async def arrive(self, *numbers: int) -> None:
        at = self.clock.now()
        readings = [reading(number, received_at=at) for number in numbers]
        await self.services.store.readings.import_readings(self.session, readings, reset=False)
        self.services.notices.notify()

    def arrived(self, name: str) -> list[int]:
        return [number_of(row) for row in self.clouds[name].kept(70)]

    async def until(self, name: str, numbers: list[int], nap_s: float = NAP_S) -> None:
        """Wait until that target has them and the gateway knows."""

        async def through() -> bool:
            deliveries = await self.services.store.deliveries.counts()
            return self.arrived(name) == numbers and not sum(
                d.pending for d in deliveries if d.target == name
            )

        await self.wait(through, nap_s)

    async def wait(self, true: Callable[[], Awaitable[object]], nap_s: float = NAP_S) -> None:
        """Let time pass over short naps only: a target's backoff must not be what others wait for."""
        async with asyncio.timeout(PATIENCE_S):
            while not await true():
                if self.clock.naps and min(self.clock.naps) <= nap_s:
                    self.clock.advance(min(self.clock.naps))
                await asyncio.sleep(STEP_S)

    async def words(self, name: str) -> str:
        return self.services.targets.state_of(await self.services.targets.named(name)).words


@asynccontextmanager
async def forwarding(services: Services) -> AsyncIterator[None]:
    """As the composition root does it, in batches of 4."""
    batch = ForwardSettings(batch_readings=4, batch_seconds=1.0)
    service = Forwarding(
        services.store, services.notices, services.stats, services.clock, batch,
        changed=services.targets.changed, states=services.targets.states,
    )  # fmt: skip
    task = asyncio.create_task(service.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


@asynccontextmanager
async def several(folder: Path) -> AsyncIterator[Several]:
    """One with three targets that are each told of a brew session as their number 70."""
    async with AsyncExitStack() as stack:
        store = SqliteStore(folder / "data")
        await store.open()
        stack.push_async_callback(store.close)
        await store.keys.owner(0)
        clock = FakeClock()
        services = build_services(store, folder / "data", clock)
        session = await store.sessions.add(brew(batchcode="A"))
        made = Several(services, clock, {}, {}, session)
        for name in NAMES:
            cloud = await stack.enter_async_context(running(ScriptedCloud(keeps_ids=name != "b")))
            key_file = folder / f"{name}.key"
            key_file.write_text(KEY)
            made.clouds[name], made.key_files[name] = cloud, key_file
            await services.targets.add(name, cloud.url, str(key_file))
            await services.targets.map(session, name, 70)
        yield made
