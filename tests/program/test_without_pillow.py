"""Without Pillow, as on 32-bit ARM, everything works but photos, which say what they need."""

import html
import os
from pathlib import Path
from typing import Any

import aiohttp

from tests.payloads import ispindel
from tests.program.program import HTTP_ONLY, Server, launch, post, run
from tests.pure.formats.test_image import cornered, file_of

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "PIL":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""
"""What every process imports first, by its path."""

PHOTO = file_of(cornered(8, 8), "JPEG")

REMEDY = "photos need `pip install 'hydrometer-gateway[photos]'`"


def blocked(folder: Path) -> str:
    """A folder on whose account nobody can import Pillow."""
    place = folder / "blocked"
    place.mkdir()
    (place / "sitecustomize.py").write_text(BLOCKED)
    return str(place)


async def test_everything_but_photos_works(tmp_path: Path) -> None:
    """The data come from a computer with Pillow, so that there is a photo."""
    env = {"GATEWAY_CONFIG": os.devnull, "GATEWAY_DATA_DIR": str(tmp_path / "data")}
    photo = tmp_path / "glass.jpg"
    photo.write_bytes(PHOTO)
    for command in (("sample-data", "--no-photos"), ("photos", "add", "1", str(photo))):
        made = await run(*command, env=env)
        assert made.status == 0, made.err
    env |= {"PYTHONPATH": blocked(tmp_path)}
    server = Server(await launch("serve", *HTTP_ONLY, env=env), tmp_path / "data")
    await server.start()
    try:
        assert server.ready, server.errors
        await check_answers(server)
        refused = await run("photos", "add", "1", str(photo), env=env)
        assert (refused.status, refused.out, refused.err) == (1, "", f"hydrometer-gateway: {REMEDY}\n")
    finally:
        assert (await server.stop())[0] == 0
    refused = await run("photos", "add", "1", str(photo), env=env)
    assert (refused.status, refused.err) == (1, f"hydrometer-gateway: {REMEDY}\n")
    listed = await run("readings", "--last", "1", "--json", env=env)
    assert len(listed.objects) == 1


async def check_answers(server: Server) -> None:
    async with aiohttp.ClientSession(headers={"X-API-KEY": server.first_key or ""}) as http:
        assert await post(http, server, ispindel()) == 200
        [one, *_] = (await fetched(http, server, "/v1/recipes/1/photos"))["photos"]
        path = f"/v1/recipes/1/photo/{one['uuid']}"
        async with http.get(f"{server.url}{path}") as answer:
            assert (answer.status, len(await answer.read())) == (200, len(PHOTO))
        refusal = {"message": "failure", "detail": REMEDY}
        assert await fetched(http, server, f"{path}?width=4", status=501) == refusal
        link = {"kind": "picture", "name": "kitchen", "brew_session_id": 1}
        async with http.post(f"{server.url}/manage/links", json=link) as answer:
            assert answer.status == 200, await answer.text()
            address = (await answer.json())["links"][0]["path"].rpartition(".")[0]
        for suffix, status in (("svg", 200), ("png", 501)):
            async with http.get(f"{server.url}{address}.{suffix}") as answer:
                assert answer.status == status
                assert (REMEDY in html.unescape(await answer.text())) is (status == 501)
        for path in ("/v1/recipes", "/v1/recipes/1", "/v1/fermentation/1", "/healthz"):
            await fetched(http, server, path)
        media = {"Content-Type": "image/jpeg"}
        added = f"{server.url}/manage/recipes/1/photos"
        async with http.post(added, data=PHOTO, headers=media) as answer:
            assert (answer.status, await answer.json()) == (501, refusal)


async def fetched(http: aiohttp.ClientSession, server: Server, path: str, status: int = 200) -> Any:
    async with http.get(server.url + path) as answer:
        assert answer.status == status, path
        return await answer.json()


async def test_sample_data_leaves_photos_out(tmp_path: Path) -> None:
    made = await run(
        "sample-data", "--data-dir", str(tmp_path / "data"), env={"PYTHONPATH": blocked(tmp_path)}
    )
    assert made.status == 0, made.err
    assert " readings and 0 photos." in made.out
