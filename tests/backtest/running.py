"""All simulated brews of a run, in two processes."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from tests.backtest.broken import BROKEN
from tests.backtest.kinds import KINDS
from tests.backtest.outcome import Outcome, simulate

PROCESSES = 2


def run(per: int, seed: int, broken: str | None = None) -> list[Outcome]:
    """Return the outcome of each simulated brew."""
    brews = [(kind, f"{seed} {KINDS[kind].name} {brew}") for brew in range(per) for kind in range(len(KINDS))]
    # New processes: a broken twin changes the modules there, and not in this process.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, context, _break, (broken,)) as pool:
        return list(pool.map(_simulate, *zip(*brews, strict=True), chunksize=4))


def _break(broken: str | None) -> None:
    if broken:
        BROKEN[broken].breaks()


def _simulate(kind: int, seed: str) -> Outcome:
    return simulate(KINDS[kind], seed)
