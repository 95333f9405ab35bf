"""CPU of a command line from its start to its end, against a Python that only imports typer."""

import resource
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.benchmarks.plan import CEILING, PRODUCT, Plan, next_payload, take_turns
from tests.benchmarks.processes import ROOT, START_S
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import environment, serving, trees

VERSION_GOAL = Goal("ratio", "<=", 0.5, 0.3)
LIST_GOAL = Goal("ratio", "<=", 3.5, 2.5)

DEVICES = 3
"""Hydrometers of the brewery that is listed."""

BARE = (sys.executable, "-c", "import typer")


def measure(plan: Plan) -> list[Figure]:
    """Milliseconds of `--version`, and of `devices list` beside a gateway that runs."""
    cases = (("--version", ("--version",), VERSION_GOAL), ("devices list", ("devices", "list"), LIST_GOAL))
    with ExitStack() as stack:
        folders: dict[str, Path] = {}
        for name, tree in trees(plan).items():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-bench-"))
            folders[name] = Path(folder)
            server = stack.enter_context(serving(Path(folder), "--no-mqtt", tree=tree))
            server.introduce(DEVICES, next_payload())
        return [_compare(plan, folders, *case) for case in cases]


def _compare(plan: Plan, folders: dict[str, Path], what: str, words: tuple[str, ...], goal: Goal) -> Figure:
    play = {CEILING: partial(_cpu_ms, BARE, folders[PRODUCT], ROOT, plan.command_calls)}
    for name, tree in trees(plan).items():
        options = () if words[0].startswith("-") else ("--data-dir", str(folders[name]))
        command = (sys.executable, "-m", "gateway", *words, *options)
        play[name] = partial(_cpu_ms, command, folders[name], tree, plan.command_calls)
    for warm_up in play.values():
        warm_up()
    note = "ceiling: import typer"
    return Figure.of_turns(f"CPU of `{what}`", "ms", goal, take_turns(plan.rounds, play), float, note)


def _cpu_ms(command: tuple[str, ...], data_dir: Path, tree: Path, calls: int) -> float:
    """Processor time of one call, the mean of several."""
    before = _children_s()
    for _ in range(calls):
        subprocess.run(
            command,
            cwd=tree,
            env=environment(data_dir, tree),
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=START_S,
        )
    return (_children_s() - before) / calls * 1000


def _children_s() -> float:
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
