"""Answers by what a client asks for: gzip where it takes that, and 304 where it has the answer already.

Compression tells a listener how alike two parts of an answer are (BREACH). It does no harm here: an answer to
a GET holds no key, and a page of another site cannot make a browser send the key that the answer needs.
"""

import asyncio
import gzip
import re
import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

from aiohttp import hdrs, web

from gateway.http.middleware import CALLER

GZIP = "gzip"

LEVEL = 2
"""Of 1 to 9. Higher levels take half as much time again or more, and save an eighth."""

COMPRESSED_BYTES = 4096
"""The least size of an answer that is compressed: below, it saves two packets at most."""

THREAD_BYTES = 32 * 1024
"""The least size that is compressed in a thread: below, the way there and back costs as much."""

STREAM_BYTES = 256 * 1024
"""Bytes of a stream that are compressed at a time, 0.6 ms of a thread."""

TEXTS = ("text/", "application/json", "application/xml", "application/x-ndjson")
"""Beginnings of the media types that are worth it: pictures are compressed already."""

ANY_TAG = "*"

_QUALITY = re.compile(r"q=([01](?:\.[0-9]{0,3})?)")


def takes_gzip(accepted: str) -> bool:
    """Return whether an Accept-Encoding header allows gzip, and prefers no plain answer."""
    allowed = _qualities(accepted)
    quality = max(allowed.get(name, -1.0) for name in (GZIP, "x-gzip"))
    if quality < 0:
        quality = allowed.get("*", 0.0)
    return quality > 0 and quality >= allowed.get("identity", 0.0)


def refuses_plain(accepted: str) -> bool:
    """Return whether an Accept-Encoding header forbids an answer as it is."""
    allowed = _qualities(accepted)
    return allowed.get("identity", allowed.get("*", 1.0)) == 0


def _qualities(accepted: str) -> dict[str, float]:
    allowed = {}
    for item in accepted.lower().split(","):
        coding, _, parameters = item.partition(";")
        given = parameters.replace(" ", "").replace("\t", "")
        quality = _QUALITY.fullmatch(given)
        # A parameter that cannot be read counts as a refusal: plain is always safe.
        allowed[coding.strip()] = float(quality[1]) if quality else float(not given)
    return allowed


def asks_for_gzip(request: web.Request) -> bool:
    """Return whether the answer to a request may be compressed."""
    caller = request.get(CALLER)
    # Not on the Unix socket, because there nothing is gained by fewer bytes.
    if caller is not None and caller.everywhere:
        return False
    return takes_gzip(request.headers.get(hdrs.ACCEPT_ENCODING, ""))


def tagged(tag: str | None) -> dict[str, str]:
    """Return the headers of an answer that a client may keep and ask for again with its strong ETag."""
    headers: dict[str, str] = {
        # Private, because the answer depends on the key; and asked for again each time, at the cost of a 304.
        hdrs.CACHE_CONTROL: "private, no-cache",
        hdrs.VARY: hdrs.ACCEPT_ENCODING,
    }
    return headers if tag is None else {**headers, hdrs.ETAG: f'"{tag}"'}


def not_modified(request: web.Request, headers: dict[str, str]) -> web.Response | None:
    """Return the 304 for a client that has the answer with these headers; None if it has another or none.

    The plain and the compressed form have the same content, so the client may have either.
    """
    plain = headers.get(hdrs.ETAG)
    sent = request.headers.get(hdrs.IF_NONE_MATCH)
    if plain is None or sent is None:
        return None
    forms = [plain]
    if asks_for_gzip(request):
        forms.append(compressed_tag(plain))
    if sent.strip() == ANY_TAG:
        current = forms[-1]
    else:
        # Weak tags count, too (RFC 9110, section 13.1.2).
        theirs = {f'"{tag.value}"' for tag in request.if_none_match or ()}
        if theirs.isdisjoint({plain, compressed_tag(plain)}):
            return None
        current = next((form for form in forms if form in theirs), plain)
    kept = {name: value for name, value in headers.items() if name != hdrs.CONTENT_TYPE}
    return web.Response(status=304, headers={**kept, hdrs.ETAG: current})


def compressed_tag(tag: str) -> str:
    """Return the tag of the compressed form: a strong ETag belongs to the bytes as they are sent."""
    return f'{tag[:-1]}-{GZIP}"'


def mark_compressed(response: web.StreamResponse) -> None:
    """Give an answer the headers of the compressed form."""
    response.headers[hdrs.CONTENT_ENCODING] = GZIP
    if tag := response.headers.get(hdrs.ETAG):
        response.headers[hdrs.ETAG] = compressed_tag(tag)


async def packed(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """Compress a finished answer to a GET or HEAD, if it is worth it and the client asks for it."""
    if not isinstance(response, web.Response) or request.method not in {hdrs.METH_GET, hdrs.METH_HEAD}:
        return response
    body, headers = response.body, response.headers
    if not isinstance(body, bytes) or response.status != 200 or hdrs.CONTENT_ENCODING in headers:
        return response
    accepted = request.headers.get(hdrs.ACCEPT_ENCODING, "")
    if len(body) < COMPRESSED_BYTES and not (accepted and refuses_plain(accepted)):
        return response
    if not headers.get(hdrs.CONTENT_TYPE, "").startswith(TEXTS):
        return response
    if hdrs.VARY not in headers:
        headers[hdrs.VARY] = hdrs.ACCEPT_ENCODING
    if not asks_for_gzip(request):
        return response
    if len(body) < THREAD_BYTES:
        response.body = gzip.compress(body, LEVEL, mtime=0)
    else:
        response.body = await asyncio.to_thread(gzip.compress, body, LEVEL, mtime=0)
    mark_compressed(response)
    return response


async def packed_stream(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Compress a stream in a thread. It holds `STREAM_BYTES` and a piece at most."""
    # zlib gives up the interpreter lock, so that the event loop goes on meanwhile.
    packer = zlib.compressobj(LEVEL, wbits=zlib.MAX_WBITS | 16)
    waiting = bytearray()
    async with aclosing(pieces):
        async for piece in pieces:
            waiting += piece
            if len(waiting) >= STREAM_BYTES:
                yield await asyncio.to_thread(packer.compress, waiting)
                waiting = bytearray()
    yield await asyncio.to_thread(lambda: packer.compress(waiting) + packer.flush())
