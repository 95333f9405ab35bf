"""Read a Brewing Data Service politely: one request at a time, paced, tried again within bounds."""

import asyncio
import json
import logging
import random
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, NoReturn, TypeVar

import aiohttp

from gateway.clock import Clock
from gateway.domain.target import MIRROR_RATE
from gateway.errors import GatewayError, in_words
from gateway.formats.readings.rows import NumberLiteral
from gateway.forward.answers import FAILURES, TargetAnswer
from gateway.forward.backoff import full_jitter, parse_retry_after
from gateway.forward.client import JSON_TYPE, ServiceClient

log = logging.getLogger(__name__)

T = TypeVar("T")

_RANDOM = random.SystemRandom()

DEADLINE_S = 120.0
"""Seconds for one request, from resolving the host name to the last byte of the answer."""

JSON_BYTES = 16 * 1024 * 1024
"""Bytes that are read of a JSON answer: 1,000 readings have half a megabyte."""

TRIES = 5
"""Requests for one path at most, the first included."""

SILENCES = 3
"""Paths in a row without any answer, after which the service counts as gone."""

NO_ANSWER, OK, TOO_MANY = 0, 200, 429
KEY_REFUSED = frozenset({401, 403})
NOT_THERE = frozenset({404, 410})
PASSING = frozenset({NO_ANSWER, OK, 408, 425, TOO_MANY})
"""Statuses that another try may mend, besides all from 500 on; OK stands for an unusable body."""

Query = Mapping[str, str]


class MirrorStopped(GatewayError):
    """The run cannot go on."""


class RemoteUnreadable(GatewayError):
    """The service gives no usable answer for this path."""


class TooMuch(RemoteUnreadable):
    """The service's answer cannot be read; a smaller page might be readable."""


class NotThere(RemoteUnreadable):
    """The service has no such record."""


class RemoteService:
    """A Brewing Data Service to copy from: one base URL, read with one key."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        key: str,
        clock: Clock,
        *,
        rate: float = MIRROR_RATE,
        deadline_s: float = DEADLINE_S,
        draw: Callable[[], float] = _RANDOM.random,
    ) -> None:
        self._client = ServiceClient(session, base_url, key, deadline_s=deadline_s)
        self.name = self._client.base_url
        self.shown = self._client.shown
        self._clock = clock
        self._pause_s = 1 / rate
        self._draw = draw
        self._next_at = clock.monotonic()
        self._silences = 0
        self._longest: dict[str, int] = {}
        self.requests = 0

    async def json(self, path: str, query: Query | None = None) -> dict[str, Any]:
        """Return a JSON object that reports success, its numbers as the text that was sent."""
        return await self._get(path, query, JSON_TYPE, JSON_BYTES, success_of)

    async def document(self, path: str, query: Query | None, media: str, limit: int) -> bytes:
        """Return the bytes of a file, `limit` at most."""
        return await self._get(path, query, media, limit, bytes)

    def is_last(self, kind: str, length: int, asked: int) -> bool:
        """Return whether a page of this length must be the last of its list."""
        # Shorter than asked for is not enough, a last page is also shorter than an earlier one: a service may
        # cap its pages, at a hundred or at seven, and the cap is known only once a longer page has come.
        longest = self._longest.get(kind, 0)
        self._longest[kind] = max(longest, length)
        return length < min(asked, longest)

    async def _get(
        self, path: str, query: Query | None, media: str, limit: int, read: Callable[[bytes], T]
    ) -> T:
        """Ask until an answer is usable. `RemoteUnreadable` gives this path up, `MirrorStopped` the run."""
        for failures in count(1):
            now = self._clock.monotonic()
            wait = self._next_at - now
            self._next_at = max(now, self._next_at) + self._pause_s
            if wait > 0:
                await self._clock.sleep(wait)
            self.requests += 1
            try:
                answer = await self._client.request(path, limit, query, accept=media)
            except FAILURES as error:
                answer = TargetAnswer(trouble=in_words(error))
            self._silences = self._silences if answer.status == NO_ANSWER else 0
            if answer.status == OK and answer.body is not None:
                try:
                    return await asyncio.to_thread(read, answer.body)
                except (ValueError, RecursionError) as error:
                    answer.trouble = f"an answer that is none of a Brewing Data Service: {error}"
            self._check(answer)
            if failures == TRIES:
                self._give_up(answer)
            asked = parse_retry_after(answer.headers.get("retry-after"), self._clock.now())
            wait = max(full_jitter(failures, self._draw()), asked or 0.0)
            log.info("mirror: %s: %s; again in %.1f s", self.shown, self._client.reason(answer), wait)
            await self._clock.sleep(wait)
        raise AssertionError

    def _check(self, answer: TargetAnswer) -> None:
        """Raise an error if no other try would help."""
        status, reason = answer.status, self._client.reason(answer)
        if status in KEY_REFUSED:
            raise MirrorStopped(f"{self.shown} refuses the key ({reason}); look at the key file")
        if 300 <= status < 400:
            raise MirrorStopped(f"{self.shown}: {reason}; name the address that it redirects to instead")
        if status in NOT_THERE:
            raise NotThere(reason)
        if answer.too_long:
            raise TooMuch(reason)
        if not (status in PASSING or status >= 500):
            raise RemoteUnreadable(reason)

    def _give_up(self, answer: TargetAnswer) -> NoReturn:
        reason = self._client.reason(answer)
        if answer.status == TOO_MANY:
            raise MirrorStopped(f"{self.shown} asks for fewer requests ({reason}); try a lower --rate later")
        if answer.status == NO_ANSWER:
            self._silences += 1
        if self._silences >= SILENCES:
            raise MirrorStopped(f"{self.shown} does not answer ({reason}); the next run goes on from here")
        raise (TooMuch if answer.status == OK else RemoteUnreadable)(reason)


def success_of(body: bytes) -> dict[str, Any]:
    """Return a JSON object that reports success, its numbers as the text that was sent; else `ValueError`."""

    def refuse(literal: str) -> NoReturn:
        raise ValueError(f"{literal} is not JSON")

    document = json.loads(body, parse_float=NumberLiteral, parse_int=NumberLiteral, parse_constant=refuse)
    if not isinstance(document, dict) or document.get("message", "success") != "success":
        raise ValueError("no JSON object of a success")
    return document
