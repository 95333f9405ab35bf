"""What the demo shows: a live table in a terminal, a line now and then elsewhere."""

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table

from gateway.cli.demo_brewery import Brewery, DeviceRow, Verdict

LINE_EVERY_S = 5.0
"""How often a line appears where there is no terminal to redraw."""

PIPE_COLUMNS = 120
"""Width of the table where there is no terminal."""


class View:
    """The demo's screen."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        if not self._console.is_terminal:
            self._console.width = PIPE_COLUMNS
        self._live = Live(console=self._console, auto_refresh=False)
        self._last_line_at = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def introduce(self, brewery: Brewery, for_seconds: float | None) -> None:
        """Say what is running, and a line to try."""
        gateway = brewery.gateway
        self._console.print("Simulated hydrometers -> gateway -> second gateway as its upstream.")
        self._console.print(f"  gateway  {gateway.url}   MQTT broker  mqtt://{gateway.mqtt}")
        self._console.print("Try this in another terminal:")
        curl = f'curl -H "X-API-KEY: {gateway.key}" "{gateway.url}/v1/fermentation/1?limit=3"'
        self._console.print(f"  {curl}", soft_wrap=True)
        end = "Ctrl-C ends it." if for_seconds is None else f"Ends after {for_seconds:g} s."
        self._console.print(f"{end}\n")

    def show(self, rows: Iterable[DeviceRow]) -> None:
        """Redraw the table, or print a line."""
        rows = list(rows)
        if self._console.is_terminal:
            self._live.update(_table(rows), refresh=True)
        elif time.monotonic() - self._last_line_at >= LINE_EVERY_S:
            self._last_line_at = time.monotonic()
            self._console.print(
                f"{len(rows)} devices: {sum(r.received for r in rows)} received, "
                f"{sum(r.stored for r in rows)} stored, {sum(r.forwarded for r in rows)} forwarded, "
                f"{sum(r.read_back for r in rows)} read back"
            )

    def summarise(self, rows: Iterable[DeviceRow], verdict: Verdict) -> None:
        """The last table, and what became of every reading."""
        self._live.stop()
        self._console.print(_table(list(rows)))
        self._console.print(
            f"{verdict.sent} sent, {verdict.answered} answered, {verdict.stored} stored, "
            f"{verdict.upstream} upstream."
        )
        for fault in verdict.faults:
            self._console.print(f"WRONG: {fault}")
        if verdict.good:
            self._console.print("Every stored reading is upstream exactly once and comes back from both.")


def _table(rows: list[DeviceRow]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in ("Device", "Kind"):
        table.add_column(heading, no_wrap=True)
    for heading in ("Gravity", "Temp", "Received", "Stored", "Forwarded", "Read back"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=len(heading))
    for row in rows:
        counts = (row.received, row.stored, row.forwarded, row.read_back)
        table.add_row(row.name, row.kind, row.gravity, row.temp, *map(str, counts))
    return table
