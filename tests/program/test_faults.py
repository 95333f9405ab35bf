"""Every scenario at a small size, and every mutation noticed. Most of it is waiting: several go side by side.

Sizes: `Scenario.small` and `mutation_n`. Seeds are fixed, so that a failure can be looked at again.
"""

import re
from pathlib import Path

import pytest

from tests.conftest import NOTHING_SKIPPED
from tests.faults import __main__ as command
from tests.faults import clock
from tests.faults.catalogue import scenarios
from tests.faults.frame import Missing, Run, play, verdict
from tests.faults.judge import judge
from tests.faults.ledger import Ledger
from tests.faults.readings import texts_of

SEED = 7

pytestmark = pytest.mark.filterwarnings("default")
"""What a fault cuts is left as it lies: a device that dies closes nothing."""

SCENARIOS = scenarios()
MUTATED = [id for id, scenario in SCENARIOS.items() if scenario.mutation and scenario.mutation_small]


@pytest.mark.parametrize("id", SCENARIOS)
def test_passes(id: str) -> None:
    run = _played(id, SCENARIOS[id].small)
    assert not run.failures, verdict(SCENARIOS[id], run)


@pytest.mark.parametrize("id", MUTATED)
def test_its_mutation_is_noticed(id: str) -> None:
    run = _played(id, SCENARIOS[id].mutation_n, mutated=True)
    assert run.failures, f"{verdict(SCENARIOS[id], run)}: it cannot see what it looks for"


def _played(id: str, n: int, *, mutated: bool = False) -> Run:
    try:
        return play(SCENARIOS[id], n=n, seed=SEED, mutated=mutated, stepped=lambda _: None)
    except Missing as why:
        if NOTHING_SKIPPED:
            pytest.fail(str(why))
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


@pytest.mark.parametrize(("demanded", "status", "word"), [("", 77, "skipped"), ("1", 1, "failed")])
def test_a_missing_tool_fails_a_run_where_nothing_may_be_skipped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, demanded: str, status: int, word: str
) -> None:
    monkeypatch.setenv("TESTS_SKIP_NOTHING", demanded)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(clock, "LIBRARIES", ())
    for id, tool in (("M1", "strace"), ("C2", "libfaketime")):
        assert command.main([id, "--small"]) == status
        assert f"{id} {word}: {tool} is not installed" in capsys.readouterr().err


def test_what_a_scenario_needs_is_installed_in_ci() -> None:
    """A tool that CI does not install would fail the scenario there for ever."""
    script = (Path(__file__).parents[2] / ".ci" / "run").read_text()
    installed = " ".join(re.findall(r"^packages\+?=\((.*)\)$", script, re.M)).split()
    assert {"strace", "mosquitto", "faketime"} <= {*installed}


def test_an_unknown_id_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["D99"]) == 2
    assert "D99" in capsys.readouterr().err
