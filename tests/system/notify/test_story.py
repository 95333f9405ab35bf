"""A beer in fast forward: it starts, sticks, is roused and finishes, and its brewer is told on the phone.

All of the gateway but its clock is real: readings by HTTP, the store, the figures, the rules, messages to a
receiver that speaks as ntfy does, and the page.
"""

import asyncio
import math
import random
from contextlib import suppress
from pathlib import Path

from gateway.events import TopicListener
from gateway.notify.notifier import MINUTE, Notifier
from tests.clock import FakeClock
from tests.receivers import Receiver
from tests.system.notify.brewing import Brewing, sending
from tests.system.ui.site import Browser, served

BEGIN = 1_772_438_400
"""2026-03-02T08:00:00Z."""

GAP_S = 3_600
TOPIC = "cellar"
OG, STUCK_AT, DONE_AT = 1.050, 1.030, 1.010
ROUSED_H = 24 * 8
"""Hours after pitching until somebody rouses the yeast."""

LAST_H = 24 * 18


def gravity(hours: float) -> float:
    """A lag, a fall that ends at 40 %, a rest, and a second fall."""
    if hours < ROUSED_H:
        return STUCK_AT + (OG - STUCK_AT) / (1 + math.exp(0.12 * (hours - 46)))
    return DONE_AT + (STUCK_AT - DONE_AT) / (1 + math.exp(0.12 * (hours - ROUSED_H - 40)))


async def test_it_starts_sticks_is_roused_and_finishes(tmp_path: Path) -> None:
    clock, receiver = FakeClock(BEGIN), Receiver()
    async with receiver.listening(), served(tmp_path, clock=clock) as page:
        story = Story(page, clock, receiver)
        await story.brewing.add("phone", "ntfy", secret=TOPIC, server=receiver.url)
        with page.services.notices.follow() as story.topics:
            follower = asyncio.create_task(page.services.insight.run())
            async with sending(story.brewing):
                await story.report(0)
                (device,) = await page.services.store.devices.all()
                await page.post("/brews/new", {"batchcode": "HP001", "device": str(device.id)})

                assert await story.until_told() == "HP001 has been fermenting since Tue 03 Mar 17:00."
                assert "stuck at 1.030" in await story.until_told()
                assert "HP001 is stuck at 1.030" in (await page.get("/alarms")).text
                assert "stuck" in (await page.get("/tv")).text.casefold()
                (alarm,) = page.services.alarms.firing()
                await page.post(f"/alarms/{alarm.id}/ack")
                # Nothing in between: an alarm that was acknowledged reminds nobody.
                assert "ferments again" in await story.until_told()
                assert story.hours > ROUSED_H
                assert "stands still at 1.010, 80 % attenuated. Is it done?" in await story.until_told()
                assert await story.until_told() == f"Still so: {story.told[-2]}"

                await page.post("/brews/1/done")
                await story.look()
                assert page.services.alarms.firing() == []
            follower.cancel()
            with suppress(asyncio.CancelledError):
                await follower
        history = (await page.get("/alarms")).text
        assert all(message in history for message in story.told[:4])
        ids = [request.json["sequence_id"] for request in receiver.requests]
        assert len(ids) == len(set(ids)) == len(story.told)
        assert {request.json["topic"] for request in receiver.requests} == {TOPIC}


class Story:
    """A spindle that reports each hour, and what its brewer's phone is told."""

    def __init__(self, page: Browser, clock: FakeClock, receiver: Receiver) -> None:
        self.page, self.clock, self.receiver = page, clock, receiver
        self.brewing = Brewing(page.services, clock)
        self.notifier = Notifier(page.services)
        self.topics: TopicListener
        self.told: list[str] = []
        self.hours = 0
        self._dice = random.Random(7)  # noqa: S311 - noise, no secret

    async def report(self, hours: int) -> None:
        """Report at this hour after the beginning, and let the gateway look."""
        self.hours = hours
        self.clock.advance(BEGIN + hours * GAP_S - self.clock.now())
        body = {
            "name": "iSpindel042", "ID": 42, "angle": 60 - hours / 100, "temp_units": "C", "interval": GAP_S,
            "temperature": round(19 + self._dice.gauss(0, 0.1), 2), "battery": 3.98, "RSSI": -60,
            "gravity": round(gravity(hours) + self._dice.gauss(0, 0.0003), 5),
        }  # fmt: skip
        async with self.page.client.post("/ingest/ispindel", json=body) as answer:
            assert answer.status == 200
        await self.look()

    async def look(self) -> None:
        """Look once; wait for the messages that this makes."""
        await self.notifier.look([*self.topics.take(), MINUTE])
        if await self.page.services.store.messages.to_send("phone", 1):
            expected = len(self.receiver.requests) + 1
            await self.brewing.until(lambda: len(self.receiver.requests) == expected)
            self.told.append(self.receiver.requests[-1].json["message"])

    async def until_told(self) -> str:
        """Report until there is a message; return it."""
        known = len(self.told)
        while len(self.told) == known:
            assert self.hours < LAST_H, self.told
            await self.report(self.hours + 1)
        return self.told[-1]
