"""The ordinary reading in one pass: no task, no future, no coroutine.

Most payloads hold one reading of a known device, at a time that nobody doubts, and teach nothing new. All
others go the way in steps, `Intake.take_in_steps`, and so does a payload whose reading cannot be stored. A
test takes every sample payload both ways and compares the rows.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import BY_NAME
from gateway.errors import ShareUsedUp, StoreUnavailable
from gateway.events import StoredNotices
from gateway.intake.clock_check import ClockMonitor
from gateway.intake.deduplicate import Commit, Deduplicator, delivery_key, delivery_window_s, raw_of
from gateway.intake.devices import DeviceRegistry, TrackedDevice
from gateway.intake.inbox import Inbox
from gateway.intake.normalise import COMMENT_REPEATED, with_flags
from gateway.intake.plan import Plans
from gateway.intake.shares import ReadingShares
from gateway.stats import Stats
from gateway.store.protocol import Store
from gateway.store.records import Arrival

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Taken:
    """The result for one payload: its reports, or why it is in quarantine.

    `interval_s` is the interval in seconds that the user wants the device to keep, for firmware that reads it
    from an answer.
    """

    reports: tuple[Report, ...] = ()
    quarantined: str | None = None
    interval_s: int | None = None


Done = Callable[[Taken | Exception], None]
"""Gets the result for a payload, or the exception. It never raises."""


class OrdinaryIntake:
    """Takes ordinary payloads. `in_steps` takes the ones whose reading the store can never take."""

    def __init__(
        self,
        store: Store,
        notices: StoredNotices,
        stats: Stats,
        clock_monitor: ClockMonitor,
        devices: DeviceRegistry,
        inbox: Inbox,
        recent: Deduplicator,
        clock: Clock,
        in_steps: Callable[[Payload], Awaitable[Taken]],
    ) -> None:
        self._store = store
        self.notices = notices
        self.stats = stats
        self.recent = recent
        self.shares: ReadingShares | None = None
        self._clock_monitor = clock_monitor
        self._plans = Plans(devices)
        self._inbox = inbox
        self._in_steps = in_steps
        self._clock = clock
        self._going_on: set[asyncio.Task[None]] = set()

    def take(self, payload: Payload, done: Done) -> bool:
        """Take an ordinary payload; return False, before anything has changed, for any other.

        `done` is called once, in the event loop, after this function has returned.
        """
        if payload.retained or payload.redelivered:
            return False
        at = self._clock_monitor.stamp_now(payload.received_at)
        if at is None:
            return False
        understood = self._plans.read(payload)
        if understood is None:
            return False
        report, tracked, reading = understood
        outliers = tracked.outliers
        if outliers is None:
            return False
        if report.former_id and report.known_as == report.keys[0]:
            return False
        if self._inbox.reason_to_wait(payload, report, self._inbox.keys()) is not None:
            return False
        driver = BY_NAME[report.family]
        if 0 <= at - tracked.stored_at < driver.spacing_s:
            return False
        key = delivery_key(payload, report, 0)
        if self.recent.check(key, at, delivery_window_s(report, tracked, payload.received_at))[0]:
            return False
        flags: tuple[str, ...] = ()
        if reading.comment and driver.repeats_comments:
            if tracked.comment is None:
                return False
            if reading.comment == tracked.comment:
                flags = (COMMENT_REPEATED,)
        raw = raw_of(payload, report)
        counted_at = self._clock.monotonic()
        if self.shares is not None:
            try:
                self.shares.take(payload.source, len(raw), counted_at)
            except ShareUsedUp:
                return False
        # Last, because it cannot be taken back.
        found = outliers.feed(reading.created_at, reading.sg, reading.oid)
        reading = with_flags(reading, (*flags, *found.flags))
        arrival = Arrival(reading, tracked.device.key, raw, payload.channel, payload.delivery)
        entry = _UnderWay(self, payload, done, report, tracked, arrival, key, at, counted_at, found.late)
        try:
            self._store.take_soon(arrival, entry.settle)
        except StoreUnavailable:
            entry.take_back()
            return False
        self.recent.remember(key, at, entry)
        self.stats.received += 1
        self.stats.accepted += 1
        return True

    async def add_flags(self, late: Sequence[tuple[str, str]], device_id: int) -> None:
        """Flag earlier readings of a device that a stored reading shows to be outliers."""
        try:
            for oid, flag in late:
                await self._store.payloads.add_flag(oid, flag)
        except StoreUnavailable as error:  # the reading is stored: a no would bring it a second time
            log.warning("intake: a flag of an earlier reading is not stored: %s", error)
        if late:
            self.notices.publish("device", device=device_id)

    def go_on(self, entry: "_UnderWay", taken: Taken | None) -> None:
        """Add late flags, or take the payload in steps if there is no result yet; then give the result."""
        task = asyncio.create_task(self._go_on(entry, taken), name="intake-steps")
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)

    async def _go_on(self, entry: "_UnderWay", taken: Taken | None) -> None:
        try:
            if taken is None:
                taken = await self._in_steps(entry.payload)
            else:
                await self.add_flags(entry.late, entry.device_id)
        except Exception as error:  # whatever it is, nobody may be left waiting for an answer
            Commit.settle(entry, error)
            entry.done(error)
        else:
            Commit.settle(entry, None)
            entry.done(taken)


class _UnderWay(Commit):
    """A reading on its way to the medium, and all that its outcome changes."""

    __slots__ = (
        "_arrival", "_at", "_counted_at", "_intake", "_key", "_report", "_tracked", "done", "late", "payload",
    )  # fmt: skip

    def __init__(
        self,
        intake: OrdinaryIntake,
        payload: Payload,
        done: Done,
        report: Report,
        tracked: TrackedDevice,
        arrival: Arrival,
        key: bytes,
        at: float,
        counted_at: float,
        late: Sequence[tuple[str, str]],
    ) -> None:
        self._future = None
        self._intake = intake
        self.payload = payload
        self.done = done
        self._report = report
        self._tracked = tracked
        self._arrival = arrival
        self._key = key
        self._at = at
        self._counted_at = counted_at
        self.late = late

    @property
    def device_id(self) -> int:
        """Return the id of the reading's device."""
        return self._tracked.device.id

    def take_back(self) -> None:
        """Take back what the reading counted before it was stored."""
        if self._intake.shares is not None:
            self._intake.shares.give_back(self.payload.source, len(self._arrival.raw), self._counted_at)
        self._tracked.outliers = None  # built anew from the store

    def settle(self, error: BaseException | None) -> None:
        """Note the outcome and give the result."""
        intake, tracked = self._intake, self._tracked
        if error is None:
            intake.recent.remember(self._key, self._at, None)
            tracked.stored_at = self._at
            tracked.comment = self._arrival.reading.comment
            intake.stats.stored += 1
            intake.notices.notify("reading", device=tracked.device.id)
            taken = Taken((self._report,), None, tracked.device.settings.interval_s)
            if self.late:
                intake.go_on(self, taken)
                return
            super().settle(None)
            self.done(taken)
            return
        intake.recent.forget(self._key)
        self.take_back()
        if isinstance(error, StoreUnavailable):
            intake.stats.not_stored += 1
            super().settle(error)
            self.done(error)
        else:  # the device was forgotten meanwhile, or the store never takes such a row
            intake.stats.received -= 1
            intake.stats.accepted -= 1
            intake.go_on(self, None)
