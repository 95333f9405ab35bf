"""Each group of commands once as a process of its own, beside a gateway in another process."""

from pathlib import Path

import pytest

from tests.program.cli.conftest import gateway
from tests.program.program import ispindel, post, process

LISTS = (
    "accounts list", "keys list", "folders list", "recipes list", "sessions list", "devices list",
    "quarantine list", "targets list", "readings",
)  # fmt: skip

CHANGES = (
    "accounts add cellar", "keys add display", "folders add Winter --kind recipe",
    "sessions add --batchcode HP001", "devices assign 5 1", "devices release 5",
)  # fmt: skip


@pytest.mark.parametrize("served", [True, False], ids=["served", "at rest"])
async def test_a_command_of_each_group(tmp_path: Path, served: bool) -> None:
    data = tmp_path / "data"
    async with gateway(data) as (server, http):
        assert await post(http, server, ispindel(5)) == 200
        if not served:
            assert (await server.stop())[0] == 0
        failed = {}
        for words in (*CHANGES, *LISTS):
            finished = await process(data, words)
            if finished.status != 0:
                failed[words] = finished
        assert failed == {}
        assert "HP001" in (await process(data, "sessions show 1")).out
        assert (await process(data, "sessions show 9")).status == 1
