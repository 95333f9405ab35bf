"""A document that is made once and answered many times: plain or compressed, with an ETag."""

import asyncio
import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from aiohttp import hdrs, web

from gateway.http.gzipped import GZIP, compressed_tag, not_modified, takes_gzip

TAG_BYTES = 16


@dataclass(frozen=True, slots=True)
class Coding:
    """A document as it is sent: its bytes, and its strong ETag in quotes."""

    body: bytes
    tag: str


class KeptDocument:
    """A document made at its first request, because most gateways are never asked for it.

    `make` returns the document. It takes a quarter of a second, so it runs once, and in a thread.
    """

    def __init__(
        self, make: Callable[[], bytes], content_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self._make = make
        self._making = asyncio.Lock()
        self._codings: tuple[Coding, Coding] | None = None
        self._headers = {
            hdrs.CONTENT_TYPE: f"{content_type}; charset=utf-8",
            # A browser asks again each time, at the cost of a 304: the document changes with the version.
            hdrs.CACHE_CONTROL: "no-cache",
            hdrs.VARY: hdrs.ACCEPT_ENCODING,
            **(headers or {}),
        }

    def _coded(self) -> tuple[Coding, Coding]:
        """Make the document, plain and compressed. The ETags differ, because the bytes do."""
        plain = self._make()
        tag = f'"{blake2b(plain, digest_size=TAG_BYTES).hexdigest()}"'
        return Coding(plain, tag), Coding(gzip.compress(plain, mtime=0), compressed_tag(tag))

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a GET or a HEAD: 304 if the client has the document, else the document.

        A connection holds one such answer at a time: aiohttp takes no further request before it is read.
        """
        async with self._making:
            codings = self._codings
            if codings is None:
                codings = self._codings = await asyncio.to_thread(self._coded)
        plain = codings[0]
        known = not_modified(request, {**self._headers, hdrs.ETAG: plain.tag})
        if known is not None:
            return known
        compressed = takes_gzip(request.headers.get(hdrs.ACCEPT_ENCODING, ""))
        coding = codings[compressed]
        headers = {**self._headers, hdrs.ETAG: coding.tag}
        if compressed:
            headers[hdrs.CONTENT_ENCODING] = GZIP
        return web.Response(body=coding.body, headers=headers)
