"""The files in `deploy`: systemd rates the unit, and takes every line of it."""

import re
import shutil
import subprocess

import pytest

from tests.program.program import PROJECT

UNIT = PROJECT / "deploy" / "systemd" / "hydrometer-gateway.service"
MISSING = "Command /opt/hydrometer-gateway/bin/hydrometer-gateway is not executable"

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze on this machine"
)


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *words, str(UNIT)], capture_output=True, text=True, check=False)


@needs_systemd
def test_the_unit_exposes_no_more_than_the_readme_says() -> None:
    rated = analyze("security", "--offline=true", "--no-pager")
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", rated.stdout)
    assert found, rated.stderr
    assert float(found[1]) <= 1.2


@needs_systemd
def test_the_unit_has_no_line_that_systemd_does_not_know() -> None:
    lines = [line for line in analyze("verify").stderr.splitlines() if MISSING not in line]
    assert lines == []
