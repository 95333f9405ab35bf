"""The short way for plain posts of devices: around aiohttp's parser, task, router, middlewares and response.

A connection shows each segment to the short way first, which takes a segment that is exactly one plain post.
Any other segment goes to aiohttp, and the rest of that connection with it. So aiohttp's parser always begins
between two requests, and all other requests are answered as if there were no short way.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache
from typing import Any, NamedTuple

from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestHandler

from gateway.clock import Clock
from gateway.domain.payload import Payload
from gateway.errors import GatewayError
from gateway.http.hardening import harden
from gateway.http.middleware import answer_to, failed
from gateway.http.peers import address_of
from gateway.http.request_head import BODY_BYTES
from gateway.intake.intake import Intake
from gateway.intake.ordinary import Taken
from gateway.network import Admission, Peer

HEADS = 512
"""Heads of plain posts that are remembered by their bytes. The oldest is forgotten first."""

HEAD_BYTES = 512
"""Bytes of a plain head at most. All heads together take a quarter of a megabyte."""

PLAIN_HEADERS = frozenset(
    {
        *(b"host", b"user-agent", b"content-type", b"content-length"),
        *(b"accept", b"accept-encoding", b"cache-control", b"connection"),
    }
)
"""Headers of a plain post. With others a key, a proxy, a browser's page or a coding may come into play."""

JSON = {hdrs.CONTENT_TYPE: "application/json"}
"""Headers of the answer to a post that was taken."""

_LENGTH_NAME = str(hdrs.CONTENT_LENGTH).encode()
_REQUEST_LINE = re.compile(rb"POST ([!-~]+) HTTP/1\.1")
_HEADER = re.compile(rb"([A-Za-z-]+):[ \t]*([ -~]*)")
_LENGTH = re.compile(rb"[1-9][0-9]{0,4}")
_HEAD_END = b"\r\n\r\n"


class PlainPath(NamedTuple):
    """A path for plain posts.

    `payload` makes a payload of a body, its arrival (Unix seconds) and its sender. `answer` makes the body of
    the answer.
    """

    path: str
    payload: Callable[[bytes, float, str], Payload]
    answer: Callable[[Taken], bytes]


class ShortWay:
    """The short way of all connections: its paths, the heads that it remembers, the answer of this second.

    `common` is the body of nearly all answers.
    """

    def __init__(
        self,
        paths: Mapping[bytes, PlainPath],
        common: bytes,
        intake: Intake,
        admission: Admission,
        clock: Clock,
    ) -> None:
        self.heads: dict[bytes, tuple[PlainPath, int]] = {}
        self.intake = intake
        self.admission = admission
        self.clock = clock
        self._paths = paths
        self._common = common
        self._second = 0
        self._whole = self._before = self._behind = b""

    def read(self, head: bytes) -> tuple[PlainPath, int] | None:
        """Return the path and the length of the body if a head is plain, and remember the head; else None."""
        line, *lines = head.split(b"\r\n") if len(head) <= HEAD_BYTES else [b""]
        first = _REQUEST_LINE.fullmatch(line)
        path = None if first is None else self._paths.get(first[1])
        headers: dict[bytes, bytes] = {}
        for line in lines:
            match = _HEADER.fullmatch(line)
            name = b"" if match is None else match[1].lower()
            if match is None or name not in PLAIN_HEADERS or name in headers:
                return None
            headers[name] = match[2].strip(b" ")
        length = headers.get(b"content-length", b"")
        if (
            path is None
            or b"host" not in headers
            or headers.get(b"connection", b"keep-alive").lower() != b"keep-alive"
            or _LENGTH.fullmatch(length) is None
            or int(length) > BODY_BYTES
        ):
            return None
        if len(self.heads) >= HEADS:
            del self.heads[next(iter(self.heads))]
        found = self.heads[head] = path, int(length)
        return found

    def answer(self, path: PlainPath, result: Taken | Exception) -> bytes:
        """Return the answer to a post on this path, head and body."""
        if isinstance(result, Taken):
            try:
                return self._success(path.answer(result))
            except Exception as error:  # kept from the writer, because it has other readings to settle
                result = error
        if isinstance(result, GatewayError):
            return _written(answer_to(result))
        return _written(failed(hdrs.METH_POST, path.path, result))

    def _success(self, body: bytes) -> bytes:
        if (second := int(time.time())) != self._second:
            self._second = second
            self._whole = _written(web.Response(body=self._common, headers=JSON))
            head = self._whole.removesuffix(self._common)
            self._before, _, self._behind = head.partition(b"%b: %d" % (_LENGTH_NAME, len(self._common)))
        if body is self._common:
            return self._whole
        return b"%b%b: %d%b%b" % (self._before, _LENGTH_NAME, len(body), self._behind, body)


class PostHandler(RequestHandler):
    """A connection of aiohttp whose plain posts go the short way, until a segment is not a plain post.

    `line` is the connection's transport.
    """

    __slots__ = ("_end", "_kept", "_path", "_peer", "_steps", "_way", "line")

    def __init__(
        self, server: web.Server, line: asyncio.Transport, way: ShortWay | None, **options: Any
    ) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self.line = line
        self._way = way
        self._peer = None if way is None else local_peer(address_of(line))
        self._path: PlainPath | None = None
        self._kept = b""
        self._steps: asyncio.Task[None] | None = None
        self._end: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin. aiohttp's deadline for the next request is off until the first that aiohttp sees."""
        super().connection_made(transport)
        self.keep_alive(True)

    @property
    def is_posting(self) -> bool:
        """True while the answer to a plain post is under way."""
        return self._path is not None

    def take(self, data: bytes) -> bool:
        """Take the bytes of a plain post; return False if the bytes and all that follow are aiohttp's."""
        if self._path is not None:
            # Kept back, because answers go out in the order of their requests.
            self._kept += data
            self.line.pause_reading()
            return True
        way, peer = self._way, self._peer
        if way is None or peer is None:
            return False
        head, _, body = data.partition(_HEAD_END)
        found = way.heads.get(head) or way.read(head)
        # A client that reads no answers, or posts too often, waits behind aiohttp.
        if found is None or found[1] != len(body) or self._paused or way.admission.take(peer):
            self._peer = None
            return False
        self._request_count += 1
        self._path = path = found[0]
        payload = path.payload(body, way.clock.now(), peer.address)
        if not way.intake.take_now(payload, self.settle):
            self._steps = asyncio.create_task(self._take_in_steps(way, payload))
        return True

    async def _take_in_steps(self, way: ShortWay, payload: Payload) -> None:
        result: Taken | Exception
        try:
            result = await way.intake.take_in_steps(payload)
        except Exception as error:
            result = error
        self._steps = None
        self.settle(result)

    def settle(self, result: Taken | Exception) -> None:
        """Answer the post under way, and go on with the bytes that were kept back."""
        way, path, self._path = self._way, self._path, None
        if self._end is not None and not self._end.done():
            self._end.set_result(None)
        if way is None or path is None or self.line.is_closing():
            return  # the client has gone, and with it the bytes that were kept back
        self.line.write(way.answer(path, result))
        if self._kept:
            kept, self._kept = self._kept, b""
            self.line.resume_reading()
            self.data_received(kept)

    async def shutdown(self, timeout: float | None = 15.0) -> None:  # noqa: ASYNC109  (aiohttp's own)
        """End the connection once the answer under way is written, or after `timeout` seconds."""
        self._peer = None
        if self._path is not None and not self.line.is_closing():
            self._end = asyncio.get_running_loop().create_future()
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._end
            self._end = None
        if self._steps is not None:
            self._steps.cancel()
        await super().shutdown(timeout)


@lru_cache(maxsize=1024)
def local_peer(address: str) -> Peer | None:
    """Return the peer at an address on the local network, which needs no key to report; else None."""
    peer = Peer(address)
    return peer if peer.is_neighbour else None


def _written(response: web.Response) -> bytes:
    """Return an answer as aiohttp writes it on a connection that stays open."""
    body = response.body
    assert isinstance(body, bytes)  # noqa: S101  (answers here have one, and no stream)
    response.headers[hdrs.CONTENT_LENGTH] = str(len(body))
    response.headers[hdrs.DATE] = formatdate(time.time(), usegmt=True)
    harden(response)
    lines = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
    return f"HTTP/1.1 {response.status} {response.reason}\r\n{lines}\r\n".encode() + body
