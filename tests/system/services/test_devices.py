"""Settings of devices: stored at once, applied in the background, and applied whatever comes between."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.device import Device, DeviceSettings
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.errors import NotFound
from gateway.intake import reprocess as reprocessing_module
from gateway.intake.reprocess import PAGE_READINGS, Count
from gateway.services.build import Services, build_services
from gateway.services.device_settings import CalibrationChange, leaving_out
from gateway.services.devices import PREVIEW_POINTS, PREVIEW_S
from gateway.store.records import RawReading
from tests.clock import FakeClock
from tests.patience import PATIENCE_S

READINGS = 2 * PAGE_READINGS + 10
PLATO = DeviceSettings(gravity_unit="P")


async def filled(services: Services, clock: FakeClock, readings: int = READINGS) -> Device:
    for number in range(readings):
        clock.advance(900)
        body = {"name": "Red", "ID": 7, "angle": 30 + number % 30, "temperature": 20.0, "gravity": 1.05}
        await services.intake.take(Payload(json.dumps(body).encode(), clock.now(), "http /ingest"))
    [device] = await services.store.devices.all()
    return device


@asynccontextmanager
async def reprocessing(services: Services) -> AsyncIterator[None]:
    task = asyncio.create_task(services.reprocessor.run())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def units(services: Services) -> set[str]:
    return {raw.reading.gravity_unit for raw in await services.devices.latest(1, READINGS)}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - the store sets no event for it
            await asyncio.sleep(0.005)


async def finished(services: Services) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await services.devices.find(1)).reprocessing:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.005)


async def test_settings_are_applied_in_the_background_with_a_count(
    services: Services, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(services, clock)
    counts, publish = services.reprocessor.counts, services.notices.publish
    seen: list[Count] = []

    def told(topic: str, **about: int) -> None:
        seen.extend(counts.values())
        publish(topic, **about)

    monkeypatch.setattr(services.notices, "publish", told)
    async with reprocessing(services):
        await services.devices.start(1, lambda settings: replace(settings, gravity_unit="P"))
        assert (await services.devices.find(1)).settings == PLATO
        await finished(services)
        await until(lambda: not counts)
    assert (seen[0].of, 0 < seen[0].done <= READINGS) == (READINGS, True)
    assert await units(services) == {"P"}
    assert (await services.devices.state(1)).count is None
    counts[1] = seen[0]
    assert (await services.devices.state(1)).count == seen[0]


async def test_it_goes_on_after_a_restart(services: Services, clock: FakeClock, tmp_path: Path) -> None:
    await filled(services, clock, 20)
    await services.devices.start(1, lambda settings: replace(settings, gravity_unit="P"))  # and the end
    assert await units(services) == {"G"}
    again = build_services(services.store, tmp_path, clock)
    async with reprocessing(again):
        await finished(again)
    assert await units(again) == {"P"}


async def test_the_last_settings_win_while_the_first_are_being_applied(
    services: Services, clock: FakeClock
) -> None:
    await filled(services, clock)
    async with reprocessing(services):
        await services.devices.start(1, lambda settings: replace(settings, gravity_unit="P"))
        await until(lambda: services.reprocessor.counts.get(1, Count(0, 0)).done > 0)
        await services.devices.start(1, lambda settings: replace(settings, label="Left"))
        await services.devices.start(1, leaving_out(0, None))
        await finished(services)
    device = await services.devices.find(1)
    assert (device.settings.label, device.settings.gravity_unit) == ("Left", "P")
    found = await services.devices.latest(1, READINGS)
    assert {(raw.reading.gravity_unit, raw.reading.sg) for raw in found} == {("P", None)}


async def test_a_device_that_cannot_be_read_again_stops_nothing(
    services: Services, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(services, clock, 3)
    body = {"name": "Blue", "ID": 8, "angle": 30, "temperature": 20.0, "gravity": 1.05}
    await services.intake.take(Payload(json.dumps(body).encode(), clock.now(), "http /ingest"))
    real = reprocessing_module.reprocess

    def failing(sent: RawReading, device: Device) -> tuple[Reading, Device]:
        if device.id == 1:
            raise ValueError("a mistake of ours")
        return real(sent, device)

    monkeypatch.setattr(reprocessing_module, "reprocess", failing)
    async with reprocessing(services):
        for device_id in (1, 2):
            await services.devices.start(device_id, lambda settings: replace(settings, gravity_unit="P"))
        async with asyncio.timeout(PATIENCE_S):
            while (await services.devices.find(2)).reprocessing:  # noqa: ASYNC110 - it sets no event
                await asyncio.sleep(0.005)
        assert (await services.devices.find(1)).reprocessing
        monkeypatch.undo()
        await services.devices.start(1, lambda settings: replace(settings, gravity_unit="G"))
        await finished(services)


async def test_a_caller_that_leaves_leaves_the_work_to_the_background(
    services: Services, clock: FakeClock
) -> None:
    await filled(services, clock)
    calling = asyncio.create_task(
        services.devices.configure(1, lambda settings: replace(settings, gravity_unit="P"))
    )
    await until(lambda: bool(services.reprocessor.counts))
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    async with reprocessing(services):
        await finished(services)
    assert await units(services) == {"P"}


async def test_a_preview_is_bounded_and_equals_what_is_stored(services: Services, clock: FakeClock) -> None:
    device = await filled(services, clock, 40)
    change = CalibrationChange(points=[(25, 1.0), (65, 1.08)], gravity_offset=0.001).apply
    effect = await services.devices.preview(device.id, change)
    assert effect.changed == len(effect.before) == 40
    await services.devices.configure(device.id, change)
    stored = [raw.reading for raw in await services.devices.latest(device.id, 40)][::-1]
    assert [(point.at, point.sg, point.celsius) for point in effect.after] == [
        (reading.created_at, reading.sg, reading.celsius) for reading in stored
    ]
    first = stored[0].created_at
    assert await services.devices.readings_in(device.id, first, first + 1800) == 3
    assert await services.devices.nearest_tilt(device.id, first + 800, 3600) == (first + 900, 31.0)
    assert await services.devices.nearest_tilt(device.id, first - 9000, 3600) is None
    assert PREVIEW_S / PREVIEW_POINTS < 1800  # a hydrometer that reports every half hour is shown in full
    with pytest.raises(NotFound):
        await services.devices.preview(99, change)
