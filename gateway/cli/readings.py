"""`readings`: show the stored readings; import and export the readings of a brew session."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from gateway.cli.client import ask, get
from gateway.cli.lookup import device_number, no_session, session_number
from gateway.cli.options import NUMBER_MAX, Config, DataDir, OnlySession, Session, device_words, json_option
from gateway.cli.output import clipped, harmless, padded, terminal_width
from gateway.cli.progress import progress_bar
from gateway.cli.reading_files import FilePart, format_of, joined, parts_of, read, written
from gateway.domain.objectid import is_object_id
from gateway.domain.progress import Progress
from gateway.domain.texts import MAX_NUMBER
from gateway.errors import GatewayError, InvalidInput
from gateway.formats.readings import Media

LINE = "{time}{name}{gravity:>9} {gravity_unit:2}{temp:>7} {temp_unit:2}{session:>7}  {flags}"

TIME, NAME, GRAVITY, TEMP = 19, 17, 9, 7
"""Columns of a time, a name, a gravity and a temperature on a terminal; elsewhere nothing is cut."""

LINE_COLUMNS = 70
"""Columns of a line up to its flags. On a narrower terminal times and names are shorter."""

SHORT_TIME, SHORT_NAME = 11, 13

MANY = 10_000
"""The number of readings from which on a progress bar is shown."""

UNKNOWN = 0
"""The total that `progress` gets while the total is unknown."""

Format = Annotated[Media | None, typer.Option(help="Needed where the file's name does not end so.")]

app = typer.Typer()


@app.callback(invoke_without_command=True)
def readings(
    context: typer.Context,
    data_dir: DataDir,
    config: Config = None,
    device: Annotated[
        str | None,
        typer.Option(help="Only this device: id, device id, name or key.", autocompletion=device_words),
    ] = None,
    session: OnlySession = None,
    last: Annotated[
        int, typer.Option(help="How many, counted from the newest.", min=1, max=NUMBER_MAX)
    ] = 100,
    as_json: Annotated[bool, json_option("GATEWAY_READINGS_JSON")] = False,
) -> None:
    """Show readings, the newest last.

    Gravity and temperature are shown as the device sent them.

    With a command behind it: import or export the readings of a brew session.
    """
    if context.invoked_subcommand is None:
        _show(data_dir, device, session, last, as_json)
        return
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise InvalidInput(f"options of `readings {context.invoked_subcommand}` stand behind its name")


def _show(data_dir: Path, device: str | None, session: str | None, last: int, as_json: bool) -> None:
    number = None if session is None else session_number(data_dir, session)
    query = {
        "last": min(last, MAX_NUMBER),
        "device_id": None if device is None else device_number(data_dir, device),
        "brew_session_id": number,
    }
    width = terminal_width()
    rest = b""
    headed = False

    def show(piece: bytes) -> None:
        nonlocal rest, headed
        if not headed and not as_json:
            typer.echo(_line(HEADINGS, width))
        headed = True
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            sys.stdout.write((line.decode() if as_json else _line(json.loads(line), width)) + "\n")

    get(data_dir, "/manage/readings", query=query, missing=no_session(number or ""), receive=show)
    show(b"")  # where there is no reading, the heading alone


HEADINGS: dict[str, Any] = {
    "created_at": "TIME (UTC)",
    "name": "NAME",
    "gravity": "GRAVITY",
    "gravity_unit": "",
    "temp": "TEMP",
    "temp_unit": "",
    "brewevent_id": "SESSION",
    "flags": ["FLAGS"],
}


def _line(reading: dict[str, Any], width: int | None) -> str:
    marks = [*(reading["flags"] or ()), *(["edited"] if reading.get("original") else ())]
    cells = {
        **reading,
        "time": reading["created_at"].removesuffix("+00:00"),
        "session": reading["brewevent_id"] or "-",
        "flags": " ".join(marks),
    }
    if width is None:
        cells["time"] = cells["time"].ljust(TIME + 2)
        cells["name"] = cells["name"].ljust(NAME + 1)
        return harmless(LINE.format_map(cells).rstrip())
    is_narrow = width < LINE_COLUMNS
    time_size, name_size = (SHORT_TIME, SHORT_NAME) if is_narrow else (TIME, NAME)
    if is_narrow and cells["time"][:1].isdigit():
        cells["time"] = cells["time"][5:16].replace("T", " ")
    for name, size in (("name", name_size), ("gravity", GRAVITY), ("temp", TEMP)):
        cells[name] = clipped(harmless(cells[name]), size)
    cells["time"] = cells["time"].ljust(time_size + 2)
    cells["name"] = padded(cells["name"], name_size + 1)
    return clipped(harmless(LINE.format_map(cells).rstrip()), width)


@app.command("import")
def import_readings(
    session: Session,
    file: Annotated[Path, typer.Argument(help="JSON or CSV file; - is stdin.", allow_dash=True)],
    data_dir: DataDir,
    config: Config = None,
    format: Format = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Delete the readings that the file does not have.")
    ] = False,
    decimal_comma: Annotated[
        bool,
        typer.Option(
            "--decimal-comma",
            help="A CSV file with numbers such as 1,050, and semicolons between its columns.",
        ),
    ] = False,
) -> None:
    """Import readings into a brew session.

    Prints the number of imported readings, and nothing else, on stdout. Takes the files of `readings export`
    and of the API's import. The whole file is checked first: if a row is wrong, nothing is changed. Up to
    50,000 readings go in all or none, --reset included. A larger file goes in parts of 20,000: each part goes
    in whole or not at all, and with the first part --reset deletes the readings that the file does not have.

    A reading whose _id is in the brew session already is not added again: the same changes nothing, anything
    else is an edit, which `readings take-back` undoes. If the import ends half way, run it again: nothing is
    doubled. A reading without an _id gets one that is made of its values. Only a reading without a time,
    which gets the time of the import, is new each time.
    """
    media = format_of(file, format)
    number = session_number(data_dir, session)
    with progress_bar() as progress:
        try:
            parts = _checked(_parts(file, media, number, decimal_comma), progress)
        except InvalidInput as error:
            raise InvalidInput(f"{file}: {error}; nothing was changed") from error
        count = _send(data_dir, number, parts, reset, progress)
    typer.echo(count)


@app.command("take-back")
def take_back(
    session: Session,
    data_dir: DataDir,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="The _id of a reading. [default: all]")
    ] = None,
    config: Config = None,
) -> None:
    """Undo all edits of readings.

    The readings are again as they were before. Prints the number of such readings. `readings --json` shows an
    edited reading's former members as `original`.
    """
    wrong = [oid for oid in ids or () if not is_object_id(oid)]
    if wrong:
        raise InvalidInput(f"{wrong[0]!r} is no _id of a reading: those have 24 digits from 0 to f")
    number = session_number(data_dir, session)
    path, missing = f"/manage/brewsessions/{number}/readings/take-back", no_session(number)
    typer.echo(ask(data_dir, "POST", path, body={"ids": ids}, missing=missing)["readings"])


@app.command("export")
def export_readings(
    session: Session,
    data_dir: DataDir,
    config: Config = None,
    format: Format = None,
    out: Annotated[Path | None, typer.Option(help="File to write. [default: stdout]")] = None,
) -> None:
    """Write a brew session's readings as JSON or CSV.

    `readings import` takes the file back bit for bit. The file appears, or is replaced, only when all of it
    is written. Works beside a running gateway.
    """
    _export(data_dir, session_number(data_dir, session), format_of(out, format), out)


def _parts(file: Path, media: Media, session: int, decimal_comma: bool) -> Iterator[FilePart]:
    if decimal_comma and media != "csv":
        raise InvalidInput("--decimal-comma is for CSV files")
    return parts_of(read(file), media, session, time.time(), decimal_comma=decimal_comma)


def _checked(parts: Iterator[FilePart], progress: Progress) -> list[FilePart]:
    """Read all parts of a file; a bad row raises. Return the parts, joined if they fit into one import."""
    found: list[FilePart] = []
    rows = 0
    for part in parts:
        found.append(part)
        rows += part.rows
        if rows >= MANY:
            progress(rows, UNKNOWN, "readings checked")
    return joined(found)


def _send(data_dir: Path, session: int, parts: list[FilePart], reset: bool, progress: Progress) -> int:
    total = sum(part.rows for part in parts)
    done = 0
    for part in parts:
        try:
            body = {
                "csv": part.body.decode(),
                "reset": reset and part is parts[0],
                "later": [oid for other in parts if other is not part for oid in other.ids] if reset else [],
            }
            path = f"/manage/brewsessions/{session}/readings"
            answer = ask(data_dir, "POST", path, body=body, missing=no_session(session))
            done += answer["imported"]["count"]
        except GatewayError as error:
            if done == 0:
                raise
            remedy = "import the file again without --reset"
            raise GatewayError(f"{error}; {done} of {total} readings are in, {remedy}") from error
        if total >= MANY:
            progress(done, total, "readings imported")
    return done


def _export(data_dir: Path, session: int, media: Media, out: Path | None) -> None:
    watched = out is not None or not sys.stdout.isatty()  # else the readings run over the screen
    done = 0
    file: BinaryIO | None = None
    with contextlib.ExitStack() as opened, progress_bar() as progress:

        def write(piece: bytes) -> None:
            nonlocal done, file
            if file is None:  # not before, because a brew session that is not there must not cost a file
                file = opened.enter_context(written(out))
            file.write(piece)
            done += piece.count(b"\n")  # a reading a line; a comment of several lines counts as several
            if watched and done >= MANY:
                progress(done, UNKNOWN, "readings exported")

        get(
            data_dir,
            f"/manage/brewsessions/{session}/readings",
            query={"format": media},
            missing=no_session(session),
            receive=write,
        )
