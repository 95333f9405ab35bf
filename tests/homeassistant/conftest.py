"""Home Assistant beside the gateway's publisher, at one broker."""

import asyncio
import json
import os
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.system.conftest import clock, services
from tests.system.integrations.conftest import house, listener, mosquitto, passed
from tests.system.transports.conftest import PASSWORD, USER, Mosquitto

__all__ = ["clock", "house", "listener", "mosquitto", "passed", "services"]

PYTHON = os.environ.get("HOMEASSISTANT_PYTHON", "")
OBSERVER = Path(__file__).with_name("observer.py")

PATIENCE_S = 60.0
STILL_S = 5.0
"""Seconds without a change after which Home Assistant has added all entities and hears their topics."""

LINE_BYTES = 1024 * 1024


class HomeAssistant:
    """A process with Home Assistant's MQTT integration."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.seen: dict[str, Any] = {}

    async def look(self) -> dict[str, Any]:
        """All states, devices and ids now."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        async with asyncio.timeout(PATIENCE_S):
            self.seen = json.loads(await self._process.stdout.readline())
        return self.seen

    async def is_still(self) -> dict[str, Any]:
        """Wait until it shows Red, and nothing has changed for a while."""
        await self.shows(lambda seen: "Red" in seen["devices"])
        since, before = time.monotonic(), self.seen
        while time.monotonic() - since < STILL_S:
            await asyncio.sleep(0.2)
            if await self.look() != before:
                since, before = time.monotonic(), self.seen
        return self.seen

    async def shows(self, true: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Wait until what it shows is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not true(await self.look()):
            assert time.monotonic() < deadline, f"Home Assistant does not show it: {self.seen}"
            await asyncio.sleep(0.1)
        return self.seen


@pytest.fixture
async def home_assistant(mosquitto: Mosquitto, tmp_path: Path) -> AsyncIterator[HomeAssistant]:
    if not PYTHON:
        pytest.skip("no Home Assistant: tests/homeassistant/run installs it and runs this")
    folder = tmp_path / "home-assistant"
    folder.mkdir()
    words = (PYTHON, str(OBSERVER), str(folder), str(mosquitto.url.port), USER, PASSWORD)
    process = await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE, limit=LINE_BYTES)
    assert process.stdout is not None
    assert process.stdin is not None
    async with asyncio.timeout(PATIENCE_S):
        assert await process.stdout.readline() == b"{}\n"
    yield HomeAssistant(process)
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), 10)
    except TimeoutError:
        process.kill()
        await process.wait()
