"""Is the wall clock right? A Raspberry Pi has no battery for its clock.

The clock starts in 1970, or at the time of the last shutdown, until a time server answers. Readings are taken
from the first second on. While the clock is in doubt, each reading is noted with its time since boot, and
nothing is forwarded. Once the clock is trusted, the times are put right.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from gateway.clock import RELEASED_AT, Clock, Machine, SystemClock
from gateway.domain.times import minute
from gateway.errors import StoreUnavailable
from gateway.events import StoredNotices
from gateway.stats import Stats
from gateway.store.protocol import Store
from gateway.store.records import BootTime

JUMP_S = 120.0
"""Seconds that the wall clock may gain or lose at once; leap seconds and time services stay below."""

JUMP_WAIT_S = 3_600.0
"""Seconds for which the time after an unexplained jump is in doubt."""

BEHIND_WAIT_S = 86_400.0
"""Seconds for which a time before the newest stored arrival is in doubt."""

BOOT_WAIT_S = 3_600.0
"""Seconds since boot for which the gateway waits for a time service that is switched on."""

REMEDY = "switch on network time (`timedatectl set-ntp true`) or set the clock (`timedatectl set-time`)"


@dataclass(frozen=True, slots=True)
class ClockDoubt:
    """A reason to doubt the clock; `until` is in seconds since boot, None if waiting does not help."""

    reason: str
    until: float | None


def check_clock(
    wall: float, since_boot: float, expected: float | None, newest: float, *, awaited: bool
) -> ClockDoubt | None:
    """Return why this wall time is in doubt, or None; times are Unix seconds, `since_boot` is seconds.

    `expected` follows from the last trusted time, `newest` is the latest arrival in the store. `awaited` says
    that a time service works and has no answer yet.
    """
    if expected is not None and abs(wall - expected) <= JUMP_S:
        return None
    # The order matters: a time before the release is wrong for ever, waiting ends every other doubt.
    says = f"it says {minute(wall)}"
    if wall < RELEASED_AT:
        return ClockDoubt(f"{says}, which is before this program was made; {REMEDY}", None)
    latest = newest if expected is None else max(newest, expected)
    if wall < latest - JUMP_S:
        until = since_boot + BEHIND_WAIT_S
        return ClockDoubt(f"{says}, but it was {minute(latest)} already; {REMEDY}", until)
    if expected is not None:
        return ClockDoubt(
            f"{says}, where {minute(expected)} was expected; {REMEDY}", since_boot + JUMP_WAIT_S
        )
    if awaited and since_boot < BOOT_WAIT_S:
        return ClockDoubt("network time has not come yet since the machine started", BOOT_WAIT_S)
    return None


log = logging.getLogger(__name__)

SYNC_FRESH_S = 3_600.0
"""A synchronisation at most so old explains a jump; systemd-timesyncd asks every 34 minutes at least."""

CHECK_S = 1.0
"""Seconds between two checks. While all is well, a check reads two clocks and writes nothing."""

MOMENT_S = 1.0
"""Seconds since its arrival for which a delivery counts as one of this moment."""

QUEUED_S = 600.0
"""A delivery reaches the intake at most so many seconds after its arrival: it may wait for the store."""

JUMPS_KEPT = 8

Settle = Callable[[int, int], Awaitable[int]]
"""Puts pending readings right, given a boot's id and the milliseconds from its start to Unix milliseconds."""


class ArrivalTime(NamedTuple):
    """The arrival of a delivery, in seconds that never jump; `boot` is set if its wall time is in doubt."""

    at: float
    boot: int | None = None

    def boot_time(self, place: int = 0) -> BootTime | None:
        """Return the time to note beside the reading, None if its wall time is right."""
        return None if self.boot is None else BootTime(self.boot, int(self.at * 1000), place)


class ClockMonitor:
    """Watches the clock once it is started; before that, as in commands, every time is trusted."""

    def __init__(
        self, store: Store, notices: StoredNotices, stats: Stats, clock: Clock, machine: Machine | None = None
    ) -> None:
        self._store = store
        self._notices = notices
        self._stats = stats
        self._clock = clock
        self._since_boot = clock.since_boot if isinstance(clock, SystemClock) else clock.monotonic
        self._machine = machine or Machine()
        self._began: float | None = None
        self._boot_id: int | None = None
        self._newest = 0.0
        self._offsets: list[float] = []
        self._trusted: float | None = None
        self._unsaved = False
        self._noted = self._put_right = 0
        self._confirmed_at: float | None = None
        self.doubt: ClockDoubt | None = None
        """The reason to doubt the clock at present, or None."""

    async def start(self) -> None:
        """Check the clock as it is now, by the newest stored arrival and the machine's time service."""
        await self._remember_boot()
        self._newest = (await self._store.retiming.newest_arrival() or 0) / 1000
        self._noted += await self._store.retiming.waits()
        self._offsets = [self._clock.now() - self._since_boot()]
        self._began = self._since_boot()
        self._reassess(jumped=True)

    def held_back(self) -> str | None:
        """Return why nothing may be forwarded for now, or None."""
        self.refresh()
        if self.doubt is not None:
            return f"waits for the clock: {self.doubt.reason}"
        return None if self.is_settled else "waits until readings have their right times"

    @property
    def is_settled(self) -> bool:
        """Return whether the clock is trusted and no reading waits for its right time."""
        return self.doubt is None and self._noted == self._put_right

    def refresh(self) -> None:
        """Check whether the wall clock has jumped, or a doubt is over."""
        if self._began is None:
            return
        offset = self._clock.now() - self._since_boot()
        jumped = abs(offset - self._offsets[-1]) > JUMP_S
        if jumped:
            self._offsets = [*self._offsets, offset][-JUMPS_KEPT:]
        else:
            self._offsets[-1] = offset
        if jumped or self.doubt is not None:
            self._reassess(jumped=jumped)
        else:
            self._trusted = offset

    def stamp_now(self, received_at: float) -> float | None:
        """Return `ArrivalTime.at` of a delivery of this moment; None if that needs a closer look.

        One clock is read, not two: `run` looks every second whether both agree.
        """
        if self._began is None:
            return received_at
        since_boot = received_at - self._offsets[-1]
        is_now = -MOMENT_S < self._since_boot() - since_boot < MOMENT_S
        return since_boot if is_now and self.doubt is None and self._noted == self._put_right else None

    def stamp(self, received_at: float) -> ArrivalTime:
        """Return the arrival time of a delivery that got this wall time (Unix seconds) a moment ago.

        `StoreUnavailable` if the clock is in doubt and this boot cannot be noted.
        """
        if self._began is None:
            return ArrivalTime(received_at)
        self.refresh()
        offset = self._offset_of(received_at)
        if offset is None:  # the delivery waited for very long, or the clock was read wrong that once
            plausible = self._began <= received_at - self._offsets[-1] <= self._since_boot()
        else:
            plausible = abs(offset - self._offsets[-1]) <= JUMP_S
        if self.doubt is None and plausible:
            return ArrivalTime(self._at(received_at))
        if self._boot_id is None:
            raise StoreUnavailable("the clock is not known, and when it came cannot be noted")
        self._noted += 1
        return ArrivalTime(self._since_boot() if offset is None else received_at - offset, self._boot_id)

    async def seen_within(self, seconds: float) -> list[tuple[str, bytes, float]]:
        """Return device key, raw bytes and `ArrivalTime.at` of the last seconds' readings, oldest first.

        While the clock is in doubt, return only readings of this boot: nobody knows how long ago others were.
        """
        if self.doubt is None:
            since_ms = int((self._clock.now() - seconds) * 1000)
            found = await self._store.readings.seen_since(since_ms)
            return [(key, raw, self._at(ms / 1000)) for key, raw, ms in found]
        since_ms = int((self._since_boot() - seconds) * 1000)
        noted = await self._store.retiming.seen_since(self._boot_id or 0, since_ms)
        return [(key, raw, ms / 1000) for key, raw, ms in noted]

    def _at(self, received_at: float) -> float:
        if self._began is None:
            return received_at
        offset = self._offset_of(received_at)
        return received_at - (self._offsets[-1] if offset is None else offset)

    def _offset_of(self, received_at: float) -> float | None:
        """Return wall clock minus time since boot at that wall time, in seconds; None if that is long ago."""
        now = self._since_boot()
        return next((o for o in reversed(self._offsets) if -1 < now - received_at + o < QUEUED_S), None)

    def mark_stored(self, stamp: ArrivalTime) -> None:
        """Note that a reading or a payload with this arrival time is on the medium."""
        if stamp.boot is not None:
            self._noted += 1

    async def run(self, settle: Settle) -> None:
        """Check the clock until cancelled; once it is trusted, put pending readings right."""
        while True:
            await self.step(settle)
            await self._clock.sleep(CHECK_S)

    async def step(self, settle: Settle) -> None:
        """Check the clock once; put pending readings right if it is trusted."""
        self.refresh()
        try:
            await self._remember_boot()
            if self.doubt is None:
                self._confirmed_at = self._machine.synchronised_at()
                await self._make_good(settle)
        except StoreUnavailable as error:
            log.debug("clock: put off: %s", error)

    async def _remember_boot(self) -> None:
        """Note this boot in the store."""
        if self._boot_id is not None:
            return
        # A failure is put off, not raised: a full disk is no reason not to start.
        try:
            boot = await self._store.retiming.boot(self._machine.boot)
        except StoreUnavailable as error:
            log.debug("clock: put off: %s", error)
            return
        self._boot_id = boot.id
        if self._trusted is None and boot.offset_ms is not None:
            self._trusted = boot.offset_ms / 1000

    async def _make_good(self, settle: Settle) -> None:
        if self._boot_id is None or self._trusted is None:
            return
        offset_ms = round(self._trusted * 1000)
        if self._unsaved:
            await self._store.retiming.trust(self._boot_id, offset_ms)
            self._unsaved = False
        noted = self._noted
        if noted != self._put_right:
            await settle(self._boot_id, offset_ms)
            self._put_right = noted
            self._notices.notify()
        if "clock" in self._stats.parts:
            self._stats.say("clock", "ok")

    def _reassess(self, *, jumped: bool) -> None:
        now, offset = self._since_boot(), self._offsets[-1]
        doubt = self.doubt
        waited = doubt is not None and doubt.until is not None and now >= doubt.until
        found = None if waited and not jumped else self._check(offset, now)
        if found is None:
            if self.doubt is not None:
                log.info("clock: believed again; it is %s", minute(offset + now))
            self.doubt = None
            self._trusted, self._unsaved = offset, True
            self._confirmed_at = self._machine.synchronised_at()
        elif jumped:
            self.doubt = found
            self._stats.say("clock", found.reason, well=False)
            log.warning("clock: %s; readings are taken, forwarding waits", found.reason)

    def _check(self, offset: float, now: float) -> ClockDoubt | None:
        """Return why the wall clock is in doubt, `now` seconds after boot, or None."""
        wall = offset + now
        # A time that a time server has confirmed since the clock was last trusted needs no other proof.
        mark = self._machine.synchronised_at()
        if mark is not None and mark != self._confirmed_at and -CHECK_S <= wall - mark <= SYNC_FRESH_S:
            return None
        expected = None if self._trusted is None else self._trusted + now
        return check_clock(wall, now, expected, self._newest, awaited=self._machine.awaits_network_time())
