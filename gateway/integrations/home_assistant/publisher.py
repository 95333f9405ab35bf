"""Publishes what Home Assistant shows, and clears what it shall no longer show.

The newest state of each device counts. Nothing is queued: after a lost connection, and after a start of Home
Assistant, everything is published anew.
"""

import asyncio
import logging
import math
import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gateway.domain.device import Device
from gateway.errors import StoreUnavailable
from gateway.events import EVERYTHING, Topic, TopicListener
from gateway.integrations.home_assistant.connection import Connection, NotConnected, Will
from gateway.integrations.home_assistant.documents import Document, Reader
from gateway.integrations.home_assistant.payloads import EVENT_TYPES
from gateway.integrations.home_assistant.states import event_message
from gateway.integrations.home_assistant.topics import BIRTH, Place, Topics
from gateway.services.build import Services
from gateway.transports.mqtt_link import MqttUrl

log = logging.getLogger(__name__)

CLIENT_ID = "hydrometer-gateway-{}-out"

ONLINE, OFFLINE = "online", "offline"

SPACING_S = 10.0
"""Seconds between two states of one device, unless an alarm changes."""

TICK_S = 60.0
"""Seconds between two looks at the gateway's own state, and at devices that fell silent."""

LISTS_S = (1.0, 600.0)
"""The least and the most seconds between two looks at the lists of devices and brews."""

BIRTH_S = 5.0
"""The most seconds, drawn at random, from a start of Home Assistant until everything is published anew."""

AGAIN_S = 5.0
"""Seconds until the next attempt while the store cannot be read or written."""

AT_ONCE = 20
"""Messages that are not acknowledged yet, at most."""

EVENTS = 50
"""The newest alarm events that are looked at."""

EVENT_AGE_S = 24 * 3600
"""Seconds after which an alarm event is only history."""

LISTEN_S = 3600.0

PART = "home-assistant"
"""The name on the health page."""

Key = tuple[Literal["device", "brew", "gateway"], int]

GATEWAY: Key = ("gateway", 0)


@dataclass(slots=True)
class Shown:
    """What the broker has of one place since we are connected. Texts are empty before they are published."""

    place: Place
    config: int = 0
    state: str = ""
    availability: str = ""
    silent_at: float | None = None
    sent_at: float = -math.inf


class Publisher:
    """Follows changes and publishes. `brews` says whether brews are devices of their own, too."""

    def __init__(
        self, services: Services, connection: Connection, topics: Topics, *, brews: bool = False
    ) -> None:
        self._services = services
        self._store = services.store
        self._clock = services.clock
        self._connection = connection
        self._topics = topics
        self._with_brews = brews
        self._reader = Reader(services, topics)
        self._devices: dict[int, Device] = {}
        self._brews: set[int] = set()
        self._shown: dict[Key, Shown] = {}
        self._due: dict[Key, float] = {}
        self._bell = asyncio.Event()
        self._events_due = True
        self._anew_at: float | None = 0.0
        self._tick_at = 0.0  # no tick before everything was published once
        self._listed_at = self._lists_at = 0.0
        self._last_event: int | None = None
        connection.on_message = self._heard
        connection.on_change = self._connection_changed

    async def run(self) -> None:
        """Publish until cancelled."""
        with self._services.notices.follow() as changes:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow(changes), name="home-assistant-changes")
                tasks.create_task(self._publish(), name="home-assistant-publish")

    # What is due.

    async def _follow(self, changes: TopicListener) -> None:
        while True:
            await changes.wait(LISTEN_S)
            for topic in changes.take():
                self._note(topic)

    def _note(self, topic: Topic) -> None:
        if topic.kind in {EVERYTHING, "device", "brew"}:
            self._list_soon()
        if topic.kind == EVERYTHING:
            for key in self._shown:
                self._mark(key)
        elif topic.kind == "reading" and topic.device is not None and topic.device not in self._devices:
            self._list_soon()
        elif topic.kind in {"reading", "device", "brew", "insight", "alarm"}:
            for key in self._keys_of(topic):
                self._mark(key, at_once=topic.kind == "alarm")
        if topic.kind in {"alarm", EVERYTHING}:
            self._events_due = True
            self._bell.set()

    def _list_soon(self) -> None:
        self._lists_at = min(self._lists_at, self._listed_at + LISTS_S[0])
        self._bell.set()

    def _keys_of(self, topic: Topic) -> Iterable[Key]:
        if topic.device is not None:
            yield "device", topic.device
        if topic.brew is not None:
            yield "brew", topic.brew
            for device in self._devices.values():
                if device.session_id == topic.brew:
                    yield "device", device.id
        if topic.device is None and topic.brew is None:
            yield from self._shown

    def _mark(self, key: Key, *, at_once: bool = False) -> None:
        shown = self._shown.get(key)
        if shown is None:
            return
        now = self._clock.monotonic()
        at = now if at_once else max(now, shown.sent_at + SPACING_S)
        if at < self._due.get(key, math.inf):
            self._due[key] = at
            self._bell.set()

    def _heard(self, topic: str, payload: bytes) -> None:
        if topic in {BIRTH, f"{self._topics.prefix}/status"} and payload == ONLINE.encode():
            # Not at once: after a start of Home Assistant, all programs hear of it in the same moment.
            self._anew_at = self._clock.monotonic() + random.uniform(0, BIRTH_S)  # noqa: S311 (no secret)
            self._bell.set()

    def _connection_changed(self) -> None:
        self._anew_at = self._clock.monotonic()
        self._bell.set()

    # Publishing.

    async def _publish(self) -> None:
        trouble = ""
        while True:
            self._bell.clear()
            try:
                if self._connection.is_connected:
                    await self._publish_due()
                self._services.stats.say(PART, self._connection.state, well=self._connection.is_connected)
                trouble = ""
            except NotConnected:
                self._anew_at = self._clock.monotonic() + AGAIN_S  # at once where the connection comes back
            except StoreUnavailable as error:
                if str(error) != trouble:
                    trouble = str(error)
                    log.warning("home assistant: put off: %s", error)
                    self._services.stats.say(PART, trouble, well=False)
                self._anew_at = self._clock.monotonic() + AGAIN_S
            await self._idle()

    async def _idle(self) -> None:
        """Wait until something changes, or until something is due."""
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(self._bell.wait(), name="home-assistant-bell")]
        if self._connection.is_connected:
            due = [self._tick_at, self._lists_at, *self._due.values()] if self._tick_at else []
            at = min(due if self._anew_at is None else [self._anew_at, *due])
            seconds = max(at - self._clock.monotonic(), 0.0)
            waits.append(asyncio.create_task(self._clock.sleep(seconds), name="home-assistant-timer"))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _publish_due(self) -> None:
        now = self._clock.monotonic()
        if self._anew_at is not None and self._anew_at <= now:
            await self._publish_everything()
        elif self._tick_at:  # else nothing was published on this connection yet
            if self._lists_at <= now:
                await self._refresh_lists()
            await self._publish_documents([key for key, at in self._due.items() if at <= now])
            if self._events_due:
                await self._publish_events()
            if self._tick_at <= now:
                await self._tick()

    async def _publish_everything(self) -> None:
        began, anew_at = self._clock.monotonic(), self._anew_at
        if self._last_event is None:
            await self._find_last_event()
        self._reader.known = await self._store.published.all()
        self._shown.clear()
        await self._refresh_lists()
        self._shown[GATEWAY] = Shown(self._topics.gateway)
        await self._publish_documents([GATEWAY, *self._shown])
        await self._remember({self._topics.status: frozenset()})
        await self._connection.publish(self._topics.status, ONLINE, retain=True)
        await self._publish_events()
        self._tick_at = began + TICK_S
        if self._anew_at == anew_at:  # else it became due once more meanwhile
            self._anew_at = None

    async def _refresh_lists(self) -> None:
        """Read which devices and brews there are; mark the new ones, and clear those that are gone."""
        self._listed_at = self._clock.monotonic()
        self._lists_at = self._listed_at + LISTS_S[1]
        self._devices = await self._reader.devices()
        self._brews = {*await self._reader.brews()} if self._with_brews else set()
        wanted: dict[Key, Place] = {
            ("device", each.id): self._topics.device(each.family, each.stable_id)
            for each in self._devices.values()
        }
        wanted |= {("brew", brew_id): self._topics.brew(brew_id) for brew_id in sorted(self._brews)}
        for key in [key for key in self._shown if key != GATEWAY and key not in wanted]:
            del self._shown[key]
            self._due.pop(key, None)
        for key, place in wanted.items():
            shown = self._shown.get(key)
            if shown is None or shown.place != place:
                self._shown[key] = Shown(place)
                self._due[key] = self._clock.monotonic()
        topics = {topic for place in [*wanted.values(), self._topics.gateway] for topic in place.retained}
        stale = self._reader.known.keys() - topics - {self._topics.status}
        if stale:
            await clear_topics(self._connection, stale)
            await self._store.published.remove(stale)
            for topic in stale:
                del self._reader.known[topic]

    async def _publish_documents(self, keys: Collection[Key]) -> None:
        """Publish what differs from what the broker has: configurations, availabilities, then states."""
        for key in keys:  # before the store is read: what changes from now on is due again
            self._due.pop(key, None)
        documents = await self._documents(keys)
        known = self._reader.known
        news: dict[str, frozenset[str]] = {}
        for document in documents.values():
            news |= {topic: frozenset() for topic in document.place.retained if topic not in known}
            if known.get(document.place.config) != document.components:
                news[document.place.config] = document.components
        await self._remember(news)
        configs, availabilities, states = [], [], []
        for key, document in documents.items():
            shown = self._shown[key]
            if shown.config != (config := hash(document.config)):
                configs.append((document.place.config, document.config))
                shown.config = config
            shown.silent_at = document.silent_at
            availabilities += self._changed_availability(shown)
            if shown.state != document.state:
                states.append((document.place.state, document.state))
                shown.state = document.state
            shown.sent_at = self._clock.monotonic()
        await publish_all(self._connection, [*configs, *availabilities, *states])

    async def _documents(self, keys: Collection[Key]) -> dict[Key, Document]:
        """Return documents by key, the gateway's first: other devices refer to it."""
        found: dict[Key, Document] = {}
        if GATEWAY in keys:
            found[GATEWAY] = await self._reader.of_gateway()
        devices = [number for kind, number in keys if kind == "device" and number in self._devices]
        if len(devices) <= AT_ONCE:  # else the list was just read
            for number in devices:  # readings teach a device its name and its interval
                self._devices[number] = await self._store.devices.get(number) or self._devices[number]
        known = [self._devices[number] for number in devices]
        for number, document in (await self._reader.of_devices(known)).items():
            found["device", number] = document
        brews = [number for kind, number in keys if kind == "brew"]
        for number, document in (await self._reader.of_brews(brews)).items():
            found["brew", number] = document
        return {key: document for key, document in found.items() if key in self._shown}

    def _changed_availability(self, shown: Shown) -> list[tuple[str, str]]:
        if not shown.place.availability or shown.silent_at is None:
            return []
        now = self._clock.now()
        # By a wrong clock, every device could be silent.
        is_silent = shown.silent_at <= now and self._services.clock_monitor.held_back() is None
        availability = OFFLINE if is_silent else ONLINE
        if shown.availability == availability:
            return []
        shown.availability = availability
        return [(shown.place.availability, availability)]

    async def _tick(self) -> None:
        self._tick_at = self._clock.monotonic() + TICK_S
        silent = [message for shown in self._shown.values() for message in self._changed_availability(shown)]
        await publish_all(self._connection, silent)
        await self._publish_documents([GATEWAY])

    async def _find_last_event(self) -> None:
        """Find what was told before; what happened before the first start is no news."""
        last = await self._store.published.last_event()
        if last is None:
            newest = await self._services.alarms.history(limit=1)
            last = newest[0][1].id if newest else 0
            await self._store.published.note_event(last)
        self._last_event = last

    async def _publish_events(self) -> None:
        self._events_due = False
        found = await self._services.alarms.history(limit=EVENTS)
        newest, last = max((event.id for _, event in found), default=0), self._last_event or 0
        since = self._clock.now() - EVENT_AGE_S
        for alarm, event in reversed(found):
            is_told = event.kind in EVENT_TYPES and not event.late and event.at >= since
            if event.id > last and is_told:
                for place in await self._reader.places_of(alarm, self._devices, self._brews):
                    await self._connection.publish(place.event, event_message(alarm, event))
        if newest > last:
            self._last_event = newest
            await self._store.published.note_event(newest)

    async def _remember(self, topics: Mapping[str, frozenset[str]]) -> None:
        """Remember topics before anything is published there, so that a later start can clear them."""
        if topics and any(self._reader.known.get(topic) != each for topic, each in topics.items()):
            await self._store.published.add(topics)
            self._reader.known.update(topics)


async def publish_all(connection: Connection, messages: list[tuple[str, str]]) -> None:
    """Publish retained messages in their order."""
    for first in range(0, len(messages), AT_ONCE):
        await connection.publish_all(messages[first : first + AT_ONCE])


async def clear_topics(connection: Connection, topics: Iterable[str]) -> None:
    """Remove retained messages, configurations first: then Home Assistant forgets a device in one step."""
    ordered = sorted(topics, key=lambda topic: (not topic.endswith("/config"), topic))
    await publish_all(connection, [(topic, "") for topic in ordered])


async def publish(services: Services, broker: MqttUrl, instance: str, prefix: str, *, brews: bool) -> None:
    """Publish everything below `prefix` until cancelled."""
    topics = Topics(instance, prefix)
    births = dict.fromkeys((BIRTH, f"{prefix}/status"))
    connection = Connection(
        broker, CLIENT_ID.format(instance), services.clock, Will(topics.status, OFFLINE), [*births]
    )
    publisher = Publisher(services, connection, topics, brews=brews)
    connection.start()
    try:
        await publisher.run()
    finally:
        await connection.stop()


async def clear(services: Services, broker: MqttUrl, instance: str) -> None:
    """Remove all that an earlier start published, as soon as the broker can be reached; then return."""
    connection = Connection(broker, CLIENT_ID.format(instance), services.clock)
    changed = asyncio.Event()
    connection.on_change = changed.set
    connection.start()
    try:
        while True:
            changed.clear()
            try:
                if connection.is_connected:
                    topics = await services.store.published.all()
                    await clear_topics(connection, topics)
                    await services.store.published.remove(topics)
                    log.info("home assistant: %d messages of an earlier start are removed", len(topics))
                    return
                await changed.wait()
            except (NotConnected, StoreUnavailable) as error:
                log.debug("home assistant: put off: %s", error)
                await services.clock.sleep(AGAIN_S)
    finally:
        await connection.stop()
