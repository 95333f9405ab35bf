"""All devices, in memory: each with the state that the checks of its next reading need."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.config import NAMES_AN_HOUR
from gateway.domain.device import Device
from gateway.domain.reading import Reading
from gateway.domain.report import Report, folded
from gateway.drivers import BY_NAME
from gateway.errors import StoreUnavailable
from gateway.intake.outliers import OutlierFlags, Outliers
from gateway.network import source_of
from gateway.store.protocol import Store

DEVICES_MAX = 1_000
"""Devices that may register themselves; payloads of further devices go to quarantine."""

HOURS_IN_ALL = 10
"""One source may register so many times what it may register in an hour."""

PLACES_KEPT, FEW_NAMES = 200, 20
"""The last places of `DEVICES_MAX` are kept for sources that have fewer devices than `FEW_NAMES`."""

HOUR_S = 3600.0

SEED_READINGS = 48
"""Earlier readings of a device that are loaded before its first reading after a start is checked."""


@dataclass(slots=True)
class TrackedDevice:
    """A device and its recent past. `stored_at` is the arrival of its last stored reading, `ArrivalTime.at`.

    `comment` is the comment of its last reading, None until the store has been asked. `source` handed in its
    first reading, at `registered_at` (monotonic seconds) if that was since the start.
    """

    device: Device
    comment: str | None = None
    outliers: Outliers | None = None
    stored_at: float = float("-inf")
    source: str = ""
    registered_at: float = float("-inf")


@dataclass(frozen=True, slots=True)
class Places:
    """Keys of new devices that have a place, and of new devices that have none for this `reason`."""

    new: Sequence[str] = ()
    refused: frozenset[str] = frozenset()
    reason: str = ""


NONE_NEW = Places()


class DeviceRegistry:
    """Every device by its key, and by the keys of the devices that were merged into it."""

    def __init__(self, store: Store, clock: Clock, names_an_hour: int = NAMES_AN_HOUR) -> None:
        self._store = store
        self._clock = clock
        self._an_hour, self._in_all = names_an_hour, names_an_hour * HOURS_IN_ALL
        self._devices: dict[str, TrackedDevice] = {}
        self._registering: dict[str, str] = {}
        self._other_keys: dict[str, str] = {}
        self.loaded = False

    async def load(self) -> None:
        """Load all devices from the store."""
        self.loaded = True
        self._devices, self._other_keys = {}, {}
        sources = await self._store.devices.first_sources()
        for device in await self._store.devices.all():
            self.put(device).source = source_of(sources.get(device.id, ""))

    def get(self, key: str) -> TrackedDevice | None:
        """Return the device that has this key, or that a device with this key was merged into."""
        tracked = self._devices.get(key)
        if tracked is None:
            other = self._other_keys.get(key) or self._other_keys.get(folded(key), folded(key))
            tracked = self._devices.get(other)
        return tracked

    def recognise(self, report: Report) -> None:
        """Note the device's key on the report if the device is known under any of the report's keys."""
        for key in report.keys:
            if (tracked := self.get(key)) is not None:
                report.known_as = tracked.device.key
                return

    def full(self) -> bool:
        """Return whether no further device may register itself."""
        return len(self._devices) >= DEVICES_MAX

    def reserve(self, keys: Iterable[str], address: str) -> Places:
        """Keep places for the devices that are new among these, as many as the source of `address` may have.

        The places are kept until `release`: devices whose first reading is being stored count as well.
        """
        new = [key for key in keys if self.get(key) is None and key not in self._registering]
        if not new:
            return NONE_NEW
        new = list(dict.fromkeys(new))
        places = NONE_NEW
        for place, key in enumerate(new):
            if refusal := self._refusal(source_of(address)):
                return Places(new[:place], frozenset(new[place:]), refusal)
            self._registering[key] = source_of(address)
            places = Places(new[: place + 1])
        return places

    def _refusal(self, source: str) -> str:
        """Return why a source may not register one more device now; empty if it may."""
        since = self._clock.monotonic() - HOUR_S
        its = [tracked for tracked in self._devices.values() if tracked.source == source]
        under_way = sum(other == source for other in self._registering.values())
        name = source or "one sender"
        if sum(tracked.registered_at > since for tracked in its) + under_way >= self._an_hour:
            return f"a new device beyond the {self._an_hour} that {name} may register in an hour"
        if len(its) + under_way >= self._in_all:
            return f"a new device beyond the {self._in_all} that {name} may register"
        taken = len(self._devices) + len(self._registering)
        if taken >= DEVICES_MAX - PLACES_KEPT and len(its) + under_way >= FEW_NAMES:
            return f"a new device: the last {PLACES_KEPT} places are for senders with few devices"
        return (
            f"a new device beyond the {DEVICES_MAX} that register themselves" if taken >= DEVICES_MAX else ""
        )

    def release(self, keys: Iterable[str], address: str) -> None:
        """End what `reserve` began: note where the devices that are stored now came from."""
        for key in keys:
            del self._registering[key]
            tracked = self._devices.get(key)
            if tracked is not None:
                tracked.source, tracked.registered_at = source_of(address), self._clock.monotonic()

    def put(self, device: Device) -> TrackedDevice:
        """Replace the cached device. Drop its outlier state if its settings changed."""
        for key in (device.key, *(alias.key for alias in device.aliases)):
            if key != device.key:
                self._other_keys[key] = device.key
                # A device that had this key became part of this one, whose past is that of both now.
                gone, into = self._devices.pop(key, None), self._devices.get(device.key)
                if gone is not None and into is not None:
                    into.comment, into.outliers = None, None
                    into.stored_at = max(into.stored_at, gone.stored_at)
            if self._other_keys.get(folded(key), key) == key:
                self._other_keys[folded(key)] = device.key
        tracked = self._devices.get(device.key)
        if tracked is None:
            tracked = self._devices[device.key] = TrackedDevice(device)
        elif tracked.device.settings != device.settings:
            tracked.outliers = None
        tracked.device = device
        return tracked

    def remove(self, device: Device) -> None:
        """Remove a device with all its keys."""
        self._devices.pop(device.key, None)
        self._other_keys = {key: own for key, own in self._other_keys.items() if own != device.key}

    def renamed(self, before: str, device: Device) -> None:
        """Replace a device that had the key `before` until now."""
        tracked = self._devices.pop(before)
        tracked.device = device
        self._devices[device.key] = tracked
        self.put(device)

    def mark_seen(self, key: str, at: float) -> None:
        """Note the arrival of the device's last stored reading."""
        tracked = self._devices.get(key)
        if tracked is not None:
            tracked.stored_at = at

    async def check_outlier(self, tracked: TrackedDevice, reading: Reading) -> OutlierFlags:
        """Return the outlier flags of this reading, and of earlier readings that it shows to be outliers."""
        if tracked.outliers is None:
            outliers, recent = Outliers(), []
            with suppress(StoreUnavailable):  # a reading is worth more than its flags
                recent = await self._store.payloads.recent_gravities(tracked.device.id, SEED_READINGS)
            for oid, created_at, sg in recent:
                outliers.feed(created_at, sg, oid)
            tracked.outliers = outliers
        return tracked.outliers.feed(reading.created_at, reading.sg, reading.oid)

    async def repeats_comment(self, tracked: TrackedDevice, reading: Reading) -> bool:
        """Return whether the firmware sent the same comment with the device's reading before this one."""
        if not reading.comment or not BY_NAME[reading.source].repeats_comments:
            return False
        if tracked.comment is None:
            try:
                tracked.comment = await self._store.payloads.latest_comment(tracked.device.id)
            except StoreUnavailable:  # a reading is worth more than its flags
                return False
        return reading.comment == tracked.comment
