"""The one way in for devices: decode, normalise, store, and only then return.

Whatever arrives ends as a stored reading, as a known duplicate, or in quarantine. The only exception that
leaves here is `StoreUnavailable`: nothing was stored, and nobody may be told that it was.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.domain.quarantined import Quarantined
from gateway.domain.report import Report
from gateway.drivers import decode
from gateway.errors import DriverError, StoreUnavailable
from gateway.events import StoredNotices
from gateway.normalise import normalise
from gateway.services.recent import WINDOW_S, RecentDeliveries, key_of, window_s
from gateway.stats import Stats
from gateway.store.protocol import Arrival, Store

log = logging.getLogger(__name__)

DEVICES_MAX = 1_000
"""Devices that register themselves; what further ones send goes to quarantine."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a payload: its reports, or why it is in quarantine."""

    reports: tuple[Report, ...] = ()
    quarantined: str | None = None


class Intake:
    """Takes payloads of every channel; knows every device."""

    def __init__(self, store: Store, notices: StoredNotices, stats: Stats, clock: Clock) -> None:
        self._store = store
        self._notices = notices
        self._stats = stats
        self._clock = clock
        self._devices: dict[str, Device] = {}
        self._recent = RecentDeliveries()

    async def start(self) -> None:
        """Load the devices, and the deliveries that may come again after a restart."""
        self._devices = {device.key: device for device in await self._store.devices.all()}
        now = self._clock.now()
        for device_key, raw, received_at_ms in await self._store.readings.seen_since(
            int((now - WINDOW_S) * 1000)
        ):
            self._recent.remember(key_of(device_key, 0, raw), received_at_ms / 1000, None)

    async def take(self, payload: Payload) -> Taken:
        """Store what the payload holds; returns when it is on the medium."""
        self._stats.received += 1
        try:
            reports = decode(payload)
            self._check_room(reports)
        except DriverError as error:
            return await self._quarantine(payload, str(error))
        except Exception:  # a mistake of ours must not cost the reading: it is replayed once it is mended
            log.exception("intake: a driver failed on a payload from %s", payload.channel)
            return await self._quarantine(payload, "the driver failed on it")
        try:
            if len(reports) == 1:
                await self._take_report(payload, reports[0], 0)
            else:
                await _all_of(self._take_report(payload, report, n) for n, report in enumerate(reports))
        except StoreUnavailable:
            raise
        except Exception:  # a row that the store will never take must not come again and again, nor be lost
            log.exception("intake: a payload from %s cannot be stored as a reading", payload.channel)
            return await self._quarantine(payload, "it cannot be stored as a reading")
        return Taken(reports=tuple(reports))

    async def _take_report(self, payload: Payload, report: Report, place: int) -> None:
        known = self._devices.get(report.device_key)
        key = key_of(report.device_key, place, payload.body or payload.query.encode())
        window = window_s(report.interval_s or (known.interval_s if known else None))
        seen, storing = self._recent.find(key, payload.received_at, window)
        if seen or await self._is_redelivery(payload, report):
            self._stats.duplicates += 1
            if storing is not None:
                await asyncio.shield(storing)  # the first copy's commit is this one's, too
            return
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._recent.remember(key, payload.received_at, stored)
        try:
            await self._store_report(payload, report, known)
        except BaseException as error:
            self._recent.forget(key)
            stored.set_exception(error)
            stored.exception()  # seen: nobody may be waiting for it
            raise
        stored.set_result(None)
        self._recent.remember(key, payload.received_at, None)
        self._stats.stored += 1
        self._notices.ring()

    async def _is_redelivery(self, payload: Payload, report: Report) -> bool:
        """Whether the broker sends again, under the same packet id, what is stored already."""
        return (
            payload.redelivered
            and payload.delivery is not None
            and await self._store.readings.holds_delivery(report.device_key, payload.body, payload.delivery)
        )

    async def _store_report(self, payload: Payload, report: Report, known: Device | None) -> None:
        device = known or Device.first_seen(report, int(payload.received_at))
        reading = normalise(report, device, payload)
        arrival = Arrival(
            reading,
            report.device_key,
            payload.body or payload.query.encode(),
            payload.channel,
            payload.delivery,
        )
        learned = device.learned(report, reading)
        if known is learned:
            await self._store.readings.add([arrival])
            return
        if known is None:
            log.info("intake: first reading of %s %r by %s", report.device_key, report.name, payload.channel)
        # Together: both join the same transaction, and the store puts devices before their readings.
        saved, _ = await asyncio.gather(
            self._store.devices.save(learned), self._store.readings.add([arrival])
        )
        self._devices[saved.key] = saved

    def _check_room(self, reports: list[Report]) -> None:
        if len(self._devices) >= DEVICES_MAX and any(r.device_key not in self._devices for r in reports):
            raise DriverError(f"a new device beyond the {DEVICES_MAX} that register themselves")

    async def _quarantine(self, payload: Payload, reason: str) -> Taken:
        await self._store.quarantine.add(
            Quarantined(
                body=payload.body,
                reason=reason,
                received_at=int(payload.received_at * 1000),
                channel=payload.channel,
                source=payload.source,
                driver=payload.driver,
                query=payload.query,
                label=payload.label,
            )
        )
        self._stats.quarantined += 1
        log.info("intake: %s from %s is in quarantine: %s", payload.channel, payload.source or "?", reason)
        return Taken(quarantined=reason)


async def _all_of(steps: Iterable[Awaitable[None]]) -> None:
    """Run them together; the first failure is raised after all have ended."""
    results = await asyncio.gather(*steps, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
