"""Answers too large for the memory: written piece by piece, and cut off after an error."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from aiohttp import hdrs, web

from gateway.errors import GatewayError, StoreUnavailable
from gateway.http.connections import Shares
from gateway.http.gzipped import asks_for_gzip, mark_compressed, packed, packed_stream
from gateway.http.middleware import CALLER, peer_of

log = logging.getLogger(__name__)

ANSWER_S = 60.0
"""Seconds for a whole answer: a slow reader holds a snapshot, and the WAL cannot shrink while it lasts."""

READS_PER_SOURCE = 2
"""Streams at once for one address: each may hold one of the store's three read connections for a minute."""

WHOLE_BYTES = 128 * 1024
"""The largest answer that is sent with its length. Until it is sent, trouble can still become a 503."""

_SHARES = Shares(READS_PER_SOURCE)


async def streamed(
    request: web.Request, pieces: AsyncGenerator[bytes, None], headers: dict[str, str]
) -> web.StreamResponse:
    """Send an answer of these pieces: a small one whole, a large one as a stream until the deadline.

    Compress it if the client asks for that. The owner on the Unix socket has no deadline: a pager such as
    `less` may hold the answer for hours.
    """
    caller = request.get(CALLER)
    if caller is not None and caller.everywhere:
        return await _streamed(request, pieces, headers, None)
    async with _SHARES.hold(peer_of(request).address):
        return await _streamed(request, pieces, headers, ANSWER_S)


async def _streamed(
    request: web.Request,
    pieces: AsyncGenerator[bytes, None],
    headers: dict[str, str],
    deadline_s: float | None,
) -> web.StreamResponse:
    headers = {hdrs.VARY: hdrs.ACCEPT_ENCODING, **headers}
    response = web.StreamResponse(headers=headers)
    try:
        async with asyncio.timeout(deadline_s):
            beginning = bytearray()
            async for piece in pieces:
                beginning += piece
                if len(beginning) > WHOLE_BYTES:
                    break
            else:
                return await packed(request, web.Response(body=bytes(beginning), headers=headers))
            whole = _continued(bytes(beginning), pieces)
            if asks_for_gzip(request):
                mark_compressed(response)
                whole = packed_stream(whole)
            await response.prepare(request)
            if request.method != hdrs.METH_HEAD:
                async with aclosing(whole):
                    async for piece in whole:
                        await response.write(piece)
                await response.write_eof()
            return response
    except ConnectionError:
        raise
    except Exception as error:
        if not response.prepared:
            if isinstance(error, TimeoutError):
                raise StoreUnavailable("reading took too long") from error
            raise
        expected = isinstance(error, TimeoutError | GatewayError)
        log.warning("api: %s cut short: %s", request.path, error or "slow reader", exc_info=not expected)
    if request.transport is not None:
        request.transport.abort()  # an orderly end would pass for a whole answer
    return response


async def _continued(beginning: bytes, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield beginning
    async for piece in pieces:
        yield piece
