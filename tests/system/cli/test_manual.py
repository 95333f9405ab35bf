"""The manual pages are those of the commands, have every option, and man reads them without a word."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.cli import manual
from gateway.cli.commands import ROWS
from gateway.cli.completing import SCRIPTS, script
from gateway.cli.exit_codes import ExitCode
from tests.system.cli.test_options import COMMANDS, options, variable

ROOT = Path(__file__).parents[3]
MAN = ROOT / "docs" / "man"
COMPLETIONS = ROOT / "deploy" / "completions"
FILES = {
    "bash": "hydrometer-gateway.bash",
    "zsh": "_hydrometer-gateway",
    "fish": "hydrometer-gateway.fish",
}

PAGES = manual.pages()


def test_the_committed_pages_are_those_of_the_commands() -> None:
    """`python -m gateway.cli.manual docs/man` writes them anew."""
    assert {path.name: path.read_text("utf-8") for path in MAN.iterdir()} == PAGES


def test_the_committed_scripts_are_those_of_the_command() -> None:
    """`hydrometer-gateway completion bash > deploy/completions/hydrometer-gateway.bash` writes one anew."""
    assert {path.name: path.read_text("utf-8") for path in COMPLETIONS.iterdir()} == {
        FILES[shell]: script(shell) for shell in SCRIPTS
    }


def test_there_is_a_page_for_each_command_and_one_that_names_them() -> None:
    names = {f"hydrometer-gateway-{name}" for name in ROWS}
    assert set(PAGES) == {"hydrometer-gateway.1", *(f"{name}.1" for name in names)}
    listed = PAGES["hydrometer-gateway.1"].replace("\\-", "-").replace("\\fB", "").replace("\\fP", "")
    assert {name for name in names if f"{name}(1)" in listed} == names


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_page_names_every_option_with_its_variable(path: tuple[str, ...]) -> None:
    text = PAGES[f"hydrometer-gateway-{path[0]}.1"].replace("\\-", "-")
    assert f"\\fBhydrometer-gateway {' '.join(path)}\\fP" in text
    for key in options(path):
        assert f"\\fB--{key.replace('_', '-')}\\fP" in text
        assert f"Variable: {variable(path, key)}." in text


def test_every_exit_code_is_in_the_manual() -> None:
    text = PAGES["hydrometer-gateway.1"]
    for code in ExitCode:
        assert re.search(rf"^\.TP\n\\fB{code.value}\\fP\n", text, re.MULTILINE), code


@pytest.mark.parametrize("name", sorted(PAGES))
def test_man_reads_a_page_without_a_word(name: str, tmp_path: Path) -> None:
    if shutil.which("man") is None:
        pytest.skip("man is missing: Debian's package man-db")
    page = tmp_path / name
    page.write_text(PAGES[name], "utf-8")
    done = subprocess.run(
        ["man", "--warnings", "-l", str(page)],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    assert "NAME" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 90  # a long variable alone goes beyond 80


@pytest.mark.parametrize("name", sorted(PAGES))
def test_mandoc_finds_nothing_to_complain_about(name: str, tmp_path: Path) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is missing: Debian's package of this name")
    page = tmp_path / name
    page.write_text(PAGES[name], "utf-8")
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", str(page)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # No page has a date: it would be another one with each build.
    complaints = [line for line in done.stdout.splitlines() if "missing date" not in line]
    assert not complaints
