"""Wall time and monotonic time behind one small protocol, so that tests can set the clock."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """What the gateway asks of a clock; seconds throughout."""

    def now(self) -> float:
        """Unix time in seconds; may jump."""

    def monotonic(self) -> float:
        """Seconds that never jump; the only base of waits and deadlines."""

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds of monotonic time."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Unix time in seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since an arbitrary start."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        await asyncio.sleep(seconds)
