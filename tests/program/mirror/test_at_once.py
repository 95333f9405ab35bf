"""Two mirrors at once in two processes; the scheduled form killed, resumed, and beside a command."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from tests.program.mirror.test_schedule import key_file, mirrored, options
from tests.program.program import (
    command,
    ended,
    ispindel,
    launch,
    post,
    refusal,
    serving,
    until,
)
from tests.system.mirror.bench import fill, item, opened, same
from tests.system.mirror.test_at_once import one_of_each
from tests.system.mirror.test_interrupted import numbers


async def test_two_commands_at_once_copy_it_once(tmp_path: Path) -> None:
    async with opened(tmp_path / "there") as there:
        await fill(there, recipes=6, readings=1200)
        key, data = key_file(tmp_path, "there.key", there.key), tmp_path / "data"
        words = ("mirror", "--from", there.url, "--key-file", key, "--photos", "--rate", "100")
        arguments = (*words, "--data-dir", str(data), "--config", "/dev/null")
        finished = await asyncio.gather(*[ended(child) for child in [await launch(*arguments) for _ in "12"]])
        assert {one.status for one in finished} <= {0, 1}
        assert 0 in {one.status for one in finished}
        async with opened(data) as here:
            await same(there, here)
            assert await numbers(here) == await numbers(there)


@pytest.mark.parametrize("requests", [2, 4, 6])
async def test_the_scheduled_form_is_killed_in_the_midst_and_resumed(tmp_path: Path, requests: int) -> None:
    async with opened(tmp_path / "there") as there:
        await one_of_each(there)
        data = tmp_path / "data"
        async with serving(data, *options(tmp_path, there)) as server:
            await until(lambda: len(there.seen) >= requests)
            await server.kill()
        await there.take(1, [item(2000), item(3, _id={"$oid": "e" * 24}, gravity="1.234")])
        async with serving(data, *options(tmp_path, there)) as server:
            await until(mirrored(server))
            said = await refusal(data, "mirror", "--from", "http://127.0.0.1:9", "--key-file", "/dev/null")
            assert "does not hold one line" in said
            assert (await server.stop())[0] == 0
        async with opened(data) as here:
            await same(there, here)
            assert await numbers(here) == await numbers(there)


async def test_the_scheduled_form_and_a_command_beside_devices_that_report(tmp_path: Path) -> None:
    async with opened(tmp_path / "there") as there:
        await one_of_each(there)
        data, key = tmp_path / "data", key_file(tmp_path, "there.key", there.key)
        words = ("--from", there.url, "--key-file", key, "--rate", "100")
        async with serving(data, *options(tmp_path, there)) as server, aiohttp.ClientSession() as http:
            statuses = []
            for number in range(40):
                assert await post(http, server, ispindel(gravity=f"{number}")) == 200
                if number % 10 == 0:
                    finished = await command(data, "mirror", *words)
                    statuses.append(finished.status)
                    assert finished.status == 0 or "right now" in finished.err
            assert 1 in statuses
            await until(mirrored(server))
            assert (await command(data, "mirror", *words)).status == 0
            assert (await server.stop())[0] == 0
        async with opened(data) as here:
            assert await here.store.readings.count() == 1100 + 40
