"""Forwarding to one target, batch by batch: begin, read back where needed, send, settle, wait."""

import asyncio
import logging
import random
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import Any

from gateway.clock import Clock
from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.domain.target import NOT_TRIED, TargetState
from gateway.errors import StoreUnavailable
from gateway.events import StoredNotices
from gateway.forward.batch_sender import BatchSender
from gateway.forward.kinds import Kind, Queue, ReadBackFailed, SessionPaused, everything
from gateway.forward.schedule import ForwardSettings, Schedule, SessionState
from gateway.network import sends_key_in_the_clear
from gateway.stats import Stats

log = logging.getLogger(__name__)

PAUSE_S = 900.0
"""Seconds after which a paused target or brew session is tried again: 15 minutes."""

STORE_AGAIN_S = 2.0
"""Seconds until our own store is tried again, however long it has failed: it is no target to be spared."""

WELL = "ok"
"""The state of a target for which no reading waits longer than it should."""

GATHER_S = 1.0
"""Seconds that a wake-up waits for more readings: fifty readings a second wake fifty times."""

_RANDOM = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Wait:
    """Seconds to wait (None: until new readings wake the forwarder); with `wake` they may cut it short."""

    seconds: float | None
    wake: bool


class Forwarder:
    """Empties the queue of one target. Brew sessions, or devices, send in turn, a batch each."""

    def __init__(
        self,
        queue: Queue,
        target: Kind,
        notices: StoredNotices,
        stats: Stats,
        clock: Clock,
        settings: ForwardSettings,
        *,
        draw: Callable[[], float] = _RANDOM.random,
        notify: Callable[[TargetState], None] = lambda _: None,
        held_back: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`draw` gives random numbers from 0 to 1, `notify` gets the target's state after every step.

        `held_back` returns why nothing may be forwarded for now, or None.
        """
        self._queue = queue
        self._target = target
        self._notices = notices
        self._wake = notices.listen()
        self._stats = stats
        self._clock = clock
        self._settings = settings
        self._draw = draw
        self._label = f"upstream {target.shown}"
        self._sender = BatchSender(queue, target, stats, clock, settings.batch_readings)
        self._notify = notify
        self._held_back = held_back
        if target.lane == "brew session":
            stats.targets[target.name] = settings.unnamed
        self._schedule = Schedule(settings)
        self._trouble = TargetState("")
        self._logged: set[str] = set()
        self._tried = False

    async def run(self) -> None:
        """Forward until cancelled. At most one attempt is left open then; the next start reads it back."""
        if self._target.key_on_the_way and sends_key_in_the_clear(self._target.name):
            log.warning("forward: %s: plain http, anyone on the way can read the key", self._label)
        while True:
            self._wake.clear()
            wait = await self.step()
            if wait.wake:
                await self._idle(wait.seconds)
            elif wait.seconds:
                await self._clock.sleep(wait.seconds)

    async def step(self) -> Wait:
        """Let every brew session that is due send one batch. Return how long to wait afterwards."""
        reason = self._held_back()
        if reason is not None:
            self._publish(TargetState(reason, kind="held", reason=reason), None)
            return Wait(None, wake=True)
        seconds = self._schedule.target.until - self._clock.monotonic()
        if seconds > 0:
            return Wait(seconds, wake=False)
        try:
            wait = await self._send_due()
        except StoreUnavailable as error:
            self._failed(_store_failure(error), None)
            wait = Wait(0.0, wake=False)
        if self._schedule.target.failures or self._schedule.failing:
            state = self._trouble
        else:
            paused = self._schedule.paused
            sentences = [f"{self._target.lane} {lane} is paused: {why}" for lane, why in paused.items()]
            state = TargetState(
                "; ".join([WELL if self._tried else NOT_TRIED, *sentences]),
                kind="partly" if paused else "well",
                not_taken=paused,
            )
        self._publish(state, wait.seconds)
        return wait

    def _publish(self, state: TargetState, wait_s: float | None) -> None:
        seconds = max(wait_s or 0.0, self._schedule.target.until - self._clock.monotonic())
        if self._stats.parts.get(self._label) != state.words:
            self._notices.publish("sending")
        self._stats.say(self._label, state.words, well=state.words in {WELL, NOT_TRIED})
        self._notify(replace(state, next_at=self._clock.now() + seconds if seconds > 0 else None))

    async def _send_due(self) -> Wait:
        backlogs = await self._queue.backlogs(self._target.name, unnamed=self._settings.unnamed)
        now = self._clock.monotonic()
        self._schedule.update(backlogs, now, self._clock.now())
        if not self._schedule.failing:
            self._schedule.target.succeeded()
            if self._logged:
                self._logged.clear()
                log.info("forward: %s: the trouble is over", self._label)
        ready_at = {backlog.session_id: self._schedule.ready_at(backlog, now) for backlog in backlogs}
        due = [backlog for backlog in backlogs if ready_at[backlog.session_id] <= now]
        if not due:
            return Wait(min(ready_at.values()) - now if ready_at else None, wake=True)
        for session_id in self._schedule.in_order(due):
            try:
                await self._deliver(session_id)
            except StoreUnavailable as error:
                self._failed(_store_failure(error), session_id)
            if self._schedule.target.until > self._clock.monotonic():
                break
        return Wait(0.0, wake=False)

    async def _deliver(self, session_id: int) -> None:
        state = self._schedule.sessions[session_id]
        batch = await self._queue.begin(self._target.name, session_id, self._settings.batch_readings)
        if batch is None:
            state.backoff.wait_until(self._clock.monotonic() + GATHER_S)
            return
        self._tried = True
        try:
            places, elsewhere = everything(batch)
            if batch.unsettled or batch.corrects:
                places, elsewhere = await self._target.read_back(batch)
        except ReadBackFailed as failure:
            self._failed(failure.outcome, session_id)
            return
        result = await self._sender.send(batch, places, state)
        verdict = result.outcome.verdict
        if verdict is DeliveryResult.ACCEPTED:
            sent = {batch.seqs[place] for place in places}
            withheld = {batch.seqs[place] for place in elsewhere}
            await asyncio.shield(self._settle(batch, state, result.refused, sent, withheld))
            return
        # Released only if nothing was sent, because only the open attempt remembers the part that was sent.
        certain = verdict is not DeliveryResult.AMBIGUOUS and not batch.unsettled and not batch.corrects
        if certain and result.unsent == len(places):
            await asyncio.shield(self._queue.release(batch))
        self._failed(result.outcome, session_id)
        if verdict is DeliveryResult.AMBIGUOUS:
            state.stuck += 1
            state.backoff.wait_until(result.asked_at + self._settings.readback_delay_s)

    async def _settle(
        self,
        batch: Batch,
        state: SessionState,
        refused: int,
        sent: Set[int],
        withheld: Set[int],
    ) -> None:
        await self._queue.settle(batch, sent, withheld=withheld)
        brew = batch.session_id if self._target.lane == "brew session" else None
        self._notices.publish("sending", brew=brew)
        place = (self._label, self._target.lane, batch.session_id)
        if not batch.corrects:
            self._stats.forwarded += len(batch.rows) - refused
        if withheld:
            log.warning("forward: %s, %s %d: %d edited here, not there", *place, len(withheld))
        if refused:
            log.warning("forward: %s, %s %d: %d refused, see quarantine", *place, refused)
        if state.paused:
            log.info("forward: %s takes %s %d again", *place)
        self._schedule.delivered(batch.session_id, len(batch.rows), self._clock.monotonic())

    def _failed(self, outcome: Outcome, session_id: int | None) -> None:
        """Back off from the target, or only from a brew session that the target does not know."""
        now, share = self._clock.monotonic(), self._draw()
        state = self._schedule.sessions[session_id] if session_id is not None else SessionState(now)
        state.backoff.failed(now, share, outcome.retry_after_s)
        paused = outcome.verdict is DeliveryResult.PAUSED
        if isinstance(outcome, SessionPaused):
            self._schedule.target.succeeded()
            state.backoff.wait_until(now + PAUSE_S)
            if not state.paused:  # one line for each change, not for each retry
                place = (self._label, self._target.lane, session_id)
                log.warning("forward: %s pauses %s %s: %s", *place, outcome.reason)
            state.paused = outcome.reason
            return
        state.paused = ""
        self._schedule.target.failed(now, share, outcome.retry_after_s)
        if paused:
            self._schedule.target.wait_until(now + PAUSE_S)
        kind = "is paused" if paused else "waits to try again"
        self._trouble = TargetState(
            f"{kind}: {outcome.reason}", kind="blocked" if paused else "retries", reason=outcome.reason
        )
        if kind not in self._logged:  # one line for each change, not for each retry
            self._logged.add(kind)
            log.warning("forward: %s %s", self._label, self._trouble.words)

    async def _idle(self, seconds: float | None) -> None:
        """Wait until there are new readings, or until the time is up."""
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(self._wake.wait(), name="forward-wake")]
        if seconds is not None:
            waits.append(asyncio.create_task(self._clock.sleep(seconds), name="forward-timer"))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self._wake.is_set():
            await self._clock.sleep(GATHER_S)


def _store_failure(error: StoreUnavailable) -> Outcome:
    return Outcome(DeliveryResult.KEPT, f"our own store: {error}", retry_after_s=STORE_AGAIN_S)


__all__ = ["ForwardSettings", "Forwarder", "Wait"]
