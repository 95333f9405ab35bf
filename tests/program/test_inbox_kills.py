"""SIGKILL while readings of unknown devices wait, and while they are accepted: nothing answered is lost."""

import asyncio
import itertools
from collections import Counter
from functools import partial
from pathlib import Path

import aiohttp

from gateway.cli.client import ask_running

from .program import HTTP_ONLY, answer, ispindel, serving, until

OPTIONS = (*HTTP_ONLY, "--new-devices", "ask")
KILLS = 3
DEVICES = 4
ANSWERS = 60
"""Answers before each kill, at least."""


async def report(url: str, numbers: "itertools.count[int]", answered: list[str]) -> None:
    """Post readings of some devices, each with a gravity of its own, until the gateway is gone."""
    async with aiohttp.ClientSession() as http:
        for number in numbers:
            gravity = f"{number / 1000:.3f}"
            try:
                async with http.post(url, data=ispindel(number % DEVICES + 1, gravity=gravity)) as found:
                    if found.status == 200:
                        answered.append(gravity)
            except aiohttp.ClientError:
                return


async def test_what_waits_survives_kills_and_is_stored_once(tmp_path: Path) -> None:
    data, answered, numbers = tmp_path / "data", list[str](), itertools.count(1001)
    for kill in range(1, KILLS + 1):
        async with serving(data, *OPTIONS) as server:
            reporting = [
                asyncio.create_task(report(f"{server.url}/ingest", numbers, answered)) for _ in range(2)
            ]
            wanted = kill * ANSWERS
            await until(partial(more_than, answered, wanted))
            await server.kill()
            await asyncio.gather(*reporting)
    found = (await answer(data, "inbox list --json")).objects
    assert sorted({entry["key"] for entry in found}) == [f"ispindel:{n}" for n in range(1, DEVICES + 1)]
    assert sum(entry["readings"] for entry in found) >= len(answered)
    assert (await answer(data, "readings --json")).objects == []
    # A kill while a device is accepted: the next start goes on by itself.
    async with serving(data, *OPTIONS) as server:
        accepting = asyncio.create_task(answer(data, "inbox accept ispindel:1"))
        await until(lambda: is_begun(data))
        await server.kill()
        await asyncio.gather(accepting, return_exceptions=True)
    async with serving(data, *OPTIONS):
        for device in range(1, DEVICES + 1):
            if device > 1:
                await answer(data, f"inbox accept ispindel:{device}")
        await until(lambda: is_empty(data))
    lines = (await answer(data, "readings --json --last 100000")).objects
    stored = Counter(line["gravity"] for line in lines)
    assert set(answered) <= set(stored)
    assert set(stored.values()) == {1}


def more_than(answered: list[str], wanted: int) -> bool:
    return len(answered) >= wanted


async def is_begun(data: Path) -> bool:
    """Whether the first device is accepted, or is through already."""
    waiting = (await ask_running(data, "/manage/inbox"))["waiting"]
    return all(entry["accepted"] for entry in waiting if entry["key"] == "ispindel:1")


async def is_empty(data: Path) -> bool:
    return not (await ask_running(data, "/manage/inbox"))["waiting"]
