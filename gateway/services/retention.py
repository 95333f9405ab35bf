"""Retention: off unless asked for; deletes only what every target has, of brew sessions that are over."""

import logging

from gateway.store.protocol import Finished, Store

log = logging.getLogger(__name__)

SLICE_S = 0.05
"""Seconds that one deletion may take of the writer."""

FIRST_SLICE_READINGS = 25
MOST_READINGS = 500

DAY_S = 86_400


class Retention:
    """Deletes readings of brew sessions whose last one is older than `keep_days`.

    Only where they are forwarded to every target, no attempt is open, and no device is in the session. What
    is not forwarded, and what is in no session, is kept for ever.
    """

    def __init__(self, store: Store, keep_days: int) -> None:
        self._store = store
        self._keep_days = keep_days
        self._readings = FIRST_SLICE_READINGS

    async def run_once(self, now: float) -> int:
        """Prune all that is due; how many readings went, each session told in the log."""
        before = int(now) - self._keep_days * DAY_S
        total = 0
        for session in await self._store.upkeep.finished(before):
            gone = await self._prune(session, before)
            if gone:
                total += gone
                log.info(
                    "retention: deleted %d readings of brew session %d, forwarded and older than %d days",
                    gone, session.session_id, self._keep_days,
                )  # fmt: skip
        return total

    async def _prune(self, session: Finished, before: int) -> int:
        total = 0
        while True:
            wanted = self._readings
            gone, seconds = await self._store.upkeep.prune(session, before, wanted)
            total += gone
            if seconds > SLICE_S / 2:
                self._readings = max(1, wanted // 2)
            elif seconds < SLICE_S / 8:
                self._readings = min(MOST_READINGS, wanted * 2)
            if gone < wanted:
                return total
