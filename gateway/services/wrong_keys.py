"""Keys that do not fit: counts, a bound for each source, and a line in the log now and then."""

import logging
from collections.abc import Iterable
from typing import NamedTuple

from gateway.clock import Clock
from gateway.logs import RareLines
from gateway.network import Peer, TokenBuckets
from gateway.stats import Stats

log = logging.getLogger(__name__)

WRONG_KEY_RATE, WRONG_KEY_BURST = 10 / 60, 10.0
"""Requests of one source without a key that fits: each second in the long run, and at once.

Loopback has the same bound: a reverse proxy may stand there. The bound is only for wrong keys, so that they
never lock the owner of a right key out.
"""


SOURCES_IN_MEMORY = 100
"""Sources whose wrong keys are counted one by one until the next note; more are counted together."""

OTHER_SOURCES = "other addresses"


class WrongKeyCount(NamedTuple):
    """Keys of one source that did not fit, and the first of them (Unix seconds)."""

    source: str
    first_at: int
    times: int


class WrongKeys:
    """The requests without a key that fits, of all doors together."""

    def __init__(self, clock: Clock, stats: Stats, burst: float = WRONG_KEY_BURST) -> None:
        self._clock = clock
        self._stats = stats
        self._buckets = TokenBuckets(WRONG_KEY_RATE, burst)
        self._lines = RareLines(clock.monotonic)
        self._counts: dict[str, WrongKeyCount] = {}

    def take(self, peer: Peer, *, shown: bool) -> float:
        """Count a request without a key that fits. Return 0, or the seconds that the peer has to wait.

        `shown` says that the request has a key, which does not fit.
        """
        self._stats.wrong_keys += 1
        if shown:
            self._add(WrongKeyCount(peer.source, int(self._clock.now()), 1))
        if shown and (count := self._lines.due(peer.source)):
            if count == 1:
                log.warning("keys: %s sent a key that does not fit", peer.address or "?")
            else:
                log.warning("keys: %s sent %d more keys that do not fit", peer.address or "?", count)
        if peer.is_loopback and not shown:
            return 0.0  # no key at all guesses nothing, and a script that polls here harms only itself
        return self._buckets.take(peer.source, self._clock.monotonic())

    def counts(self) -> list[WrongKeyCount]:
        """Hand over the counts since the last call, for the audit log."""
        counts, self._counts = self._counts, {}
        return [*counts.values()]

    def put_back(self, counts: Iterable[WrongKeyCount]) -> None:
        """Take counts back that could not be written."""
        for count in counts:
            self._add(count)

    def _add(self, count: WrongKeyCount) -> None:
        source = count.source
        if source not in self._counts and len(self._counts) >= SOURCES_IN_MEMORY:
            source = OTHER_SOURCES
        before = self._counts.get(source, WrongKeyCount(source, count.first_at, 0))
        first_at = min(before.first_at, count.first_at)
        self._counts[source] = WrongKeyCount(source, first_at, before.times + count.times)
