"""The demo's screen: a live table in a terminal, a line now and then elsewhere."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from types import TracebackType
from typing import Self

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table

from gateway.cli.demo_brewery import DemoBrewery
from gateway.cli.demo_result import DemoResult, DemoSent, DeviceRow

LINE_EVERY_S = 5.0
"""Seconds between two lines if there is no terminal to redraw."""

PIPE_COLUMNS = 120
"""Width of the table if there is no terminal."""

LINES_BESIDE_ROWS = 6
"""Lines of a terminal beside the rows: heading, rule, counts and blank lines."""

COUNTS = ("Stored", "Sent on", "Back")
"""Readings stored, forwarded, and read back from the upstream."""


class View:
    """The demo's screen."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        if not self._console.is_terminal:
            self._console.width = PIPE_COLUMNS
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._last_line_at = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def introduce(self, brewery: DemoBrewery, for_seconds: float | None) -> None:
        """Print the addresses, and a command to try."""
        gateway = brewery.gateway
        self._console.print("Simulated hydrometers of every kind -> gateway -> a second one as its upstream.")
        self._console.print(f"  gateway  {gateway.url}   MQTT  {gateway.mqtt}   TCP  {gateway.tcp}")
        self._console.print("Open the page in a browser; this address logs in:")
        self._console.print(f"  {brewery.page}", soft_wrap=True)
        self._console.print("Or try this in another terminal:")
        curl = f'curl -H "X-API-KEY: {gateway.key}" "{gateway.url}/v1/fermentation/1?limit=3"'
        self._console.print(f"  {curl}", soft_wrap=True)
        end = "Ctrl-C ends it." if for_seconds is None else f"Ends after {for_seconds:g} s."
        self._console.print(f"{end}\n")

    def show(self, sent: DemoSent, rows: Iterable[DeviceRow]) -> None:
        """Redraw the table of the devices that reported last, or print a line."""
        rows = list(rows)
        if self._console.is_terminal:
            self._live.update(_latest(sent, rows, self._console.height - LINES_BESIDE_ROWS), refresh=True)
        elif time.monotonic() - self._last_line_at >= LINE_EVERY_S:
            self._last_line_at = time.monotonic()
            self._console.print(_progress(sent, rows))

    def summarise(self, rows: Collection[DeviceRow], v: DemoResult) -> None:
        """Print all families, and the counts of every reading."""
        self._live.stop()
        self._console.print(_families(rows))
        self._console.print(
            f"{len(rows)} devices: {v.sent} sent, {v.answered} answered, {v.stored} stored, "
            f"{v.upstream} upstream."
        )
        if v.thinned:
            self._console.print(
                f"The other {v.thinned} are left out on purpose: their bridges push every few seconds, of "
                "which one reading a minute is kept."
            )
        for fault in v.faults:
            self._console.print(f"WRONG: {fault}")
        if v.good:
            self._console.print("Every stored reading is upstream exactly once and comes back from both.")


def _progress(sent: DemoSent, rows: list[DeviceRow]) -> str:
    return (
        f"{len(rows)} devices: {sent.answered} answered, {sum(r.stored for r in rows)} stored, "
        f"{sum(r.forwarded for r in rows)} forwarded, {sum(r.read_back for r in rows)} read back"
    )


def _latest(sent: DemoSent, rows: list[DeviceRow], lines: int) -> Table:
    """Make the table of the devices that reported last, as many as fit, with the counts of all below."""
    table = Table(box=box.SIMPLE, pad_edge=False, caption=_progress(sent, rows), caption_justify="left")
    for heading in ("Device", "Family"):
        table.add_column(heading, no_wrap=True)
    for heading in ("Gravity", "Temp", *COUNTS):
        table.add_column(heading, no_wrap=True, justify="right", min_width=len(heading))
    newest_first = sorted(rows, key=lambda row: (-row.last_seen_at, row.family, row.name))
    for row in newest_first[: max(1, lines)]:
        counts = map(str, (row.stored, row.forwarded, row.read_back))
        table.add_row(row.name, row.family, row.gravity, row.temp, *counts)
    return table


def _families(rows: Iterable[DeviceRow]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("Family", no_wrap=True)
    for heading in ("Devices", *COUNTS):
        table.add_column(heading, justify="right", no_wrap=True)
    by_family: dict[str, list[DeviceRow]] = defaultdict(list)
    for row in rows:
        by_family[row.family].append(row)
    for family, ours in sorted(by_family.items()):
        counts = (sum(r.stored for r in ours), sum(r.forwarded for r in ours), sum(r.read_back for r in ours))
        table.add_row(family, str(len(ours)), *map(str, counts))
    return table
