"""The one way in for devices: decode, normalise, store, and only then return.

Whatever arrives ends as a stored reading, as a known duplicate, or in quarantine. The only exception that
leaves here is `StoreUnavailable`: nothing was stored, and nobody may be told that it was.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace

from gateway.clock import Clock
from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.domain.quarantined import Quarantined
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.drivers import BY_NAME, decode
from gateway.errors import DriverError, StoreUnavailable
from gateway.events import StoredNotices
from gateway.normalise import normalise, time_of
from gateway.outliers import Verdict
from gateway.services.known import DEVICES_MAX, KnownDevices
from gateway.services.recent import WINDOW_S, RecentDeliveries, key_of, window_s
from gateway.stats import Stats
from gateway.store.protocol import Arrival, Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a payload: its reports, or why it is in quarantine.

    `interval_s` is what the user wants the device to be told, for firmware that listens to an answer.
    """

    reports: tuple[Report, ...] = ()
    quarantined: str | None = None
    interval_s: int | None = None


class Intake:
    """Takes payloads of every channel."""

    def __init__(self, store: Store, notices: StoredNotices, stats: Stats, clock: Clock) -> None:
        self._store = store
        self._notices = notices
        self._stats = stats
        self._clock = clock
        self.known = KnownDevices(store)
        self._recent = RecentDeliveries()

    async def start(self) -> None:
        """Load the devices, and the deliveries that may come again after a restart."""
        await self.known.load()
        now = self._clock.now()
        for device_key, raw, received_at_ms in await self._store.readings.seen_since(
            int((now - WINDOW_S) * 1000)
        ):
            self._recent.remember(key_of(device_key, 0, raw), received_at_ms / 1000, None)

    async def take(self, payload: Payload) -> Taken:
        """Store what the payload holds; returns when it is on the medium."""
        self._stats.received += 1
        try:
            reports, trouble = self._understood(payload)
        except DriverError as error:
            return await self._quarantine(payload, str(error))
        try:
            await _all_of([self._take_report(payload, report, n) for n, report in enumerate(reports)])
        except StoreUnavailable:
            raise
        except Exception:  # a row that the store will never take must not come again and again, nor be lost
            log.exception("intake: a payload from %s cannot be stored as a reading", payload.channel)
            return await self._quarantine(payload, "it cannot be stored as a reading")
        if trouble is not None:
            await self._quarantine(payload, trouble)
        return Taken(tuple(reports), trouble, self._interval_for(reports))

    async def take_again(self, item: Quarantined) -> Taken:
        """Store what a payload in quarantine holds, as of its arrival; what is stored already is left alone.

        It stays in quarantine: removing it is the caller's business, once this has returned.
        """
        if not self.known.loaded:
            await self.known.load()
        payload = Payload(
            body=item.body,
            received_at=item.received_at / 1000,
            channel=item.channel,
            driver=item.driver,
            source=item.source,
            query=item.query,
            label=item.label,
            hint=item.hint,
        )
        try:
            reports, trouble = self._understood(payload)
        except DriverError as error:
            return Taken(quarantined=str(error))
        raw = raw_of(payload)
        for report in reports:
            if not await self._store.sent.holds(report.device_key, raw, item.received_at):
                await self._store_report(payload, report)
        self._notices.ring()
        return Taken(tuple(reports), trouble)

    def _understood(self, payload: Payload) -> tuple[list[Report], str | None]:
        try:
            decoded = decode(payload)
        except DriverError:
            raise
        except Exception as error:  # a mistake of ours must not cost the reading: it is replayed once mended
            log.exception("intake: a driver failed on a payload from %s", payload.channel)
            raise DriverError("the driver failed on it") from error
        if self.known.full() and any(self.known.get(r.device_key) is None for r in decoded.reports):
            raise DriverError(f"a new device beyond the {DEVICES_MAX} that register themselves")
        return decoded.reports, decoded.trouble

    async def _take_report(self, payload: Payload, report: Report, place: int) -> None:
        known = self.known.get(report.device_key)
        if known is not None and payload.received_at - known.stored_at < BY_NAME[report.family].spacing_s:
            self._stats.thinned += 1
            return
        if payload.retained and not await self._is_news(payload, report):
            self._stats.duplicates += 1
            return
        key = key_of(report.device_key, place, raw_of(payload))
        window = window_s(report.interval_s or (known.device.interval_s if known else None))
        seen, storing = self._recent.find(key, payload.received_at, window)
        if seen or await self._is_redelivery(payload, report):
            self._stats.duplicates += 1
            if storing is not None:
                await asyncio.shield(storing)  # the first copy's commit is this one's, too
            return
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._recent.remember(key, payload.received_at, stored)
        try:
            await self._store_report(payload, report)
        except BaseException as error:
            self._recent.forget(key)
            stored.set_exception(error)
            stored.exception()  # seen: nobody may be waiting for it
            raise
        stored.set_result(None)
        self._recent.remember(key, payload.received_at, None)
        self._notices.ring()

    async def _is_redelivery(self, payload: Payload, report: Report) -> bool:
        """Whether the broker sends again, under the same packet id, what is stored already."""
        return (
            payload.redelivered
            and payload.delivery is not None
            and await self._store.readings.holds_delivery(report.device_key, payload.body, payload.delivery)
        )

    async def _is_news(self, payload: Payload, report: Report) -> bool:
        """Whether what a broker had kept is newer than all we have of the device, by the device's clock."""
        measured_at, suspect = time_of(report, payload.received_at)
        if report.measured_at is None or suspect:
            return False
        latest = await self._store.sent.latest_at(report.device_key)
        return latest is None or measured_at > latest

    async def _store_report(self, payload: Payload, report: Report) -> None:
        known = self.known.get(report.device_key)
        device = known.device if known else Device.first_seen(report, int(payload.received_at))
        reading, inferred = normalise(report, device, payload)
        learned = device.learned(report, reading, inferred)
        if known is None:
            log.info("intake: first reading of %s %r by %s", report.device_key, report.name, payload.channel)
            verdict = Verdict()
        else:
            verdict = await self.known.judge(known, reading)
        arrival = Arrival(
            with_flags(reading, verdict.flags),
            report.device_key,
            raw_of(payload),
            payload.channel,
            payload.delivery,
        )
        if known is not None and device is learned:
            await self._store.readings.add([arrival])
        else:
            # Together: both join the same transaction, and the store puts devices before their readings.
            saved, _ = await asyncio.gather(
                self._store.devices.save(learned), self._store.readings.add([arrival])
            )
            known = self.known.put(saved)
        known.stored_at = payload.received_at
        self._stats.stored += 1
        for oid, flag in verdict.late:
            await self._store.sent.add_flag(oid, flag)

    def _interval_for(self, reports: list[Report]) -> int | None:
        known = self.known.get(reports[0].device_key) if reports else None
        return known.device.settings.interval_s if known else None

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
                hint=payload.hint,
            )
        )
        self._stats.quarantined += 1
        log.info("intake: %s from %s is in quarantine: %s", payload.channel, payload.source or "?", reason)
        return Taken(quarantined=reason)


def raw_of(payload: Payload) -> bytes:
    """What is kept of a delivery: its body, or the query of a GET."""
    return payload.body or payload.query.encode()


def with_flags(reading: Reading, flags: Iterable[str]) -> Reading:
    """The reading with these flags beside its own."""
    new = tuple(flags)
    if not new:
        return reading
    return replace(reading, flags=json.dumps([*json.loads(reading.flags or "[]"), *new]))


async def _all_of(steps: Sequence[Awaitable[None]]) -> None:
    """Run them together; the first failure is raised after all have ended."""
    if len(steps) == 1:
        await steps[0]
        return
    for result in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
