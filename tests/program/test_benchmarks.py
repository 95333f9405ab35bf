"""Every figure can still be measured. What it comes to is not judged here: that is for a quiet machine."""

import json

import pytest

from tests.benchmarks import report
from tests.benchmarks.__main__ import FIGURES, main
from tests.benchmarks.plan import SMOKE


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
