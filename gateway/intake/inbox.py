"""Which readings wait for the owner's word, and what becomes of them after it.

A reading waits if the owner wants to be asked about new devices, or if its device has a key or an address of
its own and the reading came without. It is kept as it came, and replayed as of its arrival once it is
accepted. Meanwhile it is no reading: it raises no alarm, is not forwarded and counts in no statistics.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace

from gateway.clock import Clock
from gateway.domain.device import Device
from gateway.domain.inbox import REFUSED_S, WaitingName, WaitReason
from gateway.domain.key import ApiKey
from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import BY_NAME
from gateway.errors import NotFound, ShareUsedUp
from gateway.intake.adoption import Adoption
from gateway.intake.clock_check import ArrivalTime, ClockMonitor
from gateway.intake.deduplicate import Commit, Deduplicator, delivery_key, delivery_window_s, is_news
from gateway.intake.devices import DeviceRegistry
from gateway.network import source_of
from gateway.stats import IntakeOutcome, Stats
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

WAITED_MAX = 1_000
"""Names whose last waiting reading is remembered, for bridges that push every few seconds."""

Placed = tuple[int, Report]
"""A report with its number in its payload."""

WaitingReport = tuple[int, Report, WaitReason]
"""A report that waits, with its number in its payload and the reason."""

Keys = Callable[[], Sequence[ApiKey]]
"""Returns the keys that are bound to one device."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """The reports of a payload: the ones to store, the ones that wait, and the number of refused ones."""

    taken: list[Placed]
    waiting: list[WaitingReport]
    refused: int

    def without(self, keys: Set[str]) -> "Sorted":
        """Return the same without the reports to store of these devices."""
        return replace(self, taken=[item for item in self.taken if item[1].device_key not in keys])


PROVEN = (None, WaitReason.NEW, WaitReason.BEHIND)
"""Reasons, or none, of reports that come from the device that they name."""


class Inbox:
    """Decides which readings wait. With `asks`, readings of unknown devices do."""

    def __init__(
        self,
        store: Store,
        devices: DeviceRegistry,
        stats: Stats,
        clock: Clock,
        clock_monitor: ClockMonitor,
        keys: Keys,
    ) -> None:
        self._store = store
        self._devices = devices
        self._stats = stats
        self._clock = clock
        self._clock_monitor = clock_monitor
        self.keys = keys
        self._refused: dict[tuple[str, str, WaitReason], int] = {}
        self._accepting: Counter[str] = Counter()
        self._waited_at: dict[str, float] = {}
        self._announced: set[str] = set()
        self._adding = 0
        self._added = asyncio.Event()
        self.asks = False

    async def load(self) -> None:
        """Load the refused names, and forget which names the log has had."""
        self._announced.clear()
        refused = await self._store.inbox.refused()
        self._refused = {(name.device_key, name.source, name.reason): name.refused_at for name in refused}

    async def refuse(self, name_ids: Sequence[int]) -> int:
        """Remove names with their payloads, and remember them as refused; count the readings that are gone.

        `NotFound`, and nothing is removed, if one of the ids has no name.
        """
        if not {name.id for name in await self._store.inbox.names()} >= set(name_ids):
            raise NotFound
        gone = 0
        for name_id in sorted(set(name_ids)):
            name = await self._store.inbox.refuse(name_id, int(self._clock.now()))
            gone += name.readings if name is not None else 0
        await self.load()
        return gone

    async def allow(self, refused_id: int) -> bool:
        """Forget a refusal; return whether there was one with this id."""
        found = await self._store.inbox.allow(refused_id)
        await self.load()
        return found

    def reason_to_wait(self, payload: Payload, report: Report, keys: Sequence[ApiKey]) -> WaitReason | None:
        """Return why a report must wait, None if it need not; `keys` are the keys bound to one device."""
        tracked = self._devices.get(report.device_key)
        device = tracked.device if tracked else None
        has_own_key = False
        if keys or (payload.key is not None and payload.key.device):
            bound_to = payload.key.device if payload.key is not None else ""
            has_own_key = bool(bound_to) and is_called(bound_to, report, device)
            if bound_to and not has_own_key:
                return WaitReason.OTHER_KEY
            if not has_own_key and any(is_called(key.device, report, device) for key in keys):
                return WaitReason.WITHOUT_KEY
        address = device.settings.source if device is not None else ""
        if address and source_of(address) != source_of(payload.source):
            return WaitReason.OTHER_ADDRESS
        if report.device_key in self._accepting:
            return WaitReason.BEHIND
        # Not asked about a device that the owner has made a key for: that was the owner's word.
        if device is not None or has_own_key:
            return None
        return WaitReason.NEW if self.asks or self._refusal(report, "", WaitReason.NEW) else None

    def with_bound_name(self, before: Device, after: Device) -> Device:
        """Return the device after a report, with its old name if a key is bound to that name.

        Else a device that its owner renames would no longer be the one that the key is for.
        """
        if after.name == before.name or all(key.device != before.name for key in self.keys()):
            return after
        return replace(after, name=before.name)

    async def sort(self, payload: Payload, reports: Sequence[Report], adoption: Adoption) -> Sorted:
        """Sort the reports of a payload. The ones that may go on give their devices better ids before."""
        keys = self.keys()
        reasons = [self.reason_to_wait(payload, report, keys) for report in reports]
        before = [report.known_as for report in reports]
        await adoption.adopt([each for each, why in zip(reports, reasons, strict=True) if why in PROVEN])
        if [report.known_as for report in reports] != before:
            reasons = [self.reason_to_wait(payload, report, keys) for report in reports]
        placed = list(enumerate(reports))
        if not any(reasons):
            return Sorted(placed, [], 0)
        source, found, refused = source_of(payload.source), Sorted([], [], 0), 0
        for (place, report), reason in zip(placed, reasons, strict=True):
            if reason is None:
                found.taken.append((place, report))
            elif self._refusal(report, "" if reason is WaitReason.NEW else source, reason):
                refused += 1
            else:
                found.waiting.append((place, report, reason))
        return replace(found, refused=refused)

    def _refusal(self, report: Report, source: str, reason: WaitReason) -> bool:
        refused_at = self._refused.get((report.device_key, source, reason))
        return refused_at is not None and self._clock.now() - refused_at < REFUSED_S

    async def take(
        self, payload: Payload, stamp: ArrivalTime, waiting: Sequence[WaitingReport], recent: Deduplicator
    ) -> None:
        """Keep the reports that wait, but for duplicates; return when they are on the medium.

        `ShareUsedUp` if there is no room for one of them; the others are kept all the same.
        """
        if not waiting:
            return
        keeping = Commit()
        keys: dict[bytes, str] = {}
        new: list[WaitingReport] = []
        left = len(waiting)
        try:
            for item in waiting:
                key = delivery_key(payload, item[1], item[0])
                outcome = await self._outcome(payload, stamp, item, key, recent, keeping)
                if outcome is IntakeOutcome.WAITING:
                    recent.remember(key, stamp.at, keeping)
                    keys[key] = item[1].device_key
                    new.append(item)
                else:
                    self._stats.count(outcome)
                    left -= 1
            refused = await self._keep(payload, new, stamp) if new else frozenset()
        except BaseException as error:
            self._stats.count(IntakeOutcome.NOT_STORED, left)
            for key in keys:
                recent.forget(key)
            keeping.settle(error)
            raise
        for key, device_key in keys.items():
            if device_key in refused:
                recent.forget(key)
            else:
                recent.remember(key, stamp.at, None)
        lost = sum(report.device_key in refused for _, report, _ in new)
        self._stats.count(IntakeOutcome.WAITING, len(new) - lost)
        self._stats.count(IntakeOutcome.NOT_STORED, lost)
        if refused:
            full = ShareUsedUp("the inbox has no room for it; `inbox list`, then accept or refuse")
            keeping.settle(full)
            raise full
        keeping.settle(None)

    async def _outcome(
        self,
        payload: Payload,
        stamp: ArrivalTime,
        item: WaitingReport,
        key: bytes,
        recent: Deduplicator,
        keeping: Commit,
    ) -> IntakeOutcome:
        """Return `WAITING` for a report that is to be kept; the checks are those of a report to be stored."""
        _, report, _ = item
        before = self._waited_at.get(report.device_key, float("-inf"))
        if 0 <= stamp.at - before < BY_NAME[report.family].spacing_s:
            return IntakeOutcome.RATE_LIMITED
        window = delivery_window_s(report, self._devices.get(report.device_key), payload.received_at)
        is_copy, storing = recent.check(key, stamp.at, window)
        if is_copy and storing is not None and storing is not keeping:
            await storing.wait()  # the first copy's commit is this one's, too
        if is_copy or (payload.retained and not await is_news(self._store, payload, report)):
            return IntakeOutcome.DUPLICATE
        return IntakeOutcome.WAITING

    async def _keep(
        self, payload: Payload, new: Sequence[WaitingReport], stamp: ArrivalTime
    ) -> frozenset[str]:
        """Keep a payload for the devices of these reports; return the keys of those it does not fit for."""
        source = source_of(payload.source)
        counts = Counter(report.device_key for _, report, _ in new)
        names = {
            report.device_key: replace(
                WaitingName.of(report, source, reason), readings=counts[report.device_key]
            )
            for _, report, reason in new
        }
        self._adding += 1
        try:
            left = await self._store.inbox.add(payload, list(names.values()), stamp.boot_time())
        finally:
            self._adding -= 1
            if self._adding == 0:
                self._added.set()
        self._clock_monitor.mark_stored(stamp)
        refused = frozenset(name.device_key for name in left)
        if len(self._waited_at) + len(names) > WAITED_MAX:
            self._waited_at.clear()
        self._waited_at.update(dict.fromkeys(names.keys() - refused, stamp.at))
        for name in names.values():
            if name.device_key not in refused | self._announced:
                log.info("inbox: %s %r waits: %s", name.device_key, name.name, name.reason)
                self._announced.add(name.device_key)
        return refused

    @contextmanager
    def accepting(self, device_key: str) -> Iterator[None]:
        """Let readings of the device wait in the body, so that none overtakes the earlier ones."""
        self._accepting[device_key] += 1
        try:
            yield
        finally:
            self._accepting[device_key] -= 1
            self._accepting += Counter()  # drops those at zero

    async def settled(self) -> None:
        """Return once no payload is on its way into the inbox."""
        while self._adding:
            self._added.clear()
            await self._added.wait()


def is_called(word: str, report: Report, device: Device | None) -> bool:
    """Return whether a report, or the device that it is of, has this name, id or key."""
    names = {report.device_key, report.stable_id, report.name, *report.keys}
    return bool(word) and (word in names or (device is not None and word in device.names))


def of_name(name: WaitingName, report: Report, devices: DeviceRegistry) -> bool:
    """Return whether a report is of the device that waits, which may have got another key meanwhile."""
    if name.device_key in {report.device_key, *report.keys}:
        return True
    known = devices.get(name.device_key)
    return known is not None and known is devices.get(report.device_key)
