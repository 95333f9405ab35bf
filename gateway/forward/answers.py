"""HTTP messages to and from a Brewing Data Service.

A body knows whether any of it has left this machine; an answer is read within bounds.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from gateway.errors import in_words

FAILURES = (aiohttp.ClientError, OSError, TimeoutError)
"""Exceptions of a network, a TLS handshake or a broken answer."""

WRITE_BYTES = 64 * 1024
"""Bytes of a body that are written at once, so that a large body does not hold the event loop."""


class SentBody(aiohttp.payload.Payload):
    """A JSON body that knows whether any of it may have left the machine."""

    _autoclose = True
    _value: bytes

    def __init__(self, value: bytes) -> None:
        super().__init__(value, content_type="application/json")
        self._size = len(value)
        self.begun = False

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the body as text."""
        return self._value.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the body. aiohttp calls this once there is a connection, and never before."""
        self.begun = True
        for start in range(0, len(self._value), WRITE_BYTES):
            await writer.write(self._value[start : start + WRITE_BYTES])


@dataclass(slots=True)
class TargetAnswer:
    """An answer as far as it was received; header names in lower case.

    `status` is 0 without an answer. `body` is None if it was not read to its end, for the reason `trouble`.
    """

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    trouble: str = ""
    too_long: bool = False


async def read_answer(response: aiohttp.ClientResponse, limit: int) -> TargetAnswer:
    """Read an answer of at most `limit` bytes, not compressed.

    The status is kept even if the body cannot be read.
    """
    answer = TargetAnswer(response.status, {name.lower(): text for name, text in response.headers.items()})
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        # Not decompressed, because one megabyte of gzip can hold a gigabyte.
        response.close()
        answer.trouble = "a compressed answer, which was not asked for"
        return answer
    body = bytearray()
    try:
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > limit:
                response.close()
                answer.trouble, answer.too_long = f"an answer of more than {limit} bytes", True
                return answer
        answer.body = bytes(body)
    except FAILURES as error:
        answer.trouble = f"an answer that broke off: {in_words(error)}"
    return answer


def document_of(body: bytes | None) -> dict[str, Any]:
    """Return the JSON object in the body; empty without one. Blocks for as long as parsing takes."""
    try:
        document = json.loads(body) if body else None
    except (ValueError, RecursionError):  # a thousand opening brackets are enough for the latter
        return {}
    return document if isinstance(document, dict) else {}


async def document_aside(body: bytes | None) -> dict[str, Any]:
    """Parse a large body with `document_of` in a thread."""
    return await asyncio.to_thread(document_of, body)


def host_of(location: str) -> str:
    """Return the host that a redirect leads to, without user, path and query: these may be secret."""
    try:
        return urlsplit(location).netloc.rpartition("@")[2] or "a path on the same host"
    except ValueError:
        return "somewhere unreadable"
