"""Whenever a run ends before its end, the next one goes on: nothing is missing and nothing is there twice."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.services.brewsessions import SessionChange
from tests.system.mirror.bench import (
    Instance,
    add_recipe,
    content,
    copy,
    fill,
    fits,
    full_content,
    item,
    opened,
    picture,
    reading,
    same,
)


class Crash(Exception):
    """The power went."""


async def small(there: Instance) -> None:
    """One of everything, and an original with its snapshot."""
    folder = await there.parts.library.add_folder(1, "recipe", "Porters")
    recipe = await there.parts.library.add(1, full_content("Pils"), folder_id=folder.id)
    await there.parts.library.add(1, content("Porter"))
    session = await there.parts.brewsessions.add_session(1, SessionChange(recipe_id=recipe.id))
    await there.take(session.id, [item(number) for number in range(30)])
    await there.parts.photos.add(recipe.id, picture("red"), "glass.png")


async def in_the_way(here: Instance, there: Instance) -> None:
    """Records of our own under all the ids that there are there."""
    for number in range(3):
        await add_recipe(here, content(f"Own {number}"), token=f"{number:013d}")
    session = await here.parts.brewsessions.add_session(1, SessionChange(batchcode="OWN"))
    mine = reading(1)._replace(oid=item(3)["_id"]["$oid"])
    await here.store.readings.import_readings(session, [mine], reset=False)
    (photo,) = await there.store.photos.of_recipe(1)
    await here.parts.photos.add_copy(2, picture("white"), "own.png", "", photo.uuid, 1)


async def numbers(at: Instance) -> tuple[int, ...]:
    """How many records there are."""
    recipes = (await at.get("/v1/recipes?snapshots=true"))["count"]
    sessions = await at.store.sessions.all()
    photos = len(await at.store.photos.file_names())
    return int(recipes), len(sessions), await at.store.readings.count(), photos


def crash_at(here: Instance, number: int) -> Callable[[], int]:
    """From the store's commit of that number on nothing is written; how many there were."""
    write, count = here.store._writer.run, 0

    async def run(work: Any, **how: Any) -> Any:
        nonlocal count
        count += 1
        if count >= number:
            raise Crash
        return await write(work, **how)

    here.store._writer.run = run  # type: ignore[method-assign]
    return lambda: count


@pytest.mark.parametrize("taken", [False, True], ids=["ids free", "ids taken"])
async def test_a_crash_before_any_commit(tmp_path: Path, taken: bool) -> None:
    async with opened(tmp_path / "there") as there:
        await small(there)
        own = (3, 1, 1, 1) if taken else (0, 0, 0, 0)
        number, crashed = 0, True
        while crashed:
            number += 1
            folder = tmp_path / f"here {number}"
            async with opened(folder, listening=False) as here:
                if taken:
                    await in_the_way(here, there)
                crash_at(here, number)
                crashed = False
                try:
                    await copy(here, there.source)
                except Crash:
                    crashed = True
            async with opened(folder) as here:
                tally = await copy(here, there.source)
                assert tally.reports == []
                expected = tuple(a + b for a, b in zip((3, 1, 30, 1), own, strict=True))
                assert await numbers(here) == expected, number
                await (fits(there, here) if taken else same(there, here))
        assert number > 15


def stop_at(there: Instance, number: int, stop: Callable[[], object]) -> None:
    """Stop whoever asks at the request of that number."""
    first = len(there.seen)

    async def before(_: web.Request) -> web.StreamResponse | None:
        if len(there.seen) - first == number:
            stop()
            await asyncio.sleep(0)
        return None

    there.before = before


async def copied(here: Instance, there: Instance) -> None:
    await copy(here, there.source)


async def test_a_run_that_is_stopped_again_and_again_gets_to_its_end(tmp_path: Path) -> None:
    async with opened(tmp_path / "there") as there, opened(tmp_path / "here") as here:
        await fill(there, recipes=30, readings=1200)
        for number in range(2, 60, 3):
            task = asyncio.create_task(copied(here, there))
            stop_at(there, number, task.cancel)
            await asyncio.wait([task])
            there.before = None
        await copy(here, there.source)
        await same(there, here)
        assert await numbers(here) == await numbers(there)
