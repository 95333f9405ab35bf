"""`/v1/fermentation`: endpoints 1 and 2, reading the readings of a brew session and importing into it."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import date

from aiohttp import hdrs, web

from gateway.domain.brewsession import BrewSession
from gateway.errors import GatewayError, InvalidInput, NotFound, StoreUnavailable, UnsupportedMedia
from gateway.formats.readings import BODY_BYTES
from gateway.services.importing import Importing, Media
from gateway.store.queries import ReadingsQuery
from gateway.web import API_KEY, STORE, Handler, boolean, path_id, read_body, whole_number

log = logging.getLogger(__name__)

ANSWER_S = 60.0
"""Seconds for a whole answer: a slow reader holds a snapshot, and the WAL cannot shrink below that."""

OPENING = b'{"message":"success","readings":['
CLOSING = b"]}"

JSON = "application/json"
MEDIA: dict[str, Media] = {JSON: "json", "text/csv": "csv"}

CHARSETS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "utf-8",
    "ascii": "utf-8",
    "iso-8859-1": "iso-8859-1",
    "latin1": "iso-8859-1",
    "iso-8859-15": "iso-8859-15",
    "windows-1252": "windows-1252",
}
"""Charsets that are taken. Not whatever Python knows: some of its codecs are slow, or none of text."""

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def routes(importing: Importing) -> list[web.RouteDef]:
    """The two endpoints."""
    return [
        web.get("/v1/fermentation/{id}", read_readings),
        web.post("/v1/fermentation/{id}/import", _import_handler(importing)),
    ]


async def read_readings(request: web.Request) -> web.StreamResponse:
    """Endpoint 1: all readings, or a page of them, oldest first."""
    query = ReadingsQuery(
        await _session(request),
        whole_number(request, "skip") or 0,
        whole_number(request, "limit"),
        _day(request, "from"),
        _day(request, "to"),
    )
    async with aclosing(request.app[STORE].readings.json_chunks(query)) as chunks:
        return await _answer(request, chunks)


async def _answer(request: web.Request, chunks: AsyncGenerator[bytes, None]) -> web.StreamResponse:
    """A plain answer where one chunk holds everything, else a stream that ends by the deadline."""
    response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: JSON})
    try:
        async with asyncio.timeout(ANSWER_S):
            # Two chunks before the headers: trouble can still be a 503, and a short answer have a length.
            chunk = await anext(chunks, b"")
            following = await anext(chunks, None)
            if following is None:
                return web.Response(body=OPENING + chunk + CLOSING, content_type=JSON)
            await response.prepare(request)
            if request.method != hdrs.METH_HEAD:
                await _send(response, chunk, following, chunks)
            return response
    except ConnectionError:
        raise
    except Exception as error:
        if not response.prepared:
            if isinstance(error, TimeoutError):
                raise StoreUnavailable("reading took too long") from error
            raise
        expected = isinstance(error, TimeoutError | GatewayError)
        log.warning(
            "fermentation: %s cut short: %s", request.path, error or "slow reader", exc_info=not expected
        )
    if request.transport is not None:
        request.transport.abort()  # an orderly end would pass for a whole answer
    return response


async def _send(
    response: web.StreamResponse, first: bytes, second: bytes, rest: AsyncGenerator[bytes, None]
) -> None:
    await response.write(OPENING + first)
    await response.write(second)
    async for chunk in rest:
        await response.write(chunk)
    await response.write(CLOSING)
    await response.write_eof()


def _import_handler(importing: Importing) -> Handler:
    async def import_readings(request: web.Request) -> web.Response:
        """Endpoint 2: take all rows of the body, or none."""
        session = await _session(request)
        reset = boolean(request, "reset")
        media = _media(request)
        charset = _charset(request)
        body = await read_body(request, BODY_BYTES)
        if charset != "utf-8":
            body = _utf8(body, charset)
        count = await importing.run(session, body, media or _sniff(body), request.remote or "", reset)
        return web.json_response({"message": "success", "imported": {"count": count}})

    return import_readings


async def _session(request: web.Request) -> BrewSession:
    """The brew session of the path; one of another account does not exist for this caller."""
    session = await request.app[STORE].sessions.get(path_id(request, "id"))
    if session is None or session.account_id != request[API_KEY].account_id:
        raise NotFound
    return session


def _day(request: web.Request, name: str) -> date | None:
    text = request.query.get(name)
    if text is None:
        return None
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"{name} is no day of the calendar") from error
    raise InvalidInput(f"{name} must be a day, YYYY-MM-DD")


def _media(request: web.Request) -> Media | None:
    """What the Content-Type says; None where there is none, then the body decides."""
    if not request.headers.get(hdrs.CONTENT_TYPE, "").strip():
        return None
    try:
        return MEDIA[request.content_type]
    except KeyError as error:
        raise UnsupportedMedia("the Content-Type must be application/json or text/csv") from error


def _sniff(body: bytes) -> Media:
    if body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in {b"[", b"{"}:
        return "json"
    raise UnsupportedMedia("no Content-Type, and the body is not JSON")


def _charset(request: web.Request) -> str:
    try:
        return CHARSETS[(request.charset or "utf-8").lower()]
    except KeyError as error:
        raise UnsupportedMedia("the charset is not one that is taken here") from error


def _utf8(body: bytes, charset: str) -> bytes:
    try:
        return body.decode(charset).encode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the body is not {charset} at byte {error.start + 1}") from error
