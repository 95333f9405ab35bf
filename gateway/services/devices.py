"""Devices: their states, changes of their settings, and the effect of a change before it is made."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device, DeviceSettings, DeviceSummary
from gateway.domain.inbox import REFUSED_S, RefusedName, WaitingName
from gateway.domain.progress import Progress, no_progress
from gateway.domain.reading import Reading
from gateway.errors import NotFound
from gateway.intake.reprocess import Count, Reprocessed, Reprocessor, reprocess
from gateway.services.access import Access
from gateway.services.device_settings import Change
from gateway.store.protocol import Store
from gateway.store.records import DeviceSource, RawReading

PREVIEW_S = 14 * 86_400
"""Seconds before a device's last reading that the preview of a change shows."""

PREVIEW_POINTS = 700
"""Readings that a preview decodes at most, spread evenly: more would take seconds on a small machine."""

PAGE_READINGS = 200
"""Readings that a preview loads at a time: about 10 ms in which nothing else is done."""


@dataclass(frozen=True, slots=True)
class DeviceState:
    """A device with its last reading. `bound_keys` are names of keys that are for this device alone.

    `waiting` counts readings in the inbox. `count` is the progress of reprocessing, None while none runs.
    """

    summary: DeviceSummary
    bound_keys: tuple[str, ...]
    waiting: int
    count: Count | None

    @property
    def device(self) -> Device:
        """Return the device."""
        return self.summary.device


@dataclass(frozen=True, slots=True)
class EffectPoint:
    """A reading's gravity (SG) and temperature (°C) under some settings, None if it does not count."""

    at: int
    sg: float | None
    celsius: float | None


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect that a change of settings would have on the readings of the last 14 days in the brew.

    `before` and `after` are of the same readings, of which `changed` would differ. Of many, some are chosen.
    """

    before: list[EffectPoint]
    after: list[EffectPoint]
    changed: int


class DeviceService:
    """A service that shows devices and changes their settings."""

    def __init__(self, store: Store, access: Access, reprocessor: Reprocessor) -> None:
        self._store = store
        self._access = access
        self._reprocessor = reprocessor

    async def find(self, device_id: int) -> Device:
        """Return the device with this id; `NotFound` if there is none."""
        found = next((device for device in await self._store.devices.all() if device.id == device_id), None)
        if found is None:
            raise NotFound
        return found

    async def states(self) -> list[DeviceState]:
        """Return every device with its last reading, by id."""
        keys, waiting = self._access.bound(), Counter[str]()
        for name in await self._store.inbox.names():
            waiting[name.device_key] += name.readings
        return [
            DeviceState(
                summary,
                tuple(key.name for key in keys if key.device in summary.device.names),
                sum(waiting[key] for key in summary.device.own_keys),
                self._reprocessor.counts.get(summary.device.id),
            )
            for summary in await self._store.devices.summaries()
        ]

    async def state(self, device_id: int) -> DeviceState:
        """Return a device with its last reading; `NotFound` if there is none with this id."""
        found = next((state for state in await self.states() if state.device.id == device_id), None)
        if found is None:
            raise NotFound
        return found

    async def waiting(self) -> list[WaitingName]:
        """Return the devices whose readings wait in the inbox, the one that waits longest first."""
        return await self._store.inbox.names()

    async def refused(self, now: float) -> list[tuple[RefusedName, int]]:
        """Return the devices that are refused at this time, each with the end of it (Unix seconds)."""
        found = await self._store.inbox.refused()
        return [(name, name.refused_at + REFUSED_S) for name in found if now - name.refused_at < REFUSED_S]

    async def sources(self, device_id: int) -> list[DeviceSource]:
        """Return the addresses that a device's readings came from, in the order of the first one."""
        return await self._store.devices.sources(device_id)

    async def brews(self, account_id: int) -> list[BrewSession]:
        """Return the account's brew sessions, by id."""
        found = [session for session in await self._store.sessions.all() if session.account_id == account_id]
        return sorted(found, key=lambda session: session.id)

    async def latest(self, device_id: int, limit: int) -> list[RawReading]:
        """Return the device's newest readings with their bytes, newest first."""
        return await self._store.payloads.latest(device_id, limit)

    async def readings_in(self, device_id: int, first: float, last: float) -> int:
        """Count the device's readings from `first` to `last` (Unix seconds)."""
        return await self._store.payloads.count(device_id, int(first), int(last))

    async def nearest_tilt(self, device_id: int, at: int, within_s: int) -> tuple[int, float] | None:
        """Find the reading with a tilt that is nearest to a time; return its time and its tilt in degrees."""
        found: list[tuple[int, float]] = []
        async for raw in self._between(device_id, at - within_s, at + within_s):
            if (angle := angle_of(raw.reading)) is not None:
                found.append((raw.reading.created_at, angle))
        return min(found, key=lambda each: abs(each[0] - at), default=None)

    async def configure(
        self, device_id: int, change: Change, progress: Progress = no_progress
    ) -> Reprocessed:
        """Change a device's settings for the past and the future; return when its past follows them."""
        device = await self.find(device_id)
        settings, total = change(device.settings), await self._total(device_id)
        return await self._reprocessor.configure(
            device, settings, lambda read: progress(read, total, "readings understood again")
        )

    async def start(self, device_id: int, change: Change) -> None:
        """Change a device's settings; its past follows in the background, also after a restart."""
        device = await self.find(device_id)
        await self._reprocessor.start(device, change(device.settings))

    async def send_again(self, device_id: int, since: float = 0) -> int:
        """Queue a device's readings since then (Unix seconds) for forwarding again. Return their number."""
        return await self._reprocessor.send_again(await self.find(device_id), int(since))

    async def preview(self, device_id: int, change: Change) -> Effect:
        """Return the effect of a change on the device's last 14 days in its brew; change nothing."""
        device = await self.find(device_id)
        settings = change(device.settings)
        parts = await self._store.devices.parts(device_id)
        mine = [part for part in parts if part.session_id == device.session_id] or parts
        if not mine:
            return Effect([], [], 0)
        first, last = min(part.first for part in mine), max(part.last for part in mine)
        return await self._effect(device, settings, max(first, last - PREVIEW_S), last)

    async def _effect(self, device: Device, settings: DeviceSettings, first: int, last: int) -> Effect:
        before: list[EffectPoint] = []
        after: list[EffectPoint] = []
        spacing_s, due, changed = (last - first) / PREVIEW_POINTS, float(first), 0
        learned = replace(device, settings=settings)
        async for raw in self._between(device.id, first, last):
            at = raw.reading.created_at
            if at < due:
                continue
            due = max(due + spacing_s, at)
            old, (new, learned) = raw.reading, reprocess(raw, learned)
            before.append(EffectPoint(at, old.sg, old.celsius))
            after.append(EffectPoint(at, new.sg, new.celsius))
            changed += (old.sg, old.celsius) != (new.sg, new.celsius)
        return Effect(before, after, changed)

    async def _between(self, device_id: int, first: int, last: int) -> AsyncGenerator[RawReading, None]:
        place = first - 1, 2**62
        while page := await self._store.payloads.page(device_id, place, PAGE_READINGS):
            for raw in page:
                if raw.reading.created_at > last:
                    return
                yield raw
            place = page[-1].reading.created_at, page[-1].seq

    async def _total(self, device_id: int) -> int:
        return sum(part.readings for part in await self._store.devices.parts(device_id))


def facts_of(reading: Reading) -> dict[str, Any]:
    """Return the further values of a reading by their canonical name."""
    facts: dict[str, Any] = json.loads(reading.facts or "{}")
    return facts


def angle_of(reading: Reading) -> float | None:
    """Return the tilt of a reading in degrees, None if it has none."""
    angle = facts_of(reading).get("angle")
    return float(angle) if isinstance(angle, int | float) else None


def own_states(states: Sequence[DeviceState], brews: Sequence[BrewSession]) -> list[DeviceState]:
    """Return the devices that are in one of these brew sessions."""
    ids = {session.id for session in brews}
    return [state for state in states if state.device.session_id in ids]
