"""Keys that do not fit: a count, a bound for each source, and a line in the log now and then."""

import logging

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


class WrongKeys:
    """The requests without a key that fits, of all doors together."""

    def __init__(self, clock: Clock, stats: Stats, burst: float = WRONG_KEY_BURST) -> None:
        self._clock = clock
        self._stats = stats
        self._buckets = TokenBuckets(WRONG_KEY_RATE, burst)
        self._lines = RareLines(clock.monotonic)

    def take(self, peer: Peer, *, shown: bool) -> float:
        """Count a request without a key that fits. Return 0, or the seconds that the peer has to wait.

        `shown` says that the request has a key, which does not fit.
        """
        self._stats.wrong_keys += 1
        if shown and (count := self._lines.due(peer.source)):
            if count == 1:
                log.warning("keys: %s sent a key that does not fit", peer.address or "?")
            else:
                log.warning("keys: %s sent %d more keys that do not fit", peer.address or "?", count)
        if peer.is_loopback and not shown:
            return 0.0  # no key at all guesses nothing, and a script that polls here harms only itself
        return self._buckets.take(peer.source, self._clock.monotonic())
