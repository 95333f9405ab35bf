"""Reading a Brewing Data Service politely: one request at a time, paced, retried within bounds."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, NoReturn, TypeVar

import aiohttp

from gateway import __version__
from gateway.clock import Clock
from gateway.domain.target import MIRROR_RATE
from gateway.errors import GatewayError
from gateway.failures import FAILURES, in_words
from gateway.forward.answers import host_of
from gateway.forward.backoff import full_jitter, parse_retry_after
from gateway.forward.import_target import DETAIL_CHARS
from gateway.mirror.answers import Answer, detail_of, document_of, received

log = logging.getLogger(__name__)

T = TypeVar("T")

_RANDOM = random.SystemRandom()

DEADLINE_S = 120.0
"""For one request, from the first look at the host name to the last byte of the answer."""

JSON_BYTES = 16 * 1024 * 1024
"""Read of a JSON answer at most: 1,000 readings have half a megabyte."""

TRIES = 5
"""Requests for one thing at most."""

SILENCES = 3
"""Things in a row that nobody answered to; then the service counts as gone."""

USER_AGENT = f"hydrometer-gateway/{__version__}"

JSON_TYPE = "application/json"

NO_ANSWER, OK, TOO_MANY = 0, 200, 429
KEY_REFUSED = frozenset({401, 403})
NOT_THERE = frozenset({404, 410})
PASSING = frozenset({NO_ANSWER, OK, 408, 425, TOO_MANY})
"""Endings that another try may mend, beside everything from 500 on; 200 is one without a usable body."""

Query = Mapping[str, str]


class MirrorStopped(GatewayError):
    """The copying cannot go on."""


class RemoteUnreadable(GatewayError):
    """The service gives no usable answer about this."""


class TooMuch(RemoteUnreadable):
    """The service's answer cannot be read; one about less might be."""


class NotThere(RemoteUnreadable):
    """The service has no such record."""


class RemoteService:
    """One base URL, read with one key that goes to that host and no other."""

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
        self._session = session
        self.name = base_url.rstrip("/")
        self._key = key
        self._clock = clock
        self._pause_s = 1 / rate
        self._deadline_s = deadline_s
        self._draw = draw
        self._next_at = clock.monotonic()
        self._silences = 0
        self._longest: dict[str, int] = {}
        self.requests = 0

    async def json(self, path: str, query: Query | None = None) -> dict[str, Any]:
        """A JSON object that says success, its numbers as the text that was sent."""
        return await self._get(path, query, JSON_TYPE, JSON_BYTES, document_of)

    async def document(self, path: str, query: Query | None, media: str, limit: int) -> bytes:
        """The bytes of a file, `limit` at most."""
        return await self._get(path, query, media, limit, bytes)

    def is_last(self, kind: str, length: int, asked: int) -> bool:
        """Whether a page of this length must be the last of its list.

        It is where fewer came than were asked for, and than came before: what a service cuts pages to, a
        hundred or seven, is known once longer pages have come. Until then the next page is asked for.
        """
        longest = self._longest.get(kind, 0)
        self._longest[kind] = max(longest, length)
        return length < min(asked, longest)

    async def _get(
        self, path: str, query: Query | None, media: str, limit: int, read: Callable[[bytes], T]
    ) -> T:
        """Ask until an answer is usable. `RemoteUnreadable` is about this one, `MirrorStopped` about all."""
        for failures in count(1):
            await self._pace()
            answer = await self._ask(path, query or {}, media, limit)
            self._silences = self._silences if answer.status == NO_ANSWER else 0
            if answer.status == OK and answer.body is not None:
                try:
                    return await asyncio.to_thread(read, answer.body)
                except (ValueError, RecursionError) as error:
                    answer.trouble = f"an answer that says nothing we know: {error}"
            self._check(answer)
            if failures == TRIES:
                self._give_up(answer)
            await self._wait(answer, failures)
        raise AssertionError

    async def _pace(self) -> None:
        now = self._clock.monotonic()
        wait = self._next_at - now
        self._next_at = max(now, self._next_at) + self._pause_s
        if wait > 0:
            await self._clock.sleep(wait)

    async def _ask(self, path: str, query: Query, media: str, limit: int) -> Answer:
        headers = {
            "X-API-KEY": self._key,
            "Accept": media,
            "Accept-Encoding": "identity",
            "User-Agent": USER_AGENT,
        }
        self.requests += 1
        try:
            request = self._session.get(
                f"{self.name}{path}",
                params=query,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(),  # none of its own: the one deadline covers everything
            )
            async with asyncio.timeout(self._deadline_s), request as response:
                return await received(response, limit)
        except FAILURES as error:
            return Answer(trouble=in_words(error))

    def _check(self, answer: Answer) -> None:
        """Raise where no other try would help."""
        status, reason = answer.status, self._reason(answer)
        if status in KEY_REFUSED:
            raise MirrorStopped(f"{self.name} refuses the key ({reason}); look at the key file")
        if 300 <= status < 400:
            raise MirrorStopped(f"{self.name}: {reason}; name the address that it redirects to instead")
        if status in NOT_THERE:
            raise NotThere(reason)
        if answer.too_long:
            raise TooMuch(reason)
        if not (status in PASSING or status >= 500):
            raise RemoteUnreadable(reason)

    async def _wait(self, answer: Answer, failures: int) -> None:
        asked = parse_retry_after(answer.headers.get("retry-after"), self._clock.now())
        wait = max(full_jitter(failures, self._draw()), asked or 0.0)
        log.info("mirror: %s: %s; again in %.1f s", self.name, self._reason(answer), wait)
        await self._clock.sleep(wait)

    def _give_up(self, answer: Answer) -> NoReturn:
        reason = self._reason(answer)
        if answer.status == TOO_MANY:
            raise MirrorStopped(f"{self.name} asks for fewer requests ({reason}); try a lower --rate later")
        if answer.status == NO_ANSWER:
            self._silences += 1
        if self._silences >= SILENCES:
            raise MirrorStopped(f"{self.name} does not answer ({reason}); the next run goes on from here")
        raise (TooMuch if answer.status == OK else RemoteUnreadable)(reason)

    def _reason(self, answer: Answer) -> str:
        """One printable line, and never our key, even where the service repeats it."""
        told = answer.trouble
        if 300 <= answer.status < 400:
            told = f"redirects to {host_of(answer.headers.get('location', ''))}, which is not followed"
        elif not told and answer.status != OK:
            told = detail_of(answer.body)
        status = f"HTTP {answer.status}{': ' if told else ''}" if answer.status else ""
        text = f"{status}{told}".replace(self._key, "<key>") if self._key else f"{status}{told}"
        return "".join(char if char.isprintable() else " " for char in text)[:DETAIL_CHARS]
