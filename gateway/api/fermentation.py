"""`/v1/fermentation`: endpoints 1 and 2, which read the readings of a brew session and import readings."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Literal

from aiohttp import hdrs, web
from pydantic import ConfigDict, Field

from gateway.api.import_body import ImportBody
from gateway.errors import InvalidInput, UnsupportedMedia
from gateway.formats.readings import BODY_BYTES, Media
from gateway.http.endpoint import JSON, AnswerModel, Call, Document, Endpoint, Query
from gateway.http.gzipped import not_modified, tagged
from gateway.http.middleware import peer_of, read_body
from gateway.http.parameters import Count, Day, Flag, NewestFirst
from gateway.http.records import own_session
from gateway.http.streaming import streamed
from gateway.store.queries import ReadingsQuery

OPENING = b'{"message":"success","readings":['
CLOSING = b"]}"

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
"""The accepted charsets. Not every charset that Python knows: some of its codecs are slow, some are not for
text."""


class ObjectId(AnswerModel):
    """A record's identifier: 24 hex digits."""

    oid: str = Field(alias="$oid", pattern="^[0-9a-f]{24}$")


class FermentationReading(AnswerModel):
    """A reading, with further members that an import gave it (`ph`, `battery` ...)."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str | float | bool | None]

    id: ObjectId = Field(alias="_id")
    login_id: int
    api_key: Literal[""]
    brewevent_id: int
    recipe_id: int
    ip: str
    name: str
    gravity: str
    gravity_unit: Literal["G", "P"]
    temp: str
    temp_unit: Literal["C", "F"]
    comment: str
    beer: str
    interval: str
    created_at: str
    source: str


class Readings(AnswerModel):
    """Readings of a brew session, oldest first unless the query says otherwise."""

    message: Literal["success"]
    readings: list[FermentationReading]


class ImportedCount(AnswerModel):
    """The number of readings in the body."""

    count: int


class Imported(AnswerModel):
    """The answer to an import: the whole body is stored."""

    message: Literal["success"] = "success"
    imported: ImportedCount


class ReadingsPage(Query):
    """The readings to return: filtered, then skipped, then limited."""

    skip: Count = Field(default=0, description="Readings to leave out, from the first in the order.")
    limit: Count | None = Field(default=None, description="Readings at most; all without it.")
    first_day: Day | None = Field(default=None, alias="from", description="First UTC day.")
    last_day: Day | None = Field(default=None, alias="to", description="Last UTC day, inclusive.")
    newest_first: NewestFirst = Field(
        default_factory=bool,
        alias="sort",
        description="created_at:1, which is the order without it, or created_at:-1 for the newest first. An "
        "addition of this gateway.",
    )


class ImportOptions(Query):
    """The options of an import."""

    reset: Flag = Field(default=False, description="Delete the session's readings, in the same transaction.")


async def read_readings(call: Call[ReadingsPage, None]) -> web.StreamResponse:
    """Answer endpoint 1: all readings, or a page of them, oldest first unless the query says otherwise."""
    session, page = await own_session(call), call.query
    query = ReadingsQuery(
        session, page.skip, page.limit, page.first_day, page.last_day, newest_first=page.newest_first
    )
    # Before the readings are read: see `ReadingStore.version`. The query is a part of the address, not of it.
    headers = {hdrs.CONTENT_TYPE: JSON, **tagged(await call.store.readings.version(session))}
    known = not_modified(call.request, headers)
    if known is not None:
        return known
    async with (
        aclosing(call.store.readings.json_chunks(query)) as chunks,
        aclosing(_in_envelope(chunks)) as pieces,
    ):
        return await streamed(call.request, pieces, headers)


async def import_readings(call: Call[ImportOptions, None]) -> Imported:
    """Answer endpoint 2: store all rows of the body, or none."""
    session, reset = await own_session(call), call.query.reset
    media: Media | None = None
    if call.request.headers.get(hdrs.CONTENT_TYPE, "").strip():
        try:
            media = MEDIA[call.request.content_type]
        except KeyError as error:
            raise UnsupportedMedia("the Content-Type must be application/json or text/csv") from error
    try:
        charset = CHARSETS[(call.request.charset or "utf-8").lower()]
    except KeyError as error:
        raise UnsupportedMedia("this charset is not accepted") from error
    body = await read_body(call.request, BODY_BYTES)
    if charset != "utf-8":
        try:
            body = body.decode(charset).encode()
        except UnicodeDecodeError as error:
            raise InvalidInput(f"the body is not {charset} at byte {error.start + 1}") from error
    if media is None:  # without a Content-Type the body decides
        if body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in {b"[", b"{"}:
            raise UnsupportedMedia("no Content-Type, and the body is not JSON")
        media = "json"
    importing, address = call.services.importing, peer_of(call.request).address
    count = await importing.run(session, body, media, address, reset)
    return Imported(imported=ImportedCount(count=count))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/fermentation/{brew_session_id}",
        read_readings,
        "Readings of a brew session",
        ReadingsPage,
        Readings,
        refusals=(304,),
    ),
    Endpoint(
        "POST",
        "/v1/fermentation/{brew_session_id}/import",
        import_readings,
        "Import readings into a brew session, all or none",
        ImportOptions,
        Imported,
        body=Document((JSON, "text/csv"), BODY_BYTES, ImportBody),
    ),
)
"""Endpoints 1 and 2 of the specification."""


async def _in_envelope(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield OPENING
    async for chunk in chunks:
        yield chunk
    yield CLOSING
