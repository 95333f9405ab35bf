"""`hydrometer-gateway mirror` as a process: Ctrl-C, and only one at a time."""

import asyncio
import signal
from pathlib import Path

import pytest
from aiohttp import web

from tests.program.program import HTTP_ONLY, answer, ended, launch, refusal, serving, until
from tests.system.cli.conftest import data as data  # the fixture
from tests.system.cli.conftest import nothing_is_set as nothing_is_set
from tests.system.mirror.bench import Instance
from tests.system.mirror.test_command import source
from tests.system.mirror.test_command import there as there  # the fixture


async def test_only_one_copies_at_a_time(there: Instance, tmp_path: Path) -> None:
    held = asyncio.Event()

    async def wait(request: web.Request) -> web.StreamResponse | None:
        if request.path == "/v1/brewsessions":
            await held.wait()
        return None

    there.before = wait
    data = tmp_path / "data"
    async with serving(data, *HTTP_ONLY):
        child = await launch(
            "mirror", *source(there, tmp_path), "--data-dir", str(data), "--config", "/dev/null"
        )
        await until(lambda: any(path == "/v1/brewsessions" for path, _ in there.seen))
        said = await refusal(data, "mirror", *source(there, tmp_path))
        assert "right now" in said
        held.set()
        assert (await ended(child)).status == 0


@pytest.mark.parametrize("served", [False, True], ids=["at rest", "served"])
async def test_ctrl_c_stops_it_cleanly_and_it_goes_on_from_there(
    there: Instance, tmp_path: Path, served: bool
) -> None:
    data = tmp_path / "data"
    if served:
        async with serving(data, *HTTP_ONLY):
            await _interrupt(there, tmp_path, data)
    else:
        await _interrupt(there, tmp_path, data)


async def _interrupt(there: Instance, tmp_path: Path, data: Path) -> None:
    held = asyncio.Event()

    async def wait(request: web.Request) -> web.StreamResponse | None:
        if request.path == "/v1/brewsessions":
            await held.wait()
        return None

    there.before = wait
    arguments = ("mirror", *source(there, tmp_path), "--data-dir", str(data), "--config", "/dev/null")
    child = await launch(*arguments)
    await until(lambda: any(path == "/v1/brewsessions" for path, _ in there.seen))
    child.send_signal(signal.SIGINT)
    finished = await ended(child)
    assert (finished.status, finished.out) == (130, "")
    assert finished.err.splitlines() == ["Stopped; what was copied stays. Run it again to go on."]
    held.set()
    there.before = None
    again = await answer(data, "mirror", *source(there, tmp_path))
    assert again.lines[1].split() == ["recipes", "0", "0", "3", "0", "0"]  # changed in the last days
    assert again.lines[2].split() == ["brew", "sessions", "3", "0", "0", "0", "0"]
