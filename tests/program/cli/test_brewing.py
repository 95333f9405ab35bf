"""Commands as processes, beside a gateway that starts, hangs or was killed."""

import asyncio
import signal
from pathlib import Path

import aiohttp
import pytest

from gateway.http.both_ends import SOCKET_NAME
from tests.program.cli.conftest import gateway
from tests.program.program import HTTP_ONLY, answer, ispindel, post, process, refusal, serving


async def test_many_commands_at_once(data: Path) -> None:
    await answer(data, "keys add key")
    adding = [process(data, f"sessions add --batchcode B{number}") for number in range(4)]
    others = [process(data, words) for words in ("keys revoke key", "sessions list", "devices list --json")]
    finished = await asyncio.gather(*adding, *others)
    assert [(f.status, f.err) for f in finished] == [(0, "")] * 7
    assert sorted(f.out for f in finished[:4]) == ["1\n", "2\n", "3\n", "4\n"]
    assert len((await answer(data, "sessions list --json")).lines) == 4


async def test_the_server_starts_among_commands(tmp_path: Path) -> None:
    commands = [asyncio.create_task(process(tmp_path, f"sessions add --batchcode B{n}")) for n in range(3)]
    async with serving(tmp_path, *HTTP_ONLY) as server, aiohttp.ClientSession() as http:
        assert [finished.status for finished in await asyncio.gather(*commands)] == [0, 0, 0]
        assert await post(http, server, ispindel()) == 200
    assert len((await answer(tmp_path, "sessions list --json")).lines) == 3


async def test_a_server_that_was_killed_or_hangs_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path) as (server, _):
        server.process.send_signal(signal.SIGSTOP)
        with monkeypatch.context() as patched:
            patched.setattr("gateway.cli.client.BUSY_WAIT_S", 0.5)
            said = await refusal(tmp_path, "sessions add --batchcode A", status=75)
        assert said == "the running gateway does not answer; try again, and look at its log"
        assert (await answer(tmp_path, "sessions list --json")).lines == []
        await server.kill()
    assert (tmp_path / SOCKET_NAME).is_socket()
    assert (await answer(tmp_path, "sessions add --batchcode A")).out == "1\n"
    async with gateway(tmp_path):
        assert (await answer(tmp_path, "sessions add --batchcode B")).out == "2\n"
