"""The one way in for devices: decode, normalise, store, and only then return.

Each reading ends in the store, as a duplicate, or in quarantine. A driver may know that a payload holds no
reading: then nothing is kept, except on MQTT topics that the user named. The only exception that leaves here
is `StoreUnavailable`: nothing was stored, and the device must not get a yes.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from gateway.clock import Clock
from gateway.config import NAMES_AN_HOUR
from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.domain.quarantined import Quarantined
from gateway.domain.report import Report
from gateway.domain.units import SECONDS_PER_DAY
from gateway.drivers import BY_NAME, Decoded, decode
from gateway.errors import DriverError, NotFound, NotTaken, StoreUnavailable
from gateway.events import StoredNotices, finish
from gateway.intake.adoption import Adoption
from gateway.intake.clock_check import ArrivalTime, ClockMonitor
from gateway.intake.deduplicate import (
    WINDOW_S,
    Commit,
    Deduplicator,
    delivery_key,
    delivery_window_s,
    find_stored,
    is_news,
    key_of,
    raw_of,
)
from gateway.intake.devices import DeviceRegistry
from gateway.intake.inbox import Inbox, Keys, Placed, Sorted
from gateway.intake.normalise import COMMENT_REPEATED, normalise, with_flags
from gateway.intake.ordinary import Done, OrdinaryIntake, Taken
from gateway.intake.outliers import OutlierFlags
from gateway.intake.shares import ReadingShares
from gateway.logs import RareLines
from gateway.stats import IntakeOutcome, Stats
from gateway.store.protocol import Store
from gateway.store.records import Arrival, BootTime

log = logging.getLogger(__name__)


LONG_BYTES = 16 * 1024
"""Bytes above which a payload is decoded in a thread, because the event loop would stand still meanwhile."""

REPORTS_AT_ONCE = 256
"""Readings of one payload that are on their way to the store together."""


NO_READING = "no reading in it, though it came on a topic that --mqtt-topic names"

MQTT = "mqtt "
"""The first letters of a payload's channel if the payload arrived by MQTT."""


class Intake:
    """Takes payloads of every channel."""

    def __init__(
        self,
        store: Store,
        notices: StoredNotices,
        stats: Stats,
        clock: Clock,
        clock_monitor: ClockMonitor | None = None,
        keys: Keys = list,
        names_an_hour: int = NAMES_AN_HOUR,
    ) -> None:
        self._store = store
        self._notices = notices
        self._stats = stats
        self._clock_monitor = clock_monitor or ClockMonitor(store, notices, stats, clock)
        self.devices = DeviceRegistry(store, clock, names_an_hour)
        self.adoption = Adoption(store, self.devices)
        self.inbox = Inbox(store, self.devices, stats, clock, self._clock_monitor, keys)
        self._recent = Deduplicator()
        self._clock = clock
        self._ordinary = OrdinaryIntake(
            store,
            notices,
            stats,
            self._clock_monitor,
            self.devices,
            self.inbox,
            self._recent,
            clock,
            self.take_in_steps,
        )
        self._lines = RareLines(clock.monotonic, every_s=math.inf)

    async def start(self) -> None:
        """Load the devices, the deliveries that may come again after a restart, and the sources of a day."""
        await self.devices.load()
        await self.inbox.load()
        await self.remember()
        shares = ReadingShares((await self._store.upkeep.condition()).quota_bytes)
        now, monotonic = self._clock.now(), self._clock.monotonic()
        since_ms = int((now - SECONDS_PER_DAY) * 1000)
        for address, hour_ms, readings, size in sorted(
            await self._store.readings.bytes_by_source(since_ms), key=lambda row: row[1]
        ):
            shares.note(address, readings, size, monotonic - max(0.0, now - hour_ms / 1000))
        self._ordinary.shares = shares

    async def remember(self) -> None:
        """Remember the deliveries of the last moments, by the devices that they belong to now."""
        for device_key, raw, arrived_at in await self._clock_monitor.seen_within(WINDOW_S):
            self._recent.remember(key_of(device_key, 0, raw), arrived_at, None)

    async def forget(self, device: Device) -> None:
        """Forget a device that the store has forgotten, and its latest deliveries."""
        self.devices.remove(device)
        self._recent.clear()
        await self.remember()

    def take_now(self, payload: Payload, done: Done) -> bool:
        """Take an ordinary payload in one pass; return False, before anything has changed, for any other.

        `done` gets the result once the reading is on the medium, or `StoreUnavailable`: in the event loop,
        after this function has returned.
        """
        return self._ordinary.take(payload, done)

    async def take(self, payload: Payload) -> Taken:
        """Store the readings of a payload; return when they are on the medium."""
        loop = asyncio.get_running_loop()
        taken: asyncio.Future[Taken] = loop.create_future()
        if self.take_now(payload, partial(finish, taken)):
            return await taken
        return await self.take_in_steps(payload)

    async def take_in_steps(self, payload: Payload) -> Taken:
        """Store the readings of any payload; return when they are on the medium."""
        self._stats.received += 1
        stamp = self._clock_monitor.stamp(payload.received_at)
        try:
            if len(payload.body) > LONG_BYTES:
                decoded = await asyncio.to_thread(self.decode, payload)
            else:
                decoded = self.decode(payload)
        except DriverError as error:
            readable = isinstance(error, NotTaken)
            return await self._quarantine(payload, stamp, str(error), readable=readable)
        reports, trouble = decoded.reports, decoded.trouble
        if payload.chosen and not reports:
            driver = BY_NAME.get(payload.driver or "")
            # Not for a driver of a house: its topics carry much that is no hydrometer's.
            if driver is None or not driver.of_a_house:
                return await self._quarantine(payload, stamp, NO_READING)
            self._stats.unread.count(payload.channel.removeprefix(MQTT))
        found = await self.inbox.sort(payload, reports, self.adoption)
        places = self.devices.reserve([report.device_key for _, report in found.taken], payload.source)
        if places.refused:
            reports = [report for report in reports if report.device_key not in places.refused]
            found = found.without(places.refused)
        self._stats.accepted += len(reports)
        try:
            await self._take_sorted(payload, stamp, found)
        except StoreUnavailable:
            raise
        except Exception:  # a row that the store will never take must not come again and again, nor be lost
            log.exception("intake: a payload from %s cannot be stored as a reading", payload.channel)
            reason = "it cannot be stored as a reading"
            return await self._quarantine(payload, stamp, reason, readable=True)
        finally:
            self.devices.release(places.new, payload.source)
        if places.refused:
            # The whole payload: a replay finds the readings that are stored, and adds the others.
            trouble = places.reason
            await self._quarantine(payload, stamp, trouble, readable=True)
        elif trouble is not None:
            await self._quarantine(replace(payload, body=decoded.left), stamp, trouble)
        device = self.devices.get(reports[0].device_key) if reports else None
        return Taken(tuple(reports), trouble, device.device.settings.interval_s if device else None)

    def decode(self, payload: Payload) -> Decoded:
        """Decode a payload into reports, and the rest that no driver understands.

        `DriverError` if there is nothing that a driver understands.
        """
        try:
            decoded = decode(payload)
        except DriverError:
            raise
        except Exception as error:  # a mistake of ours must not cost the reading: it is replayed once mended
            log.exception("intake: a driver failed on a payload from %s", payload.channel)
            raise NotTaken("the driver failed on it") from error
        for report in decoded.reports:
            self.devices.recognise(report)
        return decoded

    async def _take_sorted(self, payload: Payload, stamp: ArrivalTime, found: Sorted) -> None:
        """Store the reports that may be stored, and keep the ones that wait."""
        self._stats.count(IntakeOutcome.REFUSED, found.refused)
        try:
            await self._take_all(payload, stamp, found.taken)
        except BaseException:
            self._stats.count(IntakeOutcome.NOT_STORED, len(found.waiting))
            raise
        # Last, because a full inbox must not keep the readings of known devices out.
        await self.inbox.take(payload, stamp, found.waiting, self._recent)
        if found.waiting:
            self._notices.publish("device")

    async def _take_all(self, payload: Payload, stamp: ArrivalTime, reports: list[Placed]) -> None:
        """Store the reports that are new. After a failure, count the remaining reports as not stored."""
        if len(reports) == 1:
            place, report = reports[0]
            return await self._take_one(payload, stamp, report, place)
        left = len(reports)
        try:
            stored = await find_stored(self._store, payload, [report for _, report in reports])
            new = [
                (place, report) for place, report in reports if (report.device_key, report.raw) not in stored
            ]
            self._stats.count(IntakeOutcome.DUPLICATE, len(reports) - len(new))
            left = len(new)
            for batch in self._batches(new):
                left -= len(batch)
                await _all_of([self._take_one(payload, stamp, report, place) for place, report in batch])
        except BaseException:
            self._stats.count(IntakeOutcome.NOT_STORED, left)
            raise

    def _batches(self, new: list[tuple[int, Report]]) -> Iterator[list[tuple[int, Report]]]:
        """Split reports into batches. The first batch has one report of each new device.

        The reports that follow are read with the units which that first one teaches.
        """
        firsts: dict[str, tuple[int, Report]] = {}
        for place, report in new:
            if self.devices.get(report.device_key) is None:
                firsts.setdefault(report.device_key, (place, report))
        if firsts:
            yield [*firsts.values()]
        places = {place for place, _ in firsts.values()}
        others = [item for item in new if item[0] not in places]
        for first in range(0, len(others), REPORTS_AT_ONCE):
            yield others[first : first + REPORTS_AT_ONCE]

    async def _take_one(self, payload: Payload, stamp: ArrivalTime, report: Report, place: int) -> None:
        outcome = IntakeOutcome.NOT_STORED
        try:
            outcome = await self._store_or_skip(payload, stamp, report, place)
        finally:
            self._stats.count(outcome)

    async def _store_or_skip(
        self, payload: Payload, stamp: ArrivalTime, report: Report, place: int
    ) -> IntakeOutcome:
        """Store a report, unless the report is a duplicate or follows the last one too closely."""
        device_key = report.device_key
        device = self.devices.get(device_key)
        # Before the duplicates, because this check costs nothing and skips most reports of such a bridge.
        if device is not None and 0 <= stamp.at - device.stored_at < BY_NAME[report.family].spacing_s:
            return IntakeOutcome.RATE_LIMITED
        if payload.retained and not await is_news(self._store, payload, report):
            return IntakeOutcome.DUPLICATE
        # Before the window, because a broker may send a message again long after the window has closed.
        raw = raw_of(payload, report)
        if (
            payload.redelivered
            and payload.delivery is not None
            and await self._store.readings.holds_delivery(device_key, raw, payload.delivery)
        ):
            return IntakeOutcome.DUPLICATE
        key = delivery_key(payload, report, place)
        window = delivery_window_s(report, device, payload.received_at)
        is_copy, storing = self._recent.check(key, stamp.at, window)
        if is_copy:
            if storing is not None:
                await storing.wait()  # the first copy's commit is this one's, too
            return IntakeOutcome.DUPLICATE
        # Behind all checks above, because only a reading that is stored takes of its source's share.
        shares, size, counted_at = self._ordinary.shares, len(raw), self._clock.monotonic()
        if shares is not None:
            shares.take(payload.source, size, counted_at)
        commit = Commit()
        self._recent.remember(key, stamp.at, commit)
        try:
            place_in_body = 0 if report.raw else place
            await self.store_report(payload, report, arrival_time=stamp.boot_time(place_in_body))
            self._clock_monitor.mark_stored(stamp)
            self.devices.mark_seen(device_key, stamp.at)
        except BaseException as error:
            self._recent.forget(key)
            if shares is not None:
                shares.give_back(payload.source, size, counted_at)
            commit.settle(error)
            raise
        commit.settle(None)
        self._recent.remember(key, stamp.at, None)
        stored = self.devices.get(device_key)
        self._notices.notify("reading", device=stored.device.id if stored is not None else None)
        return IntakeOutcome.STORED

    async def store_report(
        self, payload: Payload, report: Report, *, late: bool = False, arrival_time: BootTime | None = None
    ) -> None:
        """Normalise and store a report; `late` means that newer readings of its device are stored already.

        `arrival_time` is given while our own clock is in doubt, and is noted beside the reading.
        """
        raw, device_key = raw_of(payload, report), report.device_key
        tracked = self.devices.get(device_key)
        device = tracked.device if tracked else Device.first_seen(report, int(payload.received_at))
        reading, inferred = normalise(report, device, payload, clock_known=arrival_time is None)
        late = late and tracked is not None
        if tracked is not None and not late and await self.devices.repeats_comment(tracked, reading):
            reading = with_flags(reading, [COMMENT_REPEATED])
        # A late report teaches nothing: the device may have been set to other units since.
        learned = device if late else device.learned(report, reading, inferred)
        learned = self.inbox.with_bound_name(device, learned)
        if tracked is None:
            log.info("intake: first reading of %s %r by %s", device_key, report.name, payload.channel)
            found = OutlierFlags()
        elif late or not self._clock_monitor.is_settled:
            # Outliers are found in the order of time only; the state is built anew from the store.
            found, tracked.outliers = OutlierFlags(), None
        else:
            found = await self.devices.check_outlier(tracked, reading)
        flagged = with_flags(reading, found.flags)
        arrival = Arrival(flagged, device_key, raw, payload.channel, payload.delivery)
        changed = None if tracked is not None and device is learned else learned
        try:
            saved = await self._store.take(arrival, changed, arrival_time)
        except NotFound:
            if tracked is None:
                raise
            # The device was forgotten since we looked it up: this reading makes a new one.
            self.devices.remove(device)
            report.known_as = ""
            await self.store_report(payload, report, late=late, arrival_time=arrival_time)
            return
        if saved is not None:
            self.devices.put(saved)
        if tracked is not None and not late:
            tracked.comment = reading.comment
        if tracked is not None:
            await self._ordinary.add_flags(found.late, tracked.device.id)

    async def _quarantine(
        self, payload: Payload, stamp: ArrivalTime, reason: str, *, readable: bool = False
    ) -> Taken:
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
            readable=readable,
        )
        try:
            await self._store.quarantine.add(item, stamp.boot_time())
        except BaseException:
            self._stats.count(IntakeOutcome.NOT_STORED)
            raise
        self._clock_monitor.mark_stored(stamp)
        self._stats.count(IntakeOutcome.QUARANTINED)
        self._notices.publish("quarantine")
        # Once for each, because a device that is set up wrongly sends the same for weeks.
        if self._lines.due(f"{payload.source} {payload.channel} {payload.label} {reason}"):
            sender = payload.source or "?"
            log.info("intake: %s from %s is in quarantine: %s", payload.channel, sender, reason)
        return Taken(quarantined=reason)


async def _all_of(steps: Sequence[Awaitable[None]]) -> None:
    """Run steps at once; raise the first failure after all steps have ended."""
    if len(steps) == 1:
        await steps[0]
        return
    for result in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
