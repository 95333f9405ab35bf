"""Put right the times of readings that arrived while the clock was in doubt.

If the clock of their boot is trusted by now, their times are exact: the time since boot was kept with every
reading. Of boots whose clock was never trusted we assume that they followed each other at once, and that the
last one ended when the next trusted boot began. Order and spacing are right; the error is the time for which
the machine was off.
"""

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gateway.domain import units
from gateway.domain.device import Device
from gateway.domain.objectid import new_object_id
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.times import HALF_MS
from gateway.drivers import BY_NAME, decode
from gateway.errors import DriverError
from gateway.intake.normalise import (
    CLOCK_CORRECTED,
    CLOCK_ESTIMATED,
    CLOCK_SUSPECT,
    COMMENT_REPEATED,
    normalise,
    with_flags,
)
from gateway.store.protocol import Store
from gateway.store.records import Boot, PendingRetime

log = logging.getLogger(__name__)

PAGE_READINGS = 200
"""Readings that are put right in one transaction: about 10 ms in which nothing else is stored."""

BETWEEN_BOOTS_MS = 1_000
"""Milliseconds between two boots at least: two readings of different boots share no second."""

UNCHANGED_MS = 1_000
"""Milliseconds by which a time must be off to be corrected."""


class Base(NamedTuple):
    """The milliseconds to add to the time since a boot to get Unix milliseconds."""

    boot: int
    offset_ms: int
    estimated: bool


def bases(boots: Sequence[Boot], known: int, offset_ms: int) -> Iterator[Base]:
    """Yield the base of each boot with pending readings, the boot `known` first, then earlier ones.

    `boots` are ordered, the latest first.
    """
    started_ms = offset_ms
    for boot in boots:
        found = offset_ms if boot.id == known else boot.offset_ms
        estimated = found is None
        if found is None:
            found = started_ms - BETWEEN_BOOTS_MS - (boot.last_ms or 0)
        started_ms = found
        if boot.last_ms is not None:
            yield Base(boot.id, found, estimated)


class Retiming:
    """Puts pending readings right; the lock `turn` keeps others from rewriting readings meanwhile."""

    def __init__(self, store: Store, turn: asyncio.Lock) -> None:
        self._store = store
        self._turn = turn

    async def settle(self, boot_id: int, offset_ms: int) -> int:
        """Put the times of pending readings and payloads right by this trusted boot; count the readings."""
        readings = 0
        async with self._turn:
            waiting = list(bases(await self._store.retiming.boots(), boot_id, offset_ms))
            if not waiting:
                return 0
            devices = {device.id: device for device in await self._store.devices.all()}
            for base in reversed(waiting):
                await self._store.retiming.retime_payloads(base.boot, base.offset_ms)
                while page := await self._store.retiming.page(base.boot, PAGE_READINGS):
                    for device_id in {found.device_id for found in page} - devices.keys():
                        # A forgotten device has no readings to come, but these need their right times, too.
                        if (forgotten := await self._store.devices.get(device_id)) is not None:
                            devices[device_id] = forgotten
                    changes = [(found, retimed(found, devices[found.device_id], base)) for found in page]
                    await self._store.retiming.retime(changes)
                    readings += len(page)
        if readings:
            log.info("clock: %d readings have their right times now", readings)
        return readings


def retimed(pending: PendingRetime, device: Device, base: Base) -> Reading:
    """Make the reading as it would be with a right clock, under an id that has the right time."""
    old = pending.stored.reading
    received_at = base.offset_ms + pending.arrival_time.monotonic_ms
    payload = Payload(
        pending.stored.raw,
        (received_at + HALF_MS) / 1000,
        pending.stored.channel,
        driver=old.source if old.source in BY_NAME else device.family,
        source=old.ip,
        label=device.ids_as(old.source)[0],
    )
    reading = _decoded(payload, pending, device) or _moved(old, received_at)
    if base.estimated:
        return with_flags(reading, [CLOCK_ESTIMATED])
    if abs(received_at - old.received_at) >= UNCHANGED_MS:
        return with_flags(reading, [CLOCK_CORRECTED])
    same = {name: getattr(old, name) for name in ("oid", "created_at", "received_at", "interval")}
    return reading._replace(**same)


def _decoded(payload: Payload, pending: PendingRetime, device: Device) -> Reading | None:
    """Decode the reading again from its bytes, which may have a time; None if that gives another reading."""
    old, place = pending.stored.reading, pending.arrival_time.place
    try:
        reports = decode(payload).reports
        if place >= len(reports) or not device.is_of(reports[place]):
            return None
        report = reports[place]
        # A reading without a time of its own keeps its age: the seconds from measuring to arrival.
        age_s = old.received_at // 1000 - old.created_at
        measured_at = None if report.measured_at is not None else int(payload.received_at) - age_s
        new, _ = normalise(report, device, payload, measured_at)
    except DriverError:
        return None
    except Exception:  # a mistake of ours must not stop the clock: the reading is moved as it is
        log.exception("clock: a reading of %s is not understood again", device.key)
        return None
    kept = [flag for flag in json.loads(old.flags or "[]") if flag == COMMENT_REPEATED]
    found = new._replace(name=old.name, comment=old.comment, beer=old.beer, extra=old.extra)
    return with_flags(found, kept)


def _moved(old: Reading, received_at: int) -> Reading:
    created_at = old.created_at + (received_at - old.received_at) // 1000
    flags = [flag for flag in json.loads(old.flags or "[]") if flag != CLOCK_SUSPECT]
    return old._replace(
        oid=new_object_id(created_at),
        created_at=created_at,
        received_at=received_at,
        interval=units.serial_day(created_at),
        flags=json.dumps(flags) if flags else None,
    )
