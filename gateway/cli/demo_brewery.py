"""The demo's brewery: two gateways and simulated devices of every kind, all as separate processes."""

import asyncio
import contextlib
import json
import math
import signal
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp

from gateway.cli.client import ask_async
from gateway.cli.demo_processes import START_WAIT_S, Instance, Processes
from gateway.cli.demo_result import DemoResult, DemoSent, DeviceRow, compare, judged
from gateway.cli.output import parse_time
from gateway.domain.target import PER_MINUTE_MAX

CHOSEN_TOPICS = (
    "$aws/things/+/shadow/update=aws",
    "brewery/{label}=brewpiless",
    "brewery/{label}/{key}=brewpiless",
)
"""Topics that users of such devices must name to a gateway, as their firmware has no topic of its own."""

REPORT_EVERY_S = 3.0
"""Seconds between two reports: some 35 reports a second in all, a tenth of a Raspberry Pi's capacity."""

TARGET = "demo"
"""The gateway's name for its upstream."""

PAGE_KEY = {"name": "page", "scopes": ["admin"]}

FORWARD_SECONDS = 1.0
"""Seconds between two forwardings: not a minute as usual, because nobody should wait for a demo."""

OnChange = Callable[[DemoSent, Iterable[DeviceRow]], None]
"""Takes the counts and the devices' rows each time they have been read."""

LOOK_EVERY_S = 0.5
READ_BACK_AT_ONCE = 8
"""Devices whose readings are read back from the upstream in each round, in turn."""

DRAIN_WAIT_S = 40.0
"""Seconds that the last readings may take to the upstream: longer than one request's deadline."""


@dataclass(slots=True)
class DemoBrewery:
    """The demo's run: starts every process, assigns devices as they appear, and checks the result.

    `page` is the address that logs a browser in. `rows` are the gateway's devices by their key. Readings sent
    are counted for all devices together: only the gateway finds out which device is which.
    """

    directory: Path
    sent: DemoSent = field(default_factory=DemoSent)
    rows: dict[str, DeviceRow] = field(default_factory=dict)
    gateway: Instance = field(init=False)
    page: str = ""
    _upstream: Instance = field(init=False)
    _fleet: Process = field(init=False)
    _http: aiohttp.ClientSession = field(init=False)
    _processes: Processes = field(default_factory=Processes)
    _turn: int = 0

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession()
        try:
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()
        await self._processes.stop()

    async def _start(self) -> None:
        self._upstream = await self._processes.start_gateway(
            self.directory / "upstream", "--no-mqtt", "--no-tcp"
        )
        key_file = self.directory / "upstream.key"
        key_file.touch(mode=0o600)
        key_file.write_text(self._upstream.key)
        self.gateway = await self._processes.start_gateway(
            self.directory / "gateway",
            *("--mqtt-port", "0", "--tcp-port", "0", "--forward-seconds", str(FORWARD_SECONDS)),
            *(word for topic in CHOSEN_TOPICS for word in ("--mqtt-topic", topic)),
        )
        target = {
            "name": TARGET,
            "url": self._upstream.url,
            "key_file": str(key_file.absolute()),
            "per_minute": PER_MINUTE_MAX,
        }
        await ask_async(self.gateway.directory, "POST", "/manage/targets", body=target)
        made = await ask_async(self.gateway.directory, "POST", "/manage/keys", body=PAGE_KEY)
        self.page = f"{self.gateway.url}/ui/login#{made['keys'][0]['key']}"
        self._fleet = await self._processes.launch(
            *("sample_devices", "fleet", "--json", "--all-kinds", "--every", str(REPORT_EVERY_S)),
            *("--http", self.gateway.url, "--mqtt", self.gateway.mqtt, "--tcp", self.gateway.tcp),
        )

    async def first_brew_session(self) -> None:
        """Wait for the first device's brew session: before that there is nothing to see."""
        follower = asyncio.create_task(self._follow_fleet())
        try:
            async with asyncio.timeout(START_WAIT_S):
                while not any(row.session_id for row in self.rows.values()):
                    await asyncio.sleep(0.1)
                    await self._refresh()
        finally:
            follower.cancel()
            await asyncio.wait([follower])

    async def watch(self, stopped: asyncio.Event, on_change: OnChange, seconds: float | None) -> None:
        """Follow the fleet and refresh the rows until `stopped` is set, or for so many seconds.

        A refresh is never broken off: a device may just be on its way into its brew session.
        """
        until = time.monotonic() + (math.inf if seconds is None else seconds)
        async with asyncio.TaskGroup() as tasks:
            follower = tasks.create_task(self._follow_fleet())
            try:
                while not stopped.is_set() and time.monotonic() < until:
                    await self._refresh()
                    await self._read_back()
                    on_change(self.sent, self.rows.values())
                    pause = min(LOOK_EVERY_S, max(0.0, until - time.monotonic()))
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await stopped.wait()
            finally:
                follower.cancel()

    async def _follow_fleet(self) -> None:
        assert self._fleet.stdout is not None  # noqa: S101  (it was opened as a pipe)
        async for line in self._fleet.stdout:
            report = json.loads(line)
            # Some reports hold no reading.
            if "summary" not in report and report.get("expected", True):
                self.sent.sent += 1
                self.sent.answered += report["answered"]

    async def _refresh(self) -> None:
        directory = self.gateway.directory
        devices = (await ask_async(directory, "GET", "/manage/devices"))["devices"]
        targets = (await ask_async(directory, "GET", "/manage/targets"))["targets"]
        forwarded = {
            session["session_id"]: session["forwarded"]
            for target in targets
            for session in target["sessions"]
        }
        for device in devices:
            row = self.rows.get(device["key"])
            if row is None:
                row = self.rows[device["key"]] = await self._assigned(device)
            row.stored = device["readings"]
            row.last_seen_at = int(parse_time(device["last_seen_at"])) if device["last_seen_at"] else 0
            row.gravity = _value(device, "gravity")
            row.temp = _value(device, "temp")
            row.forwarded = forwarded.get(row.session_id or 0, 0)

    async def _read_back(self) -> None:
        rows = list(self.rows.values())
        for place in range(self._turn, self._turn + min(READ_BACK_AT_ONCE, len(rows))):
            row = rows[place % len(rows)]
            row.read_back = len(await self._upstream.readings(self._http, row.upstream_id or 0))
        self._turn += READ_BACK_AT_ONCE

    async def _assigned(self, device: dict[str, Any]) -> DeviceRow:
        """Make a brew session for the device here and upstream; put the device's earlier readings into it."""
        title = device["label"] or device["name"] or device["device_id"] or "(no name)"
        row = DeviceRow(title, device["family"])
        session = {"batchcode": f"DEMO{device['id']:03}", "phase": "Primary Fermentation"}
        here, there = self.gateway.directory, self._upstream.directory
        row.upstream_id, row.session_id = await _added(there, session), await _added(here, session)
        path = f"/manage/targets/{TARGET}/brewsessions/{row.session_id}"
        await ask_async(here, "PUT", path, body={"upstream_id": row.upstream_id})
        assignment = {"brew_session_id": row.session_id, "since": "1970-01-01T00:00:00Z"}
        await ask_async(here, "PUT", f"/manage/devices/{device['id']}/brewsession", body=assignment)
        return row

    async def send_devices_to_sleep(self) -> None:
        """Let the devices finish sending, then wait until the last reading is upstream."""
        if self._fleet.returncode is None:
            self._fleet.send_signal(signal.SIGTERM)
        await self._follow_fleet()
        try:
            async with asyncio.timeout(DRAIN_WAIT_S):
                while True:
                    if await self._is_drained():
                        return
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            return  # the verdict says what is missing

    async def _is_drained(self) -> bool:
        """Return whether all answered readings are stored and forwarded; single values take some seconds."""
        await self._refresh()
        rows = self.rows.values()
        stored = sum(row.stored for row in rows) + await self._thinned()
        return stored >= self.sent.answered and all(row.stored == row.forwarded for row in rows)

    async def _thinned(self) -> int:
        return int((await self.gateway.counters(self._http))["thinned"])

    async def judge(self) -> DemoResult:
        """Compare the stored readings with the answers of both instances' read endpoints."""
        faults: list[str] = []
        upstream = 0
        for row in self.rows.values():
            here = await self.gateway.readings(self._http, row.session_id or 0)
            there = await self._upstream.readings(self._http, row.upstream_id or 0)
            row.read_back = len(there)
            upstream += len(there)
            faults += compare(row, here, there)
        stored = sum(row.stored for row in self.rows.values())
        return judged(self.sent, stored, await self._thinned(), upstream, faults)


def _value(device: dict[str, Any], kind: str) -> str:
    """Show the device's last gravity or temperature with its unit."""
    value = device[f"last_{kind}"]
    return f"{value} {device[f'last_{kind}_unit']}" if value else "-"


async def _added(directory: Path, session: dict[str, str]) -> int:
    """Make a brew session in an instance; return its number."""
    made = await ask_async(directory, "POST", "/manage/brewsessions", body=session)
    return int(made["brewsessions"][0]["id"])
