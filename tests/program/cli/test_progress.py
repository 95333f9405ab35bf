"""The progress bar: on a terminal's stderr only, gone in the end, and never among what is printed."""

import asyncio
import os
import pty
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest

from gateway.cli.progress import progress_bar
from tests.program.program import PATIENCE_S, PROJECT, answer, environment

RECIPES = 400
CLEAR_LINE = "\x1b[2K"


async def on_a_terminal(data: Path, *words: str) -> tuple[int, str, str]:
    """Run a command whose stderr is a terminal and whose stdout is a pipe: status, stdout, terminal."""
    ours, theirs = pty.openpty()
    try:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *words, "--config", os.devnull, "--data-dir", str(data)),
            stdin=DEVNULL, stdout=PIPE, stderr=theirs, cwd=PROJECT,
            env=environment({"TERM": "xterm", "COLUMNS": "120"}),
        )  # fmt: skip
    finally:
        os.close(theirs)
    reading = asyncio.create_task(asyncio.to_thread(_everything, ours))
    async with asyncio.timeout(2 * PATIENCE_S):
        out, _ = await child.communicate()
        shown = await reading
    assert child.returncode is not None
    return child.returncode, out.decode(), shown


def _everything(terminal: int) -> str:
    """What is written to the terminal until nobody has it open any more."""
    pieces = []
    with os.fdopen(terminal, "rb", buffering=0) as file:
        try:
            while piece := file.read(65536):
                pieces.append(piece)
        except OSError:
            pass  # Linux says so where others say end of file
    return b"".join(pieces).decode()


def recipes(folder: Path, count: int, name: str = "recipes.xml") -> str:
    path = folder / name
    path.write_text(
        "<RECIPES>" + "".join(f"<RECIPE><NAME>R{n}</NAME></RECIPE>" for n in range(count)) + "</RECIPES>"
    )
    return str(path)


async def test_a_terminal_sees_a_bar_and_stdout_only_ids(data: Path, tmp_path: Path) -> None:
    file = recipes(tmp_path, RECIPES, "[red]ale.xml")
    status, out, shown = await on_a_terminal(data, "recipes", "import", "--quiet", file)
    assert (status, out) == (0, "".join(f"{number}\n" for number in range(1, RECIPES + 1)))
    assert "[red]ale.xml (1 of 1)" in shown
    assert f"{RECIPES}/{RECIPES}" in shown
    assert shown.rpartition(CLEAR_LINE)[2].strip() == ""  # wiped away


async def test_a_bar_for_each_file_and_refusals_below_it(data: Path, tmp_path: Path) -> None:
    first, last = recipes(tmp_path, 3, "first.xml"), recipes(tmp_path, 2, "last.xml")
    bad = tmp_path / "bad.xml"
    bad.touch()
    status, out, shown = await on_a_terminal(data, "recipes", "import", "--quiet", first, str(bad), last)
    assert (status, out.split()) == (1, ["1", "2", "3", "4", "5"])
    assert shown.index("first.xml (1 of 3)") < shown.index("last.xml (3 of 3)")
    assert f"hydrometer-gateway: {bad}: the document is empty" in shown
    assert shown.strip().endswith("hydrometer-gateway: 1 of 3 files were refused")


async def test_without_a_terminal_nothing_is_shown(data: Path, tmp_path: Path) -> None:
    imported = await answer(data, "recipes import --quiet", recipes(tmp_path, 3))
    assert imported.err == ""


async def test_commands_start_without_rich() -> None:
    program = "import sys, gateway.cli.main; sys.exit('rich' in sys.modules)"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, cwd=PROJECT)
    async with asyncio.timeout(PATIENCE_S):
        assert await child.wait() == 0


def test_of_nobody_knows_how_many(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("readings.csv") as progress:
        progress(500, 0, "readings")
        print("a result")  # not what ought to be done, but stdout may be a file
        progress(700, 0, "readings")
    shown = capsys.readouterr()
    assert "readings.csv readings" in shown.err
    assert "700/?" in shown.err
    assert shown.out == "a result\n"
