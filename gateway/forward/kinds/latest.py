"""The queue of a target that shows the latest reading only: one reading of each device, not too often.

The receiver stamps a reading with the time of its arrival. So an old reading would be drawn at the wrong
time, and a backlog is never sent: an outage leaves a gap there, and none here.
"""

import math
from collections.abc import Set

from gateway.clock import Clock
from gateway.domain.delivery import Backlog, Batch
from gateway.domain.quarantined import Quarantined
from gateway.store.protocol import Store

FRESH_S = 30 * 60
"""Seconds after which a reading is too old to be shown as the present one."""


class LatestQueue:
    """A `Queue` on the tables `latest` and `taken`. Its lanes are devices.

    With `by_session`, all devices of a brew session share the interval between two readings. A device in no
    brew session has it for itself.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        min_interval_s: float,
        *,
        by_session: bool = False,
    ) -> None:
        self._store = store
        self._clock = clock
        self._min_interval_s = min_interval_s
        self._by_session = by_session
        self._in_doubt: dict[int, float] = {}  # Unix seconds of an attempt without a known outcome

    async def backlogs(self, target: str, *, unnamed: bool = True) -> list[Backlog]:
        """Return the newest reading of each device, if the target lacks it; all others are passed over."""
        now = self._clock.now()
        found = []
        for latest in await self._store.latest.look(target, int(now) - FRESH_S):
            shared = latest.session_sent_at if self._by_session else None
            last = latest.sent_at, shared, self._in_doubt.get(latest.device_id)
            # After a clock that ran ahead was set back: nothing waits for longer than the interval.
            stamps = [min(at, now) for at in last if at is not None]
            not_before = max(stamps) + self._min_interval_s if stamps else 0.0
            found.append(
                Backlog(latest.device_id, 0, 1, latest.received_at, unsettled=False, not_before=not_before)
            )
        return sorted(found, key=lambda backlog: backlog.oldest_at)

    async def begin(self, target: str, lane: int, limit: int) -> Batch | None:
        """Return the device's newest reading, which may have come after `backlogs` looked."""
        now = self._clock.now()
        if self._by_session and not await self._may_send(target, lane, now):
            return None
        batch = await self._store.latest.begin(target, lane, int(now) - FRESH_S)
        if batch is not None:
            # Until the outcome is known: without an answer the reading may be shown already.
            self._in_doubt[lane] = now
        return batch

    async def _may_send(self, target: str, lane: int, now: float) -> bool:
        """Return whether no other device of the brew session has sent since `backlogs` looked."""
        backlogs = await self.backlogs(target)
        return any(backlog.session_id == lane and backlog.not_before <= now for backlog in backlogs)

    async def settle(
        self, batch: Batch, sent: Set[int] | None = None, *, withheld: Set[int] = frozenset()
    ) -> None:
        """Note the success, and its time. A reading that was refused is settled already, and no success."""
        if batch.session_id in self._in_doubt:
            # Rounded up: whole seconds are kept, and the interval may not be shorter by a part of one.
            await self._store.latest.settle(batch, math.ceil(self._clock.now()))
            del self._in_doubt[batch.session_id]

    async def refuse(self, batch: Batch, item: Quarantined) -> None:
        """Note that the target never takes this reading, and quarantine it."""
        await self._store.routes.refuse(batch, item)
        self._in_doubt.pop(batch.session_id, None)

    async def release(self, batch: Batch) -> None:
        """Forget the attempt: the target certainly did not take the reading."""
        self._in_doubt.pop(batch.session_id, None)
