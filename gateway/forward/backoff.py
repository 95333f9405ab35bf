"""How long to wait after a failure: full jitter, capped, and what Retry-After asks for. Pure."""

import re
from collections import deque
from datetime import UTC
from email.utils import parsedate_to_datetime

from gateway.clock import Clock

BASE_S = 1.0
"""Upper end of the first wait."""

CAP_S = 300.0
"""Upper end of every later wait: 5 minutes."""

RETRY_AFTER_CAP_S = 3600.0
"""A target may keep us away for an hour at most."""

_DOUBLINGS = 16
"""More than it takes to reach the cap, and few enough for a float after a year of failures."""

_SECONDS = re.compile(r"\s*([0-9]+)\s*\Z")
_SECONDS_DIGITS = 9
"""More digits than this are above the cap whatever they are; `int` refuses to read thousands of them."""


def full_jitter(failures: int, share: float) -> float:
    """The wait after that many failures in a row; `share` is drawn evenly from 0 to 1."""
    window = min(CAP_S, BASE_S * 2.0 ** min(max(failures - 1, 0), _DOUBLINGS))
    return share * window


def parse_retry_after(text: str | None, now: float) -> float | None:
    """Seconds from `now` (Unix time) on, capped; None where the header is absent, past or nonsense."""
    if text is None:
        return None
    if match := _SECONDS.match(text):
        digits = match[1].lstrip("0") or "0"
        return RETRY_AFTER_CAP_S if len(digits) > _SECONDS_DIGITS else min(float(digits), RETRY_AFTER_CAP_S)
    try:
        moment = parsedate_to_datetime(text)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):  # what the standard parser is known to raise
        return None
    return min(seconds, RETRY_AFTER_CAP_S) if seconds > 0 else None


class Backoff:
    """Failures in a row of one thing, and the monotonic time before which it is left alone."""

    def __init__(self) -> None:
        self.failures = 0
        self.until = 0.0

    def failed(self, now: float, share: float, retry_after_s: float | None = None) -> None:
        """One more failure. What the target asks for counts alone, unless it asks for next to nothing."""
        self.failures += 1
        wait = full_jitter(self.failures, share)
        if retry_after_s is not None:
            wait = retry_after_s if retry_after_s >= BASE_S else max(wait, retry_after_s)
        self.until = now + wait

    def wait_until(self, moment: float) -> None:
        """Leave it alone until then at least."""
        self.until = max(self.until, moment)

    def succeeded(self) -> None:
        """It works again."""
        self.failures = 0


MINUTE_S = 60.0


class RateLimiter:
    """Remembers when the last requests were; for one caller at a time."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._asked_at: deque[float] = deque(maxlen=per_minute)
        self._clock = clock

    async def acquire(self) -> None:
        """Returns when the next request may go out, and counts it."""
        if len(self._asked_at) == self._asked_at.maxlen:
            wait = self._asked_at[0] + MINUTE_S - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
        self._asked_at.append(self._clock.monotonic())
