"""A clock that stands still until a test moves it."""

import asyncio
from collections.abc import Callable

from tests.patience import PATIENCE_S


class FakeClock:
    """Wall time and monotonic time move together by `advance`; `jump` moves the wall clock alone."""

    def __init__(self, now: float = 1_770_000_000.0) -> None:
        self._now = now
        self._monotonic = 1000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._fell_asleep = asyncio.Event()

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        sleeper = (self._monotonic + seconds, asyncio.get_running_loop().create_future())
        self._sleepers.append(sleeper)
        self._fell_asleep.set()
        try:
            await sleeper[1]
        finally:
            self._sleepers.remove(sleeper)

    @property
    def naps(self) -> list[float]:
        """For how much longer each sleeper wants to sleep."""
        return [until - self._monotonic for until, future in self._sleepers if not future.done()]

    def advance(self, seconds: float) -> None:
        """Let time pass and wake whose time has come."""
        self._now += seconds
        self._monotonic += seconds
        for until, future in self._sleepers:
            if until <= self._monotonic and not future.done():
                future.set_result(None)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back; nobody wakes."""
        self._now += seconds

    async def someone_sleeps(self) -> float:
        """Wait until anyone sleeps; the shortest nap."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.naps:
                self._fell_asleep.clear()
                await self._fell_asleep.wait()
        return min(self.naps)

    async def run_until(self, true: Callable[[], bool]) -> None:
        """Let time pass, from one waking to the next, until it is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                if self.naps:
                    self.advance(min(self.naps))
                await asyncio.sleep(0)
