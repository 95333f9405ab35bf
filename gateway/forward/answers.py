"""What goes to a target and what comes back: bodies that know whether they left, answers within bounds."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from gateway.errors import FAILURES, in_words

WRITE_BYTES = 64 * 1024
"""Written of a body at once, so that a large one does not hold the loop."""


class TooLong(Exception):
    """The answer is longer than its cap."""


class SentBody(aiohttp.payload.Payload):
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
class TargetAnswer:
    """What came back, as far as it came. `body` is None where it could not be read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes | None = None
    trouble: str = ""
    too_long: bool = False


async def received(response: aiohttp.ClientResponse, cap: int) -> TargetAnswer:
    """The answer, `cap` bytes of it at most; the status stands, whatever becomes of the rest."""
    answer = TargetAnswer(response.status, {name.lower(): text for name, text in response.headers.items()})
    try:
        answer.body = await _read(response, cap)
    except TooLong:
        response.close()
        answer.trouble, answer.too_long = f"an answer of more than {cap} bytes", True
    except FAILURES as error:
        answer.trouble = f"an answer that broke off: {in_words(error)}"
    return answer


async def _read(response: aiohttp.ClientResponse, cap: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > cap:
            raise TooLong
    return bytes(body)


def document_of(body: bytes | None) -> dict[str, Any]:
    """The JSON object in the answer, empty where there is none. Blocks for as long as parsing takes."""
    try:
        document = json.loads(body) if body else None
    except (ValueError, RecursionError):  # a thousand opening brackets are enough for the latter
        return {}
    return document if isinstance(document, dict) else {}


async def document_aside(body: bytes | None) -> dict[str, Any]:
    """The same in a thread."""
    return await asyncio.to_thread(document_of, body)


def host_of(location: str) -> str:
    """Where a redirect leads, without what may be secret in it."""
    try:
        return urlsplit(location).netloc.rpartition("@")[2] or "a path on the same host"
    except ValueError:
        return "somewhere unreadable"
