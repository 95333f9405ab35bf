"""Apply changed settings of a device to its stored readings, too.

Every reading is stored with its raw bytes, and is made again from them under the new settings. The bytes
never change, and every setting can be taken back.

A device is reprocessed as if it were new: its readings teach its units once more, in the order of time. A
setting that is taken back leaves nothing behind, and a setting that does not concern units changes none.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from gateway.domain.device import Device, DeviceSettings
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.drivers import BY_NAME, decode
from gateway.errors import DriverError, StoreUnavailable
from gateway.events import StoredNotices
from gateway.intake.intake import Intake
from gateway.intake.normalise import ARRIVAL_FLAGS, normalise, time_of, with_flags
from gateway.intake.outliers import Outliers
from gateway.store.protocol import Store
from gateway.store.records import RawReading

log = logging.getLogger(__name__)

PAGE_READINGS = 200
"""Readings that are reprocessed in one transaction: about 10 ms in which nothing else is stored."""

FIRST_PLACE = (-(2**62), -1)

RETRY_S = 30.0
"""Seconds until a device whose readings could not be reprocessed is tried again."""

OnCount = Callable[[int], None]
"""Takes the number of readings that are reprocessed so far."""


@dataclass(frozen=True, slots=True)
class Reprocessed:
    """The number of readings reprocessed, and of readings changed."""

    readings: int
    changed: int


@dataclass(frozen=True, slots=True)
class Count:
    """The number of readings that are reprocessed so far, and of all readings of the device."""

    done: int
    of: int


class Reprocessor:
    """Changes settings of devices, and reprocesses one device at a time."""

    def __init__(self, store: Store, intake: Intake, notices: StoredNotices) -> None:
        self._store = store
        self._intake = intake
        self._notices = notices
        self._saving = asyncio.Lock()
        self._applied: dict[int, DeviceSettings] = {}
        self._wanted = asyncio.Event()
        self._failed: set[int] = set()
        self.counts: dict[int, Count] = {}
        """How far the devices are that are being reprocessed, by device id."""
        self.turn = asyncio.Lock()
        """Locked while stored readings are rewritten."""

    async def configure(self, device: Device, settings: DeviceSettings, on_count: OnCount) -> Reprocessed:
        """Give a device new settings, and reprocess its stored readings."""
        if not await self._save(device, settings):
            return Reprocessed(0, 0)
        try:
            async with self.turn:
                return await self.reprocess(device, on_count)
        except BaseException:  # a caller that leaves, or a store that fails: `run` goes on with it
            self._wanted.set()
            raise

    async def start(self, device: Device, settings: DeviceSettings) -> None:
        """Give a device new settings; `run` reprocesses its stored readings afterwards."""
        if await self._save(device, settings):
            self._wanted.set()

    async def run(self) -> None:
        """Finish what the last process left unfinished, then reprocess devices as `start` asks for it."""
        while True:
            self._wanted.clear()
            finished = await self.resume()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if finished else RETRY_S):
                    await self._wanted.wait()

    async def resume(self) -> bool:
        """Reprocess every device that waits for it; return False if the store did not allow it."""
        try:
            for device in await self._store.devices.all():
                if device.reprocessing and device.id not in self._failed:
                    log.info("understanding: reading %s again", device.key)
                    await self._resume_one(device)
        except StoreUnavailable as error:  # tried again later; readings are more important
            log.warning("understanding: earlier readings are not all as their settings say yet: %s", error)
            return False
        return True

    async def _resume_one(self, device: Device) -> None:
        try:
            async with self.turn:
                await self.reprocess(device, lambda _: None)
        except StoreUnavailable:
            raise
        except Exception:  # a mistake of ours with old bytes must not stop the gateway, nor be tried for ever
            log.exception("understanding: %s cannot be read again; a change or a start tries it", device.key)
            self._failed.add(device.id)

    async def send_again(self, device: Device, since: int) -> int:
        """Queue the device's readings since `since` for forwarding again. Return their number."""
        count = await self._store.payloads.send_again(device.id, since)
        self._notices.notify("sending")
        return count

    async def _save(self, device: Device, settings: DeviceSettings) -> bool:
        """Store new settings of a device; return whether its readings have to be reprocessed."""
        async with self._saving:
            before = await self._store.devices.get(device.id) or device
            configured = await self._store.devices.configure(replace(before, settings=settings))
            needed = not as_before(settings, before.settings)
            if not needed and not before.reprocessing:
                configured = await self._store.devices.mark_reprocessed(device.id)
            self._failed.discard(device.id)
            if device.id in self._applied:
                self._applied[device.id] = settings
            self._intake.devices.put(configured)
        self._notices.notify("device", device=device.id)
        return needed

    async def reprocess(self, device: Device, on_count: OnCount) -> Reprocessed:
        """Reprocess all readings of a device; to be called with `turn` locked.

        If its settings change meanwhile, begin again with the new ones.
        """
        total = sum(part.readings for part in await self._store.devices.parts(device.id))

        def count(readings: int) -> None:
            self.counts[device.id] = Count(readings, max(readings, total))
            on_count(readings)
            self._notices.publish("device", device=device.id)

        try:
            while True:
                async with self._saving:
                    fresh = await self._store.devices.get(device.id) or device
                    self._applied[device.id] = fresh.settings
                done = await self._reprocess_once(fresh, count)
                if done is not None:
                    return done
        finally:
            self.counts.pop(device.id, None)
            self._applied.pop(device.id, None)
            self._notices.notify("device", device=device.id)

    async def _reprocess_once(self, device: Device, on_count: OnCount) -> Reprocessed | None:
        """Reprocess all readings of a device; return None if its settings have changed meanwhile."""
        outliers = Outliers()
        place, readings, changed = FIRST_PLACE, 0, 0
        learned, saved = replace(device, gravity_unit=None, inferred={}), device
        while True:
            page = await self._store.payloads.page(device.id, place, PAGE_READINGS)
            if page:
                learned, rewritten = await self._reprocess_page(learned, page, outliers)
                changed += rewritten
                readings += len(page)
                place = page[-1].reading.created_at, page[-1].seq
                on_count(readings)
            elif readings and learned is not saved:
                named = self._intake.inbox.with_bound_name(device, learned)
                self._intake.devices.put(await self._store.devices.save(named))
                saved = learned  # once more: readings that arrived meanwhile were read with the old units
            else:
                break
            if self._is_outdated(device):
                return None
        # Together with `_save`, because new settings must not count as applied.
        async with self._saving:
            if self._is_outdated(device):
                return None
            self._intake.devices.put(await self._store.devices.mark_reprocessed(device.id))
        return Reprocessed(readings, changed)

    def _is_outdated(self, device: Device) -> bool:
        return not as_before(self._applied.get(device.id, device.settings), device.settings)

    async def _reprocess_page(
        self, device: Device, page: list[RawReading], outliers: Outliers
    ) -> tuple[Device, int]:
        """Reprocess a page; return the device as it is after it, and how many readings changed."""
        found: dict[str, Reading] = {}
        earlier: list[tuple[str, str]] = []
        for sent in page:
            reading, device = reprocess(sent, device)
            verdict = outliers.feed(reading.created_at, reading.sg, reading.oid)
            found[reading.oid] = with_flags(reading, verdict.flags)
            for oid, flag in verdict.late:
                if oid in found:
                    found[oid] = with_flags(found[oid], [flag])
                else:
                    earlier.append((oid, flag))
        changes = [
            (sent.seq, found[sent.reading.oid]) for sent in page if found[sent.reading.oid] != sent.reading
        ]
        if changes:
            await self._store.payloads.rewrite(changes)
        for oid, flag in earlier:
            await self._store.payloads.add_flag(oid, flag)
        return device, len(changes)


def as_before(settings: DeviceSettings, before: DeviceSettings) -> bool:
    """Return whether readings stay the same under new settings: not every setting concerns readings."""
    return replace(settings, label=before.label, interval_s=before.interval_s, source=before.source) == before


def reprocess(sent: RawReading, device: Device) -> tuple[Reading, Device]:
    """Decode a reading again, for its device as it was before; return the reading, and the device after it.

    The reading keeps its id and its times. If no driver knows the bytes any more, they teach nothing.
    """
    old = sent.reading
    payload = Payload(
        sent.raw,
        old.received_at / 1000,
        sent.channel,
        driver=old.source if old.source in BY_NAME else device.family,
        source=old.ip,
    )
    report = _report_in(payload, old, device)
    new, inferred = normalise(report or _report_of(old, device), device, payload, old.created_at)
    learned = device if report is None else device.learned(report, new, inferred)
    flags: list[str] = json.loads(new.flags or "[]")
    kept = [flag for flag in json.loads(old.flags or "[]") if flag in ARRIVAL_FLAGS and flag not in flags]
    reading = old._replace(
        gravity=new.gravity,
        gravity_unit=new.gravity_unit,
        temp=new.temp,
        temp_unit=new.temp_unit,
        sg=new.sg,
        celsius=new.celsius,
        shown_gravity=new.shown_gravity,
        shown_temp=new.shown_temp,
        facts=new.facts,
        flags=with_flags(new, kept).flags,
    )
    return reading, learned


def _report_in(payload: Payload, old: Reading, device: Device) -> Report | None:
    """Find the report that a reading was made of; None if no driver finds it in the bytes any more."""
    reports: list[Report] = []
    for stable_id in device.ids_as(payload.driver or ""):
        with suppress(DriverError):
            # A new payload for each: the fields that were read are remembered on it.
            decoded = decode(replace(payload, label=stable_id, fields=None)).reports
            reports = [report for report in decoded if device.is_of(report)]
        if reports:
            break
    else:
        return None
    # A bridge that was offline sends several readings of a device at once.
    return next((r for r in reports if time_of(r, payload.received_at)[0] == old.created_at), reports[0])


def _report_of(old: Reading, device: Device) -> Report:
    """Make a report of the values of a stored reading."""
    return Report(
        device.stable_id,
        family=device.family,
        gravity=old.gravity or None,
        gravity_unit="P" if old.gravity_unit == "P" else "G",
        temp=old.temp or None,
        temp_unit="F" if old.temp_unit == "F" else "C",
        facts=json.loads(old.facts or "{}"),
    )
