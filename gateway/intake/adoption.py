"""Give stored devices the better ids that a new version reads from their payloads.

Earlier versions made one device of everything from one address, or under one name. The raw bytes are stored:
if they show that there was one device all along, it gets the better id. If they show several devices, or
none, new devices begin, and the user may merge one of them with the old one.
"""

import asyncio
import logging

from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import BY_NAME, decode
from gateway.errors import DriverError, StoreUnavailable
from gateway.intake.devices import DeviceRegistry
from gateway.store.protocol import Store
from gateway.store.records import RawReading

log = logging.getLogger(__name__)

LATEST_READINGS = 1_000
"""Readings that are decoded again: ten days of a spindle."""


class Adoption:
    """Examines a stored device's readings if a report of an unknown device may belong to that device."""

    def __init__(self, store: Store, devices: DeviceRegistry) -> None:
        self._store = store
        self._devices = devices
        self._turn = asyncio.Lock()

    async def adopt(self, reports: list[Report]) -> None:
        """Give devices the better ids of these reports, unless the stored bytes show other devices."""
        for report in reports:
            if report.known_as:
                if report.former_id and report.known_as == report.keys[0]:
                    await self._tell_apart_by_mac(report)
                continue
            if not report.shared_key or self._devices.get(report.shared_key) is None:
                continue
            async with self._turn:
                self._devices.recognise(report)
                if not report.known_as:
                    await self._adopt(report)

    async def _tell_apart_by_mac(self, report: Report) -> None:
        """Make the MAC the key of a device that sent only its own id before; keep the id as a second key."""
        old, key = self._devices.get(report.known_as), report.keys[-1]
        if old is None or self._devices.get(key) is not None:
            return
        try:
            device = await self._store.devices.rename(old.device, key, report.stable_id, keep=True)
        except StoreUnavailable as error:
            log.warning("adoption: %s keeps its key: %s", report.known_as, error)
            return
        if device is not None:
            self._devices.renamed(old.device.key, device)
            report.known_as = key

    async def _adopt(self, report: Report) -> None:
        old = self._devices.get(report.shared_key)
        if old is None or old.device.key != report.shared_key:
            return  # no such device, or the user has given it another key since
        key = report.device_key
        try:
            latest = await self._store.payloads.latest(old.device.id, LATEST_READINGS)
            if await asyncio.to_thread(_keys_in, latest, old.device) != {key}:
                return
            device = await self._store.devices.rename(old.device, key, report.stable_id)
        except StoreUnavailable as error:  # a reading is worth more than its history
            log.warning("adoption: %s is not looked at: %s", report.shared_key, error)
            return
        if device is not None:
            log.info("adoption: %s is known as %s from now on", old.device.key, key)
            self._devices.renamed(report.shared_key, device)


def _keys_in(latest: list[RawReading], device: Device) -> set[str]:
    """Return the device keys that the drivers of today find in the readings' bytes."""
    found: set[str] = set()
    for sent in latest:
        old = sent.reading
        payload = Payload(
            sent.raw,
            old.received_at / 1000,
            sent.channel,
            driver=old.source if old.source in BY_NAME else device.family,
            source=old.ip,
            label="" if device.stable_id == old.ip else device.stable_id,
        )
        try:
            reports = decode(payload).reports
        except DriverError:
            continue
        found |= {one.device_key for one in reports if device.key in (one.shared_key, one.device_key)}
    return found
