"""Deliveries of the last moments, so that one that comes twice is one reading.

Devices do not retry, but bridges, brokers and networks repeat. The same bytes of the same device within a
window well below its interval are the same delivery; a quarter of an hour later they are a new reading.
"""

import asyncio
from hashlib import blake2b

REMEMBERED = 4_096
"""Deliveries remembered at least, a minute of 68 a second; twice as many at most."""

WINDOW_S = 60.0
"""The window for a device that reports every 15 minutes."""

WINDOW_OF_UNKNOWN_S = 10.0
"""The window for a device that never said its interval; some bridges legitimately repeat after 30 s."""

INTERVAL_SHARE = 4
"""The window is at most this fraction of the device's interval."""

Key = bytes
Entry = tuple[float, asyncio.Future[None] | None]


def key_of(device_key: str, place: int, raw: bytes) -> Key:
    """What makes a delivery: the device, the bytes, and which of several readings in them."""
    return blake2b(raw, digest_size=16, key=f"{place} {device_key}".encode()[:64]).digest()


def window_s(interval_s: int | None) -> float:
    """How long the same bytes count as the same delivery, in seconds."""
    return WINDOW_OF_UNKNOWN_S if interval_s is None else min(WINDOW_S, interval_s / INTERVAL_SHARE)


class Deduplicator:
    """Deliveries by key, with the time (seconds of one clock) and the future that their commit resolves.

    When the newer half is full the older one is dropped whole: a table that loses its oldest entry with each
    new one is built anew again and again, and the memory of the process grows with the holes.
    """

    def __init__(self) -> None:
        self._newer: dict[Key, Entry] = {}
        self._older: dict[Key, Entry] = {}

    def find(self, key: Key, now: float, window: float) -> tuple[bool, asyncio.Future[None] | None]:
        """Whether it was here within the window, and the future to wait for if it is not stored yet."""
        entry = self._newer.get(key) or self._older.get(key)
        if entry is None:
            return False, None
        then, future = entry
        return (True, future) if abs(now - then) < window else (False, None)

    def remember(self, key: Key, now: float, future: asyncio.Future[None] | None) -> None:
        """Note a delivery; a future until it is stored, None from then on."""
        self._newer[key] = (now, future)
        if len(self._newer) == REMEMBERED:
            self._newer, self._older = {}, self._newer

    def forget(self, key: Key) -> None:
        """It could not be stored: let the next attempt through."""
        self._newer.pop(key, None)
        self._older.pop(key, None)
