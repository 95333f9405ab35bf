"""A figure against its ceiling and its goal, and the table and JSON of all of them."""

import json
import os
import platform
import sqlite3
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

TABLE_COLUMNS = 150
"""Width of the table where standard output is no terminal."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit for the measured value or for its ratio to the ceiling."""

    of: Literal["measured", "ratio"]
    sign: Literal["<=", ">="]
    limit: float

    def is_met(self, value: float) -> bool:
        """Whether the value is on the right side."""
        return value <= self.limit if self.sign == "<=" else value >= self.limit


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured; without a value where the machine does not allow it, and `note` says why."""

    what: str
    unit: str
    goal: Goal
    measured: float | None
    ceiling: float | None = None
    ratios: tuple[float, ...] = ()
    """Of every round; their median is the ratio."""
    note: str = ""

    @classmethod
    def of_rounds(
        cls, what: str, unit: str, goal: Goal, pairs: Sequence[tuple[float, float]], note: str = ""
    ) -> "Figure":
        """From what was measured in each round, the product's value and the ceiling's."""
        measured = statistics.median(high for high, _ in pairs)
        ceiling = statistics.median(low for _, low in pairs)
        return cls(what, unit, goal, measured, ceiling, tuple(high / low for high, low in pairs), note)

    @property
    def ratio(self) -> float | None:
        """To the ceiling: the median of the rounds, or of the values where there were none."""
        if self.ratios:
            return statistics.median(self.ratios)
        return self.measured / self.ceiling if self.measured is not None and self.ceiling else None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where nothing was measured."""
        value = self.measured if self.goal.of == "measured" else self.ratio
        return None if value is None else self.goal.is_met(value)

    def as_json(self) -> dict[str, Any]:
        """Everything, for a program to read."""
        goal = {"of": self.goal.of, "sign": self.goal.sign, "limit": self.goal.limit}
        return {
            "what": self.what,
            "unit": self.unit,
            "measured": self.measured,
            "ceiling": self.ceiling,
            "ratio": self.ratio,
            "ratios": list(self.ratios),
            "goal": goal,
            "met": self.met,
            "note": self.note,
        }


def spread_note(name: str, unit: str, values: Sequence[float]) -> str:
    """Lowest and highest of several values, in words."""
    return f"{name} {_number(min(values))} - {_number(max(values))} {unit}"


def print_table(figures: Iterable[Figure]) -> None:
    """The table and the line about the machine, on standard output."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_COLUMNS)
    table = Table()
    for heading in ("what", "measured", "ceiling", "ratio", "rounds", "goal", "met", "note"):
        table.add_column(heading, justify="right" if heading in {"measured", "ceiling", "ratio"} else "left")
    for figure in figures:
        table.add_row(*_cells(figure))
    console.print(table)
    console.print(machine(), soft_wrap=True, highlight=False)


def print_json(figures: Iterable[Figure]) -> None:
    """The same as one JSON object."""
    print(json.dumps({"machine": machine(), "figures": [figure.as_json() for figure in figures]}, indent=2))


def _cells(figure: Figure) -> tuple[str, ...]:
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    spread = f"{min(figure.ratios):.2f} - {max(figure.ratios):.2f}" if len(figure.ratios) > 1 else ""
    unit = "x" if figure.goal.of == "ratio" else f" {figure.unit}"
    goal = f"{figure.goal.sign} {figure.goal.limit:g}{unit}"
    met = {True: "yes", False: "no", None: "-"}[figure.met]
    measured, ceiling = (_with_unit(value, figure.unit) for value in (figure.measured, figure.ceiling))
    return figure.what, measured, ceiling, ratio, spread, goal, met, figure.note


def _with_unit(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{_number(value)} {unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def machine() -> str:
    """The machine and the versions that the figures belong to."""
    return (
        f"{_cpu_model()}, {os.cpu_count()} cores, Linux {platform.release()}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"aiohttp {version('aiohttp')}, paho-mqtt {version('paho-mqtt')}, "
        f"{_file_system(Path(tempfile.gettempdir()))} on {tempfile.gettempdir()}, "
        f"load average {os.getloadavg()[0]:.1f}"
    )


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in {"model name", "Model", "Hardware"}:
            return value.strip()
    return platform.machine()


def _file_system(directory: Path) -> str:
    done = subprocess.run(
        ["stat", "--file-system", "--format=%T", str(directory)], capture_output=True, check=False
    )
    return done.stdout.decode().strip() or "unknown file system"
