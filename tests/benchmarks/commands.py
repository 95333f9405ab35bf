"""CPU of a command line from its start to its end, against a Python that only imports typer."""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gateway.cli import COMPLETING
from tests.benchmarks import payloads
from tests.benchmarks.plan import CEILING, PRODUCT, BenchmarkError, Plan, next_payload, take_turns
from tests.benchmarks.processes import ROOT, START_S
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import environment, serving, trees

VERSION_GOAL = Goal("ratio", "<=", 0.5, 0.3)
LIST_GOAL = Goal("ratio", "<=", 3.5, 2.5)

DEVICES = 3
"""Hydrometers of the brewery that is listed."""

BARE = (sys.executable, "-c", "import typer")


Words = Callable[[Path], Sequence[str]]
"""The words after the program's name, for a data directory."""


@dataclass(frozen=True, slots=True)
class Case:
    """A command that is measured."""

    what: str
    goal: Goal
    words: Words
    variables: tuple[tuple[str, str], ...] = ()
    is_new: bool = False
    """Whether a checkout to compare with may lack it."""


CASES = (
    Case("--version", VERSION_GOAL, lambda data_dir: ["--version"]),
    Case("devices list", LIST_GOAL, lambda data_dir: ["devices", "list", "--data-dir", str(data_dir)]),
    Case(
        "completion of a device's name",
        LIST_GOAL,
        lambda data_dir: ["devices", "show", "--data-dir", str(data_dir), payloads.device_name(1)[:-1]],
        ((COMPLETING, "zsh"),),
        is_new=True,
    ),
)


def measure(plan: Plan) -> list[Figure]:
    """Milliseconds of `--version`, and beside a gateway that runs, of `devices list` and of completion."""
    with ExitStack() as stack:
        folders: dict[str, Path] = {}
        for name, tree in trees(plan).items():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-bench-"))
            folders[name] = Path(folder)
            server = stack.enter_context(serving(Path(folder), "--no-mqtt", tree=tree))
            server.introduce(DEVICES, next_payload())
        return [_compare(plan, folders, case) for case in CASES]


def _compare(plan: Plan, folders: Mapping[str, Path], case: Case) -> Figure:
    play = {CEILING: partial(_cpu_ms, BARE, environment(folders[PRODUCT]), ROOT, plan.command_calls)}
    for name, tree in trees(plan).items():
        if name == PRODUCT or not case.is_new:
            command = (sys.executable, "-m", "gateway", *case.words(folders[name]))
            variables = {**environment(folders[name], tree), **dict(case.variables)}
            play[name] = partial(_cpu_ms, command, variables, tree, plan.command_calls)
    for warm_up in play.values():
        warm_up()
    turns = take_turns(plan.rounds, play)
    return Figure.of_turns(f"CPU of {case.what}", "ms", case.goal, turns, float, "ceiling: import typer")


def _cpu_ms(command: Sequence[str], variables: Mapping[str, str], tree: Path, calls: int) -> float:
    """Processor time of one call, the mean of several."""
    before = _children_s()
    for _ in range(calls):
        done = subprocess.run(
            command, cwd=tree, env=variables, stdout=subprocess.PIPE, check=True, timeout=START_S
        )
        if not done.stdout and command != BARE:
            raise BenchmarkError(f"{' '.join(command)}: no answer")
    return (_children_s() - before) / calls * 1000


def _children_s() -> float:
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
