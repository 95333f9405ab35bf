"""pipx, as people with a desktop install it: the program works, and leaving takes no data along."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path

import pytest

from gateway import __version__
from tests.packages.trees import bare_tree
from tests.program.program import HTTP_ONLY, environment

READING = {"name": "iSpindel042", "ID": 1, "angle": 40, "temperature": 20, "gravity": 12.1}


def run(words: list[str], env: Mapping[str, str]) -> str:
    """What a program prints, which must succeed."""
    done = subprocess.run(
        words, env=env, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}"
    return done.stdout


@pytest.mark.timeout(900)
def test_installed_by_pipx_and_removed(wheel: Path, tmp_path: Path) -> None:
    pipx = shutil.which("pipx")
    if pipx is None:
        pytest.skip("Debian's pipx is not installed")
    env = environment(
        {
            "HOME": str(tmp_path),
            "PIPX_HOME": str(tmp_path / "pipx"),
            "PIPX_BIN_DIR": str(tmp_path / "bin"),
            "PIPX_MAN_DIR": str(tmp_path / "man"),
        }
    )
    told = run([pipx, "install", str(wheel)], env)
    assert f"hydrometer-gateway {__version__}" in re.sub(r"\x1b\[[0-9;]*m", "", told)
    assert [path.name for path in (tmp_path / "bin").iterdir()] == ["hydrometer-gateway"]
    program = str(tmp_path / "bin" / "hydrometer-gateway")
    assert run([program, "--version"], env) == f"{__version__}\n"
    words = [program, "serve", *HTTP_ONLY]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as serve:
        try:
            assert serve.stdout is not None
            lines = iter(serve.stdout)
            place = next(match[1] for line in lines if (match := re.match(r"HTTP on http://(\S+)", line)))
            next(line for line in lines if line.startswith("Ready"))
            http = HTTPConnection(place, timeout=30)
            http.request("POST", "/ingest/ispindel", json.dumps(READING))
            assert http.getresponse().status == 200
            http.close()
        finally:
            serve.send_signal(signal.SIGTERM)
    assert serve.returncode == 0
    [reading] = map(json.loads, run([program, "readings", "--json"], env).splitlines())
    assert reading["name"] == "iSpindel042"
    run([pipx, "uninstall", "hydrometer-gateway"], env)
    assert not os.path.lexists(program)
    data = tmp_path / ".local" / "share" / "hydrometer-gateway"
    assert [path.name for path in data.glob("*.sqlite3")] == ["gateway.sqlite3"]


@pytest.mark.timeout(1200)
def test_pipx_of_debian_13(wheel: Path) -> None:
    """Python 3.13, and the first pipx that links manual pages."""
    with bare_tree("trixie", include=("ca-certificates", "man-db", "pipx")) as tree:
        tree.put(wheel, f"/srv/{wheel.name}")

        def ok(command: str) -> str:
            done = tree.run(f"export PATH=$HOME/.local/bin:$PATH; {command}", "brewer", timeout_s=600)
            assert done.returncode == 0, f"{command}\n{done.stdout}"
            return done.stdout

        ok(f"pipx install /srv/{wheel.name}")
        assert ok("hydrometer-gateway --version") == f"{__version__}\n"
        assert (
            "hydrometer-gateway(1)"
            in ok("MANWIDTH=80 man ~/.local/share/man/man1/hydrometer-gateway.1 | cat").lower()
        )
        assert "Every stored reading is upstream exactly once" in ok("hydrometer-gateway demo --for 10")
        ok("pipx uninstall hydrometer-gateway")
        assert tree.run("command -v hydrometer-gateway", "brewer").returncode != 0
