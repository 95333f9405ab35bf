"""Limits for the connections of all HTTP listeners: how many at once, and how long each phase may take.

aiohttp has no deadline for a first byte, a head, a body or an answer that nobody reads. Each connection is
checked once a second, which costs requests nothing.
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
from gateway.http.hardening import SAFE_LINES
from gateway.network import LOOPBACK, NO_PROXIES, TrustedProxies, source_of
from gateway.stats import Stats

log = logging.getLogger(__name__)

CONNECTIONS = 1000
"""Connections of all HTTP listeners at once; each takes about 5 kB."""

TLS_CONNECTIONS, TLS_PER_SOURCE = 64, 16
"""TLS connections of all HTTP listeners at once, and of one source, within the limits for all connections.

Each takes 60 kB: 4 MB in all. A browser opens six.
"""

OLDEST = 64
"""Oldest connections that are searched for one that can make room for another."""

SHARE_WAIT_S = 10.0
"""Seconds that a request waits for its turn among the requests of the same source."""


_TOO_SLOW_BODY = b'{"message": "failure", "detail": "the request took too long to arrive"}'
TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json; charset=utf-8\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n%b\r\n" % (len(_TOO_SLOW_BODY), SAFE_LINES)
) + _TOO_SLOW_BODY
"""The answer to a client that is cut off in the middle of a request."""


class Phase(Enum):
    """The thing that a connection waits for, in words. Work on our side alone has no deadline."""

    HANDSHAKE = "the TLS handshake"
    FIRST_BYTE = "the first byte"
    HEAD = "the head of a request"
    BODY = "the body of a request"
    ANSWER = "reading an answer"
    IDLE = "the next request"
    STREAM = "news"
    CLOSING = "the end of a connection"
    HANDLING = "nothing"


WAITING = (Phase.STREAM, Phase.HANDSHAKE, Phase.FIRST_BYTE, Phase.HEAD, Phase.IDLE)
"""Phases in which connections make room for others, in this order.

A stream of events first, because a page begins another one by itself. The others have no complete request.
"""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits on connections at once, in all and for one source, and on the seconds that a phase may take.

    A body or an answer gets one more second for every `bytes_per_s` bytes that move. The TLS server itself
    ends a handshake that takes too long.
    """

    connections: int = CONNECTIONS
    per_source: int = 32
    tls_connections: int = TLS_CONNECTIONS
    tls_per_source: int = TLS_PER_SOURCE
    first_byte_s: float = 10.0
    head_s: float = 5.0
    body_s: float = 10.0
    answer_s: float = 60.0
    idle_s: float = 75.0
    closing_s: float = 10.0
    bytes_per_s: int = 16 * 1024
    look_s: float = 1.0

    def by_phase(self) -> Mapping[Phase, float]:
        """Return the seconds for each phase that has a deadline."""
        return {
            Phase.FIRST_BYTE: self.first_byte_s,
            Phase.HEAD: self.head_s,
            Phase.BODY: self.body_s,
            Phase.ANSWER: self.answer_s,
            Phase.IDLE: self.idle_s,
            Phase.CLOSING: self.closing_s,
        }


class Activity(NamedTuple):
    """The phase of a connection, the number of its request, and a count of moved bytes, from any start."""

    phase: Phase
    request: int
    moved: int


@dataclass(slots=True, eq=False)
class Connection:
    """An admitted connection: its source, its activity, and the start of that (seconds of the event loop).

    `look` returns the activity of this moment. `cut` ends a connection that is too slow or must make room.
    """

    source: str
    tls: bool
    look: Callable[[], Activity]
    cut: Callable[[Phase], None]
    doing: Activity
    since: float


class Crowd:
    """Open connections that share a limit, the oldest first, and the number of them for each source."""

    def __init__(self, limit: int, per_source: int) -> None:
        self.limit = limit
        self.per_source = per_source
        self.open: dict[Connection, None] = {}
        self.sources: Counter[str] = Counter()

    def add(self, connection: Connection) -> None:
        """Count a connection in."""
        self.open[connection] = None
        self.sources[connection.source] += 1

    def remove(self, connection: Connection) -> None:
        """Count a connection out."""
        del self.open[connection]
        self.sources[connection.source] -= 1
        if not self.sources[connection.source]:
            del self.sources[connection.source]


class ConnectionLimiter:
    """A limiter that counts connections in and out, and cuts the slow ones."""

    def __init__(
        self, stats: Stats, bounds: ConnectionLimits | None = None, proxies: TrustedProxies = NO_PROXIES
    ) -> None:
        self.bounds = bounds or ConnectionLimits()
        self._proxies = proxies
        self._stats = stats
        self._deadlines = self.bounds.by_phase()
        self._all = Crowd(self.bounds.connections, self.bounds.per_source)
        self._tls = Crowd(self.bounds.tls_connections, self.bounds.tls_per_source)
        self._timer: asyncio.TimerHandle | None = None

    def admit(
        self, address: str, look: Callable[[], Activity], cut: Callable[[Phase], None], *, tls: bool = False
    ) -> Connection | None:
        """Admit a new connection from this address, or return None if there is no room.

        A waiting connection may be cut to make room. `look` and `cut` become members of the `Connection`.
        """
        # A proxy by its own address, not by its network: a neighbour of the proxy has the ordinary share.
        source = address if address in self._proxies else source_of(address)
        crowds = (self._tls, self._all) if tls else (self._all,)
        for crowd in crowds:
            if self._has_share(source) and crowd.sources[source] >= crowd.per_source:
                self._refuse("http: %s has %d connections and gets no more", source, crowd.sources[source])
                return None
        for crowd in crowds:
            if len(crowd.open) >= crowd.limit and not self._make_room(crowd, source):
                self._refuse("http: %s gets no connection: there are %d already", source, len(crowd.open))
                return None
        loop = asyncio.get_running_loop()
        connection = Connection(source, tls, look, cut, look(), loop.time())
        for crowd in crowds:
            crowd.add(connection)
        self._stats.connections = len(self._all.open)
        if self._timer is None:
            self._timer = loop.call_later(self.bounds.look_s, self._look)
        return connection

    def leave(self, connection: Connection) -> None:
        """Count an ended connection out. Do nothing if that was done already."""
        if connection not in self._all.open:
            return
        self._all.remove(connection)
        if connection.tls:
            self._tls.remove(connection)
        self._stats.connections = len(self._all.open)
        if not self._all.open and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _has_share(self, source: str) -> bool:
        """Return whether a source has a bounded share: all but this machine and trusted proxies."""
        return source not in LOOPBACK and source not in self._proxies

    def _is_spared(self, source: str) -> bool:
        """Return whether a source makes no room for others: this machine, unless its proxy lets others in."""
        return source in LOOPBACK and source not in self._proxies

    def _refuse(self, words: str, source: str, count: int) -> None:
        self._stats.connections_refused += 1
        log.warning(words, source, count)

    def _make_room(self, crowd: Crowd, newcomer: str) -> bool:
        victim = self._of_the_greediest(crowd, newcomer) or self._longest_waiting(crowd, newcomer)
        if victim is None:
            return False
        self._stats.connections_cut += 1
        self.leave(victim)
        victim.cut(victim.look().phase)
        return True

    def _of_the_greediest(self, crowd: Crowd, newcomer: str) -> Connection | None:
        """Find a connection of the source with the most, if that source has more than the newcomer's."""
        others = ((count, source) for source, count in crowd.sources.items() if not self._is_spared(source))
        count, greediest = max(others, default=(0, ""))
        if count <= max(1, crowd.sources[newcomer]):
            return None
        theirs = (each for each in crowd.open if each.source == greediest)
        return next((each for each in theirs if each.look().phase in (*WAITING, Phase.BODY)), None)

    def _longest_waiting(self, crowd: Crowd, newcomer: str) -> Connection | None:
        """Find an old connection by the order of `WAITING`.

        A connection of this machine makes room for this machine alone. A proxy takes the room from its own.
        """
        if newcomer in self._proxies:
            others = (each for each in crowd.open if each.source == newcomer)
        else:
            spares = not self._is_spared(newcomer)
            others = (each for each in crowd.open if not (spares and self._is_spared(each.source)))
        oldest = [(each.look().phase, each) for each in itertools.islice(others, OLDEST)]
        return next((each for first in WAITING for phase, each in oldest if phase is first), None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._timer = loop.call_later(self.bounds.look_s, self._look)
        for connection in list(self._all.open):
            doing, before = connection.look(), connection.doing
            if doing.phase is not before.phase or doing.request != before.request:
                connection.doing, connection.since = doing, now
            elif now - connection.since > self._allowed_s(before, doing):
                # The end of an idle or closing connection is ordinary: no count, no line in the log.
                # A connection over TLS without a request is, too: GravityMon tries TLS out that way.
                probe = connection.tls and doing.phase is Phase.FIRST_BYTE
                if doing.phase is not Phase.IDLE and doing.phase is not Phase.CLOSING and not probe:
                    self._stats.connections_cut += 1
                    log.info("http: %s was cut off, too slow with %s", connection.source, doing.phase.value)
                connection.cut(doing.phase)

    def _allowed_s(self, then: Activity, now: Activity) -> float:
        allowed = self._deadlines.get(now.phase, float("inf"))
        if now.phase in {Phase.BODY, Phase.ANSWER}:
            allowed += max(0, now.moved - then.moved) / self.bounds.bytes_per_s
        return allowed


class Shares:
    """A limit on requests at once for each source. Further ones wait: `StoreUnavailable` after `wait_s`."""

    def __init__(self, each: int, wait_s: float = SHARE_WAIT_S) -> None:
        self._each = each
        self._wait_s = wait_s
        self._sources: dict[str, tuple[asyncio.Semaphore, Counter[str]]] = {}

    @asynccontextmanager
    async def hold(self, address: str) -> AsyncIterator[None]:
        """Hold a share of the source that the address belongs to, while the block runs."""
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
            raise StoreUnavailable("too many long requests at once from this address") from error
