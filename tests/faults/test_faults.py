"""Every scenario at a small size, and every mutation noticed: a few at a time, because most of it is waiting.

Sizes: `Scenario.small` and `mutation_n`. Seeds are fixed, so that a failure can be looked at again.
"""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

import pytest

from tests.faults import __main__ as command
from tests.faults.catalogue import scenarios
from tests.faults.frame import Missing, Run, play, verdict
from tests.faults.judge import judge
from tests.faults.ledger import Ledger
from tests.faults.readings import texts_of

AT_ONCE = int(os.environ.get("FAULTS_AT_ONCE", "3"))
"""Worker processes."""

SEED = 7

PATIENCE_S = 300
"""For one scenario and those in front of it."""

Job = tuple[str, bool]
"""An id, and whether it is the mutation."""

SCENARIOS = scenarios()
MUTATED = [id for id, scenario in SCENARIOS.items() if scenario.mutation and scenario.mutation_small]


def played(job: Job) -> Run:
    """In a worker: one scenario, small."""
    id, mutated = job
    scenario = scenarios()[id]
    n = scenario.mutation_n if mutated else scenario.small
    return play(scenario, n=n, seed=SEED, mutated=mutated, stepped=_pass)


def _pass(_: int) -> None:
    """Unlike a lambda it can travel back from the worker."""


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[Job, Future[Run]]]:
    """All that were selected, under way in the order of the tests."""
    names = {"test_passes": False, "test_its_mutation_is_noticed": True}
    selected = [item for item in request.session.items if isinstance(item, pytest.Function)]
    jobs: list[Job] = [
        (str(item.callspec.params["id"]), names[item.originalname])
        for item in selected
        if item.originalname in names and item.path == Path(__file__)
    ]
    pool = ProcessPoolExecutor(AT_ONCE, mp_context=multiprocessing.get_context("spawn"))
    yield {job: pool.submit(played, job) for job in jobs}
    pool.shutdown(cancel_futures=True)


@pytest.mark.timeout(PATIENCE_S)
@pytest.mark.parametrize("id", SCENARIOS)
def test_passes(id: str, runs: dict[Job, Future[Run]]) -> None:
    run = _result(runs[id, False])
    assert not run.failures, verdict(SCENARIOS[id], run)


@pytest.mark.timeout(PATIENCE_S)
@pytest.mark.parametrize("id", MUTATED)
def test_its_mutation_is_noticed(id: str, runs: dict[Job, Future[Run]]) -> None:
    run = _result(runs[id, True])
    assert run.failures, f"{verdict(SCENARIOS[id], run)}: it cannot see what it looks for"


def _result(future: Future[Run]) -> Run:
    try:
        return future.result()
    except Missing as why:
        pytest.skip(str(why))


def _row(mark: str, **other: str) -> dict[str, str]:
    gravity, temp = texts_of(mark)
    row = {"gravity": gravity, "gravity_unit": "P", "temp": temp, "temp_unit": "C", "name": "h0"}
    return {"comment": mark, **row, **other}


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([_row("h0-1"), _row("h0-2")], ""),
        ([_row("h0-1")], "lost"),
        ([_row("h0-1"), _row("h0-2"), _row("h0-2")], "twice"),
        ([_row("h0-1"), _row("h0-2"), _row("h0-4")], "invented"),
        ([_row("h0-1"), _row("h0-2", gravity="12.5")], "changed"),
        ([_row("h0-1"), _row("h0-2"), _row("h0-3")], ""),
    ],
)
def test_the_judge_sees_what_is_lost_doubled_invented_or_changed(
    rows: list[dict[str, str]], wrong: str, tmp_path: Path
) -> None:
    run = Run(1, 1, tmp_path, tmp_path)
    judge({"h0-1", "h0-2"}, {"h0-1", "h0-2", "h0-3"}, rows).tell(run)
    assert [name for name in ("lost", "twice", "invented", "changed") if run.figures[name]] == wrong.split()
    assert bool(run.failures) == bool(wrong)


def test_the_ledger_knows_what_was_promised_before_a_moment(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.write("h0-1")
    assert ledger.before() == {"h0-1"}
    assert ledger.before(0) == set()
    ledger.close()


def test_the_list_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(SCENARIOS)


def test_an_unknown_id_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["D99"]) == 2
    assert "D99" in capsys.readouterr().err
