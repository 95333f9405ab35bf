"""Two mirrors at once, in one process and in two; the scheduled form: killed, resumed, beside a command."""

import asyncio
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gateway.mirror.schedule import MirrorSchedule
from gateway.services.brewsessions import SessionChange
from tests.program.program import (
    command,
    ended,
    ispindel,
    launch,
    post,
    refusal,
    serving,
    until,
)
from tests.system.mirror.bench import Instance, content, copy, counts, everything, fill, item, opened, same
from tests.system.mirror.test_interrupted import numbers
from tests.system.mirror.test_schedule import key_file, mirrored, options


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
        here.key = await here.parts.access.add("second", account="second")
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


async def test_two_commands_at_once_copy_it_once(tmp_path: Path) -> None:
    async with opened(tmp_path / "there") as there:
        await fill(there, recipes=6, readings=1200)
        key, data = key_file(tmp_path, "there.key", there.key), tmp_path / "data"
        words = ("mirror", "--from", there.url, "--key-file", key, "--photos", "--rate", "100")
        arguments = (*words, "--data-dir", str(data), "--config", "/dev/null")
        finished = await asyncio.gather(*[ended(child) for child in [await launch(*arguments) for _ in "12"]])
        assert {one.status for one in finished} <= {0, 1}
        assert 0 in {one.status for one in finished}
        async with opened(data) as here:
            await same(there, here)
            assert await numbers(here) == await numbers(there)


async def one_of_each(there: Instance) -> None:
    recipe = await there.parts.library.add(1, content("Porter"))
    session = await there.parts.brewsessions.add_session(
        1, SessionChange(recipe_id=recipe.id, batchcode="HP001")
    )
    await there.take(session.id, [item(n) for n in range(1100)])


@pytest.mark.parametrize("requests", [2, 4, 6])
async def test_the_scheduled_form_is_killed_in_the_midst_and_resumed(tmp_path: Path, requests: int) -> None:
    async with opened(tmp_path / "there") as there:
        await one_of_each(there)
        data = tmp_path / "data"
        async with serving(data, *options(tmp_path, there)) as server:
            await until(lambda: len(there.seen) >= requests)
            await server.kill()
        await there.take(1, [item(2000), item(3, _id={"$oid": "e" * 24}, gravity="1.234")])
        async with serving(data, *options(tmp_path, there)) as server:
            await until(mirrored(server))
            said = await refusal(data, "mirror", "--from", "http://127.0.0.1:9", "--key-file", "/dev/null")
            assert "does not hold one line" in said
            assert (await server.stop())[0] == 0
        async with opened(data) as here:
            await same(there, here)
            assert await numbers(here) == await numbers(there)


async def test_the_scheduled_form_and_a_command_beside_devices_that_report(tmp_path: Path) -> None:
    async with opened(tmp_path / "there") as there:
        await one_of_each(there)
        data, key = tmp_path / "data", key_file(tmp_path, "there.key", there.key)
        words = ("--from", there.url, "--key-file", key, "--rate", "100")
        async with serving(data, *options(tmp_path, there)) as server, aiohttp.ClientSession() as http:
            statuses = []
            for number in range(40):
                assert await post(http, server, ispindel(gravity=f"{number}")) == 200
                if number % 10 == 0:
                    finished = await command(data, "mirror", *words)
                    statuses.append(finished.status)
                    assert finished.status == 0 or "right now" in finished.err
            assert 1 in statuses
            await until(mirrored(server))
            assert (await command(data, "mirror", *words)).status == 0
            assert (await server.stop())[0] == 0
        async with opened(data) as here:
            assert await here.store.readings.count() == 1100 + 40
