"""The connections of all HTTP listeners: how many there may be, and how long each may take over a thing.

aiohttp has no deadline for a first byte, a head, a body or an answer that nobody reads. Each connection is
looked at once a second, which costs requests nothing.
"""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from gateway.errors import StoreUnavailable
from gateway.network import LOOPBACK, source_of
from gateway.stats import Stats

log = logging.getLogger(__name__)

CONNECTIONS = 1000
"""At once, of all HTTP listeners; each takes about 5 kB."""

OLDEST = 64
"""Connections that are looked at for one that can make room for another."""

SHARE_WAIT_S = 10.0
"""For one's turn among the requests of the same source."""


_TOO_SLOW_BODY = b'{"message": "failure", "detail": "the request took too long to arrive"}'
TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json; charset=utf-8\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(_TOO_SLOW_BODY)
) + _TOO_SLOW_BODY
"""What a client hears that was cut off in the midst of a request."""


class Phase(Enum):
    """What a connection is at, in words; what takes time on our side alone has no deadline."""

    FIRST_BYTE = "the first byte"
    HEAD = "the head of a request"
    BODY = "the body of a request"
    ANSWER = "reading an answer"
    IDLE = "the next request"
    CLOSING = "the end of a connection"
    HANDLING = "nothing"


WAITING = (Phase.FIRST_BYTE, Phase.HEAD, Phase.IDLE)
"""Whoever is at these has no request under way, and can make room for others, in this order."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Connections at once, also of one source; seconds for what a client may be slow at.

    A body, or an answer, gets more time for every byte that moves: at least `bytes_per_s` must.
    """

    connections: int = CONNECTIONS
    per_source: int = 32
    first_byte_s: float = 10.0
    head_s: float = 5.0
    body_s: float = 10.0
    answer_s: float = 60.0
    idle_s: float = 75.0
    closing_s: float = 10.0
    bytes_per_s: int = 16 * 1024
    look_s: float = 1.0

    def by_phase(self) -> Mapping[Phase, float]:
        """Seconds for each phase that has a deadline."""
        return {
            Phase.FIRST_BYTE: self.first_byte_s,
            Phase.HEAD: self.head_s,
            Phase.BODY: self.body_s,
            Phase.ANSWER: self.answer_s,
            Phase.IDLE: self.idle_s,
            Phase.CLOSING: self.closing_s,
        }


class Activity(NamedTuple):
    """What a connection is at, in which of its requests, and how many bytes have moved, from any start."""

    phase: Phase
    request: int
    moved: int


@dataclass(slots=True, eq=False)
class Connection:
    """A connection that was let in: its source, and its activity since when (seconds of the event loop).

    `look` tells what the connection is at; `cut` ends it: that took too long, or others need the room.
    """

    source: str
    look: Callable[[], Activity]
    cut: Callable[[Phase], None]
    doing: Activity
    since: float


class ConnectionLimiter:
    """Counts connections in and out, and cuts those that take too long."""

    def __init__(self, stats: Stats, bounds: ConnectionLimits | None = None) -> None:
        self.bounds = bounds or ConnectionLimits()
        self._stats = stats
        self._deadlines = self.bounds.by_phase()
        self._open: dict[Connection, None] = {}  # in the order in which they came
        self._sources: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def admit(
        self, address: str, look: Callable[[], Activity], cut: Callable[[Phase], None]
    ) -> Connection | None:
        """Let a new connection from this address in; None if there is no room. One that waits may make some.

        `look` and `cut` are those of the `Connection`.
        """
        source = source_of(address)
        if source not in LOOPBACK and self._sources[source] >= self.bounds.per_source:
            self._refuse("http: %s has %d connections and gets no more", source, self._sources[source])
            return None
        if len(self._open) >= self.bounds.connections and not self._make_room(source):
            self._refuse("http: %s gets no connection: there are %d already", source, len(self._open))
            return None
        loop = asyncio.get_running_loop()
        connection = Connection(source, look, cut, Activity(Phase.FIRST_BYTE, 0, 0), loop.time())
        self._open[connection] = None
        self._sources[source] += 1
        self._stats.connections = len(self._open)
        if self._timer is None:
            self._timer = loop.call_later(self.bounds.look_s, self._look)
        return connection

    def leave(self, connection: Connection) -> None:
        """Count a connection out that has ended; one that has left already makes no difference."""
        if connection not in self._open:
            return
        del self._open[connection]
        self._sources[connection.source] -= 1
        if not self._sources[connection.source]:
            del self._sources[connection.source]
        self._stats.connections = len(self._open)
        if not self._open and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, words: str, source: str, count: int) -> None:
        self._stats.connections_refused += 1
        log.warning(words, source, count)

    def _make_room(self, newcomer: str) -> bool:
        victim = self._of_the_greediest(newcomer) or self._longest_waiting(newcomer)
        if victim is None:
            return False
        self._stats.connections_cut += 1
        self.leave(victim)
        victim.cut(victim.look().phase)
        return True

    def _of_the_greediest(self, newcomer: str) -> Connection | None:
        """One of the source that has most, if that is more than the newcomer's has."""
        others = ((count, source) for source, count in self._sources.items() if source not in LOOPBACK)
        count, greediest = max(others, default=(0, ""))
        if count <= max(1, self._sources[newcomer]):
            return None
        theirs = (each for each in self._open if each.source == greediest)
        return next((each for each in theirs if each.look().phase in (*WAITING, Phase.BODY)), None)

    def _longest_waiting(self, newcomer: str) -> Connection | None:
        """Rather one that never had a request than one kept for the next; our own for ourselves alone."""
        spared = frozenset() if newcomer in LOOPBACK else LOOPBACK
        others = (each for each in self._open if each.source not in spared)
        oldest = [(each.look().phase, each) for each in itertools.islice(others, OLDEST)]
        return next((each for first in WAITING for phase, each in oldest if phase is first), None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._timer = loop.call_later(self.bounds.look_s, self._look)
        for connection in list(self._open):
            doing, before = connection.look(), connection.doing
            if doing.phase is not before.phase or doing.request != before.request:
                connection.doing, connection.since = doing, now
            elif now - connection.since > self._allowed_s(before, doing):
                if doing.phase is not Phase.IDLE and doing.phase is not Phase.CLOSING:
                    self._stats.connections_cut += 1
                    log.info("http: %s was cut off, too slow with %s", connection.source, doing.phase.value)
                connection.cut(doing.phase)

    def _allowed_s(self, then: Activity, now: Activity) -> float:
        allowed = self._deadlines.get(now.phase, float("inf"))
        if now.phase in {Phase.BODY, Phase.ANSWER}:
            allowed += max(0, now.moved - then.moved) / self.bounds.bytes_per_s
        return allowed


class Shares:
    """So many at a time for one source; others wait their turn, `StoreUnavailable` after `wait_s`."""

    def __init__(self, each: int, wait_s: float = SHARE_WAIT_S) -> None:
        self._each = each
        self._wait_s = wait_s
        self._sources: dict[str, tuple[asyncio.Semaphore, Counter[str]]] = {}

    @asynccontextmanager
    async def hold(self, address: str) -> AsyncIterator[None]:
        """One share of the source that the address belongs to."""
        source = source_of(address)
        shares, users = self._sources.setdefault(source, (asyncio.Semaphore(self._each), Counter()))
        users[source] += 1
        try:
            await self._take(shares)
            try:
                yield
            finally:
                shares.release()
        finally:
            users[source] -= 1
            if not users[source]:
                del self._sources[source]

    async def _take(self, shares: asyncio.Semaphore) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await shares.acquire()
        except TimeoutError as error:
            raise StoreUnavailable("too many long reads at once from this address") from error
