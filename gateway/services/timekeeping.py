"""Whether the wall clock is to be believed: a Raspberry Pi has no battery for its clock.

It starts in 1970, or where it was switched off, until a time server answers. Readings are taken from the
first second on all the same; while the clock is suspect each is noted with the time since boot, nothing is
forwarded, and once the clock is known the times are put right.

| the clock is suspect | until |
|---|---|
| before `RELEASED_AT` | it is set; never by waiting |
| more than 2 minutes before readings that are stored | it is set, or a day has passed |
| at the start, network time switched on and not there yet | it is there, or an hour since boot has passed |
| after a jump of more than 2 minutes that no time server explains | it jumps back, one does, or an hour |
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from gateway.clock import RELEASED_AT, Clock, Machine, SystemClock
from gateway.errors import StoreUnavailable
from gateway.events import StoredNotices
from gateway.stats import Stats
from gateway.store.protocol import Boot, Moment, Store

log = logging.getLogger(__name__)

JUMP_S = 120.0
"""Wall against monotonic time; leap seconds and the slewing of time services stay below."""

JUMP_WAIT_S = 3_600.0
"""After a jump that nobody explains, this long the new time is not believed."""

BEHIND_WAIT_S = 86_400.0
"""So long a time is not believed that lies before what is stored."""

BOOT_WAIT_S = 3_600.0
"""Since boot: so long a time service that is switched on is waited for."""

SYNC_FRESH_S = 3_600.0
"""A synchronisation so long ago still explains a jump; systemd-timesyncd asks every 34 minutes at least."""

LOOK_S = 2.0

QUEUED_S = 600.0
"""A delivery was stamped at most so long before it is looked at: it may have waited for the store."""

JUMPS_KEPT = 8

_FAR = 253_402_300_799.0
"""The end of the year 9999 in Unix seconds: `datetime` shows nothing later."""

REMEDY = "switch on network time (`timedatectl set-ntp true`) or set the clock (`timedatectl set-time`)"

Settle = Callable[[int, int], Awaitable[int]]
"""Puts right what waits, given a boot's id and the milliseconds that make Unix time of those since then."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Why the clock is not believed; `until` is in seconds since boot, None where waiting does not end it."""

    reason: str
    until: float | None


class Stamp(NamedTuple):
    """When a delivery came, in seconds that never jump; `boot` is set where its wall time is suspect."""

    at: float
    boot: int | None = None

    def moment(self, place: int = 0) -> Moment | None:
        """What is noted beside a reading whose time is suspect."""
        return None if self.boot is None else Moment(self.boot, int(self.at * 1000), place)


class Timekeeping:
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
        self._boot: Boot | None = None
        self._newest = 0.0
        self._offsets: list[float] = []
        self._believed: float | None = None
        self._unsaved = False
        self._noted = self._put_right = 0
        self._mark: float | None = None
        self.suspicion: Suspicion | None = None
        """Why the clock is not believed at present."""

    async def start(self) -> None:
        """Judge the clock as it is now, by what the store knows and what the machine says."""
        self._boot = await self._store.retiming.boot(self._machine.boot)
        self._newest = (await self._store.retiming.newest_arrival() or 0) / 1000
        self._noted += await self._store.retiming.waits()
        if self._boot.offset_ms is not None:
            self._believed = self._boot.offset_ms / 1000
        self._offsets = [self._clock.now() - self._since_boot()]
        self._weigh(jumped=True)

    def held_back(self) -> str | None:
        """Why nothing may be forwarded for now, or None."""
        self.look()
        if self.suspicion is not None:
            return f"waits for the clock: {self.suspicion.reason}"
        return None if self.is_settled else "waits until readings have their right times"

    @property
    def is_settled(self) -> bool:
        """Whether the clock is believed, and no reading waits for its right time."""
        return self.suspicion is None and self._noted == self._put_right

    def look(self) -> None:
        """See whether the wall clock has jumped, or a suspicion is over."""
        if self._boot is None:
            return
        offset = self._clock.now() - self._since_boot()
        jumped = abs(offset - self._offsets[-1]) > JUMP_S
        if jumped:
            self._offsets = [*self._offsets, offset][-JUMPS_KEPT:]
        else:
            self._offsets[-1] = offset
        if jumped or self.suspicion is not None:
            self._weigh(jumped=jumped)
        else:
            self._believed = offset

    def stamp(self, received_at: float) -> Stamp:
        """When something came that was stamped with this wall time (Unix seconds), a moment ago."""
        if self._boot is None:
            return Stamp(received_at)
        self.look()
        offset = self._offset_of(received_at)
        if self.suspicion is None and (offset is None or abs(offset - self._offsets[-1]) <= JUMP_S):
            return Stamp(self.since_boot_of(received_at))
        self._noted += 1
        return Stamp(self._since_boot() if offset is None else received_at - offset, self._boot.id)

    def since_boot_of(self, received_at: float) -> float:
        """That wall time (Unix seconds) on the scale of `Stamp.at`."""
        if self._boot is None:
            return received_at
        offset = self._offset_of(received_at)
        return received_at - (self._offsets[-1] if offset is None else offset)

    def _offset_of(self, received_at: float) -> float | None:
        """By which the wall clock was ahead of the other when it said so; None where that is long ago."""
        now = self._since_boot()
        return next((o for o in reversed(self._offsets) if -1 < now - received_at + o < QUEUED_S), None)

    def stored(self, stamp: Stamp) -> None:
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
        self.look()
        if self.suspicion is not None:
            self._stats.parts["clock"] = self.suspicion.reason
            return
        self._mark = self._machine.synchronised_at()
        try:
            await self._make_good(settle)
        except StoreUnavailable as error:
            log.debug("clock: put off: %s", error)

    async def _make_good(self, settle: Settle) -> None:
        if self._boot is None or self._believed is None:
            return
        offset_ms = round(self._believed * 1000)
        if self._unsaved:
            await self._store.retiming.believe(self._boot.id, offset_ms)
            self._unsaved = False
        noted = self._noted
        if noted != self._put_right:
            await settle(self._boot.id, offset_ms)
            self._put_right = noted
            self._notices.ring()
        if "clock" in self._stats.parts:
            self._stats.parts["clock"] = "ok"

    def _weigh(self, *, jumped: bool) -> None:
        now, offset = self._since_boot(), self._offsets[-1]
        suspicion = self.suspicion
        waited = suspicion is not None and suspicion.until is not None and now >= suspicion.until
        found = None if waited and not jumped else self._judge(offset, now)
        if found is None:
            self._believe(offset)
        elif jumped:
            self.suspicion = found
            self._stats.parts["clock"] = found.reason
            log.warning("clock: %s; readings are taken, forwarding waits", found.reason)

    def _believe(self, offset: float) -> None:
        if self.suspicion is not None:
            log.info("clock: believed again; it is %s", _shown(offset + self._since_boot()))
        self.suspicion = None
        self._believed, self._unsaved = offset, True
        self._mark = self._machine.synchronised_at()

    def _judge(self, offset: float, now: float) -> Suspicion | None:
        """What speaks against the wall clock, `now` seconds after boot."""
        wall, known = offset + now, self._believed
        if self._is_network_time(wall) or (known is not None and abs(offset - known) <= JUMP_S):
            return None
        says = f"it says {_shown(wall)}"
        if wall < RELEASED_AT:
            return Suspicion(f"{says}, which is before this program was made; {REMEDY}", None)
        newest = self._newest if known is None else max(self._newest, known + now)
        if wall < newest - JUMP_S:
            return Suspicion(f"{says}, but it was {_shown(newest)} already; {REMEDY}", now + BEHIND_WAIT_S)
        if known is not None:
            was = _shown(known + now)
            return Suspicion(f"{says}, where {was} was expected; {REMEDY}", now + JUMP_WAIT_S)
        if self._machine.awaits_network_time() and now < BOOT_WAIT_S:
            return Suspicion("network time has not come yet since the machine started", BOOT_WAIT_S)
        return None

    def _is_network_time(self, wall: float) -> bool:
        """Whether a time server has confirmed this wall time since it was last believed."""
        mark = self._machine.synchronised_at()
        return mark is not None and mark != self._mark and -LOOK_S <= wall - mark <= SYNC_FRESH_S


def _shown(unix_seconds: float) -> str:
    moment = datetime.fromtimestamp(min(unix_seconds, _FAR), UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"
