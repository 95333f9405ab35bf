"""What every scenario is: an id, sizes, a function that plays it, and a mutation that it must notice.

A scenario module holds a tuple `SCENARIOS`; `catalogue.py` names the modules.
"""

import asyncio
import os
import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

LEDGER_ROOT = Path("/dev/shm")  # noqa: S108 - a ledger must not share the fate of the data's file system
"""Where ledgers are, if it exists: memory, not the disk that faults are done to."""

FAILURES_SHOWN = 10

Figure = float | int | str


NOTHING_SKIPPED = "TESTS_SKIP_NOTHING"
"""The variable that is set where all tools are installed: a scenario that misses one fails there."""


class Missing(Exception):
    """A tool or privilege that a scenario needs is not here; says which, and how to get it."""


@dataclass
class Run:
    """One run of a scenario: its size, its folders, and what it found out so far."""

    n: int
    seed: int
    folder: Path
    ledgers: Path
    mutated: bool = False
    stepped: Callable[[int], None] = lambda _: None
    failures: list[str] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    seconds: float = 0.0

    @cached_property
    def random(self) -> random.Random:
        """Seeded: the same moments again."""
        return random.Random(self.seed)  # noqa: S311 - no secrets

    def expect(self, true: object, otherwise: str) -> bool:
        """Note a failure unless it is so; the run goes on."""
        if not true:
            self.failures.append(otherwise)
        return bool(true)

    def figure(self, name: str, value: Figure) -> None:
        """Report a figure; said again it is written over."""
        self.figures[name] = value

    def count(self, name: str, more: float = 1) -> None:
        """Add to a figure."""
        before = self.figures.get(name, 0)
        assert not isinstance(before, str)
        self.figures[name] = before + more

    def highest(self, name: str, value: float) -> None:
        """Report the highest value of many."""
        before = self.figures.get(name, value)
        assert not isinstance(before, str)
        self.figures[name] = max(before, value)

    def step(self, steps: int = 1) -> None:
        """So many of the `n` are done."""
        self.stepped(steps)

    def sub(self, name: str) -> Path:
        """A fresh folder for data."""
        path = self.folder / name
        path.mkdir()
        return path

    def shares(self, lanes: int) -> list[int]:
        """`n` divided among so many lanes that run at once; no empty ones."""
        return [share for lane in range(lanes) if (share := len(range(lane, self.n, lanes)))]


Play = Callable[[Run], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """`n` counts `unit`; `full` is the size for the README, `small` the one for the test suite.

    With `Run.mutated` the same function does `mutation`, and has to fail: at `mutation_n`, in the test suite
    where `mutation_small` says so.
    """

    id: str
    what: str
    unit: str
    full: int
    small: int
    play: Play
    mutation: str = ""
    mutation_n: int = 0
    mutation_small: bool = True
    needs: tuple[Callable[[], str | None], ...] = ()
    """Each says in words what is missing and how to get it, or None."""

    def missing(self) -> str | None:
        """Why it cannot be run here, or None."""
        return next((why for need in self.needs if (why := need())), None)


def program(name: str, package: str = "") -> Callable[[], str | None]:
    """The need for a program."""

    def need() -> str | None:
        found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
        return None if found else f"{name} is not installed: apt-get install {package or name}"

    return need


def root() -> str | None:
    """The need for root: to mount, to shut a file system down."""
    return None if os.geteuid() == 0 else "only root may mount; run it as root"


@contextmanager
def folders() -> Iterator[tuple[Path, Path]]:
    """A folder for data and one for ledgers, on different file systems where there are two."""
    ledgers_in = LEDGER_ROOT if LEDGER_ROOT.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="gateway-faults-", dir="/var/tmp") as data,
        tempfile.TemporaryDirectory(prefix="gateway-faults-", dir=ledgers_in) as ledgers,
    ):
        yield Path(data), Path(ledgers)


def play(
    scenario: Scenario,
    *,
    n: int,
    seed: int,
    mutated: bool = False,
    stepped: Callable[[int], None] | None = None,
) -> Run:
    """Run it from beginning to end; `Missing` where it cannot be run here."""
    if why := scenario.missing():
        raise Missing(why)
    with folders() as (data, ledgers):
        run = Run(n, seed, data, ledgers, mutated, stepped or (lambda _: None))
        began = time.monotonic()
        asyncio.run(_until_done(scenario, run))
        run.seconds = time.monotonic() - began
    return run


TRACEBACKS: list[str] = []
"""First lines of tracebacks in the logs of all gateways: each is an error that no part has handled."""


async def _until_done(scenario: Scenario, run: Run) -> None:
    """An exception is a failure like others; but a mutation must not pass for noticed by our own mistake.

    So is a traceback in the log of a gateway, unless the gateway is a mutation.
    """
    TRACEBACKS.clear()
    try:
        await scenario.play(run)
    except Exception as error:
        first = _first(error)
        if isinstance(first, Missing):
            raise first from error
        if not isinstance(first, (AssertionError, TimeoutError)):
            if run.mutated:
                raise
            traceback.print_exc()
        run.failures.append(f"{type(first).__name__}: {first}")
    if not run.mutated:
        run.failures += TRACEBACKS


def _first(error: BaseException) -> BaseException:
    """Of a group, and of groups in it."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def verdict(scenario: Scenario, run: Run) -> str:
    """One line for the README: what was run, how it ended, and the figures."""
    what = f"with {scenario.mutation}" if run.mutated else ""
    ended = "failed" if run.failures else "passed"
    figures = ", ".join(f"{name} {_shown(value)}" for name, value in run.figures.items())
    head = f"{scenario.id} {ended} {what}".strip()
    text = f"{head}: {run.n:,} {scenario.unit}, seed {run.seed}, {run.seconds:.0f} s; {figures}"
    more = len(run.failures) - FAILURES_SHOWN
    lines = [*run.failures[:FAILURES_SHOWN], *([f"and {more} more"] if more > 0 else [])]
    return "\n  ".join([text, *lines])


def _shown(value: Figure) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if value < 100 else f"{value:,.0f}"
