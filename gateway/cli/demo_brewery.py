"""The demo's brewery: two gateways and a fleet of simulated devices, all as separate processes."""

import asyncio
import json
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import aiohttp

from gateway.control import opened_read_only, run_command
from gateway.domain.device import DeviceSummary
from gateway.errors import GatewayError

FORWARD_SECONDS = 1.0
"""Instead of a minute: a demo should not make anybody wait."""

LOOK_EVERY_S = 0.5
START_WAIT_S = 20.0
STOP_WAIT_S = 8.0
DRAIN_WAIT_S = 40.0
"""How long the last readings may take to the upstream: longer than one request's deadline."""


@dataclass(slots=True)
class DeviceRow:
    """One line of the live table."""

    name: str
    kind: str
    sent: int = 0
    received: int = 0
    stored: int = 0
    forwarded: int = 0
    read_back: int = 0
    gravity: str = ""
    temp: str = ""
    session_id: int | None = None
    upstream_id: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the demo shows in the end; `faults` says in words what is wrong."""

    sent: int
    answered: int
    stored: int
    upstream: int
    faults: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether every stored reading is upstream exactly once, and comes back from both."""
        return self.stored > 0 and not self.faults


class Watcher(Protocol):
    """Is shown the rows as they change."""

    def show(self, rows: Iterable[DeviceRow]) -> None:
        """Show them."""


@dataclass(slots=True)
class Instance:
    """One running gateway: its process, data directory, address and a key."""

    directory: Path
    process: Process
    url: str
    mqtt: str
    key: str = ""

    async def readings(self, http: aiohttp.ClientSession, session_id: int) -> list[dict[str, Any]]:
        """All readings of a brew session, by way of the API."""
        url = f"{self.url}/v1/fermentation/{session_id}"
        async with http.get(url, headers={"X-API-KEY": self.key}) as response:
            response.raise_for_status()
            answer = await response.json()
        readings: list[dict[str, Any]] = answer["readings"]
        return readings


@dataclass(slots=True)
class Brewery:
    """Starts everything, assigns devices as they appear, and checks the result."""

    directory: Path
    rows: dict[str, DeviceRow] = field(default_factory=dict)
    _processes: list[Process] = field(default_factory=list)
    _upstream: Instance = field(init=False)
    gateway: Instance = field(init=False)
    _fleet: Process = field(init=False)
    _http: aiohttp.ClientSession = field(init=False)

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession()
        try:
            self._upstream = await self._start(self.directory / "upstream", "--no-mqtt")
            key_file = self.directory / "upstream.key"
            key_file.touch(mode=0o600)
            key_file.write_text(self._upstream.key)
            self.gateway = await self._start(
                self.directory / "gateway",
                *("--mqtt-port", "0", "--upstream-url", self._upstream.url),
                *("--upstream-key-file", str(key_file), "--forward-seconds", str(FORWARD_SECONDS)),
            )
            self._fleet = await self._launch(
                "sample_devices", "fleet", "--json", "--http", self.gateway.url, "--mqtt", self.gateway.mqtt
            )
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()
        for process in reversed(self._processes):
            await _stop(process)

    async def _launch(self, *arguments: str) -> Process:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *arguments),
            stdin=DEVNULL,
            stdout=PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the demo alone, which then ends them in order
        )
        self._processes.append(process)
        return process

    async def _start(self, directory: Path, *options: str) -> Instance:
        base = ("gateway", "serve", "--config", os.devnull, "--data-dir", str(directory))
        process = await self._launch(
            *base, "--host", "127.0.0.1", "--port", "0", "--no-tcp", "--log-level", "warning", *options
        )
        lines = await _lines_until_ready(process)
        url = re.search(r"HTTP on (http://\S+)", lines)
        if url is None:
            raise GatewayError(f"a demo instance did not start: {lines.strip() or 'it said nothing'}")
        mqtt = re.search(r"mqtt://(\S+)", lines)
        instance = Instance(directory, process, url[1], mqtt[1] if mqtt else "")
        instance.key = await run_command(directory, "keys.add", name="demo", scopes=[])
        return instance

    async def first_brew_session(self) -> None:
        """Wait for the first device, so that there is something to look at."""
        follower = asyncio.create_task(self._follow_fleet())
        try:
            async with asyncio.timeout(START_WAIT_S):
                while not any(row.session_id for row in self.rows.values()):
                    await asyncio.sleep(0.1)
                    await self._refresh()
        finally:
            follower.cancel()
            await asyncio.wait([follower])

    async def watch(self, stopped: asyncio.Event, watcher: Watcher) -> None:
        """Follow the fleet and keep the rows fresh until told to stop."""
        async with asyncio.TaskGroup() as tasks:
            follower = tasks.create_task(self._follow_fleet())
            try:
                while not stopped.is_set():
                    await self._refresh()
                    watcher.show(self.rows.values())
                    await asyncio.wait([asyncio.ensure_future(stopped.wait())], timeout=LOOK_EVERY_S)
            finally:
                follower.cancel()

    async def _follow_fleet(self) -> None:
        assert self._fleet.stdout is not None  # noqa: S101  (it was opened as a pipe)
        async for line in self._fleet.stdout:
            self._note(json.loads(line))

    def _note(self, report: dict[str, Any]) -> None:
        """Count what a device says of its own report."""
        if "summary" in report:
            return
        identity = report["device_id"] or report["name"]
        row = self.rows.setdefault(identity, DeviceRow(report["name"], report["kind"]))
        row.sent += 1
        if report["answered"]:
            row.received += 1
            row.gravity = f"{report['gravity']} {report['gravity_unit']}"
            row.temp = f"{report['temp']} {report['temp_unit']}"

    async def _refresh(self) -> None:
        async with opened_read_only(self.gateway.directory) as store:
            summaries = await store.devices.summaries()
            forwarded = await store.outbox.forwarded(self._upstream.url)
        for summary in summaries:
            row = self.rows.get(summary.device.stable_id)
            if row is None:
                continue
            row.stored = summary.readings
            if row.session_id is None:
                await self._assign(row, summary)
            row.forwarded = forwarded.get(row.session_id or 0, 0)
            row.read_back = len(await self._upstream.readings(self._http, row.upstream_id or 0))

    async def _assign(self, row: DeviceRow, summary: DeviceSummary) -> None:
        """A brew session for the device here and upstream; what it sent before comes along."""
        code = f"DEMO{summary.device.id:03}"
        arguments: dict[str, Any] = {"batchcode": code, "phase": "Primary Fermentation"}
        row.upstream_id = await run_command(
            self._upstream.directory, "sessions.add", **arguments, upstream_id=None
        )
        row.session_id = await run_command(
            self.gateway.directory, "sessions.add", **arguments, upstream_id=row.upstream_id
        )
        await run_command(
            *(self.gateway.directory, "devices.assign"),
            device=summary.device.key,
            session_id=row.session_id,
            since=0.0,
        )

    async def send_devices_to_sleep(self) -> None:
        """Let the devices finish what they are sending, then wait until the last reading is upstream."""
        if self._fleet.returncode is None:
            self._fleet.send_signal(signal.SIGTERM)
        await self._follow_fleet()
        try:
            async with asyncio.timeout(DRAIN_WAIT_S):
                while True:
                    await self._refresh()
                    if all(row.stored == row.forwarded for row in self.rows.values()):
                        return
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            return  # the verdict says what is missing

    async def judge(self) -> Verdict:
        """Compare what is stored with what the read endpoints of both instances give back."""
        faults: list[str] = []
        upstream = 0
        for row in self.rows.values():
            here = await self.gateway.readings(self._http, row.session_id or 0)
            there = await self._upstream.readings(self._http, row.upstream_id or 0)
            upstream += len(there)
            faults += compare(row, here, there)
        rows = self.rows.values()
        return Verdict(
            sent=sum(row.sent for row in rows),
            answered=sum(row.received for row in rows),
            stored=sum(row.stored for row in rows),
            upstream=upstream,
            faults=tuple(faults),
        )


def compare(row: DeviceRow, here: list[dict[str, Any]], there: list[dict[str, Any]]) -> list[str]:
    """What is wrong with one device's readings, in words."""
    faults = []
    if len(here) != row.stored:
        faults.append(f"{row.name}: {row.stored} stored, {len(here)} come back from the gateway")
    if row.received and not row.stored:
        faults.append(f"{row.name}: answered, but nothing is stored")
    copies = Counter(reading["_id"]["$oid"] for reading in there)
    wanted = {reading["_id"]["$oid"] for reading in here}
    if missing := len(wanted - copies.keys()):
        faults.append(f"{row.name}: {missing} stored readings are not upstream")
    if doubled := sum(count > 1 for count in copies.values()):
        faults.append(f"{row.name}: {doubled} readings are upstream more than once")
    if unknown := len(copies.keys() - wanted):
        faults.append(f"{row.name}: {unknown} readings upstream that the gateway does not have")
    return faults


async def _lines_until_ready(process: Process) -> str:
    """What an instance prints until it is ready, or until it gives up."""
    assert process.stdout is not None  # noqa: S101  (it was opened as a pipe)
    lines = ""
    async with asyncio.timeout(START_WAIT_S):
        async for line in process.stdout:
            lines += line.decode()
            if line.startswith(b"Ready"):
                break
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
