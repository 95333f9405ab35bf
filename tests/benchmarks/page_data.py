"""What the benchmarks of the page look at: twelve running brews, one of them with readings of a year."""

import asyncio
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gateway.clock import SystemClock
from gateway.domain.device import Device
from gateway.domain.key import ALL_SCOPES
from gateway.domain.objectid import new_object_id
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.services.brewsessions import SessionChange
from gateway.services.build import build_services
from gateway.store.records import Arrival
from gateway.store.sqlite.store import SqliteStore
from tests.benchmarks.payloads import device_id, device_name

BREWS = 12

FIRST_DEVICE = 100
"""The number of the first device: those of a load begin at 0 and are in no brew that is looked at."""

EVERY_S = 900
"""Seconds between two readings of a device."""

OTHERS = 10
"""The other brews together have half as many readings as the full one: each so small a part of it."""

TOGETHER = 512
"""Readings that wait for a commit at once."""


@dataclass(frozen=True, slots=True)
class Brewery:
    """The id of the full brew, those of all of them, and a key."""

    full: int
    brews: tuple[int, ...]
    key: str


def fill(directory: Path, readings: int) -> Brewery:
    """Make the brewery; the last readings are of this minute."""
    return asyncio.run(_fill(directory, readings))


async def _fill(directory: Path, readings: int) -> Brewery:
    store = SqliteStore(directory)
    await store.open()
    try:
        services = build_services(store, directory, SystemClock())
        await services.access.start()
        key = await services.access.add("benchmarks", ALL_SCOPES)
        brews = []
        for number in range(BREWS):
            count = readings if number == 0 else max(4, readings // OTHERS // 2)
            first_at = int(time.time()) - count * EVERY_S
            name = device_name(FIRST_DEVICE + number)
            report = Report(
                family="ispindel",
                stable_id=str(device_id(FIRST_DEVICE + number)),
                name=name,
                interval_s=EVERY_S,
            )
            device = await store.devices.save(Device.first_seen(report, first_at))
            session = await services.brewsessions.add_session(1, SessionChange(batchcode=f"BENCH{number:02}"))
            await store.devices.assign(device.id, session.id, None)
            brews.append(session.id)
            arrivals = arrivals_of(device, count, first_at)
            while some := list(islice(arrivals, TOGETHER)):
                await store.readings.add(some)
        return Brewery(brews[0], tuple(brews), key)
    finally:
        await store.close()


def arrivals_of(device: Device, count: int, first_at: int) -> Iterator[Arrival]:
    """Readings of a fermentation, a bit noisy, some of them with flags."""
    for number in range(count):
        at = first_at + number * EVERY_S
        plato = 2.5 + 12 * math.exp(-number / (count / 8)) + (number * 7 % 11) / 100
        flags = '["gravity_rate"]' if number % 97 == 96 else None
        sent = {"name": device.name, "ID": int(device.stable_id), "angle": 45.2, "gravity": plato}
        celsius = 19 + math.sin(number / 30)
        reading = Reading(
            oid=new_object_id(at), created_at=at, received_at=at * 1000, name=device.name,
            gravity=f"{plato:.4f}", gravity_unit="P", temp=f"{celsius:.2f}", temp_unit="C", comment="",
            beer="", interval=str(EVERY_S), source="iSpindel", ip="192.168.1.37", sg=1 + plato / 250,
            celsius=celsius, facts='{"angle":45.2,"battery":3.95,"rssi":-61}', flags=flags,
        )  # fmt: skip
        raw = json.dumps(sent).encode()
        yield Arrival(reading, device.key, raw, "http /ingest", None)
