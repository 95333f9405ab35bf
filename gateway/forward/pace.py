"""How often a target is asked: at most so many requests in any minute."""

from collections import deque

from gateway.clock import Clock

MINUTE_S = 60.0


class Pace:
    """Remembers when the last requests were; for one caller at a time."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._asked_at: deque[float] = deque(maxlen=per_minute)
        self._clock = clock

    async def turn(self) -> None:
        """Returns when the next request may go out, and counts it."""
        if len(self._asked_at) == self._asked_at.maxlen:
            wait = self._asked_at[0] + MINUTE_S - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
        self._asked_at.append(self._clock.monotonic())
