"""The way out to one target: begin, read back where needed, send, settle, wait; for ever, batch by batch."""

import asyncio
import logging
import random
from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol

from gateway.clock import Clock
from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.domain.target import TargetState
from gateway.errors import StoreUnavailable
from gateway.events import StoredNotices
from gateway.forward.batch_sender import BatchSender, Sends
from gateway.forward.import_target import Concerns, ReadBackFailed, SessionPaused
from gateway.forward.readback import Attempt, Corrections, as_sent
from gateway.forward.schedule import ForwardSettings, Schedule, SessionState
from gateway.network import sends_key_in_the_clear
from gateway.stats import Stats
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

PAUSE_S = 900.0
"""A paused target or brew session is looked at again after this: 15 minutes."""

_RANDOM = random.SystemRandom()

STORE_AGAIN_S = 2.0
"""Our own store is asked again after this, however long it has failed: it is no target to be spared."""

WELL = "ok"
"""How a target is on which no reading waits in vain, whether of one brew session or of all."""

LOOK_AGAIN_S = 1.0
"""After the bell, listen this long for more before looking: fifty readings a second ring fifty times."""


class Target(Sends, Protocol):
    """What the forwarder asks of a target."""

    async def read_back(
        self, upstream_id: int, days: tuple[date, date], concerns: Concerns
    ) -> list[dict[str, Any]]:
        """What the target holds of those days and is of concern; `ReadBackFailed` if unsure."""


@dataclass(frozen=True, slots=True)
class Wait:
    """How long there is nothing to do (None: until the bell), and whether the bell may cut it short."""

    seconds: float | None
    bell: bool


class Forwarder:
    """Empties the outbox of one target; the brew sessions take turns, a batch each."""

    def __init__(
        self,
        store: Store,
        target: Target,
        notices: StoredNotices,
        stats: Stats,
        clock: Clock,
        settings: ForwardSettings,
        *,
        draw: Callable[[], float] = _RANDOM.random,
        tell: Callable[[TargetState], None] = lambda _: None,
        held_back: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._store = store
        self._target = target
        self._bell = notices.listen()
        self._stats = stats
        self._clock = clock
        self._settings = settings
        self._draw = draw
        self._label = f"upstream {target.name}"
        self._offering = BatchSender(store.outbox, target, stats, clock, settings.batch_readings)
        self._tell = tell
        self._held_back = held_back
        self._held: str | None = None
        stats.targets[target.name] = settings.unnamed
        self._schedule = Schedule(settings)
        self._trouble = ""
        self._told: set[str] = set()

    async def run(self) -> None:
        """Forward until cancelled; that leaves at most one attempt open, which the next start reads back."""
        if sends_key_in_the_clear(self._target.name):
            log.warning("forward: %s: plain http, anyone on the way can read the key", self._label)
        while True:
            self._bell.clear()
            rest = await self.step()
            if rest.bell:
                await self._idle(rest.seconds)
            elif rest.seconds:
                await self._clock.sleep(rest.seconds)

    async def step(self) -> Wait:
        """Look once, let every brew session that is due send one batch, say how long to rest."""
        self._held = self._held_back()
        if self._held is not None:
            rest = Wait(None, bell=True)
            self._publish(rest)
            return rest
        wait = self._schedule.target.until - self._clock.monotonic()
        if wait > 0:
            return Wait(wait, bell=False)
        try:
            rest = await self._look()
        except StoreUnavailable as error:
            self._failed(_store_failure(error), None)
            rest = Wait(0.0, bell=False)
        self._publish(rest)
        return rest

    def _publish(self, rest: Wait) -> None:
        wait = max(rest.seconds or 0.0, self._schedule.target.until - self._clock.monotonic())
        words = self._words()
        self._stats.say(self._label, words, well=words == WELL)
        self._tell(TargetState(words, self._clock.now() + wait if wait > 0 else None))

    async def _look(self) -> Wait:
        backlogs = await self._store.outbox.backlogs(self._target.name, unnamed=self._settings.unnamed)
        now = self._clock.monotonic()
        self._schedule.note(backlogs, now, self._clock.now())
        if not self._schedule.failing:
            self._trouble_is_over()
        ready_at = {backlog.session_id: self._schedule.ready_at(backlog, now) for backlog in backlogs}
        due = [backlog for backlog in backlogs if ready_at[backlog.session_id] <= now]
        if not due:
            return Wait(min(ready_at.values()) - now if ready_at else None, bell=True)
        for session_id in self._schedule.in_turn(due):
            try:
                await self._deliver(session_id)
            except StoreUnavailable as error:
                self._failed(_store_failure(error), session_id)
            if self._schedule.target.until > self._clock.monotonic():
                break
        return Wait(0.0, bell=False)

    async def _deliver(self, session_id: int) -> None:
        progress = self._schedule.sessions[session_id]
        batch = await self._store.outbox.begin(self._target.name, session_id, self._settings.batch_readings)
        if batch is None:
            progress.backoff.wait_until(self._clock.monotonic() + LOOK_AGAIN_S)
            return
        try:
            places, elsewhere = await self._not_there_yet(batch)
        except ReadBackFailed as failure:
            self._failed(failure.outcome, session_id)
            return
        offered = await self._offering.send(batch, places, progress)
        verdict = offered.outcome.verdict
        if verdict is DeliveryResult.ACCEPTED:
            sent = {batch.seqs[place] for place in places}
            withheld = {batch.seqs[place] for place in elsewhere}
            await asyncio.shield(self._settle(batch, progress, offered.refused, sent, withheld))
            return
        # Released only then: once a part has got through, the open attempt is all that remembers it.
        certain = verdict is not DeliveryResult.AMBIGUOUS and not batch.unsettled and not batch.corrects
        if certain and offered.left == len(places):
            await asyncio.shield(self._store.outbox.release(batch))
        self._failed(offered.outcome, session_id)
        if verdict is DeliveryResult.AMBIGUOUS:
            progress.stuck += 1
            progress.backoff.wait_until(offered.asked_at + self._settings.readback_delay_s)

    async def _not_there_yet(self, batch: Batch) -> tuple[list[int], list[int]]:
        """Places in the batch that must be sent, and of corrections what is there under other ids.

        An attempt without a known outcome is never sent blind, and neither is a correction.
        """
        if not (batch.unsettled or batch.corrects):
            return list(range(len(batch.rows))), []
        if batch.corrects:
            corrections = await asyncio.to_thread(Corrections, batch)
            found = await self._target.read_back(batch.upstream_id, corrections.days, corrections.concerns)
            return await asyncio.to_thread(corrections.compare, found)
        uncalibrated = [batch.uncalibrated.get(seq) for seq in batch.seqs]
        attempt = await asyncio.to_thread(Attempt, as_sent(batch), uncalibrated)
        found = await self._target.read_back(batch.upstream_id, attempt.days, attempt.concerns)
        return await asyncio.to_thread(attempt.missing, found), []

    async def _settle(
        self,
        batch: Batch,
        progress: SessionState,
        refused: int,
        sent: Set[int],
        withheld: Set[int],
    ) -> None:
        await self._store.outbox.settle(batch, sent, withheld=withheld)
        place = (self._label, batch.session_id)
        if not batch.corrects:
            self._stats.forwarded += len(batch.rows) - refused
        if withheld:
            log.warning("forward: %s, brew session %d: %d edited here, not there", *place, len(withheld))
        if refused:
            log.warning("forward: %s, brew session %d: %d refused, see quarantine", *place, refused)
        if progress.paused:
            log.info("forward: %s takes brew session %d again", *place)
        self._schedule.delivered(batch.session_id, len(batch.rows), self._clock.monotonic())

    def _failed(self, outcome: Outcome, session_id: int | None) -> None:
        """Stay away for a while: from the target, or only from a brew session that it does not know."""
        now, share = self._clock.monotonic(), self._draw()
        progress = self._schedule.sessions[session_id] if session_id is not None else SessionState(now)
        progress.backoff.failed(now, share, outcome.retry_after_s)
        paused = outcome.verdict is DeliveryResult.PAUSED
        if isinstance(outcome, SessionPaused):
            self._schedule.target.succeeded()
            progress.backoff.wait_until(now + PAUSE_S)
            if not progress.paused:
                log.warning("forward: %s pauses brew session %s: %s", self._label, session_id, outcome.reason)
            progress.paused = f"brew session {session_id} is paused: {outcome.reason}"
            return
        progress.paused = ""
        self._schedule.target.failed(now, share, outcome.retry_after_s)
        if paused:
            self._schedule.target.wait_until(now + PAUSE_S)
        kind = "is paused" if paused else "waits to try again"
        self._trouble = f"{kind}: {outcome.reason}"
        if kind not in self._told:  # one line for each change, not for each retry
            self._told.add(kind)
            log.warning("forward: %s %s", self._label, self._trouble)

    def _trouble_is_over(self) -> None:
        self._schedule.target.succeeded()
        if self._told:
            self._told.clear()
            log.info("forward: %s: the trouble is over", self._label)

    def _words(self) -> str:
        if self._held is not None:
            return self._held
        if self._schedule.target.failures or self._schedule.failing:
            return self._trouble
        return "; ".join([WELL, *self._schedule.paused])

    async def _idle(self, seconds: float | None) -> None:
        """Rest until the bell, or until the time is up."""
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(self._bell.wait(), name="forward-bell")]
        if seconds is not None:
            waits.append(asyncio.create_task(self._clock.sleep(seconds), name="forward-timer"))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self._bell.is_set():
            await self._clock.sleep(LOOK_AGAIN_S)


def _store_failure(error: StoreUnavailable) -> Outcome:
    return Outcome(DeliveryResult.KEPT, f"our own store: {error}", retry_after_s=STORE_AGAIN_S)


__all__ = ["ForwardSettings", "Forwarder", "Target", "Wait"]
