"""A mirror that is killed at any time, or stopped at any request, goes on when it is run again."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from tests.program.program import ended, launch, until
from tests.system.mirror.bench import (
    copy,
    fill,
    opened,
    same,
)
from tests.system.mirror.test_interrupted import copied, numbers, stop_at


@pytest.mark.parametrize("requests", [1, 4, 9, 15, 22])
async def test_sigkill_at_any_time(tmp_path: Path, requests: int) -> None:
    async with opened(tmp_path / "there") as there:
        await fill(there, recipes=8, readings=1100)
        key = tmp_path / "there.key"
        key.write_text(there.key)
        data = tmp_path / "data"
        words = ("mirror", "--from", there.url, "--key-file", str(key), "--photos", "--rate", "100")
        arguments = (*words, "--data-dir", str(data), "--config", "/dev/null")
        child = await launch(*arguments)
        first = len(there.seen)
        await until(lambda: len(there.seen) - first >= requests)
        with suppress(ProcessLookupError):
            child.kill()
        await child.communicate()
        finished = await ended(await launch(*arguments))
        assert (finished.status, finished.err) == (0, "")
        async with opened(data) as here:
            await same(there, here)
            assert await numbers(here) == await numbers(there)


async def test_a_run_that_is_stopped_at_any_request(tmp_path: Path) -> None:
    async with opened(tmp_path / "there") as there:
        await fill(there, recipes=5, readings=2100)
        number, stopped = 0, True
        while stopped:
            number += 1
            async with opened(tmp_path / f"here {number}") as here:
                task = asyncio.create_task(copied(here, there))
                stop_at(there, number, task.cancel)
                await asyncio.wait([task])
                stopped = task.cancelled()
                there.before = None
                assert (await copy(here, there.source)).reports == []
                await same(there, here)
        assert number > 15
