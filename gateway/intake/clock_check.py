"""Whether the wall clock is to be believed: a Raspberry Pi has no battery for its clock.

It starts in 1970, or where it was switched off, until a time server answers. Readings are taken from the
first second on all the same; while the clock is suspect each is noted with the time since boot, nothing is
forwarded, and once the clock is known the times are put right.
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
"""Wall against monotonic time; leap seconds and the slewing of time services stay below."""

JUMP_WAIT_S = 3_600.0
"""After a jump that nobody explains, this long the new time is not believed."""

BEHIND_WAIT_S = 86_400.0
"""So long a time is not believed that lies before what is stored."""

BOOT_WAIT_S = 3_600.0
"""Since boot: so long a time service that is switched on is waited for."""

REMEDY = "switch on network time (`timedatectl set-ntp true`) or set the clock (`timedatectl set-time`)"


@dataclass(frozen=True, slots=True)
class ClockDoubt:
    """Why the clock is not believed; `until` is in seconds since boot, None where waiting does not end it."""

    reason: str
    until: float | None


def check_clock(
    wall: float, since_boot: float, expected: float | None, newest: float, *, awaited: bool
) -> ClockDoubt | None:
    """Why this wall time is not to be believed, or None; Unix seconds, but for those since boot.

    `expected` follows from the last time that was believed, `newest` is the latest arrival that is stored;
    `awaited`: a time service is at work that has no answer yet.
    """
    if expected is not None and abs(wall - expected) <= JUMP_S:
        return None
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
"""A synchronisation so long ago still explains a jump; systemd-timesyncd asks every 34 minutes at least."""

LOOK_S = 1.0
"""Two clocks are read: nothing is written, and nothing else happens while all is well."""

QUEUED_S = 600.0
"""A delivery was stamped at most so long before it is looked at: it may have waited for the store."""

JUMPS_KEPT = 8

Settle = Callable[[int, int], Awaitable[int]]
"""Puts right what waits, given a boot's id and the milliseconds that make Unix time of those since then."""


class ArrivalTime(NamedTuple):
    """When a delivery came, in seconds that never jump; `boot` is set where its wall time is suspect."""

    at: float
    boot: int | None = None

    def moment(self, place: int = 0) -> BootTime | None:
        """What is noted beside a reading whose time is suspect."""
        return None if self.boot is None else BootTime(self.boot, int(self.at * 1000), place)


class ClockMonitor:
    """Watches the clock once it is started; before that, as in commands, every time is believed."""

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
        self._believed: float | None = None
        self._unsaved = False
        self._noted = self._put_right = 0
        self._mark: float | None = None
        self.suspicion: ClockDoubt | None = None
        """Why the clock is not believed at present."""

    async def start(self) -> None:
        """Judge the clock as it is now, by what the store knows and what the machine says."""
        await self._remember_boot()
        self._newest = (await self._store.retiming.newest_arrival() or 0) / 1000
        self._noted += await self._store.retiming.waits()
        self._offsets = [self._clock.now() - self._since_boot()]
        self._began = self._since_boot()
        self._reassess(jumped=True)

    def held_back(self) -> str | None:
        """Why nothing may be forwarded for now, or None."""
        self.refresh()
        if self.suspicion is not None:
            return f"waits for the clock: {self.suspicion.reason}"
        return None if self.is_settled else "waits until readings have their right times"

    @property
    def is_settled(self) -> bool:
        """Whether the clock is believed, and no reading waits for its right time."""
        return self.suspicion is None and self._noted == self._put_right

    def refresh(self) -> None:
        """See whether the wall clock has jumped, or a suspicion is over."""
        if self._began is None:
            return
        offset = self._clock.now() - self._since_boot()
        jumped = abs(offset - self._offsets[-1]) > JUMP_S
        if jumped:
            self._offsets = [*self._offsets, offset][-JUMPS_KEPT:]
        else:
            self._offsets[-1] = offset
        if jumped or self.suspicion is not None:
            self._reassess(jumped=jumped)
        else:
            self._believed = offset

    def stamp(self, received_at: float) -> ArrivalTime:
        """When something came that was stamped with this wall time (Unix seconds), a moment ago."""
        if self._began is None:
            return ArrivalTime(received_at)
        self.refresh()
        offset = self._offset_of(received_at)
        if offset is None:  # it waited for very long, or the clock was read wrong that once
            plausible = self._began <= received_at - self._offsets[-1] <= self._since_boot()
        else:
            plausible = abs(offset - self._offsets[-1]) <= JUMP_S
        if self.suspicion is None and plausible:
            return ArrivalTime(self._at(received_at))
        if self._boot_id is None:
            raise StoreUnavailable("the clock is not known, and when it came cannot be noted")
        self._noted += 1
        return ArrivalTime(self._since_boot() if offset is None else received_at - offset, self._boot_id)

    async def seen_within(self, seconds: float) -> list[tuple[str, bytes, float]]:
        """Device key, raw bytes and `ArrivalTime.at` of what came in the last seconds, oldest first.

        With a suspect clock, what this boot has noted: nobody knows how long ago other boots were.
        """
        if self.suspicion is None:
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
        """By which the wall clock was ahead of the other when it said so; None where that is long ago."""
        now = self._since_boot()
        return next((o for o in reversed(self._offsets) if -1 < now - received_at + o < QUEUED_S), None)

    def stored(self, stamp: ArrivalTime) -> None:
        """Something with this stamp is on the medium now."""
        if stamp.boot is not None:
            self._noted += 1

    async def run(self, settle: Settle) -> None:
        """Until cancelled: look, and once the clock is known let what waits be put right."""
        while True:
            await self.step(settle)
            await self._clock.sleep(LOOK_S)

    async def step(self, settle: Settle) -> None:
        """One look."""
        self.refresh()
        try:
            await self._remember_boot()
            if self.suspicion is None:
                self._mark = self._machine.synchronised_at()
                await self._make_good(settle)
        except StoreUnavailable as error:
            log.debug("clock: put off: %s", error)

    async def _remember_boot(self) -> None:
        """Note which boot this is; a full disk is no reason not to start."""
        if self._boot_id is not None:
            return
        try:
            boot = await self._store.retiming.boot(self._machine.boot)
        except StoreUnavailable as error:
            log.debug("clock: put off: %s", error)
            return
        self._boot_id = boot.id
        if self._believed is None and boot.offset_ms is not None:
            self._believed = boot.offset_ms / 1000

    async def _make_good(self, settle: Settle) -> None:
        if self._boot_id is None or self._believed is None:
            return
        offset_ms = round(self._believed * 1000)
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
        suspicion = self.suspicion
        waited = suspicion is not None and suspicion.until is not None and now >= suspicion.until
        found = None if waited and not jumped else self._judge(offset, now)
        if found is None:
            self._believe(offset)
        elif jumped:
            self.suspicion = found
            self._stats.say("clock", found.reason, well=False)
            log.warning("clock: %s; readings are taken, forwarding waits", found.reason)

    def _believe(self, offset: float) -> None:
        if self.suspicion is not None:
            log.info("clock: believed again; it is %s", minute(offset + self._since_boot()))
        self.suspicion = None
        self._believed, self._unsaved = offset, True
        self._mark = self._machine.synchronised_at()

    def _judge(self, offset: float, now: float) -> ClockDoubt | None:
        """What speaks against the wall clock, `now` seconds after boot."""
        wall = offset + now
        if self._is_network_time(wall):
            return None
        expected = None if self._believed is None else self._believed + now
        return check_clock(wall, now, expected, self._newest, awaited=self._machine.awaits_network_time())

    def _is_network_time(self, wall: float) -> bool:
        """Whether a time server has confirmed this wall time since it was last believed."""
        mark = self._machine.synchronised_at()
        return mark is not None and mark != self._mark and -LOOK_S <= wall - mark <= SYNC_FRESH_S
