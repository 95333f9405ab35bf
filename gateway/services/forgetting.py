"""Forget devices: the device, its settings and its place in a brew session go; its readings stay or go."""

import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.domain.device import Device
from gateway.domain.progress import Progress, no_progress
from gateway.errors import StoreUnavailable
from gateway.events import StoredNotices
from gateway.intake.intake import Intake
from gateway.intake.reprocess import Reprocessor
from gateway.services.alarms import AlarmService
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

DELETED_READINGS = 500
"""Readings that are deleted in one transaction: about 10 ms in which nothing else is stored."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Counts of a forgotten device's readings: `kept` ones, `unassigned` ones among them, `deleted` ones."""

    kept: int
    unassigned: int
    deleted: int


class Forgetting:
    """A service that forgets devices, one at a time."""

    def __init__(
        self,
        store: Store,
        intake: Intake,
        reprocessor: Reprocessor,
        alarms: AlarmService,
        notices: StoredNotices,
        clock: Clock,
    ) -> None:
        self._store = store
        self._intake = intake
        self._reprocessor = reprocessor
        self._alarms = alarms
        self._notices = notices
        self._clock = clock

    async def forget(
        self,
        device: Device,
        *,
        with_readings: bool = False,
        unless_since: int | None = None,
        progress: Progress = no_progress,
    ) -> Forgotten:
        """Forget a device. What reports under its name from now on is a new device.

        If the process ends while readings are deleted, the next start goes on with it.
        """
        # Under the lock, because nobody may rewrite readings of a device that goes.
        async with self._reprocessor.turn:
            readings, unassigned = await self._store.devices.forget(
                device.id, int(self._clock.now()), with_readings=with_readings, unless_since=unless_since
            )
            await self._intake.forget(device)
        self._alarms.forget_device(device.id)
        self._notices.notify()
        if not with_readings:
            return Forgotten(readings, unassigned, 0)
        deleted = 0
        async for count in self._delete(device.id):
            deleted += count
            progress(deleted, max(deleted, readings), "readings deleted")
        return Forgotten(0, 0, deleted)

    async def resume(self) -> None:
        """Go on with readings whose deletion was cut short when the last process ended."""
        try:
            for device_id in await self._store.devices.forgotten_with_readings():
                async for _ in self._delete(device_id):
                    pass
        except StoreUnavailable as error:  # the next start tries again; readings are more important
            log.warning("devices: readings of a forgotten device are not all deleted yet: %s", error)

    async def _delete(self, device_id: int) -> AsyncGenerator[int, None]:
        """Delete the readings of a forgotten device; yield the count of each transaction."""
        while True:
            async with self._reprocessor.turn:
                count = await self._store.devices.delete_readings(device_id, DELETED_READINGS)
            yield count
            if count < DELETED_READINGS:
                return
