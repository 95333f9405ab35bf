"""The real program against a scripted cloud: SIGKILL in the middle of a batch, and readings claimed late."""

import asyncio
from collections import Counter
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.cloud import (
    KEY,
    Behaviour,
    ScriptedCloud,
    Visit,
    accept_then_hang,
    hang,
    running,
)

from .judge import marked
from .program import HTTP_ONLY, Server, answer, serving, until

UPSTREAM_ID = 7
BATCH = 40
HASTY = "tests.program.hasty"


async def accept_some_then_hang(visit: Visit) -> web.StreamResponse:
    """A part is kept, and nobody hears of it."""
    visit.cloud.commit(visit.session, visit.rows[: BATCH // 3])
    return await hang(visit)


def options(folder: Path, cloud: ScriptedCloud, seconds: float = 0.2) -> tuple[str, ...]:
    folder.mkdir(exist_ok=True)
    key_file = folder / "cloud.key"
    key_file.write_text(KEY)
    upstream = ("--upstream-url", cloud.url, "--upstream-key-file", str(key_file))
    return (*HTTP_ONLY, *upstream, "--forward-readings", str(BATCH), "--forward-seconds", str(seconds))


async def send(server: Server, device: str, marks: list[str]) -> None:
    async with aiohttp.ClientSession() as http:
        for mark in marks:
            body = marked(device, mark).encode()
            async with http.post(server.url + "/ingest", data=body) as response:
                assert response.status == 200


def marks_of(cloud: ScriptedCloud) -> list[str]:
    return [row["comment"] for row in cloud.kept(UPSTREAM_ID)]


async def brew(data: Path, device: str, *more: str) -> None:
    await answer(data, f"sessions add --batchcode A --upstream-id {UPSTREAM_ID}")
    await answer(data, "devices assign", device, "1", *more)


async def killed_in_mid_batch(folder: Path, cloud: ScriptedCloud, behaviour: Behaviour) -> None:
    """The cloud gets a batch, behaves so, and the sender dies without a word of it."""
    marks = [f"reading {number}" for number in range(BATCH)]
    data = folder / "data"
    async with running(cloud):
        cloud.script.append(behaviour)
        arguments = options(folder, cloud)
        async with serving(data, *arguments, module=HASTY) as server:
            await send(server, "red", marks)
            await brew(data, "red", "--since", "2020-01-01")
            await until(lambda: cloud.imports)
            await server.kill()
        later = [f"later {number}" for number in range(5)]
        async with serving(data, *arguments, module=HASTY) as server:
            await send(server, "red", later)
            await until(lambda: len(set(marks_of(cloud))) == BATCH + len(later))
            assert (await server.stop())[0] == 0
        copies = Counter(marks_of(cloud))
    assert copies == Counter([*marks, *later])


async def test_no_reading_is_lost_or_doubled_by_a_kill_in_mid_batch(tmp_path: Path) -> None:
    behaviours: dict[str, Behaviour] = {
        "nothing was kept": hang,
        "all was kept": accept_then_hang,
        "a part was kept": accept_some_then_hang,
    }
    async with asyncio.TaskGroup() as cases:
        for keeps_ids in (True, False):
            for name, behaviour in behaviours.items():
                folder = tmp_path / f"{name} {'with' if keeps_ids else 'without'} ids"
                cases.create_task(killed_in_mid_batch(folder, ScriptedCloud(keeps_ids), behaviour))


@pytest.mark.parametrize("keeps_ids", [True, False])
async def test_readings_claimed_late_are_forwarded_past_the_watermark(
    tmp_path: Path, keeps_ids: bool
) -> None:
    data = tmp_path / "data"
    async with running(ScriptedCloud(keeps_ids)) as cloud, serving(data, *options(tmp_path, cloud)) as server:
        await send(server, "late", ["early 1", "early 2"])
        await send(server, "punctual", ["first"])
        await brew(data, "punctual")
        await send(server, "punctual", ["second", "third"])
        await until(lambda: marks_of(cloud) == ["second", "third"])
        claimed = await answer(data, "devices assign late 1 --since 2020-01-01")
        assert "; 2 earlier readings were put into it.\n" in claimed.err
        await until(lambda: len(marks_of(cloud)) == 4)
        claimed = await answer(data, "devices assign punctual 1 --since 2020-01-01")
        assert "; 1 earlier reading was put into it.\n" in claimed.err
        await send(server, "late", ["last"])
        await until(lambda: len(marks_of(cloud)) == 6)
        assert (await server.stop())[0] == 0
    assert Counter(marks_of(cloud)) == Counter(["early 1", "early 2", "first", "second", "third", "last"])


async def test_without_an_upstream_id_nothing_is_forwarded(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running(ScriptedCloud()) as cloud, serving(data, *options(tmp_path, cloud)) as server:
        await send(server, "red", ["kept here"])
        await answer(data, "sessions add --batchcode HERE")
        await answer(data, "devices assign red 1 --since 2020-01-01")
        await send(server, "green", ["forwarded"])
        await answer(data, f"sessions add --batchcode THERE --upstream-id {UPSTREAM_ID}")
        await answer(data, "devices assign green 2 --since 2020-01-01")
        await until(lambda: marks_of(cloud) == ["forwarded"])
        await answer(data, "devices release green")
        await send(server, "green", ["after its release"])
        await server.stop()
    assert [seen.path for seen in cloud.imports] == [f"/v1/fermentation/{UPSTREAM_ID}/import"]
