"""Parts of the program as processes of their own, however the program was started."""

import subprocess
import sys
from pathlib import Path

import pytest

from gateway import __version__, children

CHECKOUT = Path(children.__file__).parents[1]

# The child shows its version in turn; it has our packages from the same directories as its parent.
PARENT = """
import subprocess, sys
sys.path[:0] = sys.argv[1:]
from gateway import children
sys.exit(subprocess.run([*children.module("gateway"), "--version"]).returncode)
"""


def test_a_child_of_an_ordinary_process_is_a_module() -> None:
    assert children.module("sample_devices") == [sys.executable, "-m", "sample_devices"]


@pytest.mark.parametrize("options", ["-I", "-IBS"])
def test_a_child_of_an_isolated_process_finds_its_module(options: str, tmp_path: Path) -> None:
    """Isolated is what the Debian package starts: no current directory, no environment, no site."""
    words = [sys.executable, options, "-c", PARENT, str(CHECKOUT)]
    finished = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, f"{__version__}\n", "")


def test_a_child_of_an_isolated_process_gets_its_arguments(tmp_path: Path) -> None:
    package = tmp_path / "gateway"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "children.py").write_text(Path(children.__file__).read_text())
    (package / "showing.py").write_text("import sys\nprint(__name__, sys.argv, sys.flags.no_site)\n")
    parent = PARENT.replace('"gateway"), "--version"', '"gateway.showing"), "a b", "-c"')
    words = [sys.executable, "-IBS", "-c", parent, str(tmp_path)]
    finished = subprocess.run(words, cwd="/", capture_output=True, text=True, timeout=60, check=False)
    assert finished.stdout == f"__main__ {[str(package / 'showing.py'), 'a b', '-c']} 1\n"
