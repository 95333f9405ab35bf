"""A Brewing Data Service as a target: one POST to import, GETs to read back, every ending an `Outcome`."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import aiohttp

from gateway.clock import Clock
from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.domain.target import PER_MINUTE
from gateway.errors import FAILURES, ConfigError, GatewayError, in_words
from gateway.forward.answers import (
    SentBody,
    TargetAnswer,
    document_aside,
    document_of,
    host_of,
    received,
)
from gateway.forward.backoff import RateLimiter, parse_retry_after

DEADLINE_S = 30.0
"""From the first look at the host name to the last byte of the answer."""

ANSWER_BYTES = 1024 * 1024
"""Read of an answer to an import at most."""

READ_BACK_BYTES = 16 * 1024 * 1024
"""Read of one page of a read-back at most."""

PAGE_READINGS = 1000
"""Asked for in one page of a read-back: half a megabyte."""

PAGES = 10_000
"""Of one read-back at most: a service that ignores `skip` must not be asked for ever."""

SHRINK = 10
"""A page that is too long is asked for again at this fraction of its size."""

ROUND = 10
"""A page shorter than asked whose length is a multiple of this may be what the service cuts pages to."""

DETAIL_CHARS = 200
"""Kept of what a target says about itself."""


KEPT_STATUSES = frozenset({408, 425, 429})
TARGET_PAUSED_STATUSES = frozenset({401, 403, 405, 410, 415})
"""A wrong key or a wrong base URL: nothing that a smaller batch would mend."""

SESSION_PAUSED_STATUS = 404

Key = str | Callable[[], str]
"""An API key, or where it is read from for each request: a key that is replaced works at once."""

Concerns = Callable[[Mapping[str, Any]], bool]
"""Whether a reading that was read back is of interest; the others are not kept in memory."""


@dataclass(frozen=True, slots=True)
class SessionPaused(Outcome):
    """`PAUSED`, but only for the brew session of this batch: the others may go on."""


class ReadBackFailed(GatewayError):
    """What the target holds could not be read; the attempt stays ambiguous."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class ImportTarget:
    """Endpoints 1 and 2 of the specification at one base URL; the key goes to that host and no other."""

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
        self._session = session
        self._name = base_url.rstrip("/")
        self._read_key = key if callable(key) else lambda: key
        self._key = ""
        self._clock = clock
        self._pace = RateLimiter(per_minute, clock)
        self._deadline_s = deadline_s

    @property
    def name(self) -> str:
        """The base URL; the watermarks of the outbox are kept under it."""
        return self._name

    async def turn(self) -> None:
        """Wait until another request may go there; before each `send`, whose time begins after that."""
        await self._pace.acquire()

    async def send(self, batch: Batch) -> Outcome:
        """Import the readings, never with reset; says how it ended and raises for no network trouble."""
        body = SentBody(f"[{','.join(batch.rows)}]".encode())
        path = f"/v1/fermentation/{batch.upstream_id}/import"
        try:
            answer = await self._request("POST", path, ANSWER_BYTES, body, None)
        except ConfigError as error:
            return Outcome(DeliveryResult.PAUSED, str(error))
        except FAILURES as error:
            verdict = DeliveryResult.AMBIGUOUS if body.begun else DeliveryResult.KEPT
            return Outcome(verdict, self._clean(in_words(error)))
        return self._judge(answer, len(batch.rows))

    async def read_back(
        self, upstream_id: int, days: tuple[date, date], concerns: Concerns = lambda _: True
    ) -> list[dict[str, Any]]:
        """What the target holds of those days, both included; `ReadBackFailed` if unsure.

        Page by page, so that neither its size nor the deadline of a request is a bound.
        """
        path = f"/v1/fermentation/{upstream_id}"
        query = {"from": days[0].isoformat(), "to": days[1].isoformat()}
        found: list[dict[str, Any]] = []
        place, size = 0, PAGE_READINGS
        previous: list[Any] | None = None
        for _ in range(PAGES):
            await self.turn()
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
        """The readings of a page; None where fewer of them might be short enough."""
        answer = await self.look(path, query)
        document = await document_aside(answer.body)
        message = document.get("message")
        if answer.status == SESSION_PAUSED_STATUS and message == "not-found":
            return []  # "no records found" is also the words for a brew session that has no readings yet
        readings = document.get("readings")
        if answer.status == 200 and message == "success" and isinstance(readings, list):
            return readings
        if answer.status == 200 and answer.too_long and size > 1:
            return None
        raise ReadBackFailed(self._unread(answer))

    async def look(self, path: str, query: dict[str, str]) -> TargetAnswer:
        """The answer to a GET; `ReadBackFailed` where there is none. For a path that begins with `/v1/`."""
        try:
            return await self._request("GET", path, READ_BACK_BYTES, None, query)
        except ConfigError as error:
            raise ReadBackFailed(Outcome(DeliveryResult.PAUSED, str(error))) from error
        except FAILURES as error:
            raise ReadBackFailed(Outcome(DeliveryResult.AMBIGUOUS, self._clean(in_words(error)))) from error

    async def _request(
        self, method: str, path: str, cap: int, body: SentBody | None, query: dict[str, str] | None
    ) -> TargetAnswer:
        self._key = self._read_key()
        headers = {"X-API-KEY": self._key, "Accept": "application/json", "Accept-Encoding": "identity"}
        request = self._session.request(
            method,
            f"{self._name}{path}",
            data=body,
            params=query,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(),  # none of its own: the one deadline below covers everything
        )
        async with asyncio.timeout(self._deadline_s), request as response:
            return await received(response, cap)

    def _judge(self, answer: TargetAnswer, sent: int) -> Outcome:
        status, reason = answer.status, self.reason(answer)
        if 200 <= status < 300:
            return self._receipt(answer, sent)
        if 300 <= status < 400 or status in TARGET_PAUSED_STATUSES:
            return Outcome(DeliveryResult.PAUSED, reason)
        if status == SESSION_PAUSED_STATUS:
            return SessionPaused(DeliveryResult.PAUSED, reason)
        if status in KEPT_STATUSES:
            return Outcome(DeliveryResult.KEPT, reason, self._retry_after(answer))
        if 400 <= status < 500:
            return Outcome(DeliveryResult.REFUSED, reason)
        return Outcome(DeliveryResult.AMBIGUOUS, reason, self._retry_after(answer))

    def _receipt(self, answer: TargetAnswer, sent: int) -> Outcome:
        document = document_of(answer.body)
        imported = document.get("imported")
        count = imported.get("count") if isinstance(imported, dict) else None
        if document.get("message") != "success" or type(count) is not int:
            what = answer.trouble or "a body that says nothing we know"
            return Outcome(DeliveryResult.AMBIGUOUS, self._clean(f"HTTP {answer.status} with {what}"))
        if count == sent:
            return Outcome(DeliveryResult.ACCEPTED)
        reason = f"HTTP {answer.status} says {count} of {sent} imported"
        # A lone reading that is politely not taken would otherwise be sent and read back for ever.
        return Outcome(
            DeliveryResult.REFUSED if (sent, count) == (1, 0) else DeliveryResult.AMBIGUOUS, reason
        )

    def _unread(self, answer: TargetAnswer) -> Outcome:
        judged = self._judge(answer, sent=0)
        verdict = (
            DeliveryResult.PAUSED if judged.verdict is DeliveryResult.PAUSED else DeliveryResult.AMBIGUOUS
        )
        return replace(judged, verdict=verdict, reason=f"read-back: {judged.reason or 'no readings in it'}")

    def _retry_after(self, answer: TargetAnswer) -> float | None:
        return parse_retry_after(answer.headers.get("retry-after"), self._clock.now())

    def reason(self, answer: TargetAnswer) -> str:
        """The status and what the target says of it, in one line."""
        if 300 <= answer.status < 400:
            where = host_of(answer.headers.get("location", ""))
            return self._clean(f"HTTP {answer.status} redirects to {where}, which is not followed")
        detail = document_of(answer.body).get("detail") if len(answer.body or b"") <= ANSWER_BYTES else None
        told = detail if isinstance(detail, str) else answer.trouble
        return self._clean(f"HTTP {answer.status}{': ' if told else ''}{told}")

    def _clean(self, text: str) -> str:
        """One printable line, and never our key, even where a target repeats it."""
        hidden = text.replace(self._key, "<key>") if self._key else text
        return "".join(char if char.isprintable() else " " for char in hidden)[:DETAIL_CHARS]
