"""The units of the service: systemd rates the machine's, and takes every line of both."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.deploying.service import UNIT_NAME, unit_text

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze on this machine"
)


@pytest.fixture(params=["machine", "user"])
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A unit whose program exists, as systemd looks for it."""
    path = tmp_path / UNIT_NAME
    path.write_text(unit_text(Path("/bin/true"), [Path("/etc/a")], user=request.param == "user"))
    return path


def analyze(*words: object) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_systemd
@pytest.mark.parametrize("unit", ["machine"], indirect=True)
def test_the_unit_exposes_no_more_than_the_documents_say(unit: Path) -> None:
    rated = analyze("security", "--offline=true", "--threshold=15", "--no-pager", unit)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", rated.stdout)
    assert found, rated.stderr
    assert float(found[1]) <= 1.2
    assert rated.returncode == 0


@needs_systemd
def test_the_unit_has_no_line_that_systemd_does_not_know(unit: Path) -> None:
    assert analyze("verify", "--man=no", unit).stderr == ""
