"""Tables and times as the commands print them."""

import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from unicodedata import combining, east_asian_width

import typer

from gateway.domain import times
from gateway.errors import InvalidInput

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT."""

CUT = "…"
"""The mark at a place where text was cut off."""

GAP = "  "
"""The gap between columns."""

CUT_COLUMN = 6
"""The least width, in characters, of a column that is cut."""


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    wide: bool = False,
    cut: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print columns wide enough for their content, but no wider together than the terminal.

    On a narrow terminal, leave out the `spare` columns, one after the other, until the rest fits; then cut
    the columns named in `cut`. A pipe or file gets everything, as with `wide`, so that it can be copied and
    grepped.
    """
    lines = [["" if cell is None else harmless(str(cell)) for cell in row] for row in [headings, *rows]]
    width = None if wide else terminal_width()
    left_out = [] if width is None else _left_out(lines, width, spare)
    kept = [place for place, heading in enumerate(headings) if heading not in left_out]
    shown = [[line[place] for place in kept] for line in lines]
    widths = full = _widths(shown)
    if width is not None:
        widths = _narrowed(shown[0], full, width, cut)
    for line in shown:
        cells = [clipped(cell, size) for cell, size in zip(line, widths, strict=True)]
        padded = (cell + " " * (size - _cells(cell)) for cell, size in zip(cells, widths, strict=True))
        typer.echo(GAP.join(padded).rstrip())
    if left_out or widths != full:
        without = [f"without {', '.join(left_out)}"] if left_out else []
        marked = [f"{CUT} marks what is cut"] if widths != full else []
        typer.echo(f"({'; '.join([*without, *marked, '--wide shows all'])})", err=True)


def _left_out(lines: Sequence[Sequence[str]], width: int, spare: Sequence[str]) -> list[str]:
    """Return the headings of the spare columns that do not fit."""
    sizes = dict(zip(lines[0], _widths(lines), strict=True))
    left_out: list[str] = []
    for heading in spare:
        if _total(list(sizes.values())) <= width:
            break
        del sizes[heading]
        left_out.append(heading)
    return left_out


def _narrowed(headings: Sequence[str], widths: Sequence[int], width: int, cut: Sequence[str]) -> list[int]:
    """Return the widths after narrowing the widest of the `cut` columns until all fit, as far as they can."""
    found = list(widths)
    while _total(found) > width:
        places = [
            place
            for place, heading in enumerate(headings)
            if heading in cut and found[place] > max(CUT_COLUMN, len(heading))
        ]
        if not places:
            break
        found[max(places, key=lambda place: found[place])] -= 1
    return found


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(_cells, column)) for column in zip(*lines, strict=True)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _cells(text: str) -> int:
    """Return the columns of a terminal that a text takes: wide characters, such as a beer glass, take two."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def clipped(text: str, width: int) -> str:
    """Fit the text into a number of a terminal's columns, with a mark at the cut."""
    if _cells(text) <= width:
        return text
    while text and _cells(text) > width - len(CUT):
        text = text[:-1]
    return text + CUT


def terminal_width() -> int | None:
    """Return the columns of the terminal on stdout; None if stdout is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def show_members(members: Mapping[str, str]) -> None:
    """Print a name and its text on each line; skip empty texts. A text longer than its line goes on below."""
    size = max(map(len, members)) + len(GAP)
    width = terminal_width()
    for name, text in members.items():
        if text:
            room = None if width is None else max(CUT_COLUMN, width - size)
            pieces = [harmless(text)] if room is None else textwrap.wrap(harmless(text), room)
            typer.echo(f"{name:{size}}{pieces[0]}")
            for piece in pieces[1:]:
                typer.echo(f"{'':{size}}{piece}")


def harmless(text: str) -> str:
    """Escape control and invisible characters, so that a terminal shows them and obeys none."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def local_time(unix_seconds: int | None) -> str:
    """Write date and time in the user's own zone."""
    if unix_seconds is None:
        return ""
    return datetime.fromtimestamp(unix_seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def to_the_minute(unix_seconds: int | None) -> str:
    """Write date and time in the user's own zone, without seconds, for tables."""
    return local_time(unix_seconds).rpartition(":")[0]


def iso(unix_seconds: float | None) -> str | None:
    """Return the time as readings have it; None stays None."""
    return None if unix_seconds is None else times.iso(unix_seconds)


def unix(text: str | None) -> int | None:
    """Return the Unix seconds of a time in an answer. A time without a zone is UTC."""
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def exact(unix_seconds: float) -> str:
    """Return a time as requests take it: ISO 8601, UTC."""
    try:
        return datetime.fromtimestamp(unix_seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput("that time is beyond the calendar") from error


def parse_time(text: str) -> float:
    """Parse an ISO date or time to Unix seconds. Without a zone, take the user's own zone."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.timestamp() if moment.tzinfo else moment.astimezone().timestamp()
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{text!r} is no time; write 2026-03-01 or 2026-03-01T18:30 or ...+01:00"
        ) from error


SPAN = re.compile(r"([0-9]{1,6})([mhd])")
SPAN_S = {"m": 60, "h": 3_600, "d": 86_400}


def parse_span(text: str) -> int:
    """Parse a span of time to seconds: 30m, 24h, 90d."""
    found = SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidInput(f"{text!r} is no span of time; write 30m, 24h or 90d")
    return int(found[1]) * SPAN_S[found[2]]


def parse_since(text: str) -> float:
    """Parse the beginning of a span that ends now: a time as `parse_time` takes it, or its length, as 7d."""
    if SPAN.fullmatch(text.strip().lower()):
        return datetime.now(UTC).timestamp() - parse_span(text)
    return parse_time(text)


def parse_end(text: str) -> float:
    """Parse the end of a span as `parse_time` does; a date alone is the last second of that day."""
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        return parse_time(text)
    return parse_time(datetime.combine(day, time(23, 59, 59)).isoformat())
