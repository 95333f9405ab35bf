"""A Brewing Data Service as a target: one POST to import, one GET to read back, every ending an `Outcome`."""

import asyncio
import json
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from gateway.clock import Clock
from gateway.domain.delivery import Batch, Outcome, Verdict
from gateway.errors import GatewayError
from gateway.forward.backoff import parse_retry_after
from gateway.limits import is_local

DEADLINE_S = 30.0
"""From the first look at the host name to the last byte of the answer."""

ANSWER_BYTES = 1024 * 1024
"""Read of an answer to an import at most."""

READ_BACK_BYTES = 16 * 1024 * 1024
"""Read of a read-back at most: some 40,000 readings."""

WRITE_BYTES = 64 * 1024
"""Written of a body at once, so that a large one does not hold the loop."""

DETAIL_CHARS = 200
"""Kept of what a target says about itself."""

LOCAL_SUFFIXES = (".local", ".lan")

KEPT_STATUSES = frozenset({408, 425, 429})
TARGET_PAUSED_STATUSES = frozenset({401, 403, 405, 410, 415})
"""A wrong key or a wrong base URL: nothing that a smaller batch would mend."""

SESSION_PAUSED_STATUS = 404

FAILURES = (aiohttp.ClientError, OSError, TimeoutError)
"""Whatever a network, a TLS handshake or a broken answer can raise."""


@dataclass(frozen=True, slots=True)
class SessionPaused(Outcome):
    """`PAUSED`, but only for the brew session of this batch: the others may go on."""


class ReadBackFailed(GatewayError):
    """What the target holds could not be read; the attempt stays ambiguous."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class TooLong(Exception):
    """The answer is longer than its cap."""


class Body(aiohttp.payload.Payload):
    """A JSON body that knows whether any of it may have left the machine."""

    _autoclose = True
    _value: bytes

    def __init__(self, value: bytes) -> None:
        super().__init__(value, content_type="application/json")
        self._size = len(value)
        self.begun = False

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The body as text."""
        return self._value.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Called by aiohttp once there is a connection, and never before."""
        self.begun = True
        for start in range(0, len(self._value), WRITE_BYTES):
            await writer.write(self._value[start : start + WRITE_BYTES])


@dataclass(slots=True)
class Answer:
    """What came back, as far as it came. `body` is None where it could not be read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes | None = None
    trouble: str = ""


class ImportTarget:
    """Endpoints 1 and 2 of the specification at one base URL; the key goes to that host and no other."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        key: str,
        clock: Clock,
        *,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._session = session
        self._name = base_url.rstrip("/")
        self._key = key
        self._clock = clock
        self._deadline_s = deadline_s

    @property
    def name(self) -> str:
        """The base URL; the watermarks of the outbox are kept under it."""
        return self._name

    async def send(self, batch: Batch) -> Outcome:
        """Import the readings, never with reset; says how it ended and raises for no network trouble."""
        body = Body(f"[{','.join(batch.rows)}]".encode())
        url = f"{self._name}/v1/fermentation/{batch.upstream_id}/import"
        try:
            answer = await self._request("POST", url, ANSWER_BYTES, body, None)
        except FAILURES as error:
            verdict = Verdict.AMBIGUOUS if body.begun else Verdict.KEPT
            return Outcome(verdict, self._clean(_said(error)))
        return self._judge(answer, len(batch.rows))

    async def read_back(self, upstream_id: int, first_day: date, last_day: date) -> list[dict[str, Any]]:
        """Every reading the target holds of those days, both included; `ReadBackFailed` if unsure."""
        url = f"{self._name}/v1/fermentation/{upstream_id}"
        query = {"from": first_day.isoformat(), "to": last_day.isoformat()}
        try:
            answer = await self._request("GET", url, READ_BACK_BYTES, None, query)
        except FAILURES as error:
            raise ReadBackFailed(Outcome(Verdict.AMBIGUOUS, self._clean(_said(error)))) from error
        document = await asyncio.to_thread(_document, answer.body)
        message = document.get("message")
        if answer.status == SESSION_PAUSED_STATUS and message == "not-found":
            return []  # "no records found" is also the words for a brew session that has no readings yet
        readings = document.get("readings")
        if answer.status == 200 and message == "success" and isinstance(readings, list):
            return [reading for reading in readings if isinstance(reading, dict)]
        raise ReadBackFailed(self._unread(answer))

    async def _request(
        self, method: str, url: str, cap: int, body: Body | None, query: dict[str, str] | None
    ) -> Answer:
        headers = {"X-API-KEY": self._key, "Accept": "application/json", "Accept-Encoding": "identity"}
        request = self._session.request(
            method,
            url,
            data=body,
            params=query,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(),  # none of its own: the one deadline below covers everything
        )
        async with asyncio.timeout(self._deadline_s), request as response:
            answer = Answer(response.status, {name.lower(): text for name, text in response.headers.items()})
            try:
                answer.body = await _read(response, cap)
            except TooLong:
                response.close()
                answer.trouble = f"an answer of more than {cap} bytes"
            except FAILURES as error:  # the status stands, whatever became of the rest
                answer.trouble = f"an answer that broke off: {_said(error)}"
            return answer

    def _judge(self, answer: Answer, sent: int) -> Outcome:
        status, reason = answer.status, self._reason(answer)
        if 200 <= status < 300:
            return self._receipt(answer, sent)
        if 300 <= status < 400 or status in TARGET_PAUSED_STATUSES:
            return Outcome(Verdict.PAUSED, reason)
        if status == SESSION_PAUSED_STATUS:
            return SessionPaused(Verdict.PAUSED, reason)
        if status in KEPT_STATUSES:
            return Outcome(Verdict.KEPT, reason, self._retry_after(answer))
        if 400 <= status < 500:
            return Outcome(Verdict.REFUSED, reason)
        return Outcome(Verdict.AMBIGUOUS, reason, self._retry_after(answer))

    def _receipt(self, answer: Answer, sent: int) -> Outcome:
        document = _document(answer.body)
        imported = document.get("imported")
        count = imported.get("count") if isinstance(imported, dict) else None
        if document.get("message") != "success" or type(count) is not int:
            what = answer.trouble or "a body that says nothing we know"
            return Outcome(Verdict.AMBIGUOUS, self._clean(f"HTTP {answer.status} with {what}"))
        if count == sent:
            return Outcome(Verdict.ACCEPTED)
        reason = f"HTTP {answer.status} says {count} of {sent} imported"
        # A lone reading that is politely not taken would otherwise be sent and read back for ever.
        return Outcome(Verdict.REFUSED if (sent, count) == (1, 0) else Verdict.AMBIGUOUS, reason)

    def _unread(self, answer: Answer) -> Outcome:
        judged = self._judge(answer, sent=0)
        verdict = Verdict.PAUSED if judged.verdict is Verdict.PAUSED else Verdict.AMBIGUOUS
        return replace(judged, verdict=verdict, reason=f"read-back: {judged.reason or 'no readings in it'}")

    def _retry_after(self, answer: Answer) -> float | None:
        return parse_retry_after(answer.headers.get("retry-after"), self._clock.now())

    def _reason(self, answer: Answer) -> str:
        if 300 <= answer.status < 400:
            where = _host(answer.headers.get("location", ""))
            return self._clean(f"HTTP {answer.status} redirects to {where}, which is not followed")
        detail = _document(answer.body).get("detail") if len(answer.body or b"") <= ANSWER_BYTES else None
        told = detail if isinstance(detail, str) else answer.trouble
        return self._clean(f"HTTP {answer.status}{': ' if told else ''}{told}")

    def _clean(self, text: str) -> str:
        """One printable line, and never our key, even where a target repeats it."""
        hidden = text.replace(self._key, "<key>") if self._key else text
        return "".join(char if char.isprintable() else " " for char in hidden)[:DETAIL_CHARS]


def sends_key_in_the_clear(base_url: str) -> bool:
    """Whether the key would cross more than the local network as plain text."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").rstrip(".")
    local = host == "localhost" or host.endswith(LOCAL_SUFFIXES) or is_local(host)
    return parts.scheme == "http" and not local


async def _read(response: aiohttp.ClientResponse, cap: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > cap:
            raise TooLong
    return bytes(body)


def _document(body: bytes | None) -> dict[str, Any]:
    """The JSON object in the answer, empty where there is none. Blocks for as long as parsing takes."""
    try:
        document = json.loads(body) if body else None
    except (ValueError, RecursionError):  # a thousand opening brackets are enough for the latter
        return {}
    return document if isinstance(document, dict) else {}


def _host(location: str) -> str:
    try:
        return urlsplit(location).netloc.rpartition("@")[2] or "a path on the same host"
    except ValueError:
        return "somewhere unreadable"


def _said(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer within the deadline"
    return str(error) or type(error).__name__
