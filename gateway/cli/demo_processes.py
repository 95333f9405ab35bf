"""The demo's processes: two gateways and the simulated devices, their start and their end."""

import asyncio
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway import children
from gateway.cli.client import ask_async
from gateway.errors import GatewayError

if TYPE_CHECKING:
    import aiohttp

START_WAIT_S = 30.0
KEY = {"name": "demo", "scopes": ["ingest", "read"]}
STOP_WAIT_S = 8.0


@dataclass(slots=True)
class Instance:
    """A running gateway: its process, data directory, addresses and a key."""

    directory: Path
    process: Process
    url: str
    mqtt: str
    tcp: str
    key: str = ""

    async def readings(
        self, http: "aiohttp.ClientSession", session_id: int, key: str = ""
    ) -> list[dict[str, Any]]:
        """Return all readings of a brew session, as the API gives them; `key` is that of another account."""
        url = f"{self.url}/v1/fermentation/{session_id}"
        async with http.get(url, headers={"X-API-KEY": key or self.key}) as response:
            response.raise_for_status()
            answer = await response.json()
        readings: list[dict[str, Any]] = answer["readings"]
        return readings

    async def counters(self, http: "aiohttp.ClientSession") -> dict[str, Any]:
        """Return the counters of the health page."""
        async with http.get(f"{self.url}/healthz", headers={"X-API-KEY": self.key}) as response:
            counters: dict[str, Any] = await response.json()
        return counters


@dataclass(slots=True)
class Processes:
    """All running processes, in the order of their start."""

    _running: list[Process] = field(default_factory=list)

    async def launch(self, name: str, *arguments: str) -> Process:
        """Start a module of ours as a process, without the environment variables that configure a gateway."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
        process = await asyncio.create_subprocess_exec(
            *children.module(name),
            *arguments,
            stdin=DEVNULL,
            stdout=PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the demo alone, which then ends them in order
        )
        self._running.append(process)
        return process

    async def start_gateway(self, directory: Path, *words: str) -> Instance:
        """Run a module that serves a directory. If it does not start, raise `GatewayError` with its log."""
        process = await self.launch(*words)
        lines = await _lines_until_ready(process)
        url, tcp, mqtt = (
            re.search(pattern, lines)
            for pattern in (r"HTTP on (http://\S+)", r"TCP on (\S+)", r"mqtt://(\S+)")
        )
        if url is None:
            raise GatewayError(f"a demo instance did not start: {lines.strip() or 'it said nothing'}")
        instance = Instance(directory, process, url[1], mqtt[1] if mqtt else "", tcp[1] if tcp else "")
        made = await ask_async(directory, "POST", "/manage/keys", body=KEY)
        instance.key = made["keys"][0]["key"]
        return instance

    async def stop(self) -> None:
        """End all processes, the last one first."""
        for process in reversed(self._running):
            await _stop(process)


async def _lines_until_ready(process: Process) -> str:
    """Return the lines that an instance prints until it is ready, or until it gives up."""
    assert process.stdout is not None  # noqa: S101  (it was opened as a pipe)
    lines = ""
    try:
        async with asyncio.timeout(START_WAIT_S):
            async for line in process.stdout:
                lines += line.decode()
                if line.startswith(b"Ready"):
                    break
    except TimeoutError:
        raise GatewayError(f"a demo instance was not ready within {START_WAIT_S:g} s") from None
    return lines


async def _stop(process: Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_WAIT_S):
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
