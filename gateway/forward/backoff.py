"""Waits between requests: after failures (full jitter, capped, Retry-After), and to bound their number."""

import re
from collections import deque
from datetime import UTC
from email.utils import parsedate_to_datetime

from gateway.clock import Clock

BASE_S = 1.0
"""Upper end of the first wait, in seconds."""

CAP_S = 300.0
"""Upper end of every later wait, in seconds: 5 minutes."""

RETRY_AFTER_CAP_S = 3600.0
"""A Retry-After counts as this many seconds at most: an hour."""

_DOUBLINGS = 16
"""Doublings at most: more than it takes to reach the cap, and few enough for a float."""

_SECONDS = re.compile(r"\s*([0-9]+)\s*\Z")
_SECONDS_DIGITS = 9
"""A number with more digits is above the cap; `int` refuses to read thousands of digits."""


def full_jitter(failures: int, share: float) -> float:
    """Return the seconds to wait after `failures` in a row; `share` is drawn evenly from 0 to 1."""
    window = min(CAP_S, BASE_S * 2.0 ** min(max(failures - 1, 0), _DOUBLINGS))
    return share * window


def parse_retry_after(text: str | None, now: float) -> float | None:
    """Return the seconds after `now` (Unix time), capped; None for a header without a usable time."""
    if text is None:
        return None
    if match := _SECONDS.match(text):
        digits = match[1].lstrip("0") or "0"
        return RETRY_AFTER_CAP_S if len(digits) > _SECONDS_DIGITS else min(float(digits), RETRY_AFTER_CAP_S)
    try:
        moment = parsedate_to_datetime(text)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):  # all that the standard parser raises
        return None
    return min(seconds, RETRY_AFTER_CAP_S) if seconds > 0 else None


class Backoff:
    """Counts failures in a row; `until` is the monotonic time of the next try."""

    def __init__(self) -> None:
        self.failures = 0
        self.until = 0.0

    def failed(self, now: float, share: float, retry_after_s: float | None = None) -> None:
        """Count a failure and set `until`, from the target's Retry-After if it sent one."""
        self.failures += 1
        wait = full_jitter(self.failures, share)
        if retry_after_s is not None:
            # Next to nothing does not replace our own wait, or "Retry-After: 0" would have us ask for ever.
            wait = retry_after_s if retry_after_s >= BASE_S else max(wait, retry_after_s)
        self.until = now + wait

    def wait_until(self, moment: float) -> None:
        """Wait until that monotonic time at least."""
        self.until = max(self.until, moment)

    def succeeded(self) -> None:
        """Reset the count after a success."""
        self.failures = 0


MINUTE_S = 60.0


class RateLimiter:
    """Bounds the requests a minute, by the times of the last ones. For one caller at a time."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._requested_at: deque[float] = deque(maxlen=per_minute)
        self._clock = clock

    async def acquire(self) -> None:
        """Wait until the next request may be sent, and count it."""
        if len(self._requested_at) == self._requested_at.maxlen:
            wait = self._requested_at[0] + MINUTE_S - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
        self._requested_at.append(self._clock.monotonic())
