"""The scheduled mirror in a running gateway: forwarding, and sources that fail."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from gateway.cli.client import ask_running
from gateway.services.brewsessions import SessionChange
from tests.cloud import KEY as CLOUD_KEY
from tests.cloud import ScriptedCloud
from tests.cloud import running as running_cloud
from tests.program.program import HTTP_ONLY, Server, answer, ispindel, post, serving, until
from tests.system.mirror.bench import Instance, content, opened


async def parts_of(server: Server) -> dict[str, str]:
    services: dict[str, str] = (await ask_running(server.data, "/healthz"))["parts"]
    return services


def mirrored(server: Server) -> Callable[[], Awaitable[bool]]:
    async def done() -> bool:
        return ": ok" in (await parts_of(server)).get("mirror", "")

    return done


def key_file(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def options(folder: Path, there: Instance) -> tuple[str, ...]:
    key = key_file(folder, "there.key", there.key)
    fast = ("--forward-seconds", "0.1")
    return (*HTTP_ONLY, *fast, "--mirror-from", there.url, "--mirror-key-file", key, "--mirror-photos")


@pytest.mark.parametrize("same", [True, False], ids=["upstream is the same", "upstream is another"])
async def test_readings_go_to_the_service_that_their_session_came_from(tmp_path: Path, same: bool) -> None:
    async with opened(tmp_path / "there") as there, running_cloud(ScriptedCloud()) as cloud:
        await there.parts.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
        await there.parts.library.add(1, content("Porter"))
        url, key = (f"{there.url}/", there.key) if same else (cloud.url, CLOUD_KEY)
        upstream = ("--upstream-url", url, "--upstream-key-file", key_file(tmp_path, "up.key", key))
        data = tmp_path / "data"
        async with serving(data, *options(tmp_path, there), *upstream) as server:
            await until(mirrored(server))
            await answer(data, "sessions add --batchcode MINE --upstream-id 7777")
            async with aiohttp.ClientSession() as http:
                for number, session_id in ((1, 1), (2, 2)):
                    assert await post(http, server, ispindel(number)) == 200
                    await answer(data, "devices assign", f"spindle{number}", str(session_id))
                    assert await post(http, server, ispindel(number, gravity="11.5")) == 200
                await until(lambda: len(there.seen) and _imports(there, 1))
                if same:
                    await until(lambda: _imports(there, 7777))
                else:
                    await until(lambda: cloud.kept(7777))
                    assert cloud.kept(1) == []
                    assert not _imports(there, 7777)
            assert (await server.stop())[0] == 0
            lines = [line for line in server.lines if line.startswith(("Forwarding", "Mirroring"))]
            assert lines == [
                *dict.fromkeys(f"Forwarding to {name.rstrip('/')}" for name in (url, there.url)),
                f"Mirroring {there.url} every 24 hours",
            ]
        (reading,) = (await there.get("/v1/fermentation/1"))["readings"]
        assert reading["gravity"] == "11.5"


def _imports(there: Instance, session_id: int) -> list[object]:
    return [seen for seen in there.seen if seen[0] == f"/v1/fermentation/{session_id}/import"]


async def test_a_service_that_is_not_there_stops_nothing(tmp_path: Path) -> None:
    key = key_file(tmp_path, "a.key", "key")
    source = ("--mirror-from", "http://127.0.0.1:9", "--mirror-key-file", key)
    async with serving(tmp_path / "data", *HTTP_ONLY, *source) as server, aiohttp.ClientSession() as http:
        assert await post(http, server, ispindel()) == 200
        assert "from http://127.0.0.1:9: copying" in (await parts_of(server))["mirror"]
        status, seconds = await server.stop()
        assert (status, seconds < 4) == (0, True)


async def test_a_wrong_key_is_on_the_health_page_and_not_in_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "there") as there:
        key = key_file(tmp_path, "wrong.key", "wrong-key")
        source = ("--mirror-from", there.url, "--mirror-key-file", key)
        async with serving(tmp_path / "data", *HTTP_ONLY, *source) as server:

            async def told() -> bool:
                return "refuses the key" in (await parts_of(server))["mirror"]

            await until(told)
            assert "wrong-key" not in json.dumps(await parts_of(server))
            assert (await server.stop())[0] == 0
        assert not any("wrong-key" in line for line in server.errors)
