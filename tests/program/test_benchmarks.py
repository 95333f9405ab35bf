"""Every figure can still be measured. What it comes to is not judged here: that is for a quiet machine."""

import dataclasses
import json
from pathlib import Path

import pytest

from tests.benchmarks import report, server
from tests.benchmarks.__main__ import FIGURES, main
from tests.benchmarks.plan import SMOKE, take_turns
from tests.benchmarks.processes import ROOT


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_produced(name: str) -> None:
    for figure in FIGURES[name][1](SMOKE):
        if figure.measured is None:
            pytest.skip(figure.note)
        assert figure.measured >= 0


def test_goals_look_at_the_ratio_or_at_the_value() -> None:
    rate = report.Figure.of_rounds(
        "a", "/s", report.Goal("ratio", ">=", 0.75), [(70, 100), (80, 100), (90, 100)]
    )
    assert (rate.measured, rate.ceiling, rate.ratio, rate.met) == (80, 100, 0.8, True)
    size = report.Figure("b", "MB", report.Goal("measured", "<=", 60), 61, 30)
    assert (size.ratio, size.met) == (61 / 30, False)


def test_the_table_and_the_json_show_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    figures = [
        report.Figure("what", "MB", report.Goal("measured", "<=", 60), 50.0, 25.0),
        report.Figure("absent", "MB", report.Goal("measured", "<=", 60), None, note="skipped: no such thing"),
    ]
    report.print_table(figures)
    text = capsys.readouterr().out
    assert "what" in text
    assert "skipped" in text
    report.print_json(figures)
    entries = json.loads(capsys.readouterr().out)["figures"]
    assert [(entry["ratio"], entry["met"]) for entry in entries] == [(2.0, True), (None, None)]


def test_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FIGURES)


def test_another_checkout_stands_beside_ours_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    turns = {"product": [30.0, 20.0], "before": [60.0, 60.0], "ceiling": [10.0, 10.0]}
    figure = report.Figure.of_turns("cpu", "us", report.Goal("ratio", "<=", 2, 1.5), turns, float)
    assert (figure.before, figure.ratio_before, figure.ratio, figure.met) == (60, 6, 2.5, False)
    report.print_table([figure])
    assert "before" in capsys.readouterr().out


def test_the_gateway_of_another_checkout_runs_its_own_code(tmp_path: Path) -> None:
    package = tmp_path / "gateway"
    package.mkdir()
    package.joinpath("__init__.py").touch()
    package.joinpath("__main__.py").write_text("print('the other one')", "utf-8")
    assert server.command(tmp_path, "sessions", tree=tmp_path) == "the other one"
    assert server.trees(dataclasses.replace(SMOKE, against=tmp_path)) == {
        "product": ROOT,
        "before": tmp_path,
    }


def test_players_take_turns_and_every_other_round_runs_backwards() -> None:
    order: list[str] = []
    take_turns(3, {name: lambda name=name: order.append(name) for name in "abc"})  # type: ignore[misc]
    assert order == ["a", "b", "c", "c", "b", "a", "a", "b", "c"]


def test_only_what_compares_two_checkouts_takes_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["http", "--against", str(tmp_path)], ["decode", "--against", str(ROOT)]):
        with pytest.raises(SystemExit):
            main(words)
    errors = capsys.readouterr().err
    assert "is no checkout of the gateway" in errors
    assert "does not compare decode" in errors
