"""`/manage/brewsessions/:id/readings`: all readings of a brew session as a file, JSON or CSV."""

from contextlib import aclosing
from typing import Annotated, Any

from aiohttp import hdrs, web
from pydantic import BeforeValidator, Field, RootModel

from gateway.api.fermentation import FermentationReading
from gateway.api.streaming import streamed
from gateway.formats.readings import Media
from gateway.formats.readings.export import exported
from gateway.http.endpoint import JSON, Call, Endpoint, Query
from gateway.http.endpoint import Media as AnswerMedia
from gateway.http.records import own_session
from gateway.store.queries import ReadingsQuery

CONTENT_TYPE: dict[Media, str] = {"json": JSON, "csv": "text/csv; charset=utf-8; header=present"}


def _media(value: Any) -> Any:
    if value not in CONTENT_TYPE:
        raise ValueError("must be json or csv")
    return value


class Exported(RootModel[list[FermentationReading]]):
    """Readings as the read endpoint gives them, oldest first."""


class ExportOptions(Query):
    """What the file is to be."""

    media: Annotated[Media, BeforeValidator(_media)] = Field(
        default="json", alias="format", description="A JSON array, or CSV with a header."
    )


async def export_readings(call: Call[ExportOptions, None]) -> web.StreamResponse:
    """The file; an import takes it back bit for bit."""
    session = await own_session(call)
    media = call.query.media
    headers: dict[str, str] = {
        hdrs.CONTENT_TYPE: CONTENT_TYPE[media],
        hdrs.CONTENT_DISPOSITION: f'attachment; filename="brewsession-{session.id}.{media}"',
    }
    async with (
        aclosing(call.store.readings.json_chunks(ReadingsQuery(session))) as chunks,
        aclosing(exported(chunks, media)) as pieces,
    ):
        return await streamed(call.request, pieces, headers)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/manage/brewsessions/{brew_session_id}/readings",
        export_readings,
        "All readings of a brew session as a JSON or CSV file, which an import takes back",
        ExportOptions,
        AnswerMedia((JSON, "text/csv"), Exported),
    ),
)
"""The export of readings."""
