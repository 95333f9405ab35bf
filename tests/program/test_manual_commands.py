"""Every command of docs/devices.md and docs/trust.md works, one after the other, beside a running gateway."""

import shlex
from pathlib import Path

import aiohttp
import pytest

from tests.payloads import ispindel
from tests.program.program import HTTP_ONLY, command, post, serving
from tests.pure.documents.pages import PROGRAM, page

DEVICE = "iSpindel042"
LEFT_OUT = ("serve", "inbox accept", "inbox refuse")
"""A second gateway, and what needs a device that waits: the tests of the inbox show those."""


def lines(name: str) -> list[str]:
    """The commands of a page, without the program's name."""
    found = [line for block in page(name).blocks if block.language == "sh" for line in block.commands]
    ours = [line.removeprefix(f"{PROGRAM} ") for line in found if line.startswith(f"{PROGRAM} ")]
    return [line for line in ours if not line.startswith(LEFT_OUT)]


@pytest.mark.parametrize(("name", "at_least"), [("devices.md", 18), ("trust.md", 12)])
async def test_every_command_of_the_page_works(tmp_path: Path, name: str, at_least: int) -> None:
    told = lines(name)
    assert len(told) >= at_least
    yours = {"DEVICE": "spindle6", "cases": str(tmp_path / "cases")}
    async with serving(tmp_path / "data", *HTTP_ONLY) as server, aiohttp.ClientSession() as http:
        for number in range(1, 8):  # devices 2 and 5 are merged, number 7 in quarantine is shown
            assert await post(http, server, ispindel(number), "/ingest/ispindel") == 200
            assert await post(http, server, f"nobody understands {number}") == 200
        assert await post(http, server, ispindel(42, name=DEVICE), "/ingest/ispindel") == 200
        for line in told:
            words = tuple(yours.get(word, word) for word in shlex.split(line))
            finished = await command(server.data, words)
            assert finished.status == 0, (line, finished.err)
