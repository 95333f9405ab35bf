"""A month of the demo's brewery in fast forward: readings come at their time, and the notifier looks."""

import asyncio
import heapq
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import Alarm, AlarmEvent
from gateway.domain.payload import Payload
from gateway.events import TopicListener
from gateway.notify.notifier import MINUTE, Notifier
from gateway.samples.hydrometers import Hydrometer
from gateway.samples.logbook import log_of
from gateway.samples.recipes import sample_recipes
from gateway.samples.sessions import SampleBatch, sample_brewery
from gateway.services.alarms import AlarmService
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services, build_services
from gateway.services.insight import InsightService
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock

BEGIN = 1_772_323_200
"""2026-03-01T00:00:00Z."""

DAY_S, HOUR_S = 86_400, 3_600

ADD_CHANNEL = "INSERT INTO channels VALUES ('phone', NULL, 'ntfy', '{}', NULL, 0)"
MESSAGES = """
SELECT e.at, a.rule, a.subject, e.kind, e.text FROM messages m
JOIN alarm_events e ON e.id = m.event_id JOIN alarms a ON a.id = e.alarm_id
WHERE m.state <> 'merged' ORDER BY e.id
"""


@dataclass(frozen=True, slots=True)
class Brew:
    """A batch, when it was pitched and when its brewer ends it (Unix seconds), and its reports."""

    batch: SampleBatch
    pitched_at: int
    ended_at: int | None
    payloads: Sequence[Payload]
    device_key: str


def brews_of(batches: Sequence[tuple[SampleBatch, int]], until: int, seed: int = 1) -> list[Brew]:
    """Make brews of batches and the times of pitching, each with a device of its own."""
    found, kinds = [], sample_brewery().hydrometers
    for number, (batch, pitched_at) in enumerate(batches):
        assert batch.course is not None
        assert batch.hydrometer is not None
        hydrometer = Hydrometer(kinds[batch.hydrometer], number)
        dice = random.Random(f"{seed} {number}")  # noqa: S311 - noise, no secret
        log = log_of(batch, batch.course, hydrometer, pitched_at, until, dice)
        ended_at = None if batch.days is None else pitched_at + int(batch.days * DAY_S)
        found.append(Brew(batch, pitched_at, ended_at, log.payloads, hydrometer.key))
    return found


def demo_brews(days: int = 30, seed: int = 1) -> list[Brew]:
    """Return the brews of the demo that had a hydrometer in its last days."""
    until = BEGIN + days * DAY_S
    batches = [
        (batch, until - int(batch.pitched_days_ago * DAY_S) + 16 * HOUR_S)
        for batch in sample_brewery().batches
        if batch.course is not None and batch.pitched_days_ago <= days
    ]
    return brews_of(batches, until, seed)


class Month:
    """Services, a clock, a notifier, and a listener for what the notifier is told."""

    def __init__(
        self, services: Services, clock: FakeClock, topics: TopicListener, tasks: asyncio.TaskGroup
    ) -> None:
        self.services = services
        self.clock = clock
        self.notifier = Notifier(services)
        self._topics = topics
        self._tasks = tasks
        self._follower = tasks.create_task(services.insight.run())
        self.sessions: dict[str, int] = {}

    async def stop(self) -> None:
        """End the task that follows the readings."""
        self._follower.cancel()
        await asyncio.wait([self._follower])

    async def restart(self) -> None:
        """Begin anew with what is stored."""
        await self.stop()
        parts = self.services
        alarms = AlarmService(parts.store, parts.notices, self.clock)
        insight = InsightService(parts.store, parts.notices, self.clock)
        self.services = replace(parts, alarms=alarms, insight=insight)
        self._follower = self._tasks.create_task(insight.run())
        await asyncio.sleep(0)
        await alarms.start()
        self.notifier = Notifier(self.services)

    async def look(self) -> list[Alarm]:
        """Look once, as each minute: at what has changed, and at what time alone changes."""
        return await self.notifier.look([*self._topics.take(), MINUTE])

    def set_time(self, at: float) -> None:
        self.clock.advance(at - self.clock.now())

    async def begin(self, brew: Brew) -> None:
        """Enter a brew with its recipe, and put its device into it."""
        recipe = next(one for one in sample_recipes() if one.title == brew.batch.recipe)
        [imported] = await self.services.library.import_document(OWNER_ID, recipe.document())
        said = SessionChange(recipe_id=imported.id, phase="Primary Fermentation")
        session = await self.services.brewsessions.add_session(OWNER_ID, said)
        await self.services.intake.take(brew.payloads[0])
        await self.services.brewsessions.assign(brew.device_key, session.id, since=0)
        self.sessions[brew.device_key] = session.id

    async def play(
        self,
        brews: Sequence[Brew],
        until: int,
        *,
        every_s: int = 900,
        then: Callable[[int], None] | None = None,
        restart_s: int | None = None,
    ) -> None:
        """Let readings come until a time, and look each `every_s`."""
        reports = [
            [(payload.received_at, number, place) for place, payload in enumerate(brew.payloads)]
            for number, brew in enumerate(brews)
        ]
        coming = heapq.merge(*reports)
        ahead = next(coming, None)
        ends = {number: brew.ended_at for number, brew in enumerate(brews) if brew.ended_at is not None}
        now = int(self.clock.now())
        while now < until:
            now += every_s
            while ahead is not None and ahead[0] <= now:
                at, number, place = ahead
                self.set_time(max(at, self.clock.now()))
                if place == 0:
                    await self.begin(brews[number])
                else:
                    await self.services.intake.take(brews[number].payloads[place])
                ahead = next(coming, None)
            self.set_time(now)
            for number in [number for number, at in ends.items() if at <= now]:
                del ends[number]
                session = await self.services.store.sessions.get(self.sessions[brews[number].device_key])
                assert session is not None
                await self.services.brewsessions.update_session(session, SessionChange(ended=True))
            if restart_s is not None and now % restart_s == 0:
                await self.restart()
            await self.look()
            if then is not None:
                then(now)

    async def messages(self) -> list[tuple[int, str, str, str, str]]:
        """Return what was told: time, rule, subject, kind, text."""
        store = self.services.store
        assert isinstance(store, SqliteStore)
        return await store.alarms._rows(MESSAGES)

    async def history(self) -> list[tuple[Alarm, AlarmEvent]]:
        """Return all that happened, oldest first."""
        return (await self.services.alarms.history(limit=10_000))[::-1]


@asynccontextmanager
async def new_month(directory: Path, begin: int = BEGIN) -> AsyncIterator[Month]:
    """A gateway's services with one channel, whose clock stands at `begin`."""
    clock, store = FakeClock(float(begin)), SqliteStore(directory)
    await store.open()
    try:
        services = build_services(store, directory, clock)
        await services.access.start()
        await services.intake.start()
        await services.alarms.start()
        await store.alarms._writer.run(lambda c: c.execute(ADD_CHANNEL) and None)
        with services.notices.follow() as topics:
            async with asyncio.TaskGroup() as tasks:
                month = Month(services, clock, topics, tasks)
                await asyncio.sleep(0)
                yield month
                await month.stop()
    finally:
        await store.close()
