"""An outbox that runs on a store with alarms, and a clock that a test moves."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC
from typing import Any

from gateway.domain.alarm import Alarm, AlarmEvent, ChannelKind, EventKind, Message
from gateway.notify.outbox import Outbox
from gateway.services.build import Services
from gateway.store.protocols.alarms import AlarmChange
from tests.clock import FakeClock
from tests.patience import PATIENCE_S


class Brewing:
    """Makes alarms happen, and waits for what becomes of their messages."""

    def __init__(self, services: Services, clock: FakeClock) -> None:
        self.services = services
        self.clock = clock
        self.store = services.store
        self._alarms: dict[tuple[str, str], Alarm] = {}

    async def happens(
        self, rule: str = "stuck", subject: str = "1", kind: EventKind = "fired", *, text: str = "",
        scope: str = "brew", account_id: int | None = None, at: int | None = None,
        evidence: dict[str, Any] | None = None,
    ) -> int:  # fmt: skip
        """Write an event of an alarm as the notifier does; return the event's id."""
        at = int(self.clock.now()) if at is None else at
        known = self._alarms.get((rule, subject))
        words = text or f"{rule} {subject} {kind}"
        alarm = Alarm(
            known.id if known else 0, account_id, rule, scope, subject,  # type: ignore[arg-type]
            "ok" if kind == "cleared" else "firing", at, at, cleared_at=at if kind == "cleared" else None,
            evidence=evidence or {}, text=words,
        )  # fmt: skip
        [alarm] = await self.store.alarms.change(
            [AlarmChange(alarm, AlarmEvent(0, alarm.id, at, kind, words), tells=True)]
        )
        self._alarms[rule, subject] = alarm
        self.services.notices.publish("alarm")
        [(_, event), *_] = await self.store.alarms.history(None, limit=1)
        return event.id

    async def add(self, name: str, kind: ChannelKind, secret: str | None = None, **settings: Any) -> None:
        await self.services.channels.add(name, kind, settings, secret=secret)

    async def message(self, event_id: int, channel: str) -> Message:
        return next(each for each in await self.store.messages.of_event(event_id) if each.channel == channel)

    async def becomes(self, event_id: int, channel: str, state: str, step: float = 0.25) -> Message:
        """Let time pass until a message has a state."""
        return await self._comes(event_id, channel, lambda message: message.state == state, step)

    async def fails(self, event_id: int, channel: str) -> Message:
        """Let time pass until an attempt has failed."""
        return await self._comes(event_id, channel, lambda message: bool(message.trouble), 0.25)

    async def _comes(
        self, event_id: int, channel: str, is_so: Callable[[Message], bool], step: float
    ) -> Message:
        """Let the clock run fast until a message is so. The clock stands still while the store is asked."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_so(found := await self.message(event_id, channel)):
                self.clock.advance(step)
                await asyncio.sleep(0.002)
        return found

    async def passing(self, waits: Any, step: float = 0.25) -> None:
        """Let the clock run fast until something is done."""
        task = asyncio.ensure_future(waits)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not task.done():
                    self.clock.advance(step)
                    await asyncio.sleep(0.002)
            await task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def until(self, true: Callable[[], bool]) -> None:
        async def look() -> None:
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

        await self.passing(look())


@asynccontextmanager
async def sending(brewing: Brewing, **options: Any) -> AsyncIterator[Outbox]:
    """Run the outbox within the block."""
    services = brewing.services
    outbox = Outbox(
        services.store, services.channels, services.notices, brewing.clock, zone=UTC,
        page=lambda: "http://192.168.1.20:8080", draw=lambda: 1.0, **options,
    )  # fmt: skip
    task = asyncio.create_task(outbox.run())
    while not services.channels.is_running:  # noqa: ASYNC110
        await asyncio.sleep(0)
    try:
        yield outbox
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
