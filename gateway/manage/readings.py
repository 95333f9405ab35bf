"""`/manage/readings`, and the readings of a brew session: export, import in parts, edits taken back."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any

from aiohttp import hdrs, web
from pydantic import BeforeValidator, Field, RootModel

from gateway.api.fermentation import FermentationReading, Imported, ImportedCount
from gateway.errors import InvalidInput, NotFound
from gateway.formats.readings import Media
from gateway.formats.readings.export import exported
from gateway.http.both_ends import LINES
from gateway.http.endpoint import (
    JSON,
    Body,
    Call,
    Document,
    Done,
    Endpoint,
    Query,
    parse_json,
    read_document,
)
from gateway.http.endpoint import Media as AnswerMedia
from gateway.http.gzipped import not_modified, tagged
from gateway.http.parameters import Count, Number, ReadingId
from gateway.http.records import own_session
from gateway.http.streaming import streamed
from gateway.store.queries import ReadingsQuery

CONTENT_TYPE: dict[Media, str] = {"json": JSON, "csv": "text/csv; charset=utf-8; header=present"}

LAST = 100
"""Readings that `/manage/readings` shows unless the query says otherwise."""

PIECE_BYTES = 64 * 1024
"""Bytes of readings that are written at once: not line by line, because each write costs."""

PART_BYTES = 32 * 1024 * 1024
"""Bytes of a part of a file: 20 MB of readings, and half a million ids of readings in other parts."""

NO_ADDRESS = ""
"""A file comes from nowhere: readings without an address stay without one."""


def _media(value: Any) -> Any:
    if value not in CONTENT_TYPE:
        raise ValueError("must be json or csv")
    return value


class Exported(RootModel[list[FermentationReading]]):
    """Readings as the read endpoint gives them, oldest first."""


class ExportOptions(Query):
    """Format of the file."""

    media: Annotated[Media, BeforeValidator(_media)] = Field(
        default="json", alias="format", description="A JSON array, or CSV with a header."
    )


class NewestReadings(Query):
    """Choice of readings."""

    last: Count = Field(default=LAST, description="How many, counted from the newest.")
    device_id: Number | None = Field(default=None, description="Only this device.")
    brew_session_id: Number | None = Field(default=None, description="Only this brew session.")


class FilePart(Body):
    """A part of a file that is too large for one import, as CSV with a header."""

    csv: str = Field(description="Readings with their `_id`, as an export writes them.")
    reset: bool = Field(default=False, description="Delete the session's other readings, in the same step.")
    later: list[ReadingId] = Field(
        default=[], description="The `_id` of readings in other parts of the file: `reset` leaves them."
    )


class TakeBack(Body):
    """Edited readings whose edits are taken back."""

    ids: list[ReadingId] = Field(
        default=[], max_length=10_000, description="The `_id` of each; without any, all of the session."
    )


class TakenBack(Done):
    """The number of readings that were edited, and are again as they were before."""

    readings: int


async def newest_readings(call: Call[NewestReadings, None]) -> web.StreamResponse:
    """Send the newest readings, one JSON object a line, the newest last."""
    wanted, store = call.query, call.store
    if wanted.device_id is not None and all(d.id != wanted.device_id for d in await store.devices.all()):
        raise NotFound
    if wanted.brew_session_id is not None:
        session = await store.sessions.get(wanted.brew_session_id)
        if session is None or not call.caller.may_see(session.account_id):
            raise NotFound
    lines = store.readings.json_lines(
        last=wanted.last,
        device_id=wanted.device_id,
        session_id=wanted.brew_session_id,
        account_id=None if call.caller.everywhere else call.caller.account_id,
    )
    async with aclosing(lines), aclosing(_pieces(lines)) as pieces:
        return await streamed(call.request, pieces, {hdrs.CONTENT_TYPE: LINES})


async def _pieces(lines: AsyncGenerator[str, None]) -> AsyncGenerator[bytes, None]:
    piece = bytearray()
    async for line in lines:
        piece += line.encode() + b"\n"
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


async def export_readings(call: Call[ExportOptions, None]) -> web.StreamResponse:
    """Send all readings of a brew session as a file, which an import takes back bit for bit."""
    session = await own_session(call)
    media = call.query.media
    headers: dict[str, str] = {
        hdrs.CONTENT_TYPE: CONTENT_TYPE[media],
        hdrs.CONTENT_DISPOSITION: f'attachment; filename="brewsession-{session.id}.{media}"',
        **tagged(await call.store.readings.version(session)),
    }
    known = not_modified(call.request, headers)
    if known is not None:
        return known
    async with (
        aclosing(call.store.readings.json_chunks(ReadingsQuery(session))) as chunks,
        aclosing(exported(chunks, media)) as pieces,
    ):
        return await streamed(call.request, pieces, headers)


PART = Document((JSON,), PART_BYTES, FilePart)


async def import_part(call: Call[Query, None]) -> Imported:
    """Import all readings of a part, or none."""
    session = await own_session(call)
    body = await read_document(call.request, PART)
    # In a thread, because 32 MB of JSON would hold up everybody else.
    part = await asyncio.to_thread(parse_json, FilePart, body)
    count = await call.services.importing.run(
        session, part.csv.encode(), "csv", NO_ADDRESS, part.reset, part.later
    )
    return Imported(imported=ImportedCount(count=count))


async def take_back(call: Call[Query, TakeBack]) -> TakenBack:
    """Give edited readings out again as they were before all edits."""
    session = await own_session(call)
    try:
        return TakenBack(readings=await call.services.importing.take_back(session, call.body.ids))
    except NotFound as error:  # a 400 and not a 404, because the path is right and the body is not
        raise InvalidInput(str(error)) from error


OF_SESSION = "/manage/brewsessions/{brew_session_id}/readings"

ENDPOINTS = (
    Endpoint(
        "GET",
        "/manage/readings",
        newest_readings,
        "The newest readings, one JSON object a line",
        NewestReadings,
        AnswerMedia((LINES,)),
        refusals=(404,),
        owner_only=True,
    ),
    Endpoint(
        "GET",
        OF_SESSION,
        export_readings,
        "All readings of a brew session as a JSON or CSV file, which an import takes back",
        ExportOptions,
        AnswerMedia((JSON, "text/csv"), Exported),
        refusals=(304,),
    ),
    Endpoint(
        "POST",
        OF_SESSION,
        import_part,
        "Import a part of a file into a brew session, all or none",
        Query,
        Imported,
        body=PART,
    ),
    Endpoint(
        "POST",
        f"{OF_SESSION}/take-back",
        take_back,
        "Give edited readings out again as they were before",
        Query,
        TakenBack,
        body=TakeBack,
    ),
)
"""Readings."""
