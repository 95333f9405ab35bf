"""The tests' own helpers: what is not pure fails, and a walk over cases names each one that failed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import each
from tests.program.program import PROJECT

NOT_PURE = """
import asyncio, contextlib, socket, subprocess, sys
from pathlib import Path

def test_socket():
    with contextlib.suppress(Exception):
        socket.socket().close()

def test_writing():
    Path("here").write_text("x")

def test_folder(tmp_path):
    pass

def test_loop():
    asyncio.run(asyncio.sleep(0))

def test_program():
    subprocess.run([sys.executable, "--version"])

def test_pure():
    Path(__file__).read_text()
"""


def test_what_is_not_pure_fails_among_the_pure_tests(tmp_path: Path) -> None:
    shutil.copy(PROJECT / "tests" / "pure" / "conftest.py", tmp_path)
    (tmp_path / "test_these.py").write_text(NOT_PURE)
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:schemathesis", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "test_these.py"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    for name in ("socket", "writing", "folder", "loop", "program"):
        assert f"FAILED test_these.py::test_{name} " in done.stdout, done.stdout
    assert "5 failed, 1 passed" in done.stdout


def test_a_walk_names_each_case_that_failed() -> None:
    seen = []

    @each("number, square", [(1, 1), (2, 5), (3, 9), (4, 15)])
    def walk(number: int, square: int) -> None:
        seen.append(number)
        assert number * number == square

    with pytest.raises(ExceptionGroup, match=r"2 of 4 cases failed: \(2, 5\); \(4, 15\)") as failed:
        walk()
    assert seen == [1, 2, 3, 4]
    assert [error.__notes__ for error in failed.value.exceptions] == [["case: (2, 5)"], ["case: (4, 15)"]]
