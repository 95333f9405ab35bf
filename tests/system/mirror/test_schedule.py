"""`serve` copies a service at the start and then every so many hours, and no failure of it stops anything."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.config import Settings
from gateway.errors import ConfigError
from gateway.mirror import schedule as schedule_module
from gateway.mirror.schedule import MirrorSchedule
from gateway.services.brewsessions import SessionChange
from tests.cloud import KEY as CLOUD_KEY
from tests.cloud import ScriptedCloud
from tests.cloud import running as running_cloud
from tests.program.program import HTTP_ONLY, Server, answer, ispindel, post, serving, until
from tests.system.mirror.bench import Instance, LeapClock, content, fill, item, opened, two

HOURS = 6.0


class Nights(LeapClock):
    """Long sleeps last until the test ends them."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep: asyncio.Queue[float] = asyncio.Queue()
        self._morning = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds >= 600:
            self.asleep.put_nowait(seconds)
            self._morning.clear()
            await self._morning.wait()
        await super().sleep(seconds)

    async def night(self) -> float:
        """How long it sleeps now."""
        async with asyncio.timeout(20):
            return await self.asleep.get()

    def wake(self) -> None:
        self._morning.set()


@asynccontextmanager
async def scheduled(there: Instance, here: Instance, **source: Any) -> AsyncIterator[Nights]:
    clock = Nights()
    services = replace(here.parts, clock=clock)
    here.parts = services
    task = asyncio.create_task(MirrorSchedule(services, replace(there.source, **source), HOURS).run())
    try:
        yield clock
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


def state(here: Instance) -> str:
    return here.parts.stats.parts["mirror"]


async def test_it_runs_at_the_start_and_then_every_so_many_hours(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, recipes=5, readings=5)
        async with scheduled(there, here) as clock:
            assert await clock.night() == HOURS * 3600
            assert state(here).startswith(f"from {there.url}: ok: 5 recipes copied, 3 brew sessions copied, ")
            await there.take(1, [item(77)])
            clock.wake()
            assert await clock.night() == HOURS * 3600
            assert state(here) == f"from {there.url}: ok: 1 readings copied"
            assert here.parts.stats.in_trouble == set()


async def test_a_failure_is_told_and_tried_again_within_the_hour(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        async with scheduled(there, here, key="wrong-key") as clock:
            for _ in range(2):
                assert await clock.night() == schedule_module.RETRY_S
                assert "waits to try again" in state(here)
                assert here.parts.stats.in_trouble == {"mirror"}
                assert "refuses the key" in state(here)
                clock.wake()
        assert "wrong-key" not in state(here)


async def test_a_mistake_of_ours_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(schedule_module, "mirror", fail)
    async with two(tmp_path) as (there, here), scheduled(there, here) as clock:
        await clock.night()
        assert "failed, see the log" in state(here)
    assert "ZeroDivisionError" in caplog.text


def test_settings_are_checked(tmp_path: Path) -> None:
    url = "https://brew.example"
    for wrong in ("brew.example", "ftp://brew.example", "https://"):
        with pytest.raises(ValueError, match=r"mirror_from\n.*must look like https://host"):
            Settings(mirror_from=wrong)
    with pytest.raises(ValueError, match="mirror_hours"):
        Settings(mirror_hours=0)
    with pytest.raises(ConfigError, match="--mirror-key-file"):
        Settings(mirror_from=url).mirror_key()
    (tmp_path / "key").write_text("secret\n")
    assert Settings(mirror_from=url, mirror_key_file=tmp_path / "key").mirror_key() == "secret"
    same = Settings(mirror_from=f"{url}/", upstream_url=url, upstream_key_file=tmp_path / "key")
    assert (same.mirrors_upstream, same.mirror_key()) == (True, "secret")
    assert not Settings(mirror_from=url, upstream_url="https://other.example").mirrors_upstream
    assert not Settings().mirrors_upstream
    (tmp_path / "key").write_text("two\nlines")
    with pytest.raises(ConfigError, match=r"mirror key file .* does not hold one line with a key"):
        Settings(mirror_from=url, mirror_key_file=tmp_path / "key").mirror_key()


async def parts_of(server: Server) -> dict[str, str]:
    async with aiohttp.ClientSession() as http, http.get(f"{server.url}/healthz") as response:
        services: dict[str, str] = (await response.json())["parts"]
        return services


def mirrored(server: Server) -> Callable[[], Awaitable[bool]]:
    async def done() -> bool:
        return ": ok" in (await parts_of(server)).get("mirror", "")

    return done


def key_file(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def options(folder: Path, there: Instance) -> tuple[str, ...]:
    key = key_file(folder, "there.key", there.key)
    fast = ("--forward-seconds", "0.1")
    return (*HTTP_ONLY, *fast, "--mirror-from", there.url, "--mirror-key-file", key, "--mirror-photos")


@pytest.mark.parametrize("same", [True, False], ids=["upstream is the same", "upstream is another"])
async def test_readings_go_to_the_service_that_their_session_came_from(tmp_path: Path, same: bool) -> None:
    async with opened(tmp_path / "there") as there, running_cloud(ScriptedCloud()) as cloud:
        await there.parts.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
        await there.parts.library.add(1, content("Porter"))
        url, key = (f"{there.url}/", there.key) if same else (cloud.url, CLOUD_KEY)
        upstream = ("--upstream-url", url, "--upstream-key-file", key_file(tmp_path, "up.key", key))
        data = tmp_path / "data"
        async with serving(data, *options(tmp_path, there), *upstream) as server:
            await until(mirrored(server))
            await answer(data, "sessions add --batchcode MINE --upstream-id 7777")
            async with aiohttp.ClientSession() as http:
                for number, session_id in ((1, 1), (2, 2)):
                    assert await post(http, server, ispindel(number)) == 200
                    await answer(data, "devices assign", f"spindle{number}", str(session_id))
                    assert await post(http, server, ispindel(number, gravity="11.5")) == 200
                await until(lambda: len(there.seen) and _imports(there, 1))
                if same:
                    await until(lambda: _imports(there, 7777))
                else:
                    await until(lambda: cloud.kept(7777))
                    assert cloud.kept(1) == []
                    assert not _imports(there, 7777)
            assert (await server.stop())[0] == 0
            lines = [line for line in server.lines if line.startswith(("Forwarding", "Mirroring"))]
            assert lines == [
                *dict.fromkeys(f"Forwarding to {name.rstrip('/')}" for name in (url, there.url)),
                f"Mirroring {there.url} every 24 hours",
            ]
        (reading,) = (await there.get("/v1/fermentation/1"))["readings"]
        assert reading["gravity"] == "11.5"


def _imports(there: Instance, session_id: int) -> list[object]:
    return [seen for seen in there.seen if seen[0] == f"/v1/fermentation/{session_id}/import"]


async def test_a_service_that_is_not_there_stops_nothing(tmp_path: Path) -> None:
    key = key_file(tmp_path, "a.key", "key")
    source = ("--mirror-from", "http://127.0.0.1:9", "--mirror-key-file", key)
    async with serving(tmp_path / "data", *HTTP_ONLY, *source) as server, aiohttp.ClientSession() as http:
        assert await post(http, server, ispindel()) == 200
        assert "from http://127.0.0.1:9: copying" in (await parts_of(server))["mirror"]
        status, seconds = await server.stop()
        assert (status, seconds < 4) == (0, True)


async def test_a_wrong_key_is_on_the_health_page_and_not_in_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "there") as there:
        key = key_file(tmp_path, "wrong.key", "wrong-key")
        source = ("--mirror-from", there.url, "--mirror-key-file", key)
        async with serving(tmp_path / "data", *HTTP_ONLY, *source) as server:

            async def told() -> bool:
                return "refuses the key" in (await parts_of(server))["mirror"]

            await until(told)
            assert "wrong-key" not in json.dumps(await parts_of(server))
            assert (await server.stop())[0] == 0
        assert not any("wrong-key" in line for line in server.errors)
