"""Notices within the process that something has changed; listeners read the store again.

Several notices may arrive as one.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

FOLLOW_S = 5.0
"""Seconds that a notifier waits at most until its change is followed."""

EVERYTHING = "everything"
"""The kind of a topic that stands for all others."""

KINDS = ("reading", "device", "brew", "quarantine", "sending", "alarm", "insight", "gateway")
"""Kinds of topics: readings of a brew or device, a device, a brew with its events, its figures, and so on."""

TOPICS = 256
"""Topics that one listener keeps; with more of them everything may have changed."""


def finish(future: asyncio.Future[Any], outcome: Any) -> None:
    """Give a caller the result, or the exception; a caller that has gone away gets nothing."""
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


class Topic(NamedTuple):
    """Something that changed: its kind, and the ids of the brew and the device that it is about.

    Kinds are those of `KINDS`.
    """

    kind: str
    brew: int | None = None
    device: int | None = None


class TopicListener:
    """The topics that changed since a listener took them last. However slow it is, they are bounded."""

    __slots__ = ("_event", "_everything", "_topics")

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._topics: set[Topic] = set()
        self._everything = False

    def add(self, topic: Topic) -> None:
        """Note a topic, or that everything may have changed where there is no room for it."""
        if topic.kind == EVERYTHING or len(self._topics) >= TOPICS:
            self._everything = True
            self._topics.clear()
        elif not self._everything:
            self._topics.add(topic)
        self._event.set()

    @property
    def has_topics(self) -> bool:
        """Return whether there is something to take."""
        return self._event.is_set()

    async def wait(self, seconds: float) -> bool:
        """Wait for topics; return whether there are any."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        return self._event.is_set()

    def take(self) -> list[Topic]:
        """Return the topics, of which the listener has none then."""
        taken = [Topic(EVERYTHING)] if self._everything else sorted(self._topics, key=str)
        self._topics.clear()
        self._everything = False
        self._event.clear()
        return taken


class StoredNotices:
    """Sets an event for every listener, which stays set, and gives others the topics of each change."""

    def __init__(self) -> None:
        self._events: list[asyncio.Event] = []
        self._listeners: list[TopicListener] = []
        self.count = 0  # by which a page says how much it has seen

    def listen(self) -> asyncio.Event:
        """Make an event for a new listener, who clears it before reading the store."""
        event = asyncio.Event()
        self._events.append(event)
        return event

    @contextmanager
    def follow(self) -> Iterator[TopicListener]:
        """Give a listener for topics, which gets none after the block."""
        listener = TopicListener()
        self._listeners.append(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)

    def notify(self, kind: str = EVERYTHING, *, brew: int | None = None, device: int | None = None) -> None:
        """Notify all listeners that readings, devices or brew sessions have changed."""
        for event in self._events:
            event.set()
        self.count += 1
        if self._listeners:  # nobody looks at a page most of the time, and this is the way of each reading
            self.publish(kind, brew=brew, device=device)

    def publish(self, kind: str, *, brew: int | None = None, device: int | None = None) -> None:
        """Tell the listeners for topics alone: nothing has changed that is to be sent on."""
        self.count += 1
        topic = Topic(kind, brew, device)
        for listener in self._listeners:
            listener.add(topic)


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
