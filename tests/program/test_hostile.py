"""The attacks of `tests.hostile`, small: honest devices are heard, memory has its bounds, nothing is lost."""

import asyncio
import sys

import pytest

from tests.hostile.__main__ import ROWS
from tests.program.program import PROJECT


@pytest.mark.parametrize("row", [row.name for row in ROWS])
async def test_an_attack(row: str) -> None:
    attack = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.hostile", "--small", row),
        cwd=PROJECT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await attack.communicate()
    assert attack.returncode == 0, said.decode()
    assert b" pass " in said, said.decode()
