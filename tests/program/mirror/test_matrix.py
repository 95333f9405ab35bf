"""What can happen at a source, by how the run ends that finds it: whole, between two commits, or by SIGKILL.

However it was interrupted, the next run leaves what an undisturbed one would have left.
"""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gateway.services.brewsessions import SessionChange
from tests.program.program import launch, until
from tests.system.mirror.bench import (
    Instance,
    add_recipe,
    content,
    copy,
    device_reports,
    everything,
    full_content,
    item,
    opened,
    picture,
    reading,
)
from tests.system.mirror.test_corrections import calibrate, change
from tests.system.mirror.test_interrupted import Crash, crash_at
from tests.system.mirror.test_renumbered import instead, loud

CRASHES = 6
"""Commits, spread over the run, that are its last."""

REQUESTS = (2, 7)
"""Requests after which the process is killed."""


@dataclass
class World:
    """What was copied, what copies, and what may be there instead."""

    there: Instance
    here: Instance
    anew: Instance

    async def later(self, seconds: float) -> None:
        for at in (self.there, self.here, self.anew):
            await at.clock.sleep(seconds)


@asynccontextmanager
async def world(directory: Path) -> AsyncIterator[World]:
    async with (
        opened(directory / "there") as there,
        opened(directory / "here") as here,
        opened(directory / "anew") as anew,
    ):
        recipe = await there.parts.library.add(1, full_content("Pils"))
        await add_recipe(there, content("Porter"))
        session = await there.parts.brewsessions.add_session(
            1, SessionChange(recipe_id=recipe.id, batchcode="HP001")
        )
        await there.take(session.id, [item(number) for number in range(0, 1300, 2)])
        await device_reports(there, session, 8)
        await there.parts.brewsessions.add_session(1, SessionChange(batchcode="NONE"))
        await there.parts.photos.add(recipe.id, picture("red"), "glass.png")
        await copy(here, there.source)
        (mine, *_) = await here.store.sessions.all()
        await here.store.readings.import_readings(mine, [reading(3, comment="waits")], reset=False)
        yield World(there, here, anew)


async def late(at: World) -> None:
    await at.there.take(1, [item(number) for number in range(101, 901, 2)])
    old = int(at.there.clock.now()) - 400 * 86_400
    await add_recipe(at.there, content("Late"), token="1" * 13, created_at=old, updated_at=old)


async def corrected(at: World) -> None:
    await change(at.there, 1298, gravity="1.042", comment="hand")
    await change(at.there, 4, gravity="1.041")


async def calibrated(at: World) -> None:
    await calibrate(at.there, 1.5)


async def renumbered(at: World) -> None:
    await at.later(9 * 86_400)
    recipe = await at.anew.parts.library.add(1, content("Brewed anew"))
    session = await at.anew.parts.brewsessions.add_session(
        1, SessionChange(recipe_id=recipe.id, batchcode="ANEW")
    )
    await at.anew.take(session.id, [item(number, comment="anew") for number in range(7000, 7030)])
    await at.anew.parts.photos.add(recipe.id, picture("black"), "anew.png")
    instead(at.there, at.anew)


async def both_changed(at: World) -> None:
    await at.later(60)
    for side, offset, word in ((at.there, 0, "there"), (at.here, 1, "here")):
        await side.clock.sleep(30 * offset)
        session, recipe = await side.store.sessions.get(1), await side.store.recipes.get(2)
        assert session is not None
        assert recipe is not None
        said = SessionChange(notes=word, phase=word) if offset else SessionChange(notes=word, batchcode="X1")
        await side.parts.brewsessions.update_session(session, said)
        folder = await side.parts.library.add_folder(1, "recipe", f"Of {word}")
        await side.parts.library.file(replace(recipe, content=content("Renamed")) if not offset else recipe,
                                      folder.id)  # fmt: skip
        members = {"temp": "61"} if offset else {"comment": "!"}
        await side.take(1, [{"_id": item(1298)["_id"], "gravity": f"1.01{offset}", **members}])


async def all_of_it(at: World) -> None:
    for event in (late, corrected, calibrated, both_changed):
        await event(at)


EVENTS: dict[str, Callable[[World], Awaitable[None]]] = {
    "late": late,
    "corrected": corrected,
    "calibrated": calibrated,
    "renumbered": renumbered,
    "both changed": both_changed,
    "all but renumbered": all_of_it,
}


async def state(at: Instance, url: str) -> dict[str, Any]:
    """All that can be read, what is forwarded where, and what waits for that."""
    return {
        **await everything(at),
        "numbers": [(s.id, s.upstream, s.upstream_id) for s in await at.store.sessions.all()],
        "waiting": await at.store.outbox.backlogs(url),
        "readings": await at.store.readings.count(),
    }


async def cloned(at: World, to: Path) -> Path:
    """What copies, as it is now, once more."""
    await at.here.store.close()
    shutil.copytree(at.here.directory, to)
    await at.here.store.open()
    return to


@asynccontextmanager
async def again(at: World, directory: Path, *, listening: bool = True) -> AsyncIterator[Instance]:
    async with opened(directory, listening=listening) as here:
        here.clock.__dict__.update(at.here.clock.__dict__)
        yield here


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())
async def test_an_interrupted_run_leaves_what_an_undisturbed_one_leaves(
    tmp_path: Path, event: Callable[[World], Awaitable[None]]
) -> None:
    async with world(tmp_path) as at:
        url = at.there.url
        await event(at)
        before = await cloned(at, tmp_path / "before")
        async with again(at, before) as here:
            commits = crash_at(here, 1_000_000)
            tally = await copy(here, at.there.source)
            total = commits()
            assert tally.failures == 0
            assert len(loud(tally.reports)) == (event is renumbered)
            expected = await state(here, url)
            assert sum(c.copied + c.updated for c in (await copy(here, at.there.source)).counts.values()) == 0
            assert await state(here, url) == expected
        assert (expected["waiting"] == []) is (event is renumbered)
        for number in range(1, total + 1, max(1, total // CRASHES)):
            directory = await cloned(at, tmp_path / f"crash {number}")
            async with again(at, directory, listening=False) as here:
                crash_at(here, number)
                with pytest.raises(Crash):
                    await copy(here, at.there.source)
            async with again(at, directory) as here:
                await copy(here, at.there.source)
                assert await state(here, url) == expected, number
        for requests in REQUESTS:
            directory = await cloned(at, tmp_path / f"kill {requests}")
            await _killed(at.there, directory, requests)
            async with again(at, directory) as here:
                await copy(here, at.there.source)
                assert await state(here, url) == expected, requests


async def _killed(there: Instance, directory: Path, requests: int) -> None:
    """A process of its own, gone after so many requests."""
    key = directory.with_name("there.key")
    key.write_text(there.key)
    words = ("mirror", "--from", there.url, "--key-file", str(key), "--photos", "--rate", "100")
    first = len(there.seen)
    child = await launch(*words, "--data-dir", str(directory), "--config", "/dev/null")
    await until(lambda: len(there.seen) - first >= requests or child.returncode is not None)
    with suppress(ProcessLookupError):
        child.kill()
    await child.communicate()


@pytest.mark.parametrize("event", [late, corrected, calibrated], ids=["late", "corrected", "calibrated"])
async def test_afterwards_both_say_the_same(
    tmp_path: Path, event: Callable[[World], Awaitable[None]]
) -> None:
    async with world(tmp_path) as at:
        await event(at)
        await copy(at.here, at.there.source)
        expected, found = await everything(at.there), await everything(at.here)
        readings = found["/v1/fermentation/1"]["readings"]
        assert [got for got in readings if got["comment"] != "waits"] == expected["/v1/fermentation/1"][
            "readings"
        ]
        recipes = [path for path in expected if path.startswith("/v1/recipes/")]
        assert {path: found.get(path) for path in recipes} == {path: expected[path] for path in recipes}
