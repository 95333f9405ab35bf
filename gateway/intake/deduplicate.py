"""Deliveries of the last moments: a delivery that arrives twice is stored once.

Devices do not retry, but bridges, brokers and networks repeat. The same bytes of the same device within a
window well below its interval are the same delivery; a quarter of an hour later they are a new reading.
"""

import asyncio
from hashlib import blake2b

REMEMBERED = 4_096
"""Deliveries that are remembered at least, twice as many at most; enough for 68 a second in a minute."""

WINDOW_S = 60.0
"""The window in seconds for a device that reports every 15 minutes."""

WINDOW_OF_UNKNOWN_S = 10.0
"""The window in seconds without a known interval; some bridges post equal readings every 30 s."""

INTERVAL_SHARE = 4
"""The window is at most the device's interval divided by this."""

Key = bytes
Entry = tuple[float, asyncio.Future[None] | None]


def key_of(device_key: str, place: int, raw: bytes) -> Key:
    """Return the key of a delivery: made of device, bytes, and the place of a reading in the bytes."""
    return blake2b(raw, digest_size=16, key=f"{place} {device_key}".encode()[:64]).digest()


def window_s(interval_s: int | None) -> float:
    """Return for how many seconds equal bytes of a device with this interval are the same delivery."""
    return WINDOW_OF_UNKNOWN_S if interval_s is None else min(WINDOW_S, interval_s / INTERVAL_SHARE)


class Deduplicator:
    """Deliveries by key, with the time (seconds of one clock) and the future that their commit resolves.

    When the newer half is full the older one is dropped whole: a table that loses its oldest entry with each
    new one is built anew again and again, and the memory of the process grows with the holes.
    """

    def __init__(self) -> None:
        self._newer: dict[Key, Entry] = {}
        self._older: dict[Key, Entry] = {}

    def check(self, key: Key, now: float, window: float) -> tuple[bool, asyncio.Future[None] | None]:
        """Return whether an equal delivery arrived within the last `window` seconds, and its commit's future.

        The future is None if the earlier copy is stored already.
        """
        entry = self._newer.get(key) or self._older.get(key)
        if entry is None:
            return False, None
        then, future = entry
        return (True, future) if abs(now - then) < window else (False, None)

    def remember(self, key: Key, now: float, future: asyncio.Future[None] | None) -> None:
        """Remember a delivery, with the future of its commit, or None once it is stored."""
        self._newer[key] = (now, future)
        if len(self._newer) == REMEMBERED:
            self._newer, self._older = {}, self._newer

    def forget(self, key: Key) -> None:
        """Forget a delivery that could not be stored: the next attempt must get through."""
        self._newer.pop(key, None)
        self._older.pop(key, None)
