"""Long work: a progress bar on stderr, and a loop over files."""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from gateway.cli.output import GREY, coloured
from gateway.domain.progress import Progress, no_progress
from gateway.errors import GatewayError, InvalidInput, TooLarge, in_words

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

T = TypeVar("T")

QUIET_S = 1.0
"""Seconds of a command after which it says that it still works, and between two such signs."""

STILL_WORKING = "still working; Ctrl-C stops it"

START_OF_LINE = "\r\x1b[2K"
"""Wipes the line away and goes to its start."""


@contextmanager
def progress_bar(label: str = "") -> Iterator[Progress]:
    """Show a command's progress: a bar from the first news on, wiped away at the end.

    `label` stands before the command's own words. Of 0 means that the total is unknown. Nothing is shown if
    stderr is no terminal. Print results after the bar has gone, not beside it.
    """
    if not sys.stderr.isatty():
        yield no_progress
        return
    bar = _Bar(label)
    try:
        yield bar.show
    finally:
        bar.close()


@contextmanager
def signs_of_life() -> Iterator[None]:
    """Say on stderr, after a second, that work goes on whose length nobody knows; wipe it away at the end.

    Nothing is shown if stderr is no terminal. A bar of `progress_bar` is better where there is news.
    """
    if not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show_seconds, args=(ended,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show_seconds(ended: threading.Event) -> None:
    if os.environ.get("TERM") == "dumb":
        if not ended.wait(QUIET_S):
            sys.stderr.write(f"{STILL_WORKING}\n")
        return
    seconds = 0
    while not ended.wait(QUIET_S):
        seconds += 1
        text = f"{STILL_WORKING} ({seconds} s)"
        sys.stderr.write(f"{START_OF_LINE}{coloured(text, GREY, sys.stderr)}")
        sys.stderr.flush()
    if seconds:
        sys.stderr.write(START_OF_LINE)
        sys.stderr.flush()


def read_file(path: Path, limit: int) -> bytes:
    """Read a file, but at most `limit` bytes and one more: that byte shows that the file is too large."""
    try:
        with path.open("rb") as file:
            return file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InvalidInput(f"cannot read it: {in_words(error)}") from error


def each_file(
    paths: Sequence[Path],
    limit: int,
    take: Callable[[Path, bytes, Progress], T],
    show: Callable[[Path, T], None],
) -> None:
    """Take each file and show its result. Name a refused file and go on with the others.

    At the end a `GatewayError` reports the refusals. `limit` is in bytes.
    """
    refused = 0
    for number, path in enumerate(paths, 1):
        try:
            data = read_file(path, limit)
            with progress_bar(f"{path.name} ({number} of {len(paths)})") as progress:
                progress(0, 1, "")
                taken = take(path, data, progress)
        except KeyboardInterrupt as stopped:
            if len(paths) > 1:
                stopped.add_note(f"of {len(paths)} files {number - 1} are done; it stopped at {path}")
            raise
        except (InvalidInput, TooLarge) as error:
            named = type(error)(f"{path}: {error}")
            if len(paths) == 1:
                raise named from error
            typer.echo(f"hydrometer-gateway: {named}", err=True)
            refused += 1
        else:
            show(path, taken)
    if refused:
        raise GatewayError(f"{refused} of {len(paths)} files were refused")


class _Bar:
    """The bar, drawn by rich. The first news imports rich, which takes a tenth of a second and 10 MB."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def show(self, done: int, of: int, what: str) -> None:
        text = f"{self._label} {what}".strip()
        if self._bar is None or self._task is None:
            self._bar = _rich_progress()
            self._task = self._bar.add_task(text, total=of or None)
            self._bar.start()
        self._bar.update(self._task, completed=done, total=of or None, description=text)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _rich_progress() -> "RichProgress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),  # a file may be called [red]
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    # Nothing redirected, because rich would send prints on stdout to stderr, and stdout may be a file.
    return Progress(
        *columns,
        console=Console(file=sys.stderr),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
