"""The demo's output: a live screen in a terminal, and lines where there is none or too little room."""

import asyncio
import os
import re
import sys
import termios
import time
import tty
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gateway.cli.demo_result import DemoResult, DemoSent, DeviceRow
from gateway.cli.demo_screen import GREEN, MIN_COLUMNS, MIN_LINES, RED, drawn_rows, screen
from gateway.cli.demo_state import Moment

LINE_EVERY_S = 5.0
"""Seconds between two lines of counts if there is no screen."""

KEYS = re.compile(rb"\x1b[\[O](?P<arrow>[AB])|(?P<letter>[jkoq])")
STEPS = {b"A": -1, b"k": -1, b"B": 1, b"j": 1}
TYPED_BYTES = 64


class View:
    """The demo's output. `on_key` gets the keys `o` (open the page) and `q` (end)."""

    def __init__(self, on_key: Callable[[str], None]) -> None:
        self._console = Console(highlight=False)
        self._plain = self._console.options.ascii_only or os.environ.get("TERM") == "linux"
        self.has_screen = (
            self._console.is_terminal
            and not self._console.is_dumb_terminal
            and self._console.width >= MIN_COLUMNS
            and self._console.height >= MIN_LINES
        )
        self._live = Live(console=self._console, auto_refresh=False, screen=True)
        self._on_key = on_key
        self._selected = 0
        self._moment: Moment | None = None
        self._last_line_at = 0.0
        self._said = 0.0
        self._typing: tuple[int, list[Any]] | None = None

    def __enter__(self) -> Self:
        if self.has_screen:
            self._live.start()
            self._read_keys()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave_screen()

    def _read_keys(self) -> None:
        """Take keys one by one, without showing them; Ctrl-C stays a signal."""
        if not sys.stdin.isatty():
            return
        terminal = sys.stdin.fileno()
        self._typing = terminal, termios.tcgetattr(terminal)
        tty.setcbreak(terminal)
        asyncio.get_running_loop().add_reader(terminal, self._key, terminal)

    def _leave_screen(self) -> None:
        if self._typing is not None:
            terminal, before = self._typing
            self._typing = None
            asyncio.get_running_loop().remove_reader(terminal)
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        self._live.stop()

    def _key(self, terminal: int) -> None:
        typed = os.read(terminal, TYPED_BYTES)
        if not typed:  # the terminal is gone: nothing more will come
            asyncio.get_running_loop().remove_reader(terminal)
        for found in KEYS.finditer(typed):
            key = found["arrow"] or found["letter"]
            if key not in STEPS:
                self._on_key(key.decode())
            elif self._moment is not None:
                self._selected = (self._selected + STEPS[key]) % len(self._moment.rows)
                self._draw(self._moment)

    def introduce(self, page: str, login: str, curl: str, for_seconds: float | None) -> None:
        """Without a screen, print the addresses, and a command to try."""
        if self.has_screen:
            return
        out = self._console.out
        out("Simulated hydrometers of every kind -> gateway -> a second one as its upstream.")
        out(f"The page, in a browser on this machine:\n  {page}\nTo change something, too:\n  {login}")
        out(f"Or try this in another terminal:\n  {curl}")
        out("Ctrl-C ends it.\n" if for_seconds is None else f"Ends after {for_seconds:g} s.\n")

    def show(self, moment: Moment, sent: DemoSent) -> None:
        """Redraw the screen, or print what is new."""
        if self.has_screen:
            self.draw(moment)
            return
        for event in moment.events:
            if event.at_s > self._said:
                self._said = event.at_s
                self._console.out(f"{event.at_s:>4.0f} s  {event.text}")
        if time.monotonic() - self._last_line_at >= LINE_EVERY_S:
            self._last_line_at = time.monotonic()
            devices = moment.others + sum(row.sg is not None for row in moment.rows)
            self._console.out(
                f"{devices} devices: {sent.answered} answered, {moment.stored} stored, {moment.waiting} wait"
            )

    def draw(self, moment: Moment) -> None:
        """Redraw the screen, if there is one."""
        self._moment = moment
        if self.has_screen:
            self._draw(moment)

    def _draw(self, moment: Moment) -> None:
        columns, lines = self._console.size
        if columns < MIN_COLUMNS or lines < MIN_LINES:
            small = f"This window is too small: {MIN_COLUMNS} columns, {MIN_LINES} lines."
            self._live.update(Text(small), refresh=True)
            return
        chosen = replace(moment, selected=self._selected)
        self._live.update(Group(*screen(chosen, columns, lines, plain=self._plain)), refresh=True)

    def close_down(self) -> None:
        """Leave the screen; what follows is the verdict."""
        self._leave_screen()
        self._console.print("The devices have stopped; the last readings are on their way ...")

    def summarise(self, moment: Moment, rows: Collection[DeviceRow], v: DemoResult) -> None:
        """Print the named devices or all families, and the counts of every reading."""
        if self.has_screen:
            none_chosen = replace(moment, selected=len(moment.rows))
            for line in drawn_rows(none_chosen, self._console.width, plain=self._plain):
                self._console.print(line, no_wrap=True, crop=True)
        else:
            self._console.print(_families(rows))
        print_line = self._console.print
        print_line(
            f"{len(rows)} devices: {v.sent} sent, {v.answered} answered, {v.stored} stored, "
            f"{v.upstream} upstream."
        )
        if v.thinned:
            print_line(
                f"The other {v.thinned} are left out on purpose: their bridges push every few seconds, of "
                "which one reading a minute is kept."
            )
        for fault in v.faults:
            print_line(f"WRONG: {fault}", style=RED)
        if v.good:
            good = "Every stored reading is upstream exactly once and comes back from both."
            print_line(good, style=f"bold {GREEN}")


def _families(rows: Iterable[DeviceRow]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("Family", no_wrap=True)
    for heading in ("Devices", "Stored", "Upstream"):
        table.add_column(heading, justify="right", no_wrap=True)
    by_family: dict[str, list[DeviceRow]] = defaultdict(list)
    for row in rows:
        by_family[row.family].append(row)
    for family, ours in sorted(by_family.items()):
        counts = len(ours), sum(row.stored for row in ours), sum(row.upstream for row in ours)
        table.add_row(family, *map(str, counts))
    return table
