"""32-bit ARM: each package of the lock but Pillow has a wheel, so nothing is compiled on a small computer."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.program.program import PROJECT, environment

PLATFORMS = ("manylinux_2_31_armv7l", "manylinux_2_17_armv7l")
"""Debian 12 takes both: it has glibc 2.36."""

WITHOUT = "pillow"
"""The one package that has none: the marker of the lock leaves it out there."""


def blocks() -> list[str]:
    """The packages of the lock with their hashes."""
    found: list[str] = []
    for line in (PROJECT / "requirements.lock").read_text("utf-8").splitlines():
        if line[:1].isalnum():
            found.append(line)
        elif line.startswith("    --hash"):
            found[-1] += f"\n{line}"
    return found


@pytest.mark.parametrize("version", ["3.11", "3.13"])
def test_every_package_has_a_wheel(version: str, tmp_path: Path) -> None:
    [pillow] = [block for block in blocks() if block.startswith(f"{WITHOUT}==")]
    assert "armv7l" in pillow.splitlines()[0]
    wanted = tmp_path / "wanted"
    wanted.write_text("\n".join(block for block in blocks() if block != pillow))
    # Looked up and not fetched: the name of a wheel says all.
    words = [sys.executable, "-m", "pip", "install", "--dry-run", "--target", str(tmp_path / "none")]
    words += ["--only-binary=:all:", "--no-deps", "--require-hashes", "--python-version", version]
    words += [word for platform in PLATFORMS for word in ("--platform", platform)]
    done = subprocess.run(
        [*words, "-r", str(wanted)], env=environment(), check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "pydantic-core-" in done.stdout.splitlines()[-1].replace("_", "-")
