"""Offering readings to a target: in one request, or halving until a bad reading stands alone."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from gateway.clock import Clock
from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.domain.quarantined import Quarantined
from gateway.forward.schedule import SessionState
from gateway.stats import Stats
from gateway.store.protocol import OutboxStore


class Sends(Protocol):
    """What offering asks of a target."""

    @property
    def name(self) -> str:
        """What its watermarks are kept under."""

    async def turn(self) -> None:
        """Wait until another request may go there."""

    async def send(self, batch: Batch) -> Outcome:
        """Offer the readings; every ending is an `Outcome`."""


@dataclass(frozen=True, slots=True)
class SendResult:
    """Readings left and refused, how the last request ended and when it began (monotonic)."""

    left: int
    outcome: Outcome
    asked_at: float
    refused: int


class BatchSender:
    """Offers batches to one target, `most` readings in a request."""

    def __init__(self, outbox: OutboxStore, target: Sends, stats: Stats, clock: Clock, most: int) -> None:
        self._outbox = outbox
        self._target = target
        self._stats = stats
        self._clock = clock
        self._most = most

    async def send(self, batch: Batch, places: Sequence[int], progress: SessionState) -> SendResult:
        """Send these places in order.

        A refused request is halved from its front until the bad reading stands alone, which takes
        ceil(log2(n)) + 1 requests; what lies behind it then goes in one request again.
        """
        start = suspect_end = refused = 0
        asked_at = self._clock.monotonic()
        # Smaller from the second ambiguous ending on, until it is clear which reading is behind them.
        stride = min(self._most, max(1, len(places) >> max(0, progress.stuck - 1)))
        while start < len(places):
            in_doubt = suspect_end - start
            size = (in_doubt + 1) // 2 if in_doubt > 0 else stride
            part = _part(batch, places[start : start + size])
            await self._target.turn()
            asked_at = self._clock.monotonic()
            outcome = await self._target.send(part)
            if outcome.verdict is DeliveryResult.REFUSED and len(part.rows) > 1:
                suspect_end = start + len(part.rows)
                continue
            if outcome.verdict is DeliveryResult.REFUSED:
                await asyncio.shield(self._refuse(part, outcome.reason))
                suspect_end, refused = 0, refused + 1
            elif outcome.verdict is not DeliveryResult.ACCEPTED:
                return SendResult(len(places) - start, outcome, asked_at, refused)
            start += len(part.rows)
            progress.stuck, stride = 0, self._most
        return SendResult(0, Outcome(DeliveryResult.ACCEPTED), asked_at, refused)

    async def _refuse(self, lone: Batch, reason: str) -> None:
        item = Quarantined(
            body=lone.rows[0].encode(),
            reason=reason,
            received_at=int(self._clock.now() * 1000),
            channel=f"forward {self._target.name}",
            source=f"brew session {lone.session_id}",
        )
        await self._outbox.refuse(lone, item)
        self._stats.refused_upstream += 1


def _part(batch: Batch, places: Sequence[int]) -> Batch:
    return replace(
        batch,
        seqs=tuple(batch.seqs[place] for place in places),
        rows=tuple(batch.rows[place] for place in places),
    )
