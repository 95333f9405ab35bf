"""A figure against its ceiling and its goal, and the table and JSON of all of them."""

import json
import os
import platform
import sqlite3
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, TypeVar

from rich.console import Console
from rich.table import Table

from tests.benchmarks.plan import BEFORE, CEILING, PRODUCT

Sample = TypeVar("Sample")

NUMBERS = frozenset({"before", "x before", "measured", "ceiling", "ratio"})
"""Columns that stand to the right."""

TABLE_COLUMNS = 150
"""Width of the table where standard output is no terminal."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit for the measured value or for its ratio to the ceiling."""

    of: Literal["measured", "ratio"]
    sign: Literal["<=", ">="]
    limit: float
    aim: float | None = None
    """What would be better still; it does not decide whether the goal is met."""

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
    before: float | None = None
    """What another checkout measured by turns with this one."""
    ratios_before: tuple[float, ...] = ()

    @classmethod
    def of_turns(
        cls,
        what: str,
        unit: str,
        goal: Goal,
        turns: Mapping[str, Sequence[Sample]],
        value: Callable[[Sample], float],
        note: str = "",
    ) -> "Figure":
        """From what the players of `take_turns` measured in each round; `value` picks the number."""
        numbers = {name: [value(sample) for sample in samples] for name, samples in turns.items()}
        middle = {name: statistics.median(values) for name, values in numbers.items()}
        ratios = {
            name: tuple(high / low for high, low in zip(values, numbers[CEILING], strict=True) if low)
            for name, values in numbers.items()
            if CEILING in numbers
        }
        return cls(
            what,
            unit,
            goal,
            middle[PRODUCT],
            middle.get(CEILING),
            ratios.get(PRODUCT, ()),
            note,
            middle.get(BEFORE),
            ratios.get(BEFORE, ()),
        )

    @classmethod
    def of_rounds(
        cls, what: str, unit: str, goal: Goal, pairs: Sequence[tuple[float, float]], note: str = ""
    ) -> "Figure":
        """From what was measured in each round, the product's value and the ceiling's."""
        turns = {PRODUCT: [high for high, _ in pairs], CEILING: [low for _, low in pairs]}
        return cls.of_turns(what, unit, goal, turns, float, note)

    @property
    def ratio(self) -> float | None:
        """To the ceiling: the median of the rounds, or of the values where there were none."""
        if self.ratios:
            return statistics.median(self.ratios)
        return self.measured / self.ceiling if self.measured is not None and self.ceiling else None

    @property
    def ratio_before(self) -> float | None:
        """Of the other checkout, to the same ceiling."""
        if self.ratios_before:
            return statistics.median(self.ratios_before)
        return self.before / self.ceiling if self.before is not None and self.ceiling else None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where nothing was measured."""
        value = self.measured if self.goal.of == "measured" else self.ratio
        return None if value is None else self.goal.is_met(value)

    def as_json(self) -> dict[str, Any]:
        """Everything, for a program to read."""
        goal = {"of": self.goal.of, "sign": self.goal.sign, "limit": self.goal.limit, "aim": self.goal.aim}
        return {
            "what": self.what,
            "unit": self.unit,
            "measured": self.measured,
            "ceiling": self.ceiling,
            "ratio": self.ratio,
            "ratios": list(self.ratios),
            "before": self.before,
            "ratio_before": self.ratio_before,
            "ratios_before": list(self.ratios_before),
            "goal": goal,
            "met": self.met,
            "note": self.note,
        }


def spread_note(name: str, unit: str, values: Sequence[float]) -> str:
    """Lowest and highest of several values, in words."""
    return f"{name} {_number(min(values))} - {_number(max(values))} {unit}"


def in_turn(turns: Mapping[str, Sequence[Sample]], value: Callable[[Sample], float]) -> str:
    """Medians of a number that has no column, in words."""
    middle = {name: _number(statistics.median(map(value, samples))) for name, samples in turns.items()}
    others = [f"{name} {middle[name]}" for name in (BEFORE, CEILING) if name in middle]
    return f"{middle[PRODUCT]} ({', '.join(others)})"


def print_table(figures: Iterable[Figure]) -> None:
    """The table and the line about the machine, on standard output."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_COLUMNS)
    figures = list(figures)
    rows = [_cells(figure) for figure in figures]
    if any(row["before"] for row in rows):
        rows = [{**row, "rounds": ""} for row in rows]
    table = Table()
    for heading in rows[0] if rows else ():
        # A column that no figure fills would cost the notes their room.
        if any(row[heading] for row in rows):
            table.add_column(heading, justify="right" if heading in NUMBERS else "left")
    for row in rows:
        table.add_row(*(row[str(column.header)] for column in table.columns))
    console.print(table)
    console.print(machine(), soft_wrap=True, highlight=False)


def in_a_line(figure: Figure) -> str:
    """The numbers of a figure without goal and note."""
    cells = {name: text for name, text in _cells(figure).items() if text}
    before = f"{cells['before']} ({cells.get('x before', '-')}) -> " if "before" in cells else ""
    return f"{figure.what}: {before}{cells['measured']} ({cells.get('ratio', '-')})"


def print_json(figures: Iterable[Figure]) -> None:
    """The same as one JSON object."""
    print(json.dumps({"machine": machine(), "figures": [figure.as_json() for figure in figures]}, indent=2))


def _cells(figure: Figure) -> dict[str, str]:
    unit = "x" if figure.goal.of == "ratio" else f" {figure.unit}"
    aim = "" if figure.goal.aim is None else f" ({figure.goal.aim:g})"
    return {
        "what": figure.what,
        "before": "" if figure.before is None else _with_unit(figure.before, figure.unit),
        "x before": _ratio(figure.ratio_before),
        "measured": _with_unit(figure.measured, figure.unit),
        "ceiling": _with_unit(figure.ceiling, figure.unit),
        "ratio": _ratio(figure.ratio),
        "rounds": f"{min(figure.ratios):.2f}-{max(figure.ratios):.2f}" if len(figure.ratios) > 1 else "",
        "goal (aim)": f"{figure.goal.sign} {figure.goal.limit:g}{unit}{aim}",
        "met": {True: "yes", False: "no", None: "-"}[figure.met],
        "note": figure.note,
    }


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


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
