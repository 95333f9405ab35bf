"""Tables, times and colours as the commands print them."""

import math
import os
import re
import shutil
import sys
import textwrap
import time as clock
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import IO, NamedTuple

import typer

from gateway.domain import times
from gateway.errors import InvalidInput

CUT = "…"
"""The mark at a place where text was cut off."""

GAP = "  "
"""The gap between columns."""

CUT_COLUMN = 6
"""The least width, in characters, of a column that is cut."""

NAME_COLUMN = 16
"""The width, in characters, of a column of names, below which other columns are left out first."""

ROOMY = 100
"""The width, in columns of a terminal, from which on details are shown."""

DETAIL = 5
"""The least rank of a detail."""


REMARK_COLUMNS = 80
"""The width of sentences below a table where nobody knows that of the terminal."""


class Column(NamedTuple):
    """A column of a table.

    On a narrow terminal the column with the highest `rank` is left out first; one of rank 1 stays. Columns
    from rank `DETAIL` on are shown on a roomy terminal only. A column with `cut` holds names or texts, which
    may be cut. `short` is its heading on a terminal, if that is another one. A column that is not `piped`
    is shown on a terminal alone, because a pipe gets the same columns for ever.
    """

    heading: str
    rank: int = 1
    cut: bool = False
    short: str = ""
    piped: bool = True


class Cell(NamedTuple):
    """A cell that a fitted table writes in another way: shorter, or with a colour."""

    full: str
    short: str
    colour: str | None = None

    def __str__(self) -> str:
        return self.full


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[object]],
    *,
    wide: bool | None = False,
    order: Sequence[str] = (),
) -> None:
    """Print a table, on a terminal no wider than that.

    On a narrow terminal, leave columns out by their rank, cut names, and say so below the table. `order` has
    the headings that come first there. A pipe or file gets everything that is `piped`, so that it can be
    copied and grepped, and a terminal gets everything with `wide`. `wide` is None for a command without that
    option.
    """
    width = terminal_width()
    places = [place for place, column in enumerate(columns) if column.piped or width is not None]
    if width is None or wide:
        headings = [columns[place].heading for place in places]
        _write([headings, *([_text(row[place]) for place in places] for row in rows)], _colours(places, rows))
        return
    first = [place for heading in order for place in places if columns[place].heading == heading]
    places = [*first, *(place for place in places if place not in first)]
    texts = {place: [columns[place].short or columns[place].heading] for place in places}
    for row in rows:
        for place in places:
            cell = row[place]
            texts[place].append(harmless(cell.short) if isinstance(cell, Cell) else _text(cell))
    sizes = {place: max(map(cells, column)) for place, column in texts.items()}
    least = {place: min(size, NAME_COLUMN) if columns[place].cut else size for place, size in sizes.items()}
    left_out = _left_out(columns, least, width)
    shown = [place for place in places if place not in left_out]
    widths = _narrowed(columns, texts, {place: sizes[place] for place in shown}, width)
    lines = [[texts[place][number] for place in shown] for number in range(len(rows) + 1)]
    _write(lines, _colours(shown, rows), [widths[place] for place in shown], width)
    is_cut = any(widths[place] < sizes[place] for place in shown) or _total([*widths.values()]) > width
    _say_what_is_missing(len(left_out), is_cut, wide)


def _left_out(columns: Sequence[Column], least: Mapping[int, int], width: int) -> set[int]:
    """Return the places of the columns for which there is no room."""
    left_out = {place for place in least if columns[place].rank >= DETAIL and width < ROOMY}
    for place in sorted(least, key=lambda place: columns[place].rank, reverse=True):
        if _total([size for each, size in least.items() if each not in left_out]) <= width:
            break
        if columns[place].rank > 1:
            left_out.add(place)
    return left_out


def _narrowed(
    columns: Sequence[Column], texts: Mapping[int, Sequence[str]], sizes: Mapping[int, int], width: int
) -> dict[int, int]:
    """Return the widths after narrowing the widest columns of names until all fit, as far as they can."""
    found = dict(sizes)
    while _total([*found.values()]) > width:
        places = [
            place
            for place, size in found.items()
            if columns[place].cut and size > max(CUT_COLUMN, cells(texts[place][0]))
        ]
        if not places:
            break
        found[max(places, key=lambda place: found[place])] -= 1
    return found


def _write(
    lines: Sequence[Sequence[str]],
    colours: Sequence[Sequence[str | None]],
    widths: Sequence[int] | None = None,
    width: int | None = None,
) -> None:
    """Write the lines of a table, each column as wide as its widest cell or as it is told."""
    if widths is None:
        widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
    in_colour = is_coloured(sys.stdout)
    for number, line in enumerate(lines):
        parts = [padded(clipped(cell, size), size) for cell, size in zip(line, widths, strict=True)]
        if width is not None and _total(widths) > width:
            typer.echo(clipped(GAP.join(parts).rstrip(), width))
            continue
        parts[-1] = parts[-1].rstrip()
        if in_colour:
            parts = [_styled(part, colour) for part, colour in zip(parts, colours[number], strict=True)]
        typer.echo(GAP.join(parts).rstrip(), color=in_colour)


def _styled(cell: str, colour: str | None) -> str:
    text = cell.rstrip()
    return typer.style(text, fg=colour) + " " * (len(cell) - len(text)) if colour and text else cell


def _say_what_is_missing(columns: int, is_cut: bool, wide: bool | None) -> None:
    parts = [f"{columns} more column{'' if columns == 1 else 's'}"] if columns else []
    parts += [f"{CUT} marks what is cut"] if is_cut else []
    if parts:
        remedy = "" if wide is None else ": `--wide`"
        line = coloured(f"{'; '.join(reversed(parts))}{remedy}", GREY, sys.stderr)
        typer.echo(line, err=True, color=is_coloured(sys.stderr))


def _text(cell: object) -> str:
    return "" if cell is None else harmless(str(cell))


def _colours(places: Sequence[int], rows: Sequence[Sequence[object]]) -> list[list[str | None]]:
    """Return the colour of each cell, those of the headings first, which have none."""
    found = [[row[place] for place in places] for row in rows]
    colours = [[cell.colour if isinstance(cell, Cell) else None for cell in row] for row in found]
    return [[None for _ in places], *colours]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def cells(text: str) -> int:
    """Return the columns of a terminal that a text takes: wide characters, such as a beer glass, take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # not above, because most tables have plain text

    return cell_len(text)


def clipped(text: str, width: int) -> str:
    """Fit the text into a number of a terminal's columns, with a mark at the cut."""
    if cells(text) <= width:
        return text
    while text and cells(text) > width - len(CUT):
        text = text[:-1]
    return text + CUT


def padded(text: str, width: int) -> str:
    """Return the text with blanks up to a number of a terminal's columns."""
    return text + " " * (width - cells(text))


def terminal_width() -> int | None:
    """Return the columns of the terminal on stdout; None if stdout is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def is_coloured(stream: IO[str]) -> bool:
    """Return whether colours go to a stream: to a terminal, unless the user wants none."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def coloured(text: str, colour: str | None, stream: IO[str]) -> str:
    """Return a text in a colour, where that is wanted."""
    return typer.style(text, fg=colour) if colour and is_coloured(stream) else text


GREY, GREEN, YELLOW, RED = "bright_black", "green", "yellow", "red"
"""Colours of states. A state is always a word, too."""


def when(unix_seconds: int | None, never: str = "") -> Cell:
    """Return the cell of a time: to the minute, and on a terminal as an age."""
    if unix_seconds is None:
        return Cell(never, never)
    return Cell(to_the_minute(unix_seconds), age(unix_seconds))


def state(word: str, colour: str | None) -> Cell:
    """Return the cell of a state."""
    return Cell(word, word, colour)


MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400


def age(unix_seconds: float) -> str:
    """Write how long ago a time is, or how far ahead, in the words of the page."""
    length = clock.time() - unix_seconds
    if -MINUTE_S < length < MINUTE_S:
        return "just now" if length >= 0 else "in a moment"
    # Upwards for a time ahead: what was made for 90 days ends in 90 days.
    number = math.floor if length > 0 else math.ceil
    if abs(length) < 2 * HOUR_S:
        text = f"{abs(number(length / MINUTE_S))} min"
    elif abs(length) < 2 * DAY_S:
        text = f"{abs(number(length / HOUR_S))} h"
    else:
        text = f"{abs(number(length / DAY_S))} days"
    return f"{text} ago" if length > 0 else f"in {text}"


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


def show_remarks(remarks: Iterable[str]) -> None:
    """Print sentences below a table, each on lines of its own."""
    for remark in remarks:
        for line in textwrap.wrap(harmless(remark), terminal_width() or REMARK_COLUMNS):
            typer.echo(line)


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
