"""What docs/brewing.md says: each command works."""

import shlex
from pathlib import Path

import aiohttp

from tests.payloads import ispindel
from tests.program.program import HTTP_ONLY, answer, post, process, serving
from tests.pure.documents.pages import page


async def test_every_command_of_the_offline_brewery_works(tmp_path: Path) -> None:
    brewing = page("brewing.md")
    by_hand = brewing.commands("Recipes, notes and readings by hand")
    out_and_in = brewing.commands("Readings out and in")
    *by_hand, made_up, served = by_hand
    assert made_up == "hydrometer-gateway sample-data --data-dir ~/made-up"
    assert served == "hydrometer-gateway serve --data-dir ~/made-up"
    assert len(by_hand) >= 7
    assert len(out_and_in) == 2
    data, here = tmp_path / "data", tmp_path
    await answer(data, "sample-data")
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

        async def run(lines: list[str]) -> None:
            for command in lines:
                words = [names.get(word, word) for word in shlex.split(command)]
                assert words.pop(0) == "hydrometer-gateway"
                finished = await process(data, tuple(words))
                assert finished.status == 0, (command, finished.err)

        async def readings() -> bytes:
            async with http.get(f"{server.url}/v1/fermentation/1", headers=headers) as answered:
                return await answered.read()

        await run(by_hand)
        before = await readings()
        await run(out_and_in)
        assert await readings() == before


async def test_every_command_of_the_brew_sessions_works(tmp_path: Path) -> None:
    told = page("brewing.md").commands("Brew sessions")
    assert len(told) >= 6
    async with serving(tmp_path / "data", *HTTP_ONLY) as server:
        async with aiohttp.ClientSession() as http:
            await post(http, server, ispindel(name="iSpindel042"))
        for line in told:
            await answer(server.data, tuple(shlex.split(line)[1:]))
        for line in ("sessions done HP002", "sessions done HP002 --take-back"):
            assert line in page("brewing.md").spans
            await answer(server.data, line)
        phases = {
            each["batchcode"]: each["phase"]
            for each in (await answer(server.data, "sessions list --json")).objects
        }
        assert phases == {"HP001": "Conditioning", "HP002": "Primary Fermentation"}
