"""`python -m tests.faults ID` runs a scenario at full size and exits with 0 only if it passes."""

import argparse
import json
import os
import random
import signal
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.faults.catalogue import scenarios
from tests.faults.frame import NOTHING_SKIPPED, Missing, Run, Scenario, play, verdict

INTERRUPTED = 130

SKIPPED = 77
"""Exit code where something is missing, as automake has it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; figures on standard output, progress on standard error."""
    options = _parser().parse_args(arguments)
    known = scenarios()
    if options.list:
        for scenario in known.values():
            print(f"{scenario.id:4} {scenario.what} ({scenario.full:,} {scenario.unit})")
        return 0
    if options.id not in known:
        print(f"unknown: {options.id}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    scenario = known[options.id]
    if options.mutate and not scenario.mutation:
        print(f"{scenario.id} has no mutation", file=sys.stderr)
        return 2
    try:
        run = _played(scenario, options)
    except Missing as why:
        if os.environ.get(NOTHING_SKIPPED):
            print(f"{scenario.id} failed: {why}", file=sys.stderr)
            return 1
        print(f"{scenario.id} skipped: {why}", file=sys.stderr)
        return SKIPPED
    _print(scenario, run, options.json)
    return 0 if bool(run.failures) == options.mutate else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("id", nargs="?", metavar="ID", help="the scenario, as --list has it")
    parser.add_argument("--list", action="store_true", help="list the ids and end")
    parser.add_argument("--n", type=int, help="how many; the full size without")
    parser.add_argument("--small", action="store_true", help="the size of the test suite")
    parser.add_argument("--seed", type=int, help="another one each time without")
    parser.add_argument("--mutate", action="store_true", help="make it wrong; exits 0 if that was noticed")
    parser.add_argument("--json", action="store_true", help="JSON instead of a line")
    return parser


def _played(scenario: Scenario, options: argparse.Namespace) -> Run:
    full = scenario.mutation_n if options.mutate else scenario.small if options.small else scenario.full
    n = options.n or full
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(f"{scenario.id} {scenario.unit}", total=n)
        return play(
            scenario, n=n, seed=seed, mutated=options.mutate, stepped=lambda steps: bar.advance(task, steps)
        )


def _print(scenario: Scenario, run: Run, as_json: bool) -> None:
    if not as_json:
        print(verdict(scenario, run))
        return
    kept = {name: getattr(run, name) for name in ("n", "seed", "mutated", "failures", "figures", "seconds")}
    print(json.dumps({"id": scenario.id, "unit": scenario.unit, **kept, "passed": not run.failures}))


def _on_terminate(*_: object) -> None:
    """As Ctrl-C: asyncio then leaves by way of every `finally`, and nothing stays running or mounted."""
    signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _on_terminate)
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
