"""Deliveries of the last moments, so that one that comes twice is one reading.

Devices do not retry, but bridges, brokers and networks repeat. The same bytes of the same device within a
window well below its interval are the same delivery; a quarter of an hour later they are a new reading.
"""

import asyncio
from collections import OrderedDict
from hashlib import blake2b

REMEMBERED = 8_192
"""Deliveries remembered at most, a minute of 136 a second; the oldest is forgotten first."""

WINDOW_S = 60.0
"""The window for a device that reports every 15 minutes."""

WINDOW_OF_UNKNOWN_S = 10.0
"""The window for a device that never said its interval; some bridges legitimately repeat after 30 s."""

INTERVAL_SHARE = 4
"""The window is at most this fraction of the device's interval."""

Key = bytes


def key_of(device_key: str, place: int, raw: bytes) -> Key:
    """What makes a delivery: the device, the bytes, and which of several readings in them."""
    return blake2b(raw, digest_size=16, key=f"{place} {device_key}".encode()[:64]).digest()


def window_s(interval_s: int | None) -> float:
    """How long the same bytes count as the same delivery, in seconds."""
    return WINDOW_OF_UNKNOWN_S if interval_s is None else min(WINDOW_S, interval_s / INTERVAL_SHARE)


class RecentDeliveries:
    """Deliveries by key, with the time (seconds of one clock) and the future that their commit resolves."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Key, tuple[float, asyncio.Future[None] | None]] = OrderedDict()

    def find(self, key: Key, now: float, window: float) -> tuple[bool, asyncio.Future[None] | None]:
        """Whether it was here within the window, and the future to wait for if it is not stored yet."""
        entry = self._seen.get(key)
        if entry is None:
            return False, None
        then, future = entry
        return (True, future) if abs(now - then) < window else (False, None)

    def remember(self, key: Key, now: float, future: asyncio.Future[None] | None) -> None:
        """Note a delivery; a future until it is stored, None from then on."""
        self._seen[key] = (now, future)
        self._seen.move_to_end(key)
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    def forget(self, key: Key) -> None:
        """It could not be stored: let the next attempt through."""
        self._seen.pop(key, None)
