"""`sample-data`: what it prints, what it refuses, and that everything can be read afterwards."""

import io
import re
from pathlib import Path

from PIL import Image

from gateway.samples.recipes import sample_recipes
from tests.program.program import answer, process, refusal

MADE = re.compile(r"Made 12 recipes, 16 brew sessions, ([0-9,]+) readings and ([0-9]+) photos\.")


async def test_an_empty_gateway_is_filled_once(data: Path) -> None:
    made = await answer(data, "sample-data --no-photos")
    found = MADE.fullmatch(made.lines[0])
    assert found is not None
    assert (made.err, found[2]) == ("", "0")
    refused = await refusal(data, "sample-data")
    assert refused.startswith("the account has recipes, brew sessions, folders already; sample data want an")
    assert (await answer(data, "sessions list --json")).lines != []


async def test_the_commands_it_names_work(tmp_path: Path) -> None:
    made = await answer(tmp_path, "sample-data --no-photos")
    heading, *commands = made.lines[1:]
    assert heading == "Try next:"
    assert len(commands) == 3
    for line in commands[:2]:
        program, *words = line.split()
        assert program == "hydrometer-gateway"
        assert words[-2:] == ["--data-dir", str(tmp_path)]
        finished = await process(tmp_path, tuple(words[:-2]))
        assert (finished.status, finished.err) == (0, "")
        assert finished.out
    assert commands[2].split()[:2] == ["hydrometer-gateway", "serve"]


async def test_another_account_is_filled_where_it_is_named(tmp_path: Path) -> None:
    await answer(tmp_path, "accounts add club")
    await answer(tmp_path, "sample-data --account club --no-photos")
    assert len((await answer(tmp_path, "recipes list --account club --json")).lines) == 12
    assert (await answer(tmp_path, "recipes list --json")).lines == []
    unknown = await refusal(tmp_path, "sample-data --account pub")
    assert unknown == "no account named 'pub'; `accounts list` shows them"


async def test_photos_are_drawn(tmp_path: Path) -> None:
    made = await answer(tmp_path, "sample-data")
    wanted = sum(len(recipe.photos) for recipe in sample_recipes())
    found = MADE.fullmatch(made.lines[0])
    assert found is not None
    assert found[2] == str(wanted)
    files = list((tmp_path / "photos").iterdir())
    assert len(files) == wanted
    with Image.open(io.BytesIO(files[0].read_bytes())) as image:
        assert image.format == "JPEG"
    with_photos = [
        entry["id"]
        for entry in (await answer(tmp_path, "recipes list --json")).objects
        if (await answer(tmp_path, f"photos list {entry['id']}")).lines[1:]
    ]
    assert len(with_photos) == sum(bool(recipe.photos) for recipe in sample_recipes())
