"""N3: the clock jumps, or a boot begins in 1970, with alarms open. N4: the disk is full while alarms change.

In one process, with the gateway's services on a real store: the clock is ours, and runs as fast as the work.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from gateway.clock import Machine
from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import Alarm
from gateway.domain.payload import Payload
from gateway.errors import StoreUnavailable
from gateway.events import TopicListener
from gateway.intake.clock_check import ClockMonitor
from gateway.notify import notifier as notifying
from gateway.notify.notifier import MINUTE, Notifier
from gateway.services.alarms import AlarmService
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services, build_services
from gateway.store.protocols.alarms import AlarmChange
from gateway.store.sqlite.engine.quota import LOOK_AGAIN_S
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.faults.frame import Run, Scenario, root
from tests.faults.volumes import tmpfs

BEGIN = 1_800_000_000
MINUTE_S, HOUR_S, DAY_S, YEAR_S = 60, 3_600, 86_400, 31_557_600
GAP_S = 900

JUMPS_S = (HOUR_S, -2 * HOUR_S, DAY_S, -30 * DAY_S, 10 * YEAR_S, -10 * YEAR_S)

FAULT_S = 40 * MINUTE_S
"""For so long the clock is wrong: less than the hour for which the gateway doubts it."""

DISK = "size=48m"
MIB = 1024 * 1024
DEVICES = 8

ADD_CHANNEL = "INSERT OR IGNORE INTO channels VALUES ('phone', NULL, 'ntfy', '{}', NULL, 0)"
MESSAGES = "SELECT count(*) FROM messages"
LAST_EVENTS = """
SELECT a.id, a.state, (SELECT kind FROM alarm_events e WHERE e.alarm_id = a.id ORDER BY e.id DESC LIMIT 1),
       (SELECT count(*) FROM alarm_events e WHERE e.alarm_id = a.id AND e.kind = 'fired') - a.times
FROM alarms a WHERE a.state <> 'pending'
"""
UNTOLD = """
SELECT count(*) FROM alarm_events e WHERE e.kind = 'fired'
AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.event_id = e.id)
"""

EVENTS_OF = {
    "firing": {"fired", "reminder"},
    "acknowledged": {"acknowledged"},
    "snoozed": {"snoozed"},
    "ok": {"cleared"},
}
"""The last event of an alarm, by its state."""


def report(number: int, at: float, celsius: float = 20.0, volts: float = 4.0) -> Payload:
    """A report of an iSpindel."""
    said = {
        "name": f"spindle{number}", "ID": number, "angle": 45, "temperature": celsius, "temp_units": "C",
        "battery": volts, "gravity": 1.05, "gravity-unit": "G", "interval": GAP_S, "RSSI": -60,
    }  # fmt: skip
    source = f"192.0.2.{number}"
    return Payload(json.dumps(said).encode(), at, "http /ingest/ispindel", driver="ispindel", source=source)


@dataclass
class House:
    """Services, their clock, and a notifier. `wrong_s` is how far the wall clock is off."""

    directory: Path
    store: SqliteStore
    services: Services
    clock: FakeClock
    topics: TopicListener
    notifier: Notifier
    wrong_s: float = 0.0

    @property
    def now(self) -> float:
        """The true time."""
        return self.clock.now() - self.wrong_s

    def set_wrong(self, seconds: float) -> None:
        self.clock.jump(seconds - self.wrong_s)
        self.wrong_s = seconds

    async def look(self) -> None:
        """Look as the gateway does each minute, and put times right if the clock is known."""
        await self.services.clock_monitor.step(self.services.retiming.settle)
        await self.notifier._try_to_look([*self.topics.take(), MINUTE])

    async def pass_time(self, seconds: int, *, reports: bool = True, **values: Any) -> None:
        for minute in range(seconds // MINUTE_S):
            self.clock.advance(MINUTE_S)
            if reports and minute % (GAP_S // MINUTE_S) == 0:
                await self.services.intake.take(report(1, self.clock.now(), **values))
            await self.look()

    async def rows(self, sql: str) -> list[Any]:
        return await self.store.alarms._rows(sql)


@asynccontextmanager
async def house(directory: Path, clock: FakeClock, boot: int = 1) -> AsyncIterator[House]:
    """A gateway that has just started on a boot of its machine."""
    store = SqliteStore(directory)
    await store.open()
    try:
        services = build_services(store, directory, clock)
        monitor = services.clock_monitor
        (directory / "boot").write_text(f"boot {boot}\n")
        monitor._machine = Machine(directory / "boot", directory / "no-timesync")
        await services.access.start()
        await monitor.start()
        await services.intake.start()
        await services.alarms.start()
        await store.alarms._writer.run(lambda c: c.execute(ADD_CHANNEL) and None)
        with services.notices.follow() as topics:
            follower = asyncio.create_task(services.insight.run())
            await asyncio.sleep(0)
            try:
                yield House(directory, store, services, clock, topics, Notifier(services))
            finally:
                follower.cancel()
                await asyncio.wait([follower])
    finally:
        await store.close()


async def with_open_alarms(at: House) -> None:
    """A brew too warm and snoozed, a low battery, and something that is pending."""
    session = await at.services.brewsessions.add_session(OWNER_ID, SessionChange(batchcode="B1"))
    await at.services.intake.take(report(1, at.clock.now()))
    await at.services.brewsessions.assign("ispindel:1", session.id, since=0)
    alarms = at.services.alarms
    await alarms.set("temperature", {"lo": 17, "hi": 22})
    await at.pass_time(3 * HOUR_S, celsius=24.0, volts=3.4)
    (warm,) = [one for one in alarms.firing() if one.rule == "temperature"]
    await alarms.snooze(warm.id, int(at.clock.now()) + 8 * HOUR_S, "me")
    await alarms.set("reached", {"day": 0.0, "text": "rack it"}, "brew", str(session.id))
    await at.pass_time(2 * MINUTE_S, celsius=24.0, volts=3.4)


def states(alarms: AlarmService) -> set[tuple[str, str]]:
    """Rules and states of what is open, but for what the gateway says of itself."""
    return {(one.rule, one.state) for one in alarms.open if one.rule != "keeper"}


OPEN_STATES = {("temperature", "snoozed"), ("battery", "firing"), ("reached", "pending")}


async def play_n3(run: Run) -> None:
    """Each fault meets a house of its own."""
    with ExitStack() as weak:
        if run.mutated:
            weak.enter_context(patch.object(ClockMonitor, "held_back", lambda _: None))
            weak.enter_context(patch.object(notifying, "JUMP_S", float("inf")))
        for number in range(run.n):
            wrong_s = JUMPS_S[number // 2 % len(JUMPS_S)]
            if number % 2:
                await _boot_in_1970(run, number)
            else:
                await _jump(run, number, wrong_s)
            run.step()


async def _jump(run: Run, number: int, wrong_s: float) -> None:
    async with house(run.sub(f"jump-{number}"), FakeClock(float(BEGIN))) as at:
        await with_open_alarms(at)
        if not run.expect(
            states(at.services.alarms) == OPEN_STATES, f"begins with {at.services.alarms.open}"
        ):
            return
        before, where = await at.rows(MESSAGES), f"{wrong_s:+,.0f} s: "
        at.set_wrong(wrong_s)
        await _wrong_for_a_while(run, at, where)
        at.set_wrong(0.0)
        await _right_again(run, at, where, before)


async def _boot_in_1970(run: Run, number: int) -> None:
    directory, where = run.sub(f"boot-{number}"), f"boot {number}: "
    clock = FakeClock(float(BEGIN))
    async with house(directory, clock) as at:
        await with_open_alarms(at)
        before = await at.rows(MESSAGES)
    true_s = clock.now() + 30
    booted = FakeClock(5.0)
    async with house(directory, booted, boot=2) as at:
        at.wrong_s = 5.0 - true_s
        await _wrong_for_a_while(run, at, where)
        at.set_wrong(0.0)
        await _right_again(run, at, where, before)


async def _wrong_for_a_while(run: Run, at: House, where: str) -> None:
    alarms = at.services.alarms
    for _ in range(FAULT_S // (10 * MINUTE_S)):
        await at.pass_time(10 * MINUTE_S, celsius=24.0, volts=3.4)
        run.expect(states(alarms) == OPEN_STATES, f"{where}while the clock is wrong: {states(alarms)}")


async def _right_again(run: Run, at: House, where: str, before: list[Any]) -> None:
    alarms = at.services.alarms
    await at.pass_time(3 * MINUTE_S, celsius=24.0, volts=3.4)
    run.expect(states(alarms) == OPEN_STATES, f"{where}after the jump back: {states(alarms)}")
    run.expect(await at.rows(MESSAGES) == before, f"{where}somebody was told because of the clock")
    await at.pass_time(70 * MINUTE_S, celsius=24.0, volts=3.4)
    expected = OPEN_STATES - {("reached", "pending")} | {("reached", "firing")}
    run.expect(states(alarms) == expected, f"{where}an hour later: {states(alarms)}")
    [(told,)], [(was,)] = await at.rows(MESSAGES), before
    run.expect(told == was + 1, f"{where}{told - was} messages, one was due")
    run.count("looks", at.notifier.looks)


async def play_n4(run: Run) -> None:
    """Devices fall silent and report again, and somebody acknowledges, while others fill the disk."""
    with ExitStack() as weak, tmpfs(run.folder / "disk", DISK) as place:
        if run.mutated:
            weak.enter_context(patch.object(AlarmService, "_write", _told_too_soon))
        (place / "data").mkdir()
        clock = FakeClock(float(BEGIN))
        async with house(place / "data", clock) as at:
            for number in range(1, DEVICES + 1):
                name = SessionChange(batchcode=f"B{number}")
                session = await at.services.brewsessions.add_session(OWNER_ID, name)
                await at.services.intake.take(report(number, at.clock.now()))
                await at.services.brewsessions.assign(f"ispindel:{number}", session.id, since=0)
        for _ in range(run.n):
            # Begun anew, because a log that was long once has room for all that alarms write.
            async with house(place / "data", clock) as at:
                await _agree(run, at, "after a start: ")
                await _cycle(run, at, place)
            run.step()


async def _cycle(run: Run, at: House, place: Path) -> None:
    """All report; the disk is full; some fall silent; there is room again."""
    alarms, clock = at.services.alarms, at.clock
    for _ in range(4):
        clock.advance(GAP_S)
        for number in range(1, DEVICES + 1):
            await at.services.intake.take(report(number, clock.now()))
        await at.look()
    run.expect(not _silent(alarms), f"all report: {_silent(alarms)}")
    if run.random.random() < 0.5:  # some are silent before the disk is full
        clock.advance(40 * MINUTE_S)
        await at.look()
    with _Full(place) as fill:
        failed = 0
        for _ in range(12):
            clock.advance(10 * MINUTE_S)
            fill()  # what the gateway gave up to make room, too
            await at.look()
            failed += "alarms" in at.services.stats.in_trouble
            for one in [one for one in _silent(alarms) if one.id > 0][:2]:
                with suppress(StoreUnavailable):
                    await alarms.acknowledge(one.id, "me")
            await _agree(run, at, "disk full: ")
        run.expect(failed, "the disk was never full")
        run.count("failed_looks", failed)
    await asyncio.sleep(2 * LOOK_AGAIN_S)  # the disk is looked at four times a second
    clock.advance(10 * MINUTE_S)
    await at.look()
    await _agree(run, at, "room again: ")
    run.expect(len(_silent(alarms)) == DEVICES, f"room again: {len(_silent(alarms))} of {DEVICES} are silent")


def _silent(alarms: AlarmService) -> list[Alarm]:
    return [one for one in alarms.firing() if one.rule == "silent"]


async def _agree(run: Run, at: House, where: str) -> None:
    """What is in memory is stored, each state has its event, and each event its message."""
    rows = await at.rows(LAST_EVENTS)
    for alarm_id, state, kind, more in rows:
        run.expect(kind in EVENTS_OF[state], f"{where}alarm {alarm_id} is {state}, its last event is {kind}")
        run.expect(more == 0, f"{where}alarm {alarm_id} fired {more} times more than it says")
    run.expect(await at.rows(UNTOLD) == [(0,)], f"{where}something fired, and there is no message")
    stored = {one.id: one for one in await at.store.alarms.open()}
    known = {one.id: one for one in at.services.alarms.open}
    run.expect(stored == known, f"{where}in memory {len(known)}, stored {len(stored)} open alarms, or others")
    run.highest("alarms", len(rows))


async def _told_too_soon(alarms: AlarmService, changes: list[AlarmChange]) -> list[Alarm]:
    """Changes the state, and then writes it down."""
    for change in changes:
        after = change.alarm if change.alarm.id else replace(change.alarm, id=-len(alarms._open) - 1)
        alarms._open[after.id] = after
    written = await alarms._store.alarms.change(changes)
    alarms._open = {one.id: one for one in await alarms._store.alarms.open()}
    return written


class _Full:
    """Somebody else's file, which takes what room there is each time it is asked to."""

    def __init__(self, place: Path) -> None:
        self._path = place / "somebody-elses"

    def __enter__(self) -> Any:
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT)
        return self.fill

    def fill(self) -> None:
        for size in (MIB, 4096, 1):
            with suppress(OSError):
                while True:
                    os.write(self._fd, bytes(size))

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        self._path.unlink()


SCENARIOS = (
    Scenario(
        "N3",
        "the clock jumps, or a boot begins in 1970, with alarms open, snoozed and pending",
        unit="faults",
        full=200,
        small=4,
        play=play_n3,
        mutation="a gateway that believes any clock",
        mutation_n=4,
    ),
    Scenario(
        "N4",
        "the disk is full while alarms fire, are acknowledged and end",
        unit="fill and free cycles",
        full=50,
        small=2,
        play=play_n4,
        mutation="a state that changes before it is stored",
        mutation_n=2,
        needs=(root,),
    ),
)
