"""Bytes that reach the medium for each reading, with the last checkpoint: what wears out an SD card."""

import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.benchmarks.plan import CEILING, Plan, next_payload, take_turns
from tests.benchmarks.processes import ROOT, Child, io_bytes, module, running
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import load, serving, trees
from tests.benchmarks.volume import NoVolume, Volume, mounted

LONE_GOAL = Goal("measured", "<=", 12)
RATE_GOAL = Goal("measured", "<=", 1.5)
GROUPED_GOAL = Goal("measured", "<=", 2.0, 1.5)

DEVICES = 10
"""Hydrometers of the brewery, all in a brew session."""

GROUP_CONNECTIONS = 32
"""Readings under way at once: as many may share a commit, and the ceiling's always do."""

RATE = 100.0
"""The lowest rate that counts as load."""


@dataclass(slots=True)
class Meter:
    """Counts what is written, at the block device or, where there is none of our own, by process."""

    directory: Path
    volume: Volume | None

    @property
    def words(self) -> str:
        """How it counts."""
        return "block device" if self.volume else "/proc/PID/io (no mount permitted), journal not included"

    def begin(self, writer: Child) -> int:
        """The count before the load."""
        if self.volume is None:
            return io_bytes(writer.pid)
        self.volume.sync()
        return self.volume.written_bytes()

    def end(self, writer: Child) -> int:
        """The count after the writer has closed its files."""
        written = writer.terminate_and_read_io()
        if self.volume is None:
            return written
        self.volume.unmount()
        return self.volume.written_bytes()


@dataclass(frozen=True, slots=True)
class Case:
    """A load: how many readings, how many at once, at which rate (0 without a limit)."""

    what: str
    goal: Goal
    count: int
    connections: int
    per_commit: int
    """Of the ceiling, which always fills its commits."""
    rate: float = 0.0
    warm_up: int = 0
    """Readings before, so that the WAL file has its full size: growing it costs the file system's journal."""


def measure(plan: Plan) -> list[Figure]:
    """One reading per commit, at a rate, and as many as fit."""
    what = "bytes written per reading"
    lone, many, at_once = plan.lone_readings, plan.grouped_readings, GROUP_CONNECTIONS
    cases = (
        Case(f"{what}, one per commit, after a start", LONE_GOAL, lone, 1, 1),
        Case(f"{what}, one per commit, later", LONE_GOAL, lone, 1, 1, warm_up=many),
        Case(f"{what}, {RATE:g} readings/s", RATE_GOAL, lone, at_once, 1, RATE, many),
        Case(f"{what}, {at_once} connections", GROUPED_GOAL, many, at_once, at_once, warm_up=many),
    )
    return [_compare(plan, case) for case in cases]


def _compare(plan: Plan, case: Case) -> Figure:
    rates: list[float] = []
    ways: list[str] = []
    devices = min(DEVICES, plan.devices)

    def product(tree: Path, meter: Meter) -> int:
        ways.append(meter.words)
        with serving(meter.directory, "--no-mqtt", tree=tree) as server:
            server.introduce(devices, next_payload())
            common = ("--connections", case.connections, "--devices", devices)
            if case.warm_up:
                load(server.port, next_payload(), *common, "--requests", case.warm_up)
            before = meter.begin(server.child)
            options = ("--requests", case.count, "--rate", case.rate)
            result = load(server.port, next_payload(), *common, *options)
            if tree == ROOT:
                rates.append(result["per_second"])
            return meter.end(server.child) - before

    def ceiling(meter: Meter) -> int:
        with running(*module("ceilings", "writes", meter.directory / "bare.sqlite3")) as bare:
            bare.line()
            if case.warm_up:
                bare.ask(f"{case.warm_up} {GROUP_CONNECTIONS}")
            before = meter.begin(bare)
            bare.ask(f"{case.count} {case.per_commit}")
            return meter.end(bare) - before

    play = {name: partial(_metered, partial(product, tree)) for name, tree in trees(plan).items()}
    turns = take_turns(plan.fresh_rounds, {**play, CEILING: partial(_metered, ceiling)})
    rate = statistics.median(rates)
    note = f"{ways[0]}; {rate:,.0f} readings/s; ceiling: bare sqlite3, {case.per_commit} per commit"
    return Figure.of_turns(case.what, "kB", case.goal, turns, lambda count: count / case.count / 1000, note)


def _metered(write: Callable[[Meter], int]) -> int:
    with ExitStack() as stack:
        try:
            volume = stack.enter_context(mounted())
        except NoVolume:
            parent = stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-bench-"))
            return write(Meter(Path(parent), None))
        directory = volume.directory / "data"
        directory.mkdir()
        return write(Meter(directory, volume))
