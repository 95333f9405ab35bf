"""Deliveries of the last moments: a delivery that arrives twice is stored once.

Devices do not retry, but bridges, brokers and networks repeat. The same bytes of the same device within a
window well below its interval are the same delivery; a quarter of an hour later they are a new reading.
"""

import asyncio
from collections.abc import Iterable
from hashlib import blake2b

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.domain.units import SECONDS_PER_DAY
from gateway.intake.devices import TrackedDevice
from gateway.intake.normalise import time_of
from gateway.store.protocol import Store

REMEMBERED = 4_096
"""Deliveries that are remembered at least, twice as many at most; enough for 68 a second in a minute."""

WINDOW_S = 60.0
"""The window in seconds for a device that reports every 15 minutes."""

WINDOW_OF_UNKNOWN_S = 10.0
"""The window in seconds without a known interval; some bridges post equal readings every 30 s."""

INTERVAL_SHARE = 4
"""The window is at most the device's interval divided by this."""

Key = bytes


class Commit:
    """The commit of a delivery that is being stored. Only a copy of the delivery makes a future of it."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Wait until the delivery is stored; raise the error if it is not."""
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._future)

    def settle(self, error: BaseException | None) -> None:
        """End the waiting of copies, with the error if the delivery is not stored."""
        if self._future is None:
            return
        if error is None:
            self._future.set_result(None)
        else:
            self._future.set_exception(error)
            self._future.exception()  # seen: the copies may have gone away


Entry = tuple[float, Commit | None]


def key_of(device_key: str, place: int, raw: bytes) -> Key:
    """Return the key of a delivery: made of device, bytes, and the place of a reading in the bytes."""
    return blake2b(raw, digest_size=16, key=f"{place} {device_key}".encode()[:64]).digest()


def window_s(interval_s: int | None) -> float:
    """Return for how many seconds equal bytes of a device with this interval are the same delivery."""
    return WINDOW_OF_UNKNOWN_S if interval_s is None else min(WINDOW_S, interval_s / INTERVAL_SHARE)


class Deduplicator:
    """Deliveries by key, with the time (seconds of one clock) and their commit.

    When the newer half is full the older one is dropped whole: a table that loses its oldest entry with each
    new one is built anew again and again, and the memory of the process grows with the holes.
    """

    def __init__(self) -> None:
        self._newer: dict[Key, Entry] = {}
        self._older: dict[Key, Entry] = {}

    def check(self, key: Key, now: float, window: float) -> tuple[bool, Commit | None]:
        """Return whether an equal delivery arrived within the last `window` seconds, and its commit.

        The commit is None if the earlier copy is stored already.
        """
        entry = self._newer.get(key) or self._older.get(key)
        if entry is None:
            return False, None
        then, commit = entry
        return (True, commit) if abs(now - then) < window else (False, None)

    def remember(self, key: Key, now: float, commit: Commit | None) -> None:
        """Remember a delivery, with its commit, or None once it is stored."""
        self._newer[key] = (now, commit)
        if commit is None:
            self._older.pop(key, None)  # else it would keep the commit, with all that waited for it
        if len(self._newer) == REMEMBERED:
            self._newer, self._older = {}, self._newer

    def clear(self) -> None:
        """Forget every delivery that is stored; the ones under way stay."""
        both = {**self._older, **self._newer}
        self._newer, self._older = {key: entry for key, entry in both.items() if entry[1] is not None}, {}

    def forget(self, key: Key) -> None:
        """Forget a delivery that could not be stored: the next attempt must get through."""
        self._newer.pop(key, None)
        self._older.pop(key, None)


def raw_of(payload: Payload, report: Report | None = None) -> bytes:
    """Return the bytes to keep: the report's own part of the body, else the body, or the query of a GET."""
    if report is not None and report.raw is not None:
        return report.raw
    return payload.body or payload.query.encode()


def delivery_key(payload: Payload, report: Report, place: int) -> bytes:
    """Return the key of a report for the deduplicator; `place` is its number in the payload.

    A report of a list has a key without its place: after a failed post it comes again in a longer list.
    """
    raw = raw_of(payload, report)
    return key_of(report.device_key, place if report.raw is None else 0, raw)


def delivery_window_s(report: Report, device: TrackedDevice | None, received_at: float) -> float:
    """Return for how many seconds equal bytes are the same delivery."""
    # Longer with a time of the device in the bytes: then two readings never have equal bytes.
    if has_clock(report, received_at):
        return WINDOW_S
    return window_s(report.interval_s or (device.device.interval_s if device else None))


def has_clock(report: Report, received_at: float) -> bool:
    """Return whether the report has a plausible time of its device."""
    has_time = report.device_time is not None or report.measured_at is not None
    return has_time and not time_of(report, received_at)[1]


async def is_news(store: Store, payload: Payload, report: Report) -> bool:
    """Return whether a retained message is newer, by its device's clock, than all stored readings."""
    measured_at, suspect = time_of(report, payload.received_at)
    if report.measured_at is None or suspect:
        return False
    latest = await store.payloads.latest_at(report.device_key)
    return latest is None or measured_at > latest


async def find_stored(
    store: Store, payload: Payload, reports: Iterable[Report]
) -> set[tuple[str, bytes | None]]:
    """Find the reports of a list that are stored already; return their device keys and bytes.

    A bridge posts its whole list until it gets a yes, so a report may come again after any time. Only reports
    with a time of their own are looked up: the time identifies them.
    """
    parts: dict[str, list[tuple[int, bytes]]] = {}
    for report in reports:
        if report.raw is not None and has_clock(report, payload.received_at):
            measured_at, _ = time_of(report, payload.received_at)
            parts.setdefault(report.device_key, []).append((measured_at, report.raw))
    found: set[tuple[str, bytes | None]] = set()
    for key, timed in parts.items():
        since = min(measured_at for measured_at, _ in timed) - SECONDS_PER_DAY
        raws = [raw for _, raw in timed]
        found.update((key, raw) for raw in await store.payloads.find_stored(key, since, raws))
    return found
