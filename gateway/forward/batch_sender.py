"""Sending a batch to a target: in one request, or in halves until a bad reading stands alone."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.clock import Clock
from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.domain.quarantined import Quarantined
from gateway.forward.kinds import Kind, Queue
from gateway.forward.schedule import SessionState
from gateway.stats import Stats


@dataclass(frozen=True, slots=True)
class SendResult:
    """The result of sending a batch: readings not sent and refused, and the last request's outcome.

    `asked_at` is when the last request began, in monotonic seconds.
    """

    unsent: int
    outcome: Outcome
    asked_at: float
    refused: int


class BatchSender:
    """Sends batches to one target, at most `limit` readings in a request."""

    def __init__(self, queue: Queue, target: Kind, stats: Stats, clock: Clock, limit: int) -> None:
        self._queue = queue
        self._target = target
        self._stats = stats
        self._clock = clock
        self._limit = limit

    async def send(self, batch: Batch, places: Sequence[int], state: SessionState) -> SendResult:
        """Send the readings at these places of the batch, in order.

        A refused request is halved from its front until the bad reading stands alone, which takes
        ceil(log2(n)) + 1 requests; the readings behind the bad one then go in one request again.
        """
        start = suspect_end = refused = 0
        asked_at = self._clock.monotonic()
        # Smaller from the second ambiguous ending on, until it is clear which reading is behind them.
        stride = min(self._limit, max(1, len(places) >> max(0, state.stuck - 1)))
        while start < len(places):
            in_doubt = suspect_end - start
            size = (in_doubt + 1) // 2 if in_doubt > 0 else stride
            chosen = places[start : start + size]
            part = replace(
                batch,
                seqs=tuple(batch.seqs[place] for place in chosen),
                rows=tuple(batch.rows[place] for place in chosen),
            )
            await self._target.wait_for_slot()
            asked_at = self._clock.monotonic()
            outcome = await self._target.send(part)
            if outcome.verdict is DeliveryResult.REFUSED and len(part.rows) > 1:
                suspect_end = start + len(part.rows)
                continue
            if outcome.verdict is DeliveryResult.REFUSED:
                # Shielded, because a refusal that is not noted would be sent again after a restart.
                await asyncio.shield(self._refuse(part, outcome.reason))
                suspect_end, refused = 0, refused + 1
            elif outcome.verdict is not DeliveryResult.ACCEPTED:
                return SendResult(len(places) - start, outcome, asked_at, refused)
            start += len(part.rows)
            state.stuck, stride = 0, self._limit
        return SendResult(0, Outcome(DeliveryResult.ACCEPTED), asked_at, refused)

    async def _refuse(self, lone: Batch, reason: str) -> None:
        item = Quarantined(
            body=lone.rows[0].encode(),
            reason=reason,
            received_at=int(self._clock.now() * 1000),
            channel=f"forward {self._target.shown}",
            source=f"{self._target.lane} {lone.session_id}",
        )
        await self._queue.refuse(lone, item)
        self._stats.refused_upstream += 1
