"""Notices within the process that something has changed; listeners read the store again.

Several notices may arrive as one.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

FOLLOW_S = 5.0
"""Seconds that a notifier waits at most until its change is followed."""


def finish(future: asyncio.Future[Any], outcome: Any) -> None:
    """Give a caller the result, or the exception; a caller that has gone away gets nothing."""
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


class StoredNotices:
    """Sets an event for every listener; an event that is set stays set."""

    def __init__(self) -> None:
        self._events: list[asyncio.Event] = []

    def listen(self) -> asyncio.Event:
        """Make an event for a new listener, who clears it before reading the store."""
        event = asyncio.Event()
        self._events.append(event)
        return event

    def notify(self) -> None:
        """Notify all listeners that readings, devices or brew sessions have changed."""
        for event in self._events:
            event.set()


class ChangeNotices:
    """Changes for one follower; a notifier waits until its change is followed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._is_followed = False
        self._given: list[asyncio.Event] = []

    async def notify(self) -> None:
        """Announce a change; return when it is followed, at once without a follower."""
        if not self._is_followed:
            return
        done = asyncio.Event()
        self._given.append(done)
        self._event.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(FOLLOW_S):
                await done.wait()

    async def follow(self) -> AsyncGenerator[None, None]:
        """Yield at the start and after each change; a change is followed when the next one is awaited."""
        self._is_followed = True
        given: list[asyncio.Event] = []
        try:
            while True:
                self._event.clear()
                given, self._given = self._given, []
                yield
                for done in given:
                    done.set()
                await self._event.wait()
        finally:
            self._is_followed = False
            for done in [*given, *self._given]:
                done.set()
