"""What the user says of devices, applied to what they sent before as well as to what comes.

The bytes that a device sent are kept with every reading, so whatever was inferred or calculated of them can
be done again: nothing here changes what was sent, and everything can be taken back.

A device is read again as if it were new: what its readings teach is learned once more, in the order of time.
So a setting that is taken back leaves nothing behind, and one that has nothing to do with units changes none.
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
"""Readings understood in one go: about 10 ms in which nothing else happens."""

FIRST_PLACE = (-(2**62), -1)

Told = Callable[[int], None]
"""Is told how many readings are done."""


@dataclass(frozen=True, slots=True)
class Reprocessed:
    """How many readings were understood again, and how many say something else since."""

    readings: int
    changed: int


class Reprocessor:
    """Changes settings of devices, one at a time."""

    def __init__(self, store: Store, intake: Intake, notices: StoredNotices) -> None:
        self._store = store
        self._intake = intake
        self._notices = notices
        self.turn = asyncio.Lock()
        """Held while stored readings are written anew."""

    async def configure(self, device: Device, settings: DeviceSettings, told: Told) -> Reprocessed:
        """These are the device's settings, for the future and for the past."""
        async with self.turn:
            configured = await self._store.devices.configure(replace(device, settings=settings))
            self._intake.devices.put(configured)
            if as_before(settings, device.settings):
                self._intake.devices.put(await self._store.devices.mark_reprocessed(device.id))
                return Reprocessed(0, 0)
            return await self.reread(configured, told)

    async def resume(self) -> None:
        """After a start: finish what was begun when the last process ended."""
        try:
            for device in await self._store.devices.all():
                if device.reprocessing:
                    log.info("understanding: reading %s again, which was not finished", device.key)
                    async with self.turn:
                        await self.reread(device, lambda _: None)
        except StoreUnavailable as error:  # the next start tries again; readings are more important
            log.warning("understanding: earlier readings are not all as their settings say yet: %s", error)

    async def send_again(self, device: Device, since: int) -> int:
        """Forward the device's readings since then once more, as they are now; how many those are."""
        count = await self._store.payloads.send_again(device.id, since)
        self._notices.notify()
        return count

    async def reread(self, device: Device, told: Told) -> Reprocessed:
        """Understand again all that the device sent; to be called with `turn` held."""
        outliers = Outliers()
        place, readings, changed = FIRST_PLACE, 0, 0
        learned, saved = replace(device, gravity_unit=None, inferred={}), device
        while True:
            page = await self._store.payloads.page(device.id, place, PAGE_READINGS)
            if page:
                learned, rewritten = await self._reread_page(learned, page, outliers)
                changed += rewritten
                readings += len(page)
                place = page[-1].reading.created_at, page[-1].seq
                told(readings)
            elif readings and learned is not saved:
                self._intake.devices.put(await self._store.devices.save(learned))
                saved = learned  # once more: what came meanwhile was understood by what was known before
            else:
                break
        self._intake.devices.put(await self._store.devices.mark_reprocessed(device.id))
        return Reprocessed(readings, changed)

    async def _reread_page(
        self, device: Device, page: list[RawReading], outliers: Outliers
    ) -> tuple[Device, int]:
        """The device after these readings, and how many say something else now."""
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
    """Whether they say nothing new of the readings: a label and an interval do not."""
    return replace(settings, label=before.label, interval_s=before.interval_s) == before


def reprocess(sent: RawReading, device: Device) -> tuple[Reading, Device]:
    """The reading as its bytes are understood today, by what the device was before it, and the device after.

    Its identity stays. Where no driver knows the bytes any more, they teach nothing.
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
    said: list[str] = json.loads(new.flags or "[]")
    kept = [flag for flag in json.loads(old.flags or "[]") if flag in ARRIVAL_FLAGS and flag not in said]
    reading = replace(
        old,
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
    """The report in the bytes that the reading was made of; None where they tell no more."""
    reports: list[Report] = []
    for stable_id in device.ids_as(payload.driver or ""):
        with suppress(DriverError):
            # Anew for each: what was read of a payload is remembered on it.
            said = decode(replace(payload, label=stable_id, fields=None)).reports
            reports = [report for report in said if device.is_of(report)]
        if reports:
            break
    else:
        return None
    # A bridge that was offline sends several readings of a device at once.
    return next((r for r in reports if time_of(r, payload.received_at)[0] == old.created_at), reports[0])


def _report_of(old: Reading, device: Device) -> Report:
    """What the reading says itself."""
    return Report(
        device.stable_id,
        family=device.family,
        gravity=old.gravity or None,
        gravity_unit="P" if old.gravity_unit == "P" else "G",
        temp=old.temp or None,
        temp_unit="F" if old.temp_unit == "F" else "C",
        facts=json.loads(old.facts or "{}"),
    )
