"""The check at the start notices each private name of aiohttp that a release would rename."""

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path

import aiohttp
import pytest

from gateway.http.self_check import PRIVATE_NAMES
from tests.program.program import PROJECT

ASK = "import asyncio, gateway.http.self_check as c; print(asyncio.run(c.trouble()))"


def renamed(folder: Path, name: str) -> None:
    """Copy aiohttp with another name in place of this one, in all of its own code."""
    ours = Path(aiohttp.__file__).parent
    shutil.copytree(ours, folder / "aiohttp", ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.pyx"))
    for library in ours.rglob("*.so"):
        (folder / "aiohttp" / library.relative_to(ours)).symlink_to(library)
    count = 0
    for path in (folder / "aiohttp").glob("*.py"):
        text, found = re.subn(rf"\b{name}\b", f"{name}_of_old", path.read_text("utf-8"))
        if found:
            path.write_text(text, "utf-8")
            count += found
    assert count > 1, f"aiohttp has no {name}"


@pytest.mark.parametrize("name", [*PRIVATE_NAMES, "_of_another_version"])
async def test_a_renamed_name_is_noticed(tmp_path: Path, name: str) -> None:
    if name in PRIVATE_NAMES:
        renamed(tmp_path, name)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ASK),
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    expected = b"works in another way" if name in PRIVATE_NAMES else b"None"
    assert expected in out, out
