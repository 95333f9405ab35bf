"""Every `curl` of docs/api.md does what it says, and its tables have the statuses and scopes of the code."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from gateway.endpoints import ENDPOINTS
from gateway.formats import beerxml
from gateway.http.middleware import METRICS_PATH, STATUS
from tests.program.program import HTTP_ONLY, PROJECT, Server, answer, serving

API = (PROJECT / "docs" / "api.md").read_text("utf-8")
NUMBERED = 10

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")


def commands() -> list[str]:
    """The lines of all `sh` blocks."""
    return [line for block in re.findall(r"```sh\n(.*?)```", API, re.DOTALL) for line in block.splitlines()]


def paths_for_readers() -> list[str]:
    """The paths for which a key with the scope `read` is enough, beside those below `/v1`."""
    section = API.partition("a key with the scope `read` is enough:")[2].partition("\n\n`GET /healthz`")[0]
    paths = re.findall(r"^\| `GET (\S+)`", section, re.MULTILINE)
    assert len(paths) == len(section.strip().splitlines()) - 2
    return paths


@pytest.fixture
async def brewery(tmp_path: Path) -> AsyncIterator[Server]:
    """A running gateway with the sample data."""
    [fill] = [line for line in commands() if line.startswith("hydrometer-gateway ")]
    async with serving(tmp_path / "data", *HTTP_ONLY) as server:
        await answer(server.data, fill.removeprefix("hydrometer-gateway "))
        yield server


async def curl(server: Server, command: str, uuid: str, directory: Path) -> bytes:
    """What the command prints, or the file that it writes."""
    script = f"KEY={server.first_key} URL={server.url} UUID={uuid}\n{command} --fail --silent --show-error"
    child = await asyncio.create_subprocess_exec(
        "sh", "-c", script, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=directory
    )
    out, err = await child.communicate()
    assert (child.returncode, err) == (0, b""), command
    written = re.search(r"--output (\S+)", command)
    return (directory / written[1]).read_bytes() if written else out


async def photo_of_recipe_1(server: Server) -> str:
    headers = {"X-API-KEY": server.first_key or ""}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.get(f"{server.url}/v1/recipes/1/photos") as photos,
    ):
        return str((await photos.json())["photos"][0]["uuid"])


@needs_curl
async def test_every_curl_works(brewery: Server, tmp_path: Path) -> None:
    found = [line for line in commands() if line.startswith("curl")]
    assert len(found) == NUMBERED
    uuid = await photo_of_recipe_1(brewery)
    for command in found:
        got = await curl(brewery, command, uuid, tmp_path)
        if "photo?" in command:
            assert got.startswith(b"\xff\xd8\xff")
        elif ".xml" in command:
            assert len(beerxml.read(got)) == 1
        else:
            body = json.loads(got)
            assert body.pop("message") == "success"
            assert all(body.values()), f"nothing to see in {command}"


async def test_a_key_that_only_reads_gets_what_the_page_says(brewery: Server) -> None:
    key = (await answer(brewery.data, "keys add reader")).out.strip()
    paths = paths_for_readers()
    async with aiohttp.ClientSession(brewery.url) as http:
        for path in [*paths, "/docs", "/openapi.json", "/healthz"]:
            keyless = path in {"/docs", "/openapi.json", "/healthz"}
            async with http.get(path, headers={} if keyless else {"X-API-KEY": key}) as given:
                # The sample data have no device 1: 404 shows that the scope is enough.
                assert given.status == 200 or (given.status == 404 and "/devices/" in path), path
            if not keyless:
                async with http.get(path) as refused:
                    assert refused.status == 401, path


def test_the_table_has_all_that_a_key_with_read_may_do() -> None:
    described = {re.sub(r"/1\b", "/{}", path) for path in paths_for_readers()} - {
        METRICS_PATH,
        "/manage/status",
    }
    rows = [row for row in ENDPOINTS if row.scope == "read" and row.path.startswith("/manage/")]
    assert described == {re.sub(r"\{\w+\}", "{}", row.path) for row in rows}
    assert {METRICS_PATH, "/manage/status"} <= {*paths_for_readers()}


def test_the_table_of_errors_is_the_codes() -> None:
    section = API.partition("\n## Errors\n")[2].partition("\n## ")[0]
    listed = {(int(status), word) for status, word in re.findall(r"^\| (\d+) \| `([\w-]+)`", section, re.M)}
    assert listed == set(STATUS.values())
