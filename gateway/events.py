"""In-process notices that something has changed; lossy by design, listeners read the store again."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

FOLLOW_S = 5.0
"""Whoever gives word of a change waits no longer for it to be followed."""


class StoredNotices:
    """Rings a bell at every listener. A bell that already rings is not rung twice."""

    def __init__(self) -> None:
        self._bells: list[asyncio.Event] = []

    def listen(self) -> asyncio.Event:
        """A bell for one listener, who clears it before looking."""
        bell = asyncio.Event()
        self._bells.append(bell)
        return bell

    def notify(self) -> None:
        """Say that readings, devices or brew sessions changed."""
        for bell in self._bells:
            bell.set()


class ChangeNotices:
    """Word of changes for the one who follows them; who gives it may rely on it afterwards."""

    def __init__(self) -> None:
        self._bell = asyncio.Event()
        self._is_followed = False
        self._given: list[asyncio.Event] = []

    async def notify(self) -> None:
        """There was a change; returns when it is followed, and at once where nobody does."""
        if not self._is_followed:
            return
        done = asyncio.Event()
        self._given.append(done)
        self._bell.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(FOLLOW_S):
                await done.wait()

    async def follow(self) -> AsyncGenerator[None, None]:
        """Once at first and after each change, which counts as followed when the next is asked for."""
        self._is_followed = True
        given: list[asyncio.Event] = []
        try:
            while True:
                self._bell.clear()
                given, self._given = self._given, []
                yield
                for done in given:
                    done.set()
                await self._bell.wait()
        finally:
            self._is_followed = False
            for done in [*given, *self._given]:
                done.set()
