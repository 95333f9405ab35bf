"""Messages on their way: a sender for each channel, so that a dead channel delays no other."""

import asyncio
import logging
import random
from collections.abc import Callable, Collection
from contextlib import aclosing
from datetime import tzinfo
from typing import TYPE_CHECKING

from gateway.clock import Clock
from gateway.domain.alarm import Channel
from gateway.errors import GatewayError, StoreUnavailable
from gateway.events import EVERYTHING, StoredNotices
from gateway.outward.client import OutwardClient
from gateway.outward.guard import no_ports
from gateway.services.channels import ChannelService, Trouble
from gateway.store.protocol import Store

if TYPE_CHECKING:
    from gateway.notify.channels import Sends
    from gateway.notify.channels.mqtt import Publish
    from gateway.notify.sender import Sender

log = logging.getLogger(__name__)

TABLE_AGAIN_S = 5.0
"""Seconds until the table of channels is read again after a failure."""

FAR_S = 3_600.0
"""Seconds that one wait for a change lasts at most."""

GATHER_S = 0.5
"""Seconds that a wake-up waits for more: each reading of a device is a change, and few of them are alarms."""

_RANDOM = random.SystemRandom()


class Outbox:
    """Follows the table of channels: starts, stops and restarts senders."""

    def __init__(
        self,
        store: Store,
        channels: ChannelService,
        notices: StoredNotices,
        clock: Clock,
        *,
        clock_known: Callable[[], bool] = lambda: True,
        page: Callable[[], str] = str,
        own_ports: Callable[[], Collection[int]] = no_ports,
        publish: "Publish | None" = None,
        zone: tzinfo | None = None,
        draw: Callable[[], float] = _RANDOM.random,
    ) -> None:
        """`page` returns the address of the page, `own_ports` our listening ports.

        `publish` publishes at the user's broker, if there is one. `zone` is the machine's unless given,
        `draw` gives random numbers from 0 to 1.
        """
        self._store = store
        self._channels = channels
        self._notices = notices
        self._clock = clock
        self._clock_known = clock_known
        self._page = page
        self._publish = None if publish is None else _in_turn(publish)
        self._zone = zone
        self._draw = draw
        self._client = OutwardClient(own_ports)
        self._running: dict[str, tuple[Channel, Sender, asyncio.Task[None]]] = {}
        self._ringing: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Run until cancelled."""
        self._channels.is_running = True
        try:
            async with asyncio.TaskGroup() as group, aclosing(self._channels.changed.follow()) as changes:
                async for _ in changes:
                    await self._follow(await self._table(), group)
        finally:
            self._channels.is_running = False
            await self._client.close()

    async def _table(self) -> tuple[str, list[Channel]]:
        while True:
            try:
                return await self._store.alarms.instance(), await self._store.messages.channels()
            except StoreUnavailable as error:
                log.warning("channels: the table of channels cannot be read: %s", error)
                await self._clock.sleep(TABLE_AGAIN_S)

    async def _follow(self, table: tuple[str, list[Channel]], group: asyncio.TaskGroup) -> None:
        instance, channels = table
        wanted = {channel.name: channel for channel in channels if not channel.paused}
        # Stopped before others start: a channel whose settings changed must not run twice.
        for name, (channel, _, task) in list(self._running.items()):
            if wanted.get(name) != channel:
                del self._running[name]
                task.cancel()
                await asyncio.wait([task])
                self._channels.troubles.pop(name, None)
        if not wanted:
            if self._ringing is not None:
                self._ringing.cancel()
                self._ringing = None
            return
        # Imported here, because a gateway without channels need not pay for it.
        from gateway.notify.sender import Sender, Surroundings

        around = Surroundings(
            self._store,
            self._channels,
            self._clock,
            instance,
            self._page,
            self._clock_known,
            self._zone,
            self._draw,
        )
        for name, channel in wanted.items():
            if name not in self._running:
                try:
                    sender = Sender(channel, self._sends(channel, instance), around)
                except (GatewayError, ValueError, TypeError) as error:  # a row of a damaged file
                    trouble = Trouble(f"its settings are damaged: {error}", int(self._clock.now()), True)
                    self._channels.troubles[name] = trouble
                    continue
                task = group.create_task(sender.run(), name=f"channel {name}")
                self._running[name] = channel, sender, task
        if self._ringing is None:
            self._ringing = group.create_task(self._ring(), name="channels")

    def _sends(self, channel: Channel, instance: str) -> "Sends":
        if channel.kind == "ntfy":
            from gateway.notify.channels.ntfy import Ntfy

            return Ntfy(self._client, channel.settings)
        if channel.kind == "webhook":
            from gateway.notify.channels.webhook import Webhook

            return Webhook(self._client, channel.settings)
        if channel.kind == "email":
            from gateway.notify.channels.email import Email

            return Email(self._client.guard, channel.settings)
        if channel.kind == "mqtt":
            from gateway.notify.channels.mqtt import Mqtt

            return Mqtt(self._publish, channel.settings, instance)
        from gateway.notify.channels.apprise import Apprise

        return Apprise(self._client.guard)

    async def _ring(self) -> None:
        """Wake the senders when there may be messages."""
        with self._notices.follow() as topics:
            while True:
                await topics.wait(FAR_S)
                if any(topic.kind in {"alarm", EVERYTHING} for topic in topics.take()):
                    for _, sender, _ in self._running.values():
                        sender.ring()
                await self._clock.sleep(GATHER_S)


def _in_turn(publish: "Publish") -> "Publish":
    """Return it for one channel at a time: a broker ends the older of two connections of one name."""
    turn = asyncio.Lock()

    async def in_turn(topic: str, payload: bytes) -> None:
        async with turn:
            await publish(topic, payload)

    return in_turn
