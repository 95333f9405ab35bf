"""The demo's brewery: two gateways and simulated devices of every kind, all as separate processes."""

import asyncio
import contextlib
import json
import math
import signal
import time
from asyncio.subprocess import Process
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from gateway.cli.client import ask_async
from gateway.cli.demo_link import Link
from gateway.cli.demo_processes import START_WAIT_S, Instance, Processes
from gateway.cli.demo_result import DemoResult, DemoSent, DeviceRow, compare, judged, reading_id
from gateway.cli.demo_state import LAPSE_DAYS, NAMED, SPEED, BrewRow, Event, Moment, Mood, Named, State
from gateway.cli.output import parse_time
from gateway.domain.target import PER_MINUTE_MAX
from gateway.domain.units import SECONDS_PER_DAY, to_celsius, to_sg
from gateway.errors import GatewayError

if TYPE_CHECKING:
    import aiohttp

CHOSEN_TOPICS = [
    "$aws/things/+/shadow/update=aws",
    "brewery/{label}=brewpiless",
    "brewery/{label}/{key}=brewpiless",
]
"""Topics that users of such devices must name to a gateway, as their firmware has no topic of its own."""

NAMED_EVERY_S, NAMED_APART_S, NAMED_SEED = 1.0, 1.0, 4
"""Seconds between two reports of a named device, and between the first ones of two; the seed of the beers."""

OTHERS_EVERY_S = 3.0
"""Seconds between two reports of any other device: some 45 reports a second in all, which a Raspberry Pi
takes easily."""

LAPSE_S = LAPSE_DAYS * SECONDS_PER_DAY / SPEED
"""Seconds after which the demo's clock has caught up; from then on it shows the present."""

FLEET_STARTS_S = 1.0
"""Seconds that the simulated devices need to start."""

TARGET = "demo"
"""The gateway's name for its upstream."""

PAGE_KEY = {"name": "page", "scopes": ["admin"]}
READ_KEY = {"name": "demo", "scopes": ["read"]}

OTHERS = "every other kind"
"""The account of all brews but the named ones, so that the page shows these twelve."""

FORWARD_SECONDS = 1.0
"""Seconds between two forwardings: not a minute as usual, because nobody should wait for a demo."""

OnChange = Callable[[Moment, DemoSent], None]
"""Takes what is to be seen each time it has been read."""

LOOK_EVERY_S = 0.5
PHASES_AT_ONCE = 2
"""Brews whose phase is asked for in each round, in turn."""

ASSIGNED_AT_ONCE = 12
"""Devices that are put into brew sessions in each round; the screen does not wait for more."""

CUT_AFTER_S, CUT_FOR_S, CUT_EVERY_S = 10.0, 12.0, 120.0
"""Seconds from the first reading until the network goes, for which it stays away, and until it goes again."""

CUT_NEEDS_S = 25.0
"""Seconds that a demo lasts at least for the network to go and to come back."""

ARRIVED_WAIT_S = 60.0
"""Seconds after which readings that wait are called late: longer than the forwarder's pauses by then."""

READINGS_MAX = 200_000
"""Readings whose ids are compared after the network was gone: a day of the demo."""

EVENTS_KEPT = 40

DRAIN_WAIT_S = 40.0
"""Seconds that the last readings may take to the upstream: longer than one request's deadline."""

STATES: Mapping[str | None, State] = {
    None: "pitched",
    "lag": "pitched",
    "active": "ferments",
    "slowing": "slows down",
    "finished": "finished",
    "stuck": "stuck",
    "cold_crash": "cold crash",
}


@dataclass(slots=True)
class DemoBrewery:
    """The demo's run: starts every process, assigns devices as they appear, and checks the result.

    `page` is the page's address, `login` the one that logs a browser in. `rows` are the gateway's devices by
    their key. Readings sent are counted for all devices together: only the gateway finds out which device is
    which.
    """

    directory: Path
    sent: DemoSent = field(default_factory=DemoSent)
    rows: dict[str, DeviceRow] = field(default_factory=dict)
    gateway: Instance = field(init=False)
    page: str = ""
    login: str = ""
    _upstream: Instance = field(init=False)
    _link: Link = field(default_factory=Link)
    _fleets: list[Process] = field(default_factory=list)
    _followers: list[asyncio.Task[None]] = field(default_factory=list)
    _introduced: dict[str, dict[str, str | None]] = field(default_factory=dict)
    _all_introduced: asyncio.Event = field(default_factory=asyncio.Event)
    _sessions: dict[str, tuple[int, int]] = field(default_factory=dict)
    _others_key: str = ""
    _http: "aiohttp.ClientSession | None" = None
    _processes: Processes = field(default_factory=Processes)
    _events: deque[Event] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    _turn: int = 0
    _clock_began: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    async def __aenter__(self) -> Self:
        try:
            await self._start_gateway()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for follower in self._followers:
            follower.cancel()
        await asyncio.gather(*self._followers, return_exceptions=True)
        if self._http is not None:
            await self._http.close()
        await self._processes.stop()

    async def _start_upstream(self) -> Instance:
        directory = self.directory / "upstream"
        return await self._processes.start_gateway(
            directory,
            *("gateway", "serve", "--config", "/dev/null", "--data-dir", str(directory)),
            *("--host", "127.0.0.1", "--port", "0", "--log-level", "error", "--no-mqtt", "--no-tcp"),
        )

    async def _start_gateway(self) -> None:
        """Start the gateway with its fast clock, and at once the named devices."""
        directory = self.directory / "gateway"
        self._clock_began = time.monotonic()
        settings = {
            "data_dir": str(directory),
            **{"host": "127.0.0.1", "port": 0, "mqtt_port": 0, "tcp_port": 0, "log_level": "error"},
            # All devices of the demo are on this machine: for a gateway they are one source.
            "names_an_hour": 1000,
            "forward_seconds": FORWARD_SECONDS,
            "mqtt_topic": CHOSEN_TOPICS,
            "lan_view": True,
            "brewery": "Demo brewery",
        }
        given = {"settings": settings, "lapse_days": LAPSE_DAYS, "speed": SPEED}
        self.gateway = await self._processes.start_gateway(
            directory, "gateway.cli.demo_gateway", json.dumps(given)
        )
        self.page = f"{self.gateway.url}/ui/"
        await self._launch_fleet(
            *("--introduce", *(word for named in NAMED for word in ("--kind", named.kind))),
            *("--every", NAMED_EVERY_S, "--step", NAMED_EVERY_S * SPEED, "--apart", NAMED_APART_S),
            *("--seed", NAMED_SEED),
        )
        made = await ask_async(directory, "POST", "/manage/keys", body=PAGE_KEY)
        self.login = f"{self.gateway.url}/ui/login#{made['keys'][0]['key']}"
        await ask_async(directory, "POST", "/manage/accounts", body={"name": OTHERS})
        made = await ask_async(directory, "POST", "/manage/keys", body=READ_KEY, account=OTHERS)
        self._others_key = made["keys"][0]["key"]

    async def _launch_fleet(self, *words: object) -> None:
        gateway = self.gateway
        # No report may be ahead of the clock: the fleet counts from its own start, a little later.
        lapse_s = max(0.0, self._clock_began + LAPSE_S - FLEET_STARTS_S - time.monotonic())
        fleet = await self._processes.launch(
            *("sample_devices", "fleet", "--json", "--lapse", str(lapse_s), *map(str, words)),
            *("--http", gateway.url, "--mqtt", gateway.mqtt, "--tcp", gateway.tcp),
        )
        self._fleets.append(fleet)
        self._followers.append(asyncio.create_task(self._follow(fleet)))

    async def _connect(self) -> None:
        """Start the upstream, name it to the gateway, and prepare the brew sessions of the named devices."""
        self._upstream = await self._start_upstream()
        key_file = self.directory / "upstream.key"
        key_file.touch(mode=0o600)
        key_file.write_text(self._upstream.key)
        self._link.to_port = urlsplit(self._upstream.url).port or 0
        await self._link.mend()
        target = {
            "name": TARGET,
            "url": f"http://127.0.0.1:{self._link.port}",
            "key_file": str(key_file.absolute()),
            "per_minute": PER_MINUTE_MAX,
        }
        await ask_async(self.gateway.directory, "POST", "/manage/targets", body=target)
        # The last one first, because the page shows the newest one first.
        for named in reversed(NAMED):
            self._sessions[named.kind] = await self._add_session(named.beer)

    async def _add_session(self, batchcode: str, account: str | None = None) -> tuple[int, int]:
        """Make a brew session here and upstream, with forwarding; return both numbers."""
        session = {"batchcode": batchcode, "phase": "Primary Fermentation"}
        there, here = await asyncio.gather(
            _added(self._upstream.directory, session), _added(self.gateway.directory, session, account)
        )
        path = f"/manage/targets/{TARGET}/brewsessions/{here}"
        await ask_async(self.gateway.directory, "PUT", path, body={"upstream_id": there})
        return here, there

    async def start_brewing(self, on_change: Callable[[Moment], None]) -> None:
        """Wait until the first device is in its brew, then let devices of every other kind report, too."""
        try:
            async with asyncio.timeout(START_WAIT_S):
                await asyncio.gather(self._connect(), self._first_reading(on_change))
        except TimeoutError:
            raise GatewayError(f"no simulated device has reported within {START_WAIT_S:g} s") from None
        await self._launch_fleet(
            *("--all-kinds", *(word for named in NAMED for word in ("--without", named.kind))),
            *("--every", OTHERS_EVERY_S, "--step", OTHERS_EVERY_S * SPEED),
        )

    async def _first_reading(self, on_change: Callable[[Moment], None]) -> None:
        await self._all_introduced.wait()
        while not any(row.session_id for row in self.rows.values()):
            await self._refresh()
            on_change(self.moment())

    @property
    def curl(self) -> str:
        """Return a command that reads the newest readings of the first brew."""
        session, _ = self._sessions[NAMED[0].kind]
        gateway = self.gateway
        return f'curl -H "X-API-KEY: {gateway.key}" "{gateway.url}/v1/fermentation/{session}?limit=3"'

    async def watch(self, stopped: asyncio.Event, on_change: OnChange, seconds: float | None) -> None:
        """Follow the devices until `stopped` is set, or for so many seconds.

        A refresh is never broken off: a device may just be on its way into its brew session.
        """
        until = time.monotonic() + (math.inf if seconds is None else seconds)
        async with asyncio.TaskGroup() as tasks:
            cuts = tasks.create_task(self._cut_now_and_then(until))
            try:
                while not stopped.is_set() and time.monotonic() < until:
                    await self._refresh()
                    await self._ask_phases()
                    on_change(self.moment(), self.sent)
                    pause = min(LOOK_EVERY_S, max(0.0, until - time.monotonic()))
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await stopped.wait()
            finally:
                cuts.cancel()
        await self._link.mend()

    def moment(self) -> Moment:
        """Return what is to be seen now."""
        by_kind = {row.named.kind: row for row in self.rows.values() if row.named is not None}
        stored = sum(row.stored for row in self.rows.values())
        return Moment(
            tuple(_shown(named, by_kind.get(named.kind)) for named in NAMED),
            self.page,
            others=len(self.rows) - len(by_kind),
            stored=stored,
            waiting=stored - sum(row.forwarded for row in self.rows.values()),
            network_is_gone=self._link.is_cut,
            events=tuple(self._events),
        )

    def note(self, text: str, mood: Mood = "plain") -> None:
        """Add an event."""
        self._events.append(Event(time.monotonic() - self._began, text, mood))

    async def _follow(self, fleet: Process) -> None:
        assert fleet.stdout is not None  # noqa: S101  (it was opened as a pipe)
        async for line in fleet.stdout:
            report = json.loads(line)
            if device := report.get("device"):
                self._introduced[device["kind"]] = device
                if len(self._introduced) == len(NAMED):
                    self._all_introduced.set()
            # Some reports hold no reading.
            elif "summary" not in report and report.get("expected", True):
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
        new = []
        for device in devices:
            row = self.rows.get(device["key"])
            if row is None:
                named = self._named(device)
                title = device["label"] or device["name"] or device["device_id"] or "(no name)"
                row = DeviceRow(title if named is None else named.name, device["family"], named=named)
                self.rows[device["key"]] = row
                if named is not None:
                    self._note_named(row)
            if row.session_id is None:
                new.append((device, row))
            _read(row, device, forwarded)
        new.sort(key=lambda each: each[1].named is None)
        await asyncio.gather(*(self._assign(*each) for each in new[:ASSIGNED_AT_ONCE]))

    def _note_named(self, row: DeviceRow) -> None:
        named = sum(each.named is not None for each in self.rows.values())
        if named == 1:
            self.note(f"first reading: {row.name}")
        elif named == len(NAMED):
            self.note(f"all {named} report")

    def _named(self, device: Mapping[str, Any]) -> Named | None:
        """Return which named device this is."""
        for named in NAMED:
            said = self._introduced.get(named.kind, {})
            if (device["family"], device["name"]) != (named.family, said.get("name")):
                continue
            # Devices of other kinds have the same name, a Tilt's colour: they are told apart by their MAC.
            told, is_mac = said.get("device_id"), device["key"].startswith("mac:")
            if _bare(told) == _bare(device["device_id"] or "") if told else not is_mac:
                return named
        return None

    async def _assign(self, device: Mapping[str, Any], row: DeviceRow) -> None:
        """Put a device and its earlier readings into its brew session here, which is forwarded upstream."""
        directory, path = self.gateway.directory, f"/manage/devices/{device['id']}"
        if row.named is None:
            row.account_key = self._others_key
            here, there = await self._add_session(f"DEMO{device['id']:03}", OTHERS)
        elif row.named.kind in self._sessions:
            here, there = self._sessions[row.named.kind]
            await ask_async(directory, "PATCH", path, body={"label": row.named.name})
        else:
            return  # the next round finds it
        assignment = {"brew_session_id": here, "since": "1970-01-01T00:00:00Z"}
        await ask_async(directory, "PUT", f"{path}/brewsession", body=assignment)
        row.session_id, row.upstream_id = here, there

    async def _ask_phases(self) -> None:
        named = [row for row in self.rows.values() if row.named is not None and row.session_id is not None]
        for place in range(self._turn, self._turn + min(PHASES_AT_ONCE, len(named))):
            row = named[place % len(named)]
            path = f"/manage/brewsessions/{row.session_id}/insight"
            insight = await ask_async(self.gateway.directory, "GET", path)
            state = STATES[insight["phase"]]
            if state != row.state == "slows down" and row.named is not None and insight["abv"] is not None:
                self.note(f"{row.named.beer} {state}: {insight['abv']:.1f} % alcohol")
            row.state = state
        self._turn += PHASES_AT_ONCE

    async def _cut_now_and_then(self, until: float) -> None:
        """Take the network between the gateways away for a while, and count what that does."""
        if until - time.monotonic() < CUT_NEEDS_S:
            return
        await asyncio.sleep(CUT_AFTER_S)
        while True:
            await self._link.cut()
            self.note("the network is cut", "bad")
            await asyncio.sleep(CUT_FOR_S)
            here, there = await self._ids(self.gateway), await self._ids(self._upstream)
            waiting = here.keys() - there.keys()
            self.note(f"network gone for {CUT_FOR_S:g} s: {len(waiting)} readings wait", "bad")
            await self._link.mend()
            await self._note_arrival(waiting)
            await asyncio.sleep(CUT_EVERY_S)

    async def _note_arrival(self, waiting: set[str]) -> None:
        """Say when all these readings are upstream, and how often."""
        late_at = time.monotonic() + ARRIVED_WAIT_S
        while waiting - (there := await self._ids(self._upstream)).keys():
            if time.monotonic() > late_at:
                missing = len(waiting - there.keys())
                self.note(f"{missing} of {len(waiting)} readings still wait", "bad")
                return
            await asyncio.sleep(LOOK_EVERY_S)
        if doubled := sum(there[each] > 1 for each in waiting):
            self.note(f"back: {len(waiting)} arrived, {doubled} more than once", "bad")
        else:
            self.note(f"back: all {len(waiting)} arrived once", "good")

    async def _ids(self, instance: Instance) -> Counter[str]:
        """Return how often an instance has each reading."""
        pieces: list[bytes] = []
        query = {"last": READINGS_MAX}
        await ask_async(instance.directory, "GET", "/manage/readings", query=query, receive=pieces.append)
        return Counter(reading_id(json.loads(line)) for line in b"".join(pieces).splitlines())

    async def send_devices_to_sleep(self) -> None:
        """Let the devices finish sending, then wait until the last reading is upstream."""
        for fleet in self._fleets:
            if fleet.returncode is None:
                fleet.send_signal(signal.SIGTERM)
        await asyncio.gather(*self._followers)
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
        return int((await self.gateway.counters(self._client()))["thinned"])

    def _client(self) -> "aiohttp.ClientSession":
        # Not at the top: nothing asks by HTTP before the end, and the first reading should be there soon.
        import aiohttp

        if self._http is None:
            self._http = aiohttp.ClientSession()
        return self._http

    async def judge(self) -> DemoResult:
        """Compare the stored readings with the answers of both instances' read endpoints."""
        faults: list[str] = []
        upstream = 0
        for row in self.rows.values():
            here, there = await asyncio.gather(
                self.gateway.readings(self._client(), row.session_id or 0, row.account_key),
                self._upstream.readings(self._client(), row.upstream_id or 0),
            )
            row.upstream = len(there)
            upstream += len(there)
            faults += compare(row, here, there)
        stored = sum(row.stored for row in self.rows.values())
        return judged(self.sent, stored, await self._thinned(), upstream, faults)


def _shown(named: Named, row: DeviceRow | None) -> BrewRow:
    if row is None:
        return BrewRow(named.name, named.beer)
    return BrewRow(named.name, named.beer, row.sg, row.celsius, tuple(row.curve), row.state)


def _read(row: DeviceRow, device: Mapping[str, Any], forwarded: Mapping[int, int]) -> None:
    """Take a device's figures over."""
    row.stored = device["readings"]
    row.forwarded = forwarded.get(row.session_id or 0, 0)
    row.sg = _number(device, "gravity", to_sg)
    row.celsius = _number(device, "temp", to_celsius)
    if row.named is not None and row.sg is not None and device["last_seen_at"]:
        at = parse_time(device["last_seen_at"])
        row.began_at = row.began_at or at
        day = (at - row.began_at) / SECONDS_PER_DAY
        if not row.curve or day > row.curve[-1][0]:
            row.curve.append((day, row.sg))


def _number(device: Mapping[str, Any], kind: str, convert: Callable[[float, str], float]) -> float | None:
    text = device[f"last_{kind}"]
    return convert(float(text), device[f"last_{kind}_unit"]) if text else None


def _bare(device_id: str) -> str:
    return device_id.replace(":", "").casefold()


async def _added(directory: Path, session: dict[str, str], account: str | None = None) -> int:
    """Make a brew session in an instance; return its number."""
    made = await ask_async(directory, "POST", "/manage/brewsessions", body=session, account=account)
    return int(made["brewsessions"][0]["id"])
