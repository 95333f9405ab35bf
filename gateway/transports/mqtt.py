"""MQTT messages to payloads: a whole reading per message, or one value per message, as `topics` has them.
A message is acknowledged when its reading is on the medium, or when there is none in it.

What a broker had kept (retained) is old, however new the subscription: of whole readings the intake decides
by their own clock, single values have none. mosquitto with `allow_duplicate_messages`, and other brokers
without it, send a message once for each subscription that fits, and an earlier start of ours may have left
subscriptions in the session that the broker keeps; such copies follow at once.

When the store takes nothing, the messages wait here and are tried again; the broker is not asked to send
them anew by a reconnect, because it would not: what a device published at QoS 0 (iSpindel, GravityMon) is
sent once. A broker that keeps sessions, or a device of the embedded broker that got no PUBACK, still has the
others if this process ends before it could store them.
"""

import asyncio
import json
import logging
import random
from collections.abc import Iterable
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.domain.payload import Payload
from gateway.errors import StoreUnavailable
from gateway.intake.intake import Intake
from gateway.stats import Stats
from gateway.store.protocol import Store
from gateway.transports.assembler import Assembler, Group, is_missing, text_of
from gateway.transports.mqtt_link import Message, MessageSource
from gateway.transports.topics import Place, TopicMap

log = logging.getLogger(__name__)

PART = "mqtt"

RETRY_FIRST_S, RETRY_CAP_S = 1.0, 30.0
"""Pauses while the store takes nothing: doubling, jittered."""

BURSTS_UNDER_WAY = 4
"""Bursts that may be stored at once; the bridge puts their acknowledgements in order."""

WAIT_S = 30.0
"""Without messages, look after the connection's state this often."""

COPY_S = 1.0
"""A message that follows its like within that time is a copy of it; no device says a thing twice so soon."""

ValueId = tuple[str, str, str, str, int]
"""What names a value that was sent again: driver, device, key, text, packet id (a redelivery keeps that)."""


@dataclass(slots=True)
class MqttDelivery:
    """A payload and the messages that are acknowledged once it is stored."""

    payload: Payload
    messages: list[Message]


class MqttListener:
    """Takes what the bridge hands over until it is cancelled."""

    def __init__(
        self,
        bridge: MessageSource,
        topics: TopicMap,
        intake: Intake,
        store: Store,
        stats: Stats,
        clock: Clock,
    ) -> None:
        self._bridge = bridge
        self._topics = topics
        self._intake = intake
        self._store = store
        self._stats = stats
        self._clock = clock
        self._assembler = Assembler()
        self._previous: Message | None = None
        bridge.on_state = self._say_state
        self._say_state(bridge.state)

    async def run(self) -> None:
        """Burst by burst: all of one is stored together, while the next is read already."""
        slots = asyncio.Semaphore(BURSTS_UNDER_WAY)
        async with asyncio.TaskGroup() as bursts:
            while True:
                due = self._assembler.next_due()
                wait = WAIT_S if due is None else max(0.0, due - self._clock.monotonic())
                messages = await self._bridge.next_batch(min(wait, WAIT_S))
                deliveries = await self._sort(messages)
                deliveries += self._complete(self._assembler.due(self._clock.monotonic()))
                if deliveries:
                    await slots.acquire()
                    burst = bursts.create_task(self._store_all(deliveries), name="mqtt-burst")
                    burst.add_done_callback(lambda _: slots.release())

    async def store_open(self) -> None:
        """At the end: store readings that still wait for a value, which nobody would send again."""
        await self._take_all(self._complete(self._assembler.due(float("inf"))))

    async def _sort(self, messages: list[Message]) -> list[MqttDelivery]:
        """Payloads that are complete now; messages that carry no reading are acknowledged at once."""
        deliveries: list[MqttDelivery] = []
        empty: list[Message] = []
        placed = [(message, self._topics.place_of(message.topic)) for message in messages]
        stored = await self._stored_values(placed)
        now = self._clock.monotonic()
        for message, place in placed:
            if place is None or self._is_copy(message):
                empty.append(message)
            elif not message.payload or (place.key is None and is_missing(message.payload)):
                self._note_unread(place, [message])
                empty.append(message)
            elif place.key is None:
                deliveries.append(MqttDelivery(whole_payload(place, message), [message]))
            elif message.retain or _id_of(place, message) in stored:
                empty.append(message)
            else:
                deliveries += self._complete(self._assembler.add(place, message, now))
        self._bridge.ack(empty)
        return deliveries

    def _is_copy(self, message: Message) -> bool:
        """Whether the broker sent the message before once more, for another subscription that fits."""
        before, self._previous = self._previous, message
        return (
            self._bridge.copies
            and before is not None
            and message.topic == before.topic
            and message.payload == before.payload
            and (message.connection, message.retain) == (before.connection, before.retain)
            and message.received_at - before.received_at < COPY_S
        )

    def _complete(self, groups: list[Group]) -> list[MqttDelivery]:
        """Those in which there is a value; the messages of the others are acknowledged."""
        for group in groups:
            if group.says_nothing():
                self._note_unread(group.place, group.messages)
                self._bridge.ack(group.messages)
        return [MqttDelivery(group.payload(), group.messages) for group in groups if not group.says_nothing()]

    def _note_unread(self, place: Place, messages: list[Message]) -> None:
        """Count messages without a value where the user waits for one."""
        if place.chosen:
            for message in messages:
                self._stats.unread.count(message.topic)

    async def _stored_values(self, placed: list[tuple[Message, Place | None]]) -> set[ValueId]:
        """Values that the broker may send again although their reading is stored."""
        again = {place.group for m, place in placed if m.dup and place is not None and place.key is not None}
        stored: set[ValueId] = set()
        for driver, label in again:
            for raw, delivery in await self._store.readings.latest_deliveries(f"{driver}:{label}"):
                stored.update(_ids_in(driver, label, raw, delivery))
        return stored

    async def _store_all(self, deliveries: list[MqttDelivery]) -> None:
        """Returns when each is stored, however long that takes: the window at the bridge fills meanwhile."""
        pause = RETRY_FIRST_S
        while deliveries:
            refused = await self._take_all(deliveries)
            if not refused:
                break
            if pause == RETRY_FIRST_S:
                log.warning("mqtt: the store takes nothing; %d readings wait, unacknowledged", len(refused))
                words = "waiting for the store; messages are not acknowledged"
                self._stats.say(PART, words, well=False)
            await self._clock.sleep(random.uniform(pause / 2, pause))  # noqa: S311 (jitter, no secret)
            pause = min(pause * 2, RETRY_CAP_S)
            for delivery in refused:
                # A commit that failed may turn out to have happened; intake looks before it stores.
                delivery.payload.redelivered = True
            deliveries = refused
        if pause != RETRY_FIRST_S:
            log.warning("mqtt: the store takes readings again")
            self._say_state(self._bridge.state)

    async def _take_all(self, deliveries: list[MqttDelivery]) -> list[MqttDelivery]:
        """Offer all at once, so that one commit can carry them; returns what could not be stored."""
        tasks = [asyncio.create_task(self._intake.take(each.payload)) for each in deliveries]
        refused: list[MqttDelivery] = []
        done: list[Message] = []
        try:
            for delivery, task in zip(deliveries, tasks, strict=True):
                try:
                    await task
                except StoreUnavailable:
                    refused.append(delivery)
                    continue
                except Exception:  # a mistake of ours; without an acknowledgement it would come for ever
                    log.exception("mqtt: %s was not understood and is dropped", delivery.payload.channel)
                done += delivery.messages
        finally:
            for task in tasks:
                task.cancel()
        self._bridge.ack(done)
        return refused

    def _say_state(self, words: str) -> None:
        self._stats.say(PART, words, well=self._bridge.is_heard)


def whole_payload(place: Place, message: Message) -> Payload:
    """A message with a whole reading, however large: what nobody understands goes to quarantine.

    That has its own bound.
    """
    return Payload(
        body=message.payload,
        received_at=message.received_at,
        channel=place.channel,
        driver=place.driver,
        label=place.label,
        delivery=str(message.mid) if message.qos else None,
        redelivered=message.dup,
        retained=message.retain,
        chosen=place.chosen,
    )


def _id_of(place: Place, message: Message) -> ValueId | None:
    """What names a value that was sent again; None for one that is new."""
    return (*place.group, place.key or "", text_of(message), message.mid) if message.dup else None


def _ids_in(driver: str, label: str, raw: bytes, delivery: str) -> Iterable[ValueId]:
    """The same names, of a stored reading; nothing where it did not come in single values."""
    try:
        values = json.loads(raw)
        ids = [int(mid) for mid in delivery.split(",")]
    except ValueError:
        return []
    if not isinstance(values, dict) or len(values) != len(ids):
        return []
    pairs = zip(values.items(), ids, strict=True)
    return [(driver, label, key, str(text), mid) for (key, text), mid in pairs]
