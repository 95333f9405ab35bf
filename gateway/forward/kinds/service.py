"""A Brewing Data Service as a target: one POST to import, GETs to read back, every ending an `Outcome`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import aiohttp

from gateway.clock import Clock
from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.domain.target import PER_MINUTE
from gateway.errors import ConfigError, in_words
from gateway.forward.answers import FAILURES, SentBody, TargetAnswer, document_aside, document_of
from gateway.forward.backoff import RateLimiter, parse_retry_after
from gateway.forward.client import Key, ServiceClient
from gateway.forward.kinds import Lane, Policy, ReadBackFailed, SessionPaused
from gateway.forward.readback import Attempt, Corrections, as_sent

DEADLINE_S = 30.0
"""Seconds for one request, from resolving the host name to the last byte of the answer."""

ANSWER_BYTES = 1024 * 1024
"""Bytes that are read of an answer to an import."""

READ_BACK_BYTES = 16 * 1024 * 1024
"""Bytes that are read of one page of a read-back."""

PAGE_READINGS = 1000
"""Readings asked for in one page of a read-back: half a megabyte."""

PAGES = 10_000
"""Pages of one read-back at most: a service that ignores `skip` must not be asked for ever."""

SHRINK = 10
"""A page that is too long is asked for again at this fraction of its size."""

ROUND = 10
"""A page shorter than asked, of a length that is a multiple of this, may be capped by the service."""

KEPT_STATUSES = frozenset({408, 425, 429})
"""Statuses with which the target has surely not taken the readings, and may take them later."""

TARGET_PAUSED_STATUSES = frozenset({401, 403, 405, 410, 415})
"""Statuses of a wrong key or a wrong base URL: nothing that a smaller batch would mend."""

SESSION_PAUSED_STATUS = 404
"""The status for a brew session that the target does not know."""

Concerns = Callable[[Mapping[str, Any]], bool]
"""Returns whether a reading that was read back is of interest; others are not kept in memory."""


class ImportTarget:
    """Endpoints 1 and 2 of the specification at one base URL."""

    lane: Lane = "brew session"
    policy = Policy.BACKLOG
    repeat_is_harmless = False
    most: int | None = None
    gather_s: float | None = None
    key_on_the_way = True

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        key: Key,
        clock: Clock,
        *,
        per_minute: int = PER_MINUTE,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self.client = ServiceClient(session, base_url, key, deadline_s=deadline_s)
        self.name, self.shown = self.client.base_url, self.client.shown
        """The base URL; the watermarks of the outbox are kept under it."""
        self._clock = clock
        self._limiter = RateLimiter(per_minute, clock)

    async def close(self) -> None:
        """Do nothing: the HTTP session is that of all services."""

    async def wait_for_slot(self) -> None:
        """Wait until another request may be sent. Call this before each `send`."""
        await self._limiter.acquire()

    async def send(self, batch: Batch) -> Outcome:
        """Import the readings, never with reset. Return the outcome; network trouble is an outcome, too."""
        body = SentBody(f"[{','.join(batch.rows)}]".encode())
        path = f"/v1/fermentation/{batch.upstream_id}/import"
        try:
            answer = await self.client.request(path, ANSWER_BYTES, body=body)
        except ConfigError as error:
            return Outcome(DeliveryResult.PAUSED, str(error))
        except FAILURES as error:
            # Kept only if no byte of the body has left, because the target may have the readings otherwise.
            verdict = DeliveryResult.AMBIGUOUS if body.begun else DeliveryResult.KEPT
            return Outcome(verdict, self.client.hide_key(in_words(error)))
        return self._judge(answer, len(batch.rows))

    async def read_back(self, batch: Batch) -> tuple[Sequence[int], Sequence[int]]:
        """Return the places in the batch to be sent, and of corrections the places absent from the target.

        An attempt without a known outcome is never sent blind, and neither is a correction.
        """
        if batch.corrects:
            corrections = await asyncio.to_thread(Corrections, batch)
            found = await self.readings(batch.upstream_id, corrections.days, corrections.concerns)
            return await asyncio.to_thread(corrections.compare, found)
        uncalibrated = [batch.uncalibrated.get(seq) for seq in batch.seqs]
        attempt = await asyncio.to_thread(Attempt, as_sent(batch), uncalibrated, batch.earlier)
        found = await self.readings(batch.upstream_id, attempt.days, attempt.concerns)
        return await asyncio.to_thread(attempt.missing, found), []

    async def readings(
        self, upstream_id: int, days: tuple[date, date], concerns: Concerns = lambda _: True
    ) -> list[dict[str, Any]]:
        """Return the readings that the target has of these days, both included; `ReadBackFailed` if unsure.

        Read them page by page, so that neither their size nor the deadline of a request is a bound.
        """
        path = f"/v1/fermentation/{upstream_id}"
        query = {"from": days[0].isoformat(), "to": days[1].isoformat()}
        found: list[dict[str, Any]] = []
        place, size = 0, PAGE_READINGS
        previous: list[Any] | None = None
        for _ in range(PAGES):
            await self.wait_for_slot()
            page = await self._page(path, {**query, "skip": str(place), "limit": str(size)}, size)
            if page is None:
                size = max(1, size // SHRINK)
                continue
            if page == previous:
                return found  # it does not skip: these were here before
            found += [reading for reading in page if isinstance(reading, dict) and concerns(reading)]
            if not page or len(page) > size or (len(page) < size and len(page) % ROUND):
                return found
            place, previous = place + len(page), page
        raise ReadBackFailed(Outcome(DeliveryResult.AMBIGUOUS, f"read-back: more than {PAGES} pages"))

    async def _page(self, path: str, query: dict[str, str], size: int) -> list[Any] | None:
        """Return the readings of a page; None if fewer readings might be short enough."""
        answer = await self.get(path, query)
        document = await document_aside(answer.body)
        message = document.get("message")
        if answer.status == SESSION_PAUSED_STATUS and message == "not-found":
            return []  # "no records found" also stands for a brew session that has no readings yet
        readings = document.get("readings")
        if answer.status == 200 and message == "success" and isinstance(readings, list):
            return readings
        if answer.status == 200 and answer.too_long and size > 1:
            return None
        outcome = self._judge(answer, sent=0)
        # Whatever a status would mean for an import: the readings were sent, and may be there.
        certain = outcome.verdict is DeliveryResult.PAUSED
        verdict = DeliveryResult.PAUSED if certain else DeliveryResult.AMBIGUOUS
        reason = f"read-back: {outcome.reason or 'no readings in it'}"
        raise ReadBackFailed(replace(outcome, verdict=verdict, reason=reason))

    async def get(self, path: str, query: dict[str, str]) -> TargetAnswer:
        """Return the answer to a GET; the path begins with `/v1/`. Without an answer: `ReadBackFailed`."""
        try:
            return await self.client.request(path, READ_BACK_BYTES, query)
        except ConfigError as error:
            raise ReadBackFailed(Outcome(DeliveryResult.PAUSED, str(error))) from error
        except FAILURES as error:
            reason = self.client.hide_key(in_words(error))
            raise ReadBackFailed(Outcome(DeliveryResult.AMBIGUOUS, reason)) from error

    def _judge(self, answer: TargetAnswer, sent: int) -> Outcome:
        status, reason = answer.status, self.client.reason(answer)
        retry_after_s = parse_retry_after(answer.headers.get("retry-after"), self._clock.now())
        if 200 <= status < 300:
            return self._receipt(answer, sent)
        if 300 <= status < 400 or status in TARGET_PAUSED_STATUSES:
            return Outcome(DeliveryResult.PAUSED, reason)
        if status == SESSION_PAUSED_STATUS:
            return SessionPaused(DeliveryResult.PAUSED, reason)
        if status in KEPT_STATUSES:
            return Outcome(DeliveryResult.KEPT, reason, retry_after_s)
        if 400 <= status < 500:
            return Outcome(DeliveryResult.REFUSED, reason)
        # A server that fails, or a proxy in front of it, may have imported before it failed.
        return Outcome(DeliveryResult.AMBIGUOUS, reason, retry_after_s)

    def _receipt(self, answer: TargetAnswer, sent: int) -> Outcome:
        document = document_of(answer.body)
        imported = document.get("imported")
        count = imported.get("count") if isinstance(imported, dict) else None
        if document.get("message") != "success" or type(count) is not int:
            trouble = answer.trouble or "a body that is no receipt of an import"
            reason = self.client.hide_key(f"HTTP {answer.status} with {trouble}")
            return Outcome(DeliveryResult.AMBIGUOUS, reason)
        if count == sent:
            return Outcome(DeliveryResult.ACCEPTED)
        reason = f"HTTP {answer.status} says {count} of {sent} imported"
        # A lone reading that is politely not taken would otherwise be sent and read back for ever.
        refused = (sent, count) == (1, 0)
        return Outcome(DeliveryResult.REFUSED if refused else DeliveryResult.AMBIGUOUS, reason)
