"""A gateway with one device, whose readings a scripted cloud has, and imports as a client makes them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway.domain.brewsession import BrewSession
from gateway.domain.calibration import Calibration
from gateway.domain.device import Device, DeviceSettings
from gateway.domain.payload import Payload
from gateway.domain.target import Target
from gateway.formats.readings import Media
from gateway.formats.readings.export import exported
from gateway.services.build import Services, build_services
from gateway.store.queries import ReadingsQuery
from tests.brew import brew
from tests.system.forward.bench import UPSTREAM, Bench, bench

SPINDLE = {"name": "Red", "ID": 7, "angle": 50.0, "temperature": 20.0, "interval": 900}
CALLER = "192.0.2.99"


@dataclass
class Editing:
    """One gateway; `services` and `bench` are on the same store."""

    services: Services
    bench: Bench
    session: BrewSession

    async def send(self, *gravities: str) -> None:
        """Readings of the device, a quarter of an hour apart, of which the first puts it into the session."""
        for gravity in gravities:
            self.bench.clock.advance(900)
            body = json.dumps({**SPINDLE, "gravity": float(gravity)}).encode()
            await self.services.intake.take(Payload(body, self.bench.clock.now(), "http /ingest"))
            await self.services.brewsessions.assign("Red", self.session.id, since=0)

    async def export(self, media: Media = "json", session: BrewSession | None = None) -> bytes:
        chunks = self.services.store.readings.json_chunks(ReadingsQuery(session or self.session))
        return b"".join([piece async for piece in exported(chunks, media)])

    async def take(
        self, body: object, media: Media = "json", *, reset: bool = False, session: BrewSession | None = None
    ) -> int:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.services.importing.run(session or self.session, data, media, CALLER, reset)

    async def readings(self, session: BrewSession | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(await self.export("json", session))
        return found

    async def lines(self) -> list[dict[str, Any]]:
        found = self.services.store.readings.json_lines(
            last=10_000, device_id=None, session_id=self.session.id
        )
        return [json.loads(line) async for line in found]

    async def device(self) -> Device:
        [found] = await self.services.store.devices.all()
        return found

    async def calibrate(self, offset: float) -> None:
        device = await self.device()
        settings = DeviceSettings(calibration=replace(Calibration(), gravity_offset=offset))
        await self.services.reprocessor.configure(device, settings, lambda _: None)

    async def states(self) -> list[str]:
        found = await self.services.store.deliveries.of_readings(
            self.session.id, state=None, limit=1000, skip=0
        )
        return [state for reading in found for state in reading.states.values()]

    async def reasons(self) -> list[str]:
        found = await self.services.store.deliveries.of_readings(
            self.session.id, state=None, limit=1000, skip=0
        )
        return [reason for reading in found for reason in reading.reasons.values()]

    def there(self, upstream_id: int = UPSTREAM) -> list[dict[str, Any]]:
        return sorted(self.bench.cloud.kept(upstream_id), key=lambda row: str(row["created_at"]))

    def gravities(self) -> list[str]:
        return [row["gravity"] for row in self.there()]


@asynccontextmanager
async def editing(directory: Path, *, keeps_ids: bool) -> AsyncIterator[Editing]:
    async with bench(directory, keeps_ids=keeps_ids) as made:
        services = build_services(made.store, directory, made.clock)
        await services.access.start(first_key="test")
        await services.intake.start()
        target = Target("upstream", made.cloud.url, "/key", unnamed=True)
        await made.store.targets.add(target)
        session = await made.store.sessions.add(brew(batchcode="HP001", upstream_id=UPSTREAM))
        yield Editing(services, made, session)
