"""The one path out: begin, read back where needed, send, settle, wait; for ever, one batch at a time."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Protocol

from gateway.clock import Clock
from gateway.domain.delivery import Batch, Outcome, Verdict
from gateway.domain.quarantined import Quarantined
from gateway.errors import StoreUnavailable
from gateway.events import StoredNotices
from gateway.forward.import_target import ReadBackFailed, SessionPaused, sends_key_in_the_clear
from gateway.forward.readback import days, missing
from gateway.forward.schedule import ForwardSettings, Progress, Schedule
from gateway.stats import Stats
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

PAUSE_S = 900.0
"""A paused target or brew session is looked at again after this: 15 minutes."""

_RANDOM = random.SystemRandom()

LOOK_AGAIN_S = 1.0
"""After the bell, listen this long for more before looking: fifty readings a second ring fifty times."""


class Target(Protocol):
    """What the forwarder asks of a target."""

    @property
    def name(self) -> str:
        """What its watermarks are kept under."""

    async def send(self, batch: Batch) -> Outcome:
        """Offer the readings; every ending is an `Outcome`."""

    async def read_back(self, upstream_id: int, first_day: date, last_day: date) -> list[dict[str, Any]]:
        """What the target holds of those days; `ReadBackFailed` if unsure."""


@dataclass(frozen=True, slots=True)
class Rest:
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
    ) -> None:
        self._store = store
        self._target = target
        self._bell = notices.listen()
        self._stats = stats
        self._clock = clock
        self._settings = settings
        self._draw = draw
        self._label = f"upstream {target.name}"
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

    async def step(self) -> Rest:
        """Look once, let every brew session that is due send one batch, say how long to rest."""
        wait = self._schedule.target.until - self._clock.monotonic()
        if wait > 0:
            return Rest(wait, bell=False)
        try:
            rest = await self._look()
        except StoreUnavailable as error:
            self._failed(_store_failure(error), None)
            rest = Rest(0.0, bell=False)
        self._stats.parts[self._label] = self._state()
        return rest

    async def _look(self) -> Rest:
        backlogs = await self._store.outbox.backlogs(self._target.name, unnamed=self._settings.unnamed)
        now = self._clock.monotonic()
        self._schedule.note(backlogs, now, self._clock.now())
        if not self._schedule.failing:
            self._trouble_is_over()
        ready_at = {backlog.session_id: self._schedule.ready_at(backlog, now) for backlog in backlogs}
        due = [backlog for backlog in backlogs if ready_at[backlog.session_id] <= now]
        if not due:
            return Rest(min(ready_at.values()) - now if ready_at else None, bell=True)
        for session_id in self._schedule.in_turn(due):
            try:
                await self._deliver(session_id)
            except StoreUnavailable as error:
                self._failed(_store_failure(error), session_id)
            if self._schedule.target.until > self._clock.monotonic():
                break
        return Rest(0.0, bell=False)

    async def _deliver(self, session_id: int) -> None:
        progress = self._schedule.sessions[session_id]
        batch = await self._store.outbox.begin(self._target.name, session_id, self._settings.batch_readings)
        if batch is None:
            progress.backoff.wait_until(self._clock.monotonic() + LOOK_AGAIN_S)
            return
        try:
            places = await self._not_there_yet(batch)
        except ReadBackFailed as failure:
            self._failed(failure.outcome, session_id)
            return
        untouched = not batch.unsettled and not progress.refused
        places = [place for place in places if batch.seqs[place] not in progress.refused]
        left, outcome, asked_at = await self._offer(batch, places, progress)
        if outcome.verdict is Verdict.ACCEPTED:
            await asyncio.shield(self._settle(batch, progress))
            return
        # Released only then: once a part has got through, the open attempt is all that remembers it.
        if outcome.verdict is not Verdict.AMBIGUOUS and untouched and left == len(places):
            await asyncio.shield(self._store.outbox.release(batch))
        self._failed(outcome, session_id)
        if outcome.verdict is Verdict.AMBIGUOUS:
            progress.stuck += 1
            progress.backoff.wait_until(asked_at + self._settings.readback_delay_s)

    async def _not_there_yet(self, batch: Batch) -> list[int]:
        """Places in the batch that must be sent; an attempt without a known outcome is never sent blind."""
        if not batch.unsettled:
            return list(range(len(batch.rows)))
        first_day, last_day = days(batch.rows)
        found = await self._target.read_back(batch.upstream_id, first_day, last_day)
        return await asyncio.to_thread(missing, batch.rows, found)

    async def _offer(
        self, batch: Batch, places: Sequence[int], progress: Progress
    ) -> tuple[int, Outcome, float]:
        """Send these places in order; how many are left, how the last request ended and when it began.

        A refused request is halved from its front until the bad reading stands alone; what lies behind it
        then goes in one request again.
        """
        start, suspect_end, asked_at = 0, 0, self._clock.monotonic()
        # Smaller from the second ambiguous ending on, until it is clear which reading is behind them.
        stride = max(1, len(places) >> max(0, progress.stuck - 1))
        while start < len(places):
            in_doubt = suspect_end - start
            size = (in_doubt + 1) // 2 if in_doubt > 0 else stride
            part = _part(batch, places[start : start + size])
            asked_at = self._clock.monotonic()
            outcome = await self._target.send(part)
            if outcome.verdict is Verdict.REFUSED and len(part.rows) > 1:
                suspect_end = start + len(part.rows)
                continue
            if outcome.verdict is Verdict.REFUSED:
                await asyncio.shield(self._refuse(part, outcome.reason, progress))
                suspect_end = 0
            elif outcome.verdict is not Verdict.ACCEPTED:
                return len(places) - start, outcome, asked_at
            start += len(part.rows)
            progress.stuck, stride = 0, len(places)
        return 0, Outcome(Verdict.ACCEPTED), asked_at

    async def _refuse(self, lone: Batch, reason: str, progress: Progress) -> None:
        await self._store.quarantine.add(
            Quarantined(
                body=lone.rows[0].encode(),
                reason=reason,
                received_at=int(self._clock.now() * 1000),
                channel=f"forward {self._target.name}",
                source=f"brew session {lone.session_id}",
            )
        )
        progress.refused.add(lone.last_seq)
        self._stats.refused_upstream += 1

    async def _settle(self, batch: Batch, progress: Progress) -> None:
        await self._store.outbox.settle(batch)
        refused = len(progress.refused.intersection(batch.seqs))
        self._stats.forwarded += len(batch.rows) - refused
        place = (self._label, batch.session_id)
        if refused:
            log.warning("forward: %s, brew session %d: %d refused, see quarantine", *place, refused)
        if progress.paused:
            log.info("forward: %s takes brew session %d again", *place)
        self._schedule.delivered(batch.session_id, len(batch.rows), self._clock.monotonic())

    def _failed(self, outcome: Outcome, session_id: int | None) -> None:
        """Stay away for a while: from the target, or only from a brew session that it does not know."""
        now, share = self._clock.monotonic(), self._draw()
        progress = self._schedule.sessions[session_id] if session_id is not None else Progress(now)
        progress.backoff.failed(now, share, outcome.retry_after_s)
        paused = outcome.verdict is Verdict.PAUSED
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

    def _state(self) -> str:
        if self._schedule.target.failures or self._schedule.failing:
            return self._trouble
        return "; ".join(["ok", *self._schedule.paused])

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


def _part(batch: Batch, places: Sequence[int]) -> Batch:
    return replace(
        batch,
        seqs=tuple(batch.seqs[place] for place in places),
        rows=tuple(batch.rows[place] for place in places),
    )


def _store_failure(error: StoreUnavailable) -> Outcome:
    return Outcome(Verdict.KEPT, f"our own store: {error}")


__all__ = ["ForwardSettings", "Forwarder", "Rest", "Target"]
