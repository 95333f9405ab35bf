"""The one way in for devices: decode, normalise, store, and only then return.

Whatever arrives ends as a stored reading, as a known duplicate, or in quarantine, but for what a driver knows
to hold no reading: that is passed over, except on MQTT topics that the user named. The only exception that
leaves here is `StoreUnavailable`: nothing was stored, and nobody may be told that it was.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gateway.clock import Clock
from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.domain.quarantined import Quarantined
from gateway.domain.report import Report
from gateway.domain.units import SECONDS_PER_DAY
from gateway.drivers import BY_NAME, Decoded, decode
from gateway.errors import DriverError, StoreUnavailable
from gateway.events import StoredNotices
from gateway.intake.adoption import Adoption
from gateway.intake.clock_check import ArrivalTime, ClockMonitor
from gateway.intake.deduplicate import WINDOW_S, Deduplicator, key_of, window_s
from gateway.intake.devices import DEVICES_MAX, DeviceRegistry, TrackedDevice
from gateway.intake.normalise import COMMENT_REPEATED, normalise, time_of, with_flags
from gateway.intake.outliers import OutlierFlags
from gateway.stats import Stats
from gateway.store.protocol import Store
from gateway.store.records import Arrival, BootTime

log = logging.getLogger(__name__)


LONG_BYTES = 16 * 1024
"""A longer payload is decoded in a thread, so that nobody waits for it."""

REPORTS_AT_ONCE = 256
"""Readings of one payload that are on their way to the store together."""


NO_READING = "no reading in it, though it came on a topic that --mqtt-topic names"

MQTT = "mqtt "
"""How the channel of what came by MQTT begins."""


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

    def __init__(
        self,
        store: Store,
        notices: StoredNotices,
        stats: Stats,
        clock: Clock,
        timekeeping: ClockMonitor | None = None,
    ) -> None:
        self._store = store
        self._notices = notices
        self._stats = stats
        self._time = timekeeping or ClockMonitor(store, notices, stats, clock)
        self.known = DeviceRegistry(store)
        self.adoption = Adoption(store, self.known)
        self._recent = Deduplicator()

    async def start(self) -> None:
        """Load the devices, and the deliveries that may come again after a restart."""
        await self.known.load()
        await self.remember()

    async def remember(self) -> None:
        """What came a moment ago may come again: know it by the device that it is of now."""
        for device_key, raw, came_at in await self._time.seen_within(WINDOW_S):
            self._recent.remember(key_of(device_key, 0, raw), came_at, None)

    async def take(self, payload: Payload) -> Taken:
        """Store what the payload holds; returns when it is on the medium."""
        self._stats.received += 1
        came = self._time.stamp(payload.received_at)
        try:
            if len(payload.body) > LONG_BYTES:
                decoded = await asyncio.to_thread(self.understood, payload)
            else:
                decoded = self.understood(payload)
        except DriverError as error:
            return await self._quarantine(payload, came, str(error))
        reports, trouble = decoded.reports, decoded.trouble
        if payload.chosen and not reports:
            driver = BY_NAME.get(payload.driver or "")
            if driver is None or not driver.of_a_house:
                return await self._quarantine(payload, came, NO_READING)
            self._stats.unread.count(payload.channel.removeprefix(MQTT))
        await self.adoption.adopt(reports)
        self._stats.accepted += len(reports)
        try:
            await self._take_all(payload, came, reports)
        except StoreUnavailable:
            raise
        except Exception:  # a row that the store will never take must not come again and again, nor be lost
            log.exception("intake: a payload from %s cannot be stored as a reading", payload.channel)
            return await self._quarantine(payload, came, "it cannot be stored as a reading")
        if trouble is not None:
            await self._quarantine(replace(payload, body=decoded.left), came, trouble)
        return Taken(tuple(reports), trouble, self._interval_for(reports))

    def understood(self, payload: Payload) -> Decoded:
        """The reports in a payload, and what of it is not understood; `DriverError` where nothing is."""
        try:
            decoded = decode(payload)
        except DriverError:
            raise
        except Exception as error:  # a mistake of ours must not cost the reading: it is replayed once mended
            log.exception("intake: a driver failed on a payload from %s", payload.channel)
            raise DriverError("the driver failed on it") from error
        for report in decoded.reports:
            self.known.recognise(report)
        if self.known.full() and any(self.known.get(r.device_key) is None for r in decoded.reports):
            raise DriverError(f"a new device beyond the {DEVICES_MAX} that register themselves")
        return decoded

    async def _take_all(self, payload: Payload, came: ArrivalTime, reports: list[Report]) -> None:
        """Store what is not stored already; what is not tried any more counts as not stored."""
        if len(reports) == 1:
            return await self._count(payload, came, reports[0], 0)
        left = len(reports)
        try:
            held = await self.held(payload, reports)
            waiting = [(n, one) for n, one in enumerate(reports) if (one.device_key, one.raw) not in held]
            self._stats.duplicates += len(reports) - len(waiting)
            left = len(waiting)
            for batch in self._batches(waiting):
                left -= len(batch)
                await _all_of([self._count(payload, came, report, place) for place, report in batch])
        except BaseException:
            self._stats.not_stored += left
            raise

    def _batches(self, waiting: list[tuple[int, Report]]) -> Iterator[list[tuple[int, Report]]]:
        """The first reading of each new device before all others, which are judged by what it teaches."""
        new: dict[str, tuple[int, Report]] = {}
        for place, report in waiting:
            if self.known.get(report.device_key) is None:
                new.setdefault(report.device_key, (place, report))
        firsts = [*new.values()]
        if firsts:
            yield firsts
        places = {place for place, _ in firsts}
        others = [item for item in waiting if item[0] not in places]
        for first in range(0, len(others), REPORTS_AT_ONCE):
            yield others[first : first + REPORTS_AT_ONCE]

    async def held(self, payload: Payload, reports: Iterable[Report]) -> set[tuple[str, bytes | None]]:
        """Which readings of a list, by device key and bytes, are stored already.

        A bridge posts all that it has until it hears a yes, so they may come again after any time; those that
        have a time of their own are known by it.
        """
        parts: dict[str, list[tuple[int, bytes]]] = {}
        for report in reports:
            if report.raw is not None and _has_clock(report, payload.received_at):
                measured_at, _ = time_of(report, payload.received_at)
                parts.setdefault(report.device_key, []).append((measured_at, report.raw))
        found: set[tuple[str, bytes | None]] = set()
        for key, some in parts.items():
            since = min(measured_at for measured_at, _ in some) - SECONDS_PER_DAY
            found.update(
                (key, raw) for raw in await self._store.payloads.held(key, since, [raw for _, raw in some])
            )
        return found

    async def _count(self, payload: Payload, came: ArrivalTime, report: Report, place: int) -> None:
        try:
            outcome = await self._store_or_skip(payload, came, report, place)
        except BaseException:
            self._stats.not_stored += 1
            raise
        setattr(self._stats, outcome, getattr(self._stats, outcome) + 1)

    async def _store_or_skip(
        self, payload: Payload, came: ArrivalTime, report: Report, place: int
    ) -> Literal["stored", "duplicates", "thinned"]:
        """Store one unless it is known; the name of the counter that tells what became of it."""
        known = self.known.get(report.device_key)
        spacing_s = BY_NAME[report.family].spacing_s
        if known is not None and 0 <= came.at - known.stored_at < spacing_s:
            return "thinned"
        if payload.retained and not await self._is_news(payload, report):
            return "duplicates"
        if await self._is_redelivery(payload, report):
            return "duplicates"
        key = delivery_key(payload, report, place)
        window = delivery_window_s(report, known, payload.received_at)
        seen, storing = self._recent.find(key, came.at, window)
        if seen:
            if storing is not None:
                await asyncio.shield(storing)  # the first copy's commit is this one's, too
            return "duplicates"
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._recent.remember(key, came.at, stored)
        try:
            await self.store_report(payload, report, moment=came.moment(0 if report.raw else place))
            self._time.stored(came)
            self.known.mark_seen(report.device_key, came.at)
        except BaseException as error:
            self._recent.forget(key)
            stored.set_exception(error)
            stored.exception()  # seen: nobody may be waiting for it
            raise
        stored.set_result(None)
        self._recent.remember(key, came.at, None)
        self._notices.notify()
        return "stored"

    async def _is_redelivery(self, payload: Payload, report: Report) -> bool:
        """Whether the broker sends again, under the same packet id, what is stored already."""
        return (
            payload.redelivered
            and payload.delivery is not None
            and await self._store.readings.holds_delivery(
                report.device_key, raw_of(payload, report), payload.delivery
            )
        )

    async def _is_news(self, payload: Payload, report: Report) -> bool:
        """Whether what a broker had kept is newer than all we have of the device, by the device's clock."""
        measured_at, suspect = time_of(report, payload.received_at)
        if report.measured_at is None or suspect:
            return False
        latest = await self._store.payloads.latest_at(report.device_key)
        return latest is None or measured_at > latest

    async def store_report(
        self, payload: Payload, report: Report, *, late: bool = False, moment: BootTime | None = None
    ) -> None:
        """Store one; of what comes `late`, after newer readings, a known device learns nothing.

        `moment` is when it came where our own clock is suspect: it is noted beside the reading.
        """
        known = self.known.get(report.device_key)
        device = known.device if known else Device.first_seen(report, int(payload.received_at))
        reading, inferred = normalise(report, device, payload, clock_known=moment is None)
        late = late and known is not None
        if known is not None and not late and await self.known.repeats_comment(known, reading):
            reading = with_flags(reading, [COMMENT_REPEATED])
        learned = device if late else device.learned(report, reading, inferred)
        if known is None:
            log.info("intake: first reading of %s %r by %s", report.device_key, report.name, payload.channel)
            verdict = OutlierFlags()
        elif late or not self._time.is_settled:
            verdict, known.outliers = OutlierFlags(), None  # they are judged in the order of time only
        else:
            verdict = await self.known.check_outlier(known, reading)
        arrival = Arrival(
            with_flags(reading, verdict.flags),
            report.device_key,
            raw_of(payload, report),
            payload.channel,
            payload.delivery,
        )
        news = None if known is not None and device is learned else learned
        saved = await self._store.take(arrival, news, moment)
        if saved is not None:
            self.known.put(saved)
        if known is not None and not late:
            known.comment = reading.comment
        try:
            for oid, flag in verdict.late:
                await self._store.payloads.add_flag(oid, flag)
        except StoreUnavailable as error:  # the reading is stored: a no would bring it a second time
            log.warning("intake: a flag of an earlier reading is not stored: %s", error)

    def _interval_for(self, reports: list[Report]) -> int | None:
        known = self.known.get(reports[0].device_key) if reports else None
        return known.device.settings.interval_s if known else None

    async def _quarantine(self, payload: Payload, came: ArrivalTime, reason: str) -> Taken:
        self._stats.accepted += 1
        item = Quarantined(
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
        try:
            await self._store.quarantine.add(item, came.moment())
        except BaseException:
            self._stats.not_stored += 1
            raise
        self._time.stored(came)
        self._stats.quarantined += 1
        log.info("intake: %s from %s is in quarantine: %s", payload.channel, payload.source or "?", reason)
        return Taken(quarantined=reason)


def raw_of(payload: Payload, report: Report | None = None) -> bytes:
    """What is kept of a delivery: its body, or the query of a GET; for a report the part that is its own."""
    if report is not None and report.raw is not None:
        return report.raw
    return payload.body or payload.query.encode()


def delivery_key(payload: Payload, report: Report, place: int) -> bytes:
    """By what a second copy of this report is known; `place` is which of several in the payload it is.

    Of a list each reading is known by itself: what could not be posted comes again in a longer one.
    """
    return key_of(report.device_key, place if report.raw is None else 0, raw_of(payload, report))


def delivery_window_s(report: Report, known: TrackedDevice | None, received_at: float) -> float:
    """How long the same bytes are the same delivery; with a time of the device in them longer."""
    if _has_clock(report, received_at):
        return WINDOW_S
    return window_s(report.interval_s or (known.device.interval_s if known else None))


def _has_clock(report: Report, received_at: float) -> bool:
    """Whether a time of the device is in it that can be believed."""
    said = report.device_time is not None or report.measured_at is not None
    return said and not time_of(report, received_at)[1]


async def _all_of(steps: Sequence[Awaitable[None]]) -> None:
    """Run them together; the first failure is raised after all have ended."""
    if len(steps) == 1:
        await steps[0]
        return
    for result in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
