"""The readings of a brew: a table of all, the export as a file, and the import of a file."""

import asyncio
import zlib
from collections import OrderedDict
from contextlib import aclosing
from typing import NamedTuple
from weakref import WeakKeyDictionary

from aiohttp import hdrs, web

from gateway.domain.reading import Reading
from gateway.domain.texts import decimal_digits
from gateway.errors import InvalidInput, TooLarge
from gateway.formats.readings import BODY_BYTES, ImportContext, Media, parse_csv, parse_json
from gateway.formats.readings.export import exported
from gateway.http.middleware import peer_of
from gateway.http.streaming import streamed
from gateway.store.protocol import Store
from gateway.store.queries import ReadingsQuery
from gateway.store.records import ReadingRow
from gateway.ui.brew_words import name_of, own_brew
from gateway.ui.pages import Answer, Moved, Page, Row, Visit
from gateway.ui.ranges import ALL, RANGES, range_of

PAGE = 100
"""Readings on a page."""

FIRST_ROWS = 10
"""Rows of a file that are shown before it is imported."""

UPLOAD_BYTES = BODY_BYTES + 64 * 1024
"""Bytes of an upload: the file, and the parts of the form around it."""

WAITING_FILES = 2
"""Files that wait for the answer of the person who looks at their first rows; an older one goes."""

CONTENT_TYPES: dict[Media, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8; header=present",
}


class Line(NamedTuple):
    """A reading as a row of the table."""

    time: str
    gravity: str
    temp: str
    device: str
    notes: tuple[str, ...]
    left_out: bool
    sent: tuple[str, ...]


class FirstRow(NamedTuple):
    """A row of a file that may be imported."""

    time: str
    gravity: str
    temp: str
    name: str
    comment: str


class WaitingFile(NamedTuple):
    """A file whose first rows somebody looks at: the login, the brew, its bytes (packed) and its kind."""

    login_id: int
    session_id: int
    packed: bytes
    media: Media


_waiting: WeakKeyDictionary[Store, OrderedDict[int, WaitingFile]] = WeakKeyDictionary()


async def show(visit: Visit) -> Page:
    """Show a page of readings, the newest first."""
    entry = await own_brew(visit)
    session, words = entry.session, visit.words
    figures = await visit.services.figures.of(session)
    chosen = range_of(visit.query, visit.viewer.zone, figures.last_at)
    asked = visit.query.get("page", "")
    page = max(int(asked), 1) if decimal_digits(asked) and len(asked) < 7 else 1
    count, rows = await visit.store.deliveries.newest(
        session.id, chosen.start, chosen.end, limit=PAGE, skip=(page - 1) * PAGE
    )

    def address(query: dict[str, str], number: int = 1) -> str:
        return visit.url("readings", query | ({"page": str(number)} if number > 1 else {}), id=session.id)

    begin, end = chosen.typed(visit.viewer.zone)
    values = {
        "id": session.id,
        "brew": name_of(entry),
        "lines": [_line(visit, row) for row in rows],
        "is_sent": any(row.states for row in rows),
        "count": visit.t("readings.count", n=count),
        "ranges": [
            (words.t(f"brew.range.{name}"), address({"range": name}), name == chosen.name)
            for name in (*RANGES, ALL)
        ],
        "begin": begin,
        "end": end,
        "in_range": chosen.name != ALL,
        "everything": address({}),
        "newer": address(chosen.query, page - 1) if page > 1 else "",
        "older": address(chosen.query, page + 1) if page * PAGE < count else "",
    }
    return Page("readings.html", visit.t("readings.title", brew=session.batchcode), values, menu="brews")


def _line(visit: Visit, row: ReadingRow) -> Line:
    words = visit.words
    gravity = str(words.gravity(row.sg)) if row.sg is not None else row.gravity
    temp = str(words.temp(row.celsius)) if row.celsius is not None else row.temp
    notes = [words.t(f"flag.{flag}") if words.has(f"flag.{flag}") else flag for flag in row.flags]
    notes += [words.t("readings.edited")] if row.is_edited else []
    notes += [row.comment] if row.comment else []
    several = len(row.states) > 1
    sent = []
    for target, state in row.states.items():
        text = words.t(f"readings.state.{state.replace(' ', '_').replace(',', '')}")
        reason = row.reasons.get(target)
        text = f"{text}: {reason}" if reason else text
        sent.append(f"{target}: {text}" if several else text)
    time = f"{words.date(row.at)} {words.clock(row.at)}"
    return Line(time, gravity, temp, row.name, tuple(notes), row.left_out, tuple(sent))


async def export(visit: Visit) -> web.StreamResponse:
    """Send all readings of a brew as a file, which an import takes back bit for bit."""
    session = (await own_brew(visit)).session
    media: Media = "json" if visit.query.get("format") == "json" else "csv"
    headers = {
        hdrs.CONTENT_TYPE: CONTENT_TYPES[media],
        hdrs.CONTENT_DISPOSITION: f'attachment; filename="brewsession-{session.id}.{media}"',
        "X-Content-Type-Options": "nosniff",
    }
    async with (
        aclosing(visit.store.readings.json_chunks(ReadingsQuery(session))) as chunks,
        aclosing(exported(chunks, media)) as pieces,
    ):
        return await streamed(visit.request, pieces, headers)


async def ask_file(visit: Visit) -> Page:
    """Show the form for a file."""
    entry = await own_brew(visit)
    return _file_page(visit, entry.session.id, name_of(entry))


def _file_page(visit: Visit, session_id: int, name: str, wrong: str = "") -> Page:
    values = {"id": session_id, "brew": name, "wrong": wrong}
    return Page(
        "readings_file.html", visit.t("readings.import.title"), values, "brews", 422 if wrong else 200
    )


async def look_at(visit: Visit) -> Page:
    """Show the first rows of a file before it is imported."""
    entry = await own_brew(visit)
    body = b""
    try:
        async for part in visit.uploads():
            if part.name == "file":
                body = await part.read()
        media: Media = "json" if body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in {b"[", b"{"} else "csv"
        context = ImportContext(visit.now, peer_of(visit.request).address)
        readings = await asyncio.to_thread(parse_json if media == "json" else parse_csv, body, context)
    except (InvalidInput, TooLarge) as error:
        return _file_page(visit, entry.session.id, name_of(entry), str(error))
    if not readings:
        return _file_page(visit, entry.session.id, name_of(entry), visit.t("readings.import.empty"))
    packed = await asyncio.to_thread(zlib.compress, body)
    waiting = _waiting.setdefault(visit.store, OrderedDict())
    number = max(waiting, default=0) + 1
    waiting[number] = WaitingFile(_login_id(visit), entry.session.id, packed, media)
    while len(waiting) > WAITING_FILES:
        waiting.popitem(last=False)
    begin, end = (visit.words.date(f(r.created_at for r in readings)) for f in (min, max))
    values = {
        "id": entry.session.id,
        "brew": name_of(entry),
        "number": number,
        "count": visit.t("readings.import.found", n=len(readings), begin=begin, end=end),
        "rows": [_first_row(visit, reading) for reading in readings[:FIRST_ROWS]],
        "more": len(readings) - FIRST_ROWS,
    }
    return Page("readings_import.html", visit.t("readings.import.look"), values, menu="brews")


def _login_id(visit: Visit) -> int:
    return visit.viewer.login.id if visit.viewer.login is not None else 0


def _first_row(visit: Visit, reading: Reading) -> FirstRow:
    words = visit.words
    return FirstRow(
        time=f"{words.date(reading.created_at)} {words.clock(reading.created_at)}",
        gravity=reading.gravity if reading.sg is None else str(words.gravity(reading.sg)),
        temp=reading.temp if reading.celsius is None else str(words.temp(reading.celsius)),
        name=reading.name,
        comment=reading.comment,
    )


async def import_file(visit: Visit) -> Answer:
    """Import the file that was looked at, all of it or nothing."""
    entry = await own_brew(visit)
    asked = visit.fields.get("number", "")
    waiting = _waiting.setdefault(visit.store, OrderedDict())
    file = waiting.get(int(asked)) if decimal_digits(asked) and len(asked) < 10 else None
    if file is None or (file.login_id, file.session_id) != (_login_id(visit), entry.session.id):
        return _file_page(visit, entry.session.id, name_of(entry), visit.t("readings.import.gone"))
    body = await asyncio.to_thread(zlib.decompress, file.packed)
    address = peer_of(visit.request).address
    count = await visit.services.importing.run(entry.session, body, file.media, address, reset=False)
    waiting.pop(int(asked), None)
    return Moved(visit.url("readings", id=entry.session.id), visit.t("readings.imported", n=count))


FILE = "/brews/{id}/import"

ROWS = (
    Row("GET", "/brews/{id}/readings", show, "readings", "The readings of a brew"),
    Row("GET", "/brews/{id}/export", export, "readings.export", "The readings of a brew as a file"),
    Row("GET", FILE, ask_file, "readings.file", "The form for a file with readings", scope="admin"),
    Row(
        "POST",
        FILE,
        look_at,
        "readings.look",
        "A file's first rows",
        scope="admin",
        upload_bytes=UPLOAD_BYTES,
    ),
    Row("POST", f"{FILE}/now", import_file, "readings.import", "Import a file", scope="admin"),
)
