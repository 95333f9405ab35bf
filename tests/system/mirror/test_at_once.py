"""Two mirrors at once, in one process and in two; the scheduled form: killed, resumed, beside a command."""

import asyncio
from pathlib import Path

from aiohttp import web

from gateway.domain.key import ALL_SCOPES
from gateway.mirror.schedule import MirrorSchedule
from gateway.services.brewsessions import SessionChange
from tests.program.program import (
    until,
)
from tests.system.mirror.bench import Instance, content, copy, counts, everything, fill, item, opened, same
from tests.system.mirror.test_interrupted import numbers


async def test_two_accounts_and_two_services_at_once(tmp_path: Path) -> None:
    async with (
        opened(tmp_path / "a") as a,
        opened(tmp_path / "b") as b,
        opened(tmp_path / "here") as here,
        opened(tmp_path / "alone") as alone,
    ):
        await fill(a, recipes=6, readings=40)
        await fill(b, recipes=5, readings=30)
        account = (await here.parts.access.add_account("second")).id
        for _ in range(2):
            tallies = await asyncio.gather(
                copy(here, a.source),
                copy(here, a.source, account),
                copy(here, b.source),
                copy(here, a.source),
            )
            assert all(tally.failures == 0 and not tally.renumbered for tally in tallies)
        assert counts(tallies[0]).get("readings", (0,))[0] == 0
        assert await numbers(here) == (6 + 5, 3 * 3, 2 * 46 + 36, 3 * 3)
        await copy(alone, a.source)
        here.key = await here.parts.access.add("second", ALL_SCOPES, "second")
        expected, found = await everything(alone), await everything(here)
        assert [len(found[path]["readings"]) for path in found if "fermentation" in path] == [
            len(expected[path]["readings"]) for path in expected if "fermentation" in path
        ]


async def test_a_schedule_waits_while_another_copies(tmp_path: Path) -> None:
    async with opened(tmp_path / "there") as there, opened(tmp_path / "here") as here:
        await fill(there, recipes=5, readings=5)
        held = asyncio.Event()

        async def wait(request: web.Request) -> web.StreamResponse | None:
            if request.path == "/v1/brewsessions":
                await held.wait()
            return None

        there.before = wait
        first = asyncio.create_task(copy(here, there.source))
        await until(lambda: any(path == "/v1/brewsessions" for path, _ in there.seen))
        asked = len(there.seen)
        schedule = asyncio.create_task(MirrorSchedule(here.parts, there.source, 6.0)._once())
        await asyncio.sleep(0.1)
        assert len(there.seen) == asked
        held.set()
        await asyncio.gather(first, schedule)
        assert here.parts.stats.parts["mirror"].endswith("ok: nothing new")
        await same(there, here)


async def one_of_each(there: Instance) -> None:
    recipe = await there.parts.library.add(1, content("Porter"))
    session = await there.parts.brewsessions.add_session(
        1, SessionChange(recipe_id=recipe.id, batchcode="HP001")
    )
    await there.take(session.id, [item(n) for n in range(1100)])
