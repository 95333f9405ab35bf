"""`serve` copies a service at the start and then every so many hours, and no failure of it stops anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ConfigError
from gateway.mirror import schedule as schedule_module
from gateway.mirror.schedule import MirrorSchedule
from gateway.settings import Settings
from tests.patience import PATIENCE_S
from tests.system.mirror.bench import Instance, LeapClock, fill, item, two

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
        async with asyncio.timeout(PATIENCE_S):
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
        with pytest.raises(ConfigError, match=r"mirror_from: must look like https://host"):
            Settings(mirror_from=wrong)
    with pytest.raises(ConfigError, match="mirror_hours"):
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
