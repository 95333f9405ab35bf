"""`python -m tests.backtest` runs the shipped figures over simulated brews, and over logs.

It prints what they are worth, and exits with 1 where a demanded figure is missed.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.backtest import figures, logs
from tests.backtest.broken import BROKEN
from tests.backtest.kinds import KINDS
from tests.backtest.outcome import FRACTIONS, Outcome
from tests.backtest.running import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the backtest, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.backtest", description=__doc__)
    parser.add_argument("--per", type=int, default=20, help="brews of each kind")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other brews")
    parser.add_argument(
        "--logs", type=Path, metavar="DIR", help="logs (csv) of real brews; reported, not demanded"
    )
    parser.add_argument(
        "--broken", choices=list(BROKEN), metavar="NAME", help="break a rule; the run must fail"
    )
    parser.add_argument("--list", action="store_true", help="list what can be broken, and end")
    parser.add_argument("--kinds", action="store_true", help="print a line for each kind, too")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(BROKEN))
        return 0
    if options.logs:
        print_rows("logs", logs.rows(options.logs, options.broken))
        return 0
    began = time.monotonic()
    outcomes = run(options.per, options.seed, options.broken)
    found = figures.rows(outcomes)
    if options.kinds:
        print_kinds(outcomes)
    print_rows(f"{len(outcomes)} simulated brews, seed {options.seed}", found)
    missed = [row.what for row in found if row.met is False]
    print(f"{time.monotonic() - began:.0f} s; " + (f"missed: {', '.join(missed)}" if missed else "all met"))
    return 1 if missed else 0


def print_rows(title: str, rows: Iterable[figures.Row]) -> None:
    """Print figures, and what is demanded of them."""
    print(f"\n{title}")
    for row in rows:
        value = "-" if row.value is None else f"{row.value:.2f}".removesuffix(".00")
        sign = ">=" if row.at_least else "<="
        demand = "" if row.limit is None else f"{sign} {row.limit:g}: {'met' if row.met else 'MISSED'}"
        print(f"  {row.what:44} {value:>8} {row.unit:14} {demand:16} {row.note}".rstrip())


def print_kinds(outcomes: Sequence[Outcome]) -> None:
    """Print a line for each kind."""
    heads = f"\n{'kind':18} {'done':>5} {'false':>5} {'h p50':>6} {'h p90':>6} {'stuck':>6}"
    print(f"{heads} {'finish 50 / 75 / 90 %, h':>26}")
    for kind in KINDS:
        of_kind = [outcome for outcome in outcomes if outcome.kind == kind.name]
        delays = [o.done_after_h for o in of_kind if o.done_after_h is not None]
        errors = [
            figures.quantile([e for o in of_kind if (e := o.finish.get(percent)) is not None], 0.5)
            for percent in FRACTIONS
        ]
        cells = [figures.quantile(delays, 0.5), figures.quantile(delays, 0.9)]
        first, last = ("-" if cell is None else f"{cell:.0f}" for cell in cells)
        finish = " / ".join("-" if error is None else f"{error:.0f}" for error in errors)
        done, false = sum(o.is_done for o in of_kind), sum(o.false_done > 0 for o in of_kind)
        stuck = sum(o.is_stuck for o in of_kind)
        print(f"{kind.name:18} {done:5} {false:5} {first:>6} {last:>6} {stuck:6} {finish:>26}")


if __name__ == "__main__":
    sys.exit(main())
