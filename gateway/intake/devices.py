"""The devices that are known, in memory: each with what the next reading of it is judged by."""

from dataclasses import dataclass

from gateway.domain.device import Device
from gateway.domain.reading import Reading
from gateway.domain.report import Report, folded
from gateway.drivers import BY_NAME
from gateway.errors import StoreUnavailable
from gateway.intake.outliers import OutlierFlags, Outliers
from gateway.store.protocol import Store

DEVICES_MAX = 1_000
"""Devices that register themselves; what further ones send goes to quarantine."""

SEED_READINGS = 48
"""How many earlier readings of a device are looked at before its first one after a start is judged."""


@dataclass(slots=True)
class TrackedDevice:
    """A device and its recent past; `stored_at` is when its last stored reading came, as in `Stamp.at`.

    `comment` is the last one that it sent, None as long as nobody has asked the store.
    """

    device: Device
    comment: str | None = None
    outliers: Outliers | None = None
    stored_at: float = float("-inf")


class DeviceRegistry:
    """Every device by its key, and by the keys of those that were merged into it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, TrackedDevice] = {}
        self._others: dict[str, str] = {}
        self.loaded = False

    async def load(self) -> None:
        """Read them from the store."""
        self.loaded = True
        self._known, self._others = {}, {}
        for device in await self._store.devices.all():
            self.put(device)

    def get(self, key: str) -> TrackedDevice | None:
        """The device with this key."""
        known = self._known.get(key)
        if known is None:
            other = self._others.get(key) or self._others.get(folded(key), folded(key))
            known = self._known.get(other)
        return known

    def recognise(self, report: Report) -> None:
        """Note on the report which device it is of, where that is known by another key than the report's."""
        for key in report.keys:
            if (known := self.get(key)) is not None:
                report.known_as = known.device.key
                return

    def full(self) -> bool:
        """Whether no further device may register itself."""
        return len(self._known) >= DEVICES_MAX

    def put(self, device: Device) -> TrackedDevice:
        """This is the device from now on; under other settings its past is judged anew."""
        for key in (device.key, *(alias.key for alias in device.aliases)):
            if key != device.key:
                self._others[key] = device.key
                self._forget(key, device.key)
            if self._others.get(folded(key), key) == key:
                self._others[folded(key)] = device.key
        known = self._known.get(device.key)
        if known is None:
            known = self._known[device.key] = TrackedDevice(device)
        elif known.device.settings != device.settings:
            known.outliers = None
        known.device = device
        return known

    def renamed(self, before: str, device: Device) -> None:
        """The device had another key before."""
        known = self._known.pop(before)
        known.device = device
        self._known[device.key] = known
        self.put(device)

    def _forget(self, key: str, into: str) -> None:
        """What had this key is part of another device, whose past is that of both."""
        gone, known = self._known.pop(key, None), self._known.get(into)
        if gone is not None and known is not None:
            known.comment, known.outliers = None, None
            known.stored_at = max(known.stored_at, gone.stored_at)

    def mark_seen(self, key: str, at: float) -> None:
        """The device's last stored reading came then."""
        known = self._known.get(key)
        if known is not None:
            known.stored_at = at

    async def check_outlier(self, known: TrackedDevice, reading: Reading) -> OutlierFlags:
        """Which flags the reading deserves, and which ones earlier readings do, now that it is here."""
        if known.outliers is None:
            known.outliers = await self._seeded(known.device)
        return known.outliers.feed(reading.created_at, reading.sg, reading.oid)

    async def repeats_comment(self, known: TrackedDevice, reading: Reading) -> bool:
        """Whether its firmware has said the same comment with the reading before it."""
        if not reading.comment or not BY_NAME[reading.source].repeats_comments:
            return False
        if known.comment is None:
            try:
                known.comment = await self._store.payloads.latest_comment(known.device.id)
            except StoreUnavailable:  # a reading is worth more than its flags
                return False
        return reading.comment == known.comment

    async def _seeded(self, device: Device) -> Outliers:
        outliers = Outliers()
        try:
            recent = await self._store.payloads.recent_gravities(device.id, SEED_READINGS)
        except StoreUnavailable:  # a reading is worth more than its flags
            return outliers
        for oid, created_at, sg in recent:
            outliers.feed(created_at, sg, oid)
        return outliers
