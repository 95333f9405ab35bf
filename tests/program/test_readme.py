"""The README's commands do what it says: every `curl`, and every command of the offline brewery."""

import asyncio
import json
import re
import shlex
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from gateway.formats import beerxml
from tests.program.program import HTTP_ONLY, PROJECT, Server, answer, process, serving

README = (PROJECT / "README.md").read_text("utf-8")
ENDPOINTS = 10

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")


def blocks(heading: str) -> list[str]:
    """The shell commands below a heading, one string each, comments dropped."""
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    text = "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL)).replace("\\\n", " ")
    lines = (line.split("  #")[0].strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


@pytest.fixture
async def brewery(tmp_path: Path) -> AsyncIterator[Server]:
    """A running gateway with the sample data."""
    async with serving(tmp_path / "data", *HTTP_ONLY) as server:
        await answer(server.data, "sample-data")
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
    commands = [line for line in blocks("API") if line.startswith("curl")]
    assert len(commands) == ENDPOINTS
    uuid = await photo_of_recipe_1(brewery)
    for command in commands:
        got = await curl(brewery, command, uuid, tmp_path)
        if "photo?" in command:
            assert got.startswith(b"\xff\xd8\xff")
        elif ".xml" in command:
            assert len(beerxml.read(got)) == 1
        else:
            body = json.loads(got)
            assert body.pop("message") == "success"
            assert all(body.values()), f"nothing to see in {command}"


async def test_every_command_of_the_offline_brewery_works(tmp_path: Path) -> None:
    """Those that need another service are shown by the tests of the mirror."""
    commands = [line for line in blocks("The offline brewery") if "brew.example" not in line]
    assert len(commands) >= 7
    data, here = tmp_path / "data", tmp_path
    await answer(data, commands.pop(0).removeprefix("hydrometer-gateway "))
    recipe, photo = here / "stout.xml", here / "glass.jpg"
    await answer(data, "recipes export 1 --out", str(recipe))
    names = {
        "~/Downloads/*.xml": str(recipe),
        "glass.jpg": str(photo),
        "porter.csv": str(here / "porter.csv"),
    }
    async with serving(data, *HTTP_ONLY) as server, aiohttp.ClientSession() as http:
        first = await answer(data, "keys add reader")
        headers = {"X-API-KEY": first.out.strip()}
        uuid = (await answer(data, "photos list 1 --json")).objects[0]["uuid"]
        async with http.get(f"{server.url}/v1/recipes/1/photo/{uuid}", headers=headers) as answered:
            photo.write_bytes(await answered.read())
        readings = f"{server.url}/v1/fermentation/1"
        async with http.get(readings, headers=headers) as answered:
            before = await answered.read()
        for command in commands:
            words = [names.get(word, word) for word in shlex.split(command)]
            assert words.pop(0) == "hydrometer-gateway"
            finished = await process(data, tuple(words))
            assert finished.status == 0, (command, finished.err)
        async with http.get(readings, headers=headers) as answered:
            assert await answered.read() == before
