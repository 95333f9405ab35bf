"""Targets that show the latest reading only: never too often, never an old one, stamped after a success."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gateway.clock import SystemClock
from gateway.domain.device import Device
from gateway.domain.objectid import new_object_id
from gateway.domain.reading import Reading
from gateway.domain.target import Route, Target
from gateway.errors import InvalidInput
from gateway.events import StoredNotices
from gateway.forward.forwarder import Forwarder, ForwardSettings, Wait
from gateway.forward.forwarding import Forwarding
from gateway.forward.kinds.brewersfriend import BrewersFriend
from gateway.forward.kinds.brewfather import Brewfather
from gateway.forward.kinds.cloud import Cloud
from gateway.forward.kinds.grainfather import Grainfather
from gateway.forward.kinds.latest import FRESH_S, LatestQueue
from gateway.outward.client import SHOWN, OutwardClient
from gateway.services.build import build_services
from gateway.services.mapped_targets import NewMapped
from gateway.stats import Stats
from gateway.store.records import Arrival
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.receivers import Receiver, Reply, Request

INTERVAL_S = 905
REPORTS_S = 900
SECRET = "sEcReT/42"


@dataclass
class Bench:
    """One target on a real store, with the clock in the test's hand. `restart` puts a new forwarder on it."""

    store: SqliteStore
    receiver: Receiver
    kind: type[Cloud] = Brewfather
    path: str = "/stream"
    clock: FakeClock = field(default_factory=FakeClock)
    client: OutwardClient = field(default_factory=OutwardClient)

    async def start(self) -> None:
        options = json.dumps({"url": f"{self.receiver.url}{self.path}", "latest": True})
        target = Target("cloud", "cloud:1", "", kind="brewfather", settings=options)
        await self.store.targets.add(target)
        await self.store.routes.add("cloud:1", Route("all"), None)
        self.target = target
        self.restart()

    def restart(self) -> None:
        address = f"{self.receiver.url}{self.path}"
        self.cloud = self.kind(self.target, lambda: SECRET, lambda: address, self.client, self.clock)
        queue = LatestQueue(
            self.store, self.clock, self.cloud.min_interval_s, by_session=self.cloud.interval_by_session
        )
        settings = ForwardSettings(1, 0.0, 0.0)
        self.stats = Stats()
        self.forwarder = Forwarder(
            queue, self.cloud, StoredNotices(), self.stats, self.clock, settings, draw=lambda: 1.0
        )

    async def device(self, name: str, session_id: int | None = None) -> Device:
        key = f"ispindel:{name}"
        device = Device(0, key, "ispindel", name, name.rstrip("0123456789"), int(self.clock.now()))
        device = await self.store.devices.save(device)
        if session_id is not None:
            await self.store.devices.assign(device.id, session_id, None)
        return device

    def reading(self, name: str, sg: float = 1.05, age_s: float = 0) -> Reading:
        now = self.clock.now()
        at = int(now - age_s)
        return Reading(
            oid=new_object_id(at), created_at=at, received_at=int(now * 1000), name=name, gravity=f"{sg:.4f}",
            gravity_unit="G", temp="20.5", temp_unit="C", comment="", beer="", interval="0", source="test",
            ip="192.0.2.10", sg=sg, celsius=20.5,
        )  # fmt: skip

    async def report(
        self, name: str, sg: float = 1.05, *, age_s: float = 0, flags: str | None = None
    ) -> None:
        reading = self.reading(name, sg, age_s)._replace(flags=flags)
        await self.store.readings.add([Arrival(reading, f"ispindel:{name}", b"{}", "http /ingest/ispindel")])

    async def step(self) -> Wait:
        return await self.forwarder.step()

    async def steps(self, seconds: float) -> None:
        """Let this time pass, with a look whenever the forwarder wants one."""
        until = self.clock.monotonic() + seconds
        while True:
            wait = await self.step()
            left = until - self.clock.monotonic()
            nap = left if wait.seconds is None else min(max(wait.seconds, 0.001), left)
            if left <= 0:
                return
            self.clock.advance(nap)

    def sent(self) -> list[Any]:
        return [request.json for request in self.receiver.requests]

    async def counts(self) -> Counter[str]:
        counted: Counter[str] = Counter()
        for row in await self.store.deliveries.counts():
            counted["pending"] += row.pending
            counted["forwarded"] += row.forwarded
            counted["refused"] += row.refused
            counted["superseded"] += row.superseded
            counted["not forwarded"] += row.not_forwarded
        return counted


@asynccontextmanager
async def bench(directory: Path, **options: Any) -> AsyncIterator[Bench]:
    store = SqliteStore(directory)
    await store.open()
    await store.keys.owner(1)
    receiver = Receiver()
    async with receiver.listening():
        made = Bench(store, receiver, **options)
        await made.start()
        try:
            yield made
        finally:
            await made.cloud.close()
            await store.close()


async def test_the_newest_reading_goes_and_what_it_passed_over_is_superseded(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        for age_s in (1200, 600, 0):
            await b.report("a1", 1.05 - age_s / 1e6, age_s=age_s)
        await b.step()
        assert [body["gravity"] for body in b.sent()] == [1.05]
        assert await b.counts() == Counter(forwarded=1, superseded=2)


async def test_one_device_sends_once_in_the_interval_and_two_send_each_for_itself(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        await b.device("b2")
        for _ in range(12):
            await b.report("a1")
            await b.report("b2")
            await b.steps(300)
        names = Counter(body["name"] for body in b.sent())
        assert names == {"a": 4, "b": 4}  # an hour


async def test_a_reading_is_not_sent_when_it_is_old(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        await b.report("a1", age_s=FRESH_S + 1)
        await b.step()
        assert b.sent() == []
        assert await b.counts() == Counter(superseded=1)


async def test_a_flagged_reading_is_not_shown(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        await b.report("a1", 1.04, age_s=60)
        await b.report("a1", 1.99, flags='["gravity_spike"]')
        await b.step()
        assert [body["gravity"] for body in b.sent()] == [1.04]


async def test_an_outage_leaves_a_gap_and_never_a_backlog(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        b.receiver.reply = lambda _: Reply(503)
        for _ in range(12):
            await b.report("a1")
            await b.steps(REPORTS_S)
        b.receiver.requests.clear()
        b.receiver.reply = lambda _: Reply()
        await b.report("a1", 1.0123)
        await b.steps(2 * REPORTS_S)
        assert [body["gravity"] for body in b.sent()] == [1.0123]
        assert await b.counts() == Counter(forwarded=1, superseded=12)


async def test_a_certain_failure_is_tried_again_soon_and_not_stamped(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        b.receiver.script = [Reply(503)]
        await b.report("a1")
        await b.steps(60)
        assert len(b.sent()) == 2
        assert await b.counts() == Counter(forwarded=1)


async def test_a_refused_reading_is_no_success_and_the_next_one_goes_at_once(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        b.receiver.script = [Reply(400)]
        await b.report("a1", 1.9, age_s=60)
        await b.steps(30)
        assert await b.counts() == Counter(refused=1)
        await b.report("a1", 1.05)
        await b.steps(30)
        assert [body["gravity"] for body in b.sent()] == [1.9, 1.05]
        assert await b.counts() == Counter(refused=1, forwarded=1)


async def test_an_ending_in_doubt_waits_for_the_interval(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        b.receiver.script = [Reply(cut=True)]
        await b.report("a1")
        await b.steps(INTERVAL_S - 10)
        assert len(b.sent()) == 1
        await b.steps(30)
        assert len(b.sent()) == 2


async def test_brewfather_that_ignores_a_reading_has_not_taken_it(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        await b.device("b2")
        b.receiver.reply = lambda request: Reply(
            body=b'{"result":"ignored"}' if request.json["name"] == "a" else b'{"result":"success"}'
        )
        await b.report("a1")
        await b.report("b2")
        await b.steps(60)
        assert Counter(body["name"] for body in b.sent()) == {"a": 1, "b": 1}
        assert await b.counts() == Counter(forwarded=1, pending=1)
        b.receiver.reply = lambda _: Reply()
        await b.steps(REPORTS_S)
        assert await b.counts() == Counter(forwarded=2)


async def test_brewers_friend_counts_the_interval_by_brew_session(tmp_path: Path) -> None:
    async with bench(tmp_path, kind=BrewersFriend) as b:
        session = await b.store.sessions.add(brew())
        await b.device("a1", session.id)
        await b.device("b2", session.id)
        for _ in range(8):
            await b.report("a1")
            await b.report("b2")
            await b.steps(450)
        assert len(b.sent()) == 4  # an hour


async def test_brewers_friend_keeps_the_interval_of_a_device_in_no_brew_session(tmp_path: Path) -> None:
    async with bench(tmp_path, kind=BrewersFriend) as b:
        await b.device("a1")
        await b.device("b2")
        for _ in range(8):
            await b.report("a1")
            await b.report("b2")
            await b.steps(450)
        assert Counter(body["name"] for body in b.sent()) == {"a": 4, "b": 4}  # an hour


async def test_imported_readings_are_nothing_to_show_and_do_not_wait(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        session = await b.store.sessions.add(brew())
        given = [b.reading("by hand", age_s=age_s) for age_s in (60, 0)]
        await b.store.readings.import_readings(session, given, reset=False)
        await b.step()
        assert b.sent() == []
        assert await b.counts() == Counter(superseded=2)


async def test_two_devices_of_one_name_stay_two(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        await b.device("a2")
        await b.report("a1")
        await b.report("a2")
        await b.steps(10)
        assert sorted(body["name"] for body in b.sent()) == ["a a1", "a a2"]


async def test_a_clock_that_was_set_back_stops_nothing_for_longer_than_the_interval(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        b.clock.jump(30 * 86_400)
        await b.report("a1")
        await b.step()
        b.clock.jump(-30 * 86_400)
        b.restart()
        await b.device("b2")
        await b.report("b2")
        await b.steps(INTERVAL_S + 60)
        assert Counter(body["name"] for body in b.sent()) == {"a": 1, "b": 1}


KINDS: dict[type[Cloud], tuple[str, str, dict[str, Any]]] = {
    Brewfather: (
        "/stream",
        f"/stream?id={SECRET.replace('/', '%2F')}",
        {"name": "a", "temp": 20.5, "temp_unit": "C", "gravity": 1.0472, "gravity_unit": "G",
         "device_integration": "default"},
    ),
    BrewersFriend: (
        "/stream",
        f"/stream/{SECRET.replace('/', '%2F')}",
        {"name": "a", "temp": 20.5, "temp_unit": "C", "gravity": 1.0472, "gravity_unit": "G",
         "report_source": "hydrometer-gateway", "device_source": "ispindel"},
    ),
    Grainfather: ("/iot/x-y/tilt", "/iot/x-y/tilt", {"SG": 1.0472, "Temp": 20.5, "Unit": "C"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_the_request_of_each_kind(tmp_path: Path, kind: type[Cloud]) -> None:
    path, asked, body = KINDS[kind]
    async with bench(tmp_path, kind=kind, path=path) as b:
        await b.device("a1")
        await b.report("a1", 1.0472)
        await b.step()
        (request,) = b.receiver.requests
        assert (request.method, request.path, request.json) == ("POST", asked, body)
        assert request.headers["content-type"] == "application/json"


async def test_grainfather_with_custom_and_with_another_address(tmp_path: Path) -> None:
    async with bench(tmp_path, kind=Grainfather, path="/iot/x/custom") as b:
        await b.device("a1")
        await b.report("a1", 1.0472)
        await b.step()
        assert b.sent() == [{"specific_gravity": 1.0472, "temperature": 20.5, "unit": "celsius"}]
    async with bench(tmp_path / "2", kind=Grainfather, path="/iot/x") as b:
        (check,) = await b.cloud.test()
        assert (check.ok, check.words) == (
            False,
            "the address must end in /tilt or /custom, as Grainfather shows it",
        )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_no_secret_is_in_a_reason(tmp_path: Path, kind: type[Cloud]) -> None:
    async with bench(tmp_path, kind=kind, path=KINDS[kind][0]) as b:
        await b.device("a1")
        b.receiver.reply = lambda request: Reply(401, f"no: {SECRET} {b.receiver.url}{request.path}".encode())
        await b.report("a1")
        await b.step()
        words = " ".join(b.stats.parts.values())
        assert "401" in words
        for hidden in b.cloud.secrets():
            assert hidden not in words


async def test_a_page_of_errors_shows_nothing_of_the_address(tmp_path: Path) -> None:
    async with bench(tmp_path, kind=Grainfather, path="/iot/red-hop/tilt") as b:
        await b.device("a1")
        b.receiver.reply = lambda request: Reply(404, f"Cannot POST {request.path} red-hop".encode())
        await b.report("a1")
        await b.step()
        words = " ".join(b.stats.parts.values())
        assert "Cannot POST" in words
        assert "red-hop" not in words


async def test_a_secret_at_the_end_of_what_is_shown_is_not_cut_in_two(tmp_path: Path) -> None:
    async with bench(tmp_path) as b:
        await b.device("a1")
        b.receiver.reply = lambda _: Reply(401, b"x" * (SHOWN - 4) + SECRET.encode())
        await b.report("a1")
        await b.step()
        words = " ".join(b.stats.parts.values())
        assert "xxx" in words
        assert SECRET[:4] not in words


@pytest.mark.parametrize("seed", range(6))
async def test_over_restarts_and_failures_no_two_within_the_interval_and_all_counts_add_up(
    tmp_path: Path, seed: int
) -> None:
    """The service takes a reading whenever it answers with a yes."""
    chance = random.Random(seed)  # noqa: S311
    async with bench(tmp_path) as b:
        taken: dict[str, list[float]] = {}

        def reply(request: Request) -> Reply:
            drawn = chance.random()
            if drawn < 0.6:
                taken.setdefault(request.json["name"], []).append(b.clock.now())
                return Reply()
            return chance.choice([Reply(503), Reply(429), Reply(500), Reply(400), Reply(cut=True)])

        b.receiver.reply = reply
        stored = 0
        for name in ("a1", "b2", "c3"):
            await b.device(name)
        for _ in range(60):
            for name in ("a1", "b2", "c3"):
                if chance.random() < 0.9:
                    await b.report(name, 1 + chance.random() / 10)
                    stored += 1
            if chance.random() < 0.2:
                b.restart()
            await b.steps(chance.choice([120, 450, 900]))
        gaps = [later - first for times in taken.values() for first, later in pairwise(times)]
        assert min(gaps) >= INTERVAL_S
        counts = await b.counts()
        assert sum(counts.values()) == stored
        assert counts["forwarded"] == sum(map(len, taken.values()))
        assert counts["superseded"] > 0


async def test_targets_of_each_kind_are_added_mapped_and_fed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.open()
    await store.keys.owner(1)
    clock = SystemClock()
    services = build_services(store, tmp_path, clock)
    receiver = Receiver()
    b = Bench(store, receiver, clock=FakeClock(clock.now()))
    async with receiver.listening():
        device = await b.device("a1")
        mapped = services.mapped
        with pytest.raises(InvalidInput, match="--key-file is missing"):
            await mapped.add(NewMapped("none", "brewfather"))
        with pytest.raises(InvalidInput, match="--url-file is missing"):
            await mapped.add(NewMapped("none", "grainfather"))
        for kind, path in {
            "brewfather": "bf",
            "brewersfriend": "friend",
            "grainfather": "iot/x/tilt",
        }.items():
            key = "" if kind == "grainfather" else SECRET
            target = await mapped.add(NewMapped(kind, kind, url=f"{receiver.url}/{path}", key=key))
            assert target.latest
            assert SECRET not in target.settings
            if kind == "grainfather":
                assert "tilt" not in target.settings
            await mapped.add_route(kind, Route("device", device.id), None)
        forwarding = Forwarding(
            store, services.notices, services.stats, clock, ForwardSettings(),
            changed=services.targets.changed, states=services.targets.states, around=services.targets.around,
        )  # fmt: skip
        task = asyncio.create_task(forwarding.run())
        try:
            await b.report("a1")
            services.notices.notify("reading")
            async with asyncio.timeout(PATIENCE_S):
                await receiver.came(3)
                while [row.forwarded for row in await store.deliveries.counts()] != [1, 1, 1]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            task.cancel()
            await asyncio.wait([task])
    asked = sorted(request.path.partition("?")[0] for request in receiver.requests)
    assert asked == ["/bf", f"/friend/{quote(SECRET, safe='')}", "/iot/x/tilt"]
    await store.close()
