"""N1: SIGKILL while messages go to a webhook that fails in every way. N2: a channel dead for a week."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from unittest.mock import patch

from gateway.clock import SystemClock
from gateway.domain.alarm import Alarm, AlarmEvent, EventKind
from gateway.notify import plan as planning
from gateway.notify.outbox import Outbox
from gateway.services.build import Services, build_services
from gateway.store.protocols.alarms import AlarmChange
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import Gateway, prepare
from tests.receivers import Receiver, Reply, Request

ALARMS = 20
"""Alarms whose events are mixed."""

RULES = ("stuck", "keeper", "temperature", "done", "silent")

EVENTS_A_KILL = 25

DRAIN_S = 300.0
"""Seconds until all messages have gone after the last kill."""

FAILS = 0.12
"""Share of requests that go wrong."""

DAY_S, DAYS = 86_400, 8

HOURLY = {"per_hour": 3_600, "per_day": 86_400}


@dataclass
class Heard:
    """What a receiver took: the ids of each message by the message's id, and the order in which they came."""

    by_message: dict[str, tuple[str, ...]] = field(default_factory=dict)
    order: list[tuple[str, str]] = field(default_factory=list)
    copies: int = 0
    changed: list[str] = field(default_factory=list)

    def take(self, request: Request) -> None:
        document = request.json
        items = [document, *document.get("more", [])]
        name, ids = request.headers["webhook-id"], tuple(item["id"] for item in items)
        if name in self.by_message:
            self.copies += 1
            if self.by_message[name] != ids:
                self.changed.append(name)
            return
        self.by_message[name] = ids
        self.order += [(f"{item['rule']} {item['subject']}", item["id"]) for item in items]

    def judge(self, run: Run, issued: Sequence[str], where: str = "") -> None:
        """Each id at least once; with copies dropped by their ids exactly once; alarms in order."""
        told = [event for _, event in self.order]
        lost = [event for event in issued if event not in set(told)]
        run.expect(not lost, f"{where}lost: {len(lost)} of {len(issued)}, such as {lost[:3]}")
        twice = {event for event in told if told.count(event) > 1} if len(told) != len(set(told)) else set()
        run.expect(not twice, f"{where}twice under two ids: {len(twice)}, such as {sorted(twice)[:3]}")
        invented = set(told) - set(issued)
        run.expect(not invented, f"{where}invented: {sorted(invented)[:3]}")
        run.expect(not self.changed, f"{where}another message under the same id: {self.changed[:3]}")
        for alarm in {alarm for alarm, _ in self.order}:
            places = [int(event.rpartition("-")[2]) for each, event in self.order if each == alarm]
            run.expect(places == sorted(places), f"{where}{alarm} came out of order: {places[:10]}")


async def play_n1(run: Run) -> None:
    """A gateway with many events waiting, killed again and again."""
    heard, chance = Heard(), run.random

    def reply(request: Request) -> Reply:
        draw = chance.random()
        if draw > FAILS:
            heard.take(request)
            return Reply()
        kind = chance.choice(("hang", "cut", "taken and cut", "429", "503", "500", "taken and 500"))
        run.count(kind)
        if "taken" in kind:
            heard.take(request)
        if kind == "429":
            return Reply(429, headers={"Retry-After": "1"})
        return Reply(int(kind[-3:]) if kind[-1].isdigit() else 200, hang=kind == "hang", cut="cut" in kind)

    receiver, data = Receiver(reply), run.sub("data")
    await prepare(data)
    async with receiver.listening():
        issued = await _issue(run, data, receiver.url)
        gateway = Gateway(data, weak="untold" if run.mutated else "", options=["--no-mqtt"])
        kills = told = 0
        try:
            while len({event for _, event in heard.order}) < run.n - EVENTS_A_KILL and kills < 4 * run.n:
                if not run.expect(await gateway.start(), f"no start: {gateway.lines[-3:]}"):
                    return
                seen, until_seen = len(receiver.requests), chance.randint(1, 2 * EVENTS_A_KILL)
                with suppress(TimeoutError):
                    async with asyncio.timeout(chance.uniform(0.5, 8)):
                        await receiver.came(seen + until_seen)
                        await asyncio.sleep(chance.uniform(0, 0.03))
                await gateway.kill()
                kills += 1
                run.step(len(heard.order) - told)
                told = len(heard.order)
            if run.expect(await gateway.start(), f"no start: {gateway.lines[-3:]}"):
                with suppress(TimeoutError):
                    async with asyncio.timeout(DRAIN_S):
                        while not await _nothing_waits(gateway):  # noqa: ASYNC110
                            await asyncio.sleep(0.3)
        finally:
            await gateway.kill()
    heard.judge(run, issued)
    run.figure("kills", kills)
    run.figure("messages", len(heard.by_message))
    run.figure("copies", heard.copies)


async def _nothing_waits(gateway: Gateway) -> bool:
    _, answer = await gateway.get("/manage/channels")
    return bool(answer) and answer["channels"][0]["waiting"] == 0


async def _issue(run: Run, data: Path, url: str) -> list[str]:
    """Write the events as the notifier does; the ids of their messages."""
    store = SqliteStore(data)
    services = build_services(store, data, SystemClock())
    await store.open()
    try:
        await services.channels.add("hook", "webhook", {"url": url, **HOURLY})
        alarms = [Happening(RULES[n % len(RULES)], str(n), 0) for n in range(ALARMS)]
        at, made = int(time.time()) - run.n - 60, 0
        while made < run.n:
            together = min(run.random.choice((1, 1, 1, 2, 5)), run.n - made)
            at += 1
            chosen = run.random.sample(alarms, together)
            await store.alarms.change([each.next(at) for each in chosen])
            for alarm, (known, _) in zip(
                chosen, reversed(await store.alarms.history(None, limit=together)), strict=True
            ):
                alarm.id = known.id
            made += together
        instance = await store.alarms.instance()
        return [f"hg-{instance}-{event.id}" for _, event in await store.alarms.history(None, limit=run.n)]
    finally:
        await store.close()


@dataclass
class Happening:
    """An alarm that fires and clears in turn."""

    rule: str
    subject: str
    id: int
    fires: bool = False

    def next(self, at: int, kind: EventKind | None = None) -> AlarmChange:
        """What happens to it next."""
        kind = kind or ("cleared" if self.fires else "fired")
        self.fires = kind != "cleared"
        alarm = Alarm(
            self.id, None, self.rule, "brew", self.subject, "firing" if self.fires else "ok", at, at,
            cleared_at=None if self.fires else at, text=f"{self.rule} of {self.subject}",
        )  # fmt: skip
        return AlarmChange(alarm, AlarmEvent(0, self.id, at, kind, f"{kind} at {at}"), tells=True)


async def play_n2(run: Run) -> None:
    """Two channels, of which one is dead for eight days. The clock is ours, and runs as fast as the work."""
    live, dead = Heard(), Heard()
    clock, chance = FakeClock(), random.Random(run.seed)  # noqa: S311 - no secrets
    refuses = Receiver(lambda _: Reply(401) if not well else dead.take(_))
    takes = Receiver(lambda request: live.take(request))
    well: list[bool] = []
    store = SqliteStore(run.sub("data"))
    services = build_services(store, run.folder / "data", clock)
    await store.open()
    try:
        async with takes.listening(), refuses.listening():
            for name, url in (("live", takes.url), ("dead", refuses.url)):
                await services.channels.add(name, "webhook", {"url": url})
            with patch.object(planning, "EXPIRES_S", DAY_S if run.mutated else planning.EXPIRES_S):
                outbox = Outbox(store, services.channels, services.notices, clock, zone=UTC)
                task = asyncio.create_task(outbox.run())
                try:
                    began = clock.now()
                    events = await _week(run, services, clock, chance)
                    states = {state.channel.name: state for state in await services.channels.states()}
                    failing = states["dead"].failing_since
                    run.expect(failing is not None and failing - began < DAY_S, f"failing since {failing}")
                    run.expect(states["dead"].blocked, "nobody is told that a person must act")
                    run.expect(
                        states["live"].waiting == 0, f"{states['live'].waiting} wait where all is well"
                    )
                    run.expect(not states["live"].trouble, "the live channel has a trouble")
                    tries = len(refuses.requests)
                    run.figure("tries", tries)
                    run.expect(tries < DAYS * 24 * 5, f"{tries} requests to a dead channel")
                    well.append(True)
                    revived = clock.now()
                    await _pass(clock, revived + 2 * 3600)
                    await _judge_n2(run, services, events, live, dead, revived)
                finally:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
    finally:
        await store.close()


@dataclass
class Said:
    """An event of the week, and whether its alarm fires at its end."""

    id: int
    at: int
    kind: str


async def _week(run: Run, services: Services, clock: FakeClock, chance: random.Random) -> list[Said]:
    alarms = [Happening(RULES[n % len(RULES)], str(n), 0) for n in range(ALARMS)]
    times = sorted(clock.now() + chance.uniform(0, DAYS * DAY_S) for _ in range(run.n))
    said = []
    for moment in times:
        await _pass(clock, moment)
        alarm = chance.choice(alarms)
        kind: EventKind | None = "reminder" if alarm.fires and chance.random() < 0.3 else None
        [stored] = await services.store.alarms.change([alarm.next(int(clock.now()), kind)])
        alarm.id = stored.id if alarm.fires else 0
        services.notices.publish("alarm")
        [(_, event)] = await services.store.alarms.history(None, limit=1)
        said.append(Said(event.id, event.at, event.kind))
        run.step()
    await _pass(clock, times[0] + DAYS * DAY_S)
    return said


async def _pass(clock: FakeClock, moment: float) -> None:
    """Let time pass, from one waking to the next, but none of it while a sender is at work."""
    patience = time.monotonic() + 60
    while clock.now() < moment:
        naps = clock.naps
        # The bell's nap is short; two longer ones are those of the senders.
        if naps and (min(naps) <= 0.5 or len(naps) >= 2):
            clock.advance(
                min(*naps, moment - clock.now()) if len(naps) > 1 else min(naps[0], moment - clock.now())
            )
            patience = time.monotonic() + 60
        await asyncio.sleep(0.001)
        if time.monotonic() > patience:
            raise AssertionError(f"nobody sleeps: {naps}")
    await asyncio.sleep(0.05)


async def _judge_n2(
    run: Run, services: Services, events: Sequence[Said], live: Heard, dead: Heard, revived: float
) -> None:
    instance = await services.store.alarms.instance()
    states: dict[tuple[int, str], str] = {}
    for event in events:
        for message in await services.store.messages.of_event(event.id):
            states[event.id, message.channel] = message.state
    # A reminder that another message makes needless is in none.
    needed = [e for e in events if not (e.kind == "reminder" and states[e.id, "dead"] == "merged")]
    young = [e for e in needed if revived - e.at < 7 * DAY_S - 3600]
    old = [e for e in events if revived - e.at > 7 * DAY_S + 3600 and states[e.id, "dead"] != "merged"]
    run.figure("old", len(old))
    run.figure("young", len(young))
    run.figure("messages", len(dead.by_message))
    wrong = [e.id for e in old if states[e.id, "dead"] != "expired"]
    run.expect(not wrong, f"older than a week, and not given up: {wrong[:5]}")
    told = {event for _, event in dead.order}
    issued = [f"hg-{instance}-{e.id}" for e in young]
    edge = told - set(issued)
    dead.judge(run, [*issued, *edge], "dead channel: ")
    run.expect(len(edge) <= len(events) - len(young) - len(old), f"given up and sent: {sorted(edge)[:5]}")
    live.judge(run, [f"hg-{instance}-{e.id}" for e in events if states[e.id, "live"] != "expired"], "live: ")
    run.expect(
        all(states[e.id, "live"] in {"sent", "merged"} for e in events), "not all sent where all is well"
    )
    run.expect(len(dead.by_message) <= 20, f"{len(dead.by_message)} messages in two hours")


SCENARIOS = (
    Scenario(
        "N1",
        "kill -9 while messages go to a webhook that answers, hangs, cuts off, says 429",
        unit="events",
        full=1000,
        small=60,
        play=play_n1,
        mutation="a message counts as sent before it leaves",
        mutation_n=100,
    ),
    Scenario(
        "N2",
        "a channel that is dead for a week",
        unit="events",
        full=200,
        small=40,
        play=play_n2,
        mutation="what has waited for a day is given up",
        mutation_n=40,
    ),
)
