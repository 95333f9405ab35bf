"""Long calls: JSON lines of progress while the work goes on; the work ends when the client leaves.

Lines: `{"progress": {"done": 3, "of": 10, "what": "payloads"}}` whenever there is news, a blank line as
a sign of life, finally `{"result": {...}}` or `{"error": {"status": 409, "message": ..., "detail": ...}}`.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import hdrs, web
from pydantic import BaseModel

from gateway.domain.progress import Progress
from gateway.errors import GatewayError
from gateway.http.both_ends import INTERNAL_ERROR, JSON, LINES
from gateway.http.middleware import error_members

log = logging.getLogger(__name__)

SIGN_S = 3.0
"""Seconds without news until a blank line is sent."""

WATCH_S = 0.25
"""Seconds between two checks that the client is still there."""

Work = Callable[[Progress], Awaitable[BaseModel | web.StreamResponse]]


def asks_for_lines(request: web.Request) -> bool:
    """Return whether the client accepts JSON lines."""
    return LINES in request.headers.get(hdrs.ACCEPT, "") and request.method != hdrs.METH_HEAD


async def run_long(request: web.Request, work: Work, *, as_lines: bool) -> web.StreamResponse:
    """Do the work and answer; cancel the work when the client leaves.

    A refusal has its own status if no line has gone out before.
    """
    news: asyncio.Queue[dict[str, Any]] = asyncio.Queue(maxsize=1)

    def progress(done: int, of: int, what: str) -> None:
        if news.full():
            news.get_nowait()  # only the latest counts
        news.put_nowait({"progress": {"done": done, "of": of, "what": what}})

    task = asyncio.ensure_future(work(progress))
    # The client may leave first: then nobody reads the error, and asyncio would report it as lost.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        if as_lines:
            return await _answer_lines(request, task, news)
        while not task.done():
            await asyncio.wait([task], timeout=WATCH_S)
            check_presence(request)
        return plain(task.result())
    finally:
        task.cancel()


def plain(answer: BaseModel | web.StreamResponse) -> web.StreamResponse:
    """Return a model as an answer in JSON, and a finished answer as it is."""
    if isinstance(answer, BaseModel):
        return web.Response(body=answer.model_dump_json(by_alias=True).encode(), content_type=JSON)
    return answer


async def _answer_lines(
    request: web.Request,
    task: "asyncio.Future[BaseModel | web.StreamResponse]",
    news: asyncio.Queue[dict[str, Any]],
) -> web.StreamResponse:
    response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: LINES})
    loop = asyncio.get_running_loop()
    written_at = loop.time()

    async def write(line: bytes) -> None:
        nonlocal written_at
        if not response.prepared:
            await response.prepare(request)
        await response.write(line + b"\n")
        written_at = loop.time()

    while not task.done():
        waiting = asyncio.ensure_future(news.get())
        either: list[asyncio.Future[Any]] = [task, waiting]
        try:
            await asyncio.wait(either, timeout=WATCH_S, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                await write(json.dumps(waiting.result()).encode())
        finally:
            waiting.cancel()
        check_presence(request)
        if not task.done() and loop.time() - written_at >= SIGN_S:
            await write(b"")
    failed = task.exception()
    # No line has gone out, so the refusal can still have its own status.
    if failed is not None and not response.prepared:
        raise failed
    if not news.empty():
        await write(json.dumps(news.get_nowait()).encode())
    if failed is None:
        answer = task.result()
        if not isinstance(answer, BaseModel):
            return answer
        await write(b'{"result": ' + answer.model_dump_json(by_alias=True).encode() + b"}")
    else:
        await write(json.dumps({"error": _error_of(request, failed)}).encode())
    return response


def check_presence(request: web.Request) -> None:
    """Raise `ConnectionResetError` if the client has left."""
    if request.transport is None or request.transport.is_closing():
        raise ConnectionResetError("the client has left")


def _error_of(request: web.Request, error: BaseException) -> dict[str, Any]:
    if isinstance(error, GatewayError):
        status, members = error_members(error)
        return {"status": status, **members}
    log.error("web: %s %s failed", request.method, request.path, exc_info=error)
    return {"status": 500, "message": "failure", "detail": INTERNAL_ERROR}
