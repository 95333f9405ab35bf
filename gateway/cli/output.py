"""Tables and times as the commands print them."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time

import typer

from gateway.errors import InvalidInput


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns wide enough for their content; nothing is cut, so it can be copied and grepped."""
    lines = [["" if cell is None else harmless(str(cell)) for cell in row] for row in [headings, *rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def harmless(text: str) -> str:
    """Text that a terminal takes for nothing else: control and invisible characters are escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def local_time(unix_seconds: int | None) -> str:
    """Date and time where the user is."""
    if unix_seconds is None:
        return ""
    return datetime.fromtimestamp(unix_seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def iso(unix_seconds: int | None) -> str | None:
    """ISO 8601 with offset, UTC, as in readings."""
    return None if unix_seconds is None else datetime.fromtimestamp(unix_seconds, UTC).isoformat()


def parse_time(text: str) -> float:
    """Unix seconds of an ISO date or time; without a zone it is the user's own."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.timestamp() if moment.tzinfo else moment.astimezone().timestamp()
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{text!r} is no time; write 2026-03-01 or 2026-03-01T18:30 or ...+01:00"
        ) from error


def parse_end(text: str) -> float:
    """The same for the end of a span: of a date alone the last second of that day."""
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        return parse_time(text)
    return parse_time(datetime.combine(day, time(23, 59, 59)).isoformat())
