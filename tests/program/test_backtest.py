"""The backtest of the figures, small; and each broken twin is noticed by the figure that it spoils."""

import subprocess
import sys

import pytest

from tests.backtest.broken import BROKEN
from tests.program.program import PROJECT


def run(*arguments: str) -> tuple[int, str]:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.backtest", *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_the_shipped_figures_meet_what_is_demanded() -> None:
    code, printed = run("--per", "4")
    assert code == 0, printed
    assert "all met" in printed


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_twin_is_noticed(name: str) -> None:
    twin = BROKEN[name]
    code, printed = run("--per", str(twin.per), "--broken", name)
    assert code == 1, printed
    assert f"{twin.spoils}" in printed.splitlines()[-1]


def test_broken_twins_are_listed() -> None:
    assert run("--list") == (0, "".join(f"{name}\n" for name in BROKEN))
