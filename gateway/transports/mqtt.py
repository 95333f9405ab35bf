"""Make payloads of MQTT messages: `topics` knows whether a message is a whole reading or a single value.

A message is acknowledged when its reading is on the medium, or when it holds no reading.

A retained message is old, however new the subscription is. For whole readings the intake decides by their
clock; single values have none. mosquitto with `allow_duplicate_messages`, and other brokers without it, send
a message once for each subscription that fits, and an earlier start of ours may have left subscriptions in
the session that the broker keeps. Such copies follow at once.

While the store takes nothing, the messages wait here and are tried again. A reconnect would not help: the
broker sends messages that a device published at QoS 0 (iSpindel, GravityMon) only once. A broker that keeps
sessions, or a client of our own listener that got no PUBACK, still has the other messages if this process
ends before they are stored.
"""

import asyncio
import json
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.domain.payload import Payload
from gateway.errors import QuotaFull, ShareUsedUp, StoreUnavailable
from gateway.intake.intake import Intake
from gateway.intake.ordinary import Taken
from gateway.logs import RareLines
from gateway.stats import Stats
from gateway.store.protocol import Store
from gateway.transports.assembler import Assembler, Group, is_missing, text_of
from gateway.transports.mqtt_link import Message, MessageSource
from gateway.transports.topics import Place, TopicMap

log = logging.getLogger(__name__)

PART = "mqtt"
"""The name of the listener among the gateway's parts."""

RETRY_FIRST_S, RETRY_CAP_S = 1.0, 30.0
"""Seconds between tries while the store takes nothing: doubling, jittered."""

STEPS_AT_ONCE = 32
"""Readings that go in steps at once. After a kill a broker sends a thousand messages again, and the store
refuses a question that has waited for long."""

BURSTS_UNDER_WAY = 8
"""Bursts that may be stored at once; the bridge puts their acknowledgements in order."""

BURST_READINGS = 128
"""Readings of a burst at most: other connections have their turn before the next burst."""

NO_ROOM = (QuotaFull, ShareUsedUp)
"""Refusals that last: the sender is told at once instead of left to wait."""

WAIT_S = 30.0
"""Seconds without messages after which the state of the connection is checked."""

COPY_S = 1.0
"""An equal message within this time, in seconds, is a copy: no device repeats itself so soon."""

ValueId = tuple[str, str, str, str, int]
"""Identifies a value that was sent again: driver, device, key, text, packet id (a redelivery keeps it)."""


@dataclass(slots=True, eq=False)
class MqttDelivery:
    """A payload and its messages, which are acknowledged once it is stored."""

    payload: Payload
    messages: list[Message]
    burst: "MqttBurst | None" = None

    def settle(self, result: Taken | Exception) -> None:
        """Note the result for the payload, which the burst waits for."""
        # Not kept: burst and deliveries would hold each other until the collector comes by, which is rare.
        burst, self.burst = self.burst, None
        if burst is not None:
            burst.settle(self, result)


class MqttBurst:
    """Deliveries that are stored at once, so that one commit can carry them: without a task for each.

    `on_end` is called once, when there is a result for every delivery. `failed` are those with an error.
    """

    __slots__ = ("_left", "_on_end", "deliveries", "failed")

    def __init__(self, deliveries: list[MqttDelivery], on_end: "Callable[[MqttBurst], None]") -> None:
        self.deliveries = deliveries
        self.failed: dict[MqttDelivery, Exception] = {}
        self._left = len(deliveries)
        self._on_end = on_end
        for delivery in deliveries:
            delivery.burst = self

    def settle(self, delivery: MqttDelivery, result: Taken | Exception) -> None:
        """Note the result for a delivery."""
        if isinstance(result, Exception):
            self.failed[delivery] = result
        self._left -= 1
        if not self._left:
            # Not at once, because a fault in what follows must not end the pass that settles other readings.
            asyncio.get_running_loop().call_soon(self._on_end, self)


class MqttIngest:
    """Takes the messages of a bridge until it is cancelled."""

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
        self._waiting = 0
        self._steps = asyncio.Semaphore(STEPS_AT_ONCE)
        self._is_running = False
        self._lines = RareLines(clock.monotonic)
        bridge.on_state = self._publish_state
        self._publish_state(bridge.state)

    async def run(self) -> None:
        """Take burst by burst: store the messages of a burst together, and read the next burst meanwhile."""
        slots = asyncio.Semaphore(BURSTS_UNDER_WAY)
        async with asyncio.TaskGroup() as tasks:
            self._is_running = True
            try:
                while True:
                    due = self._assembler.next_due()
                    wait = WAIT_S if due is None else max(0.0, due - self._clock.monotonic())
                    messages = await self._bridge.next_batch(min(wait, WAIT_S))
                    deliveries = await self._sort(messages)
                    deliveries += self._complete(self._assembler.due(self._clock.monotonic()))
                    for first in range(0, len(deliveries), BURST_READINGS):
                        await slots.acquire()
                        self._store_burst(deliveries[first : first + BURST_READINGS], tasks, slots.release)
                        await asyncio.sleep(0)
            finally:
                self._is_running = False

    async def store_open(self) -> None:
        """Store, at the end, readings that still wait for a value: nobody would send their values again."""
        async with asyncio.TaskGroup() as tasks:
            await self._take_all(self._complete(self._assembler.due(float("inf"))), tasks)

    async def _sort(self, messages: list[Message]) -> list[MqttDelivery]:
        """Sort messages into payloads; return the complete ones. Acknowledge messages without a reading."""
        deliveries: list[MqttDelivery] = []
        empty: list[Message] = []
        placed = [(message, self._topics.place_of(message.topic)) for message in messages]
        stored = await self._stored_values(placed)
        now = self._clock.monotonic()
        for message, place in placed:
            # Copies first, because a copy of a message without a value must not count as unread once more.
            if place is None or self._is_copy(message):
                empty.append(message)
            elif not message.payload or (place.key is None and is_missing(message.payload)):
                self._note_unread(place, [message])
                empty.append(message)
            elif place.key is None:
                deliveries.append(MqttDelivery(whole_payload(place, message), [message]))
            elif message.retain or (
                message.dup and (*place.group, place.key or "", text_of(message), message.mid) in stored
            ):
                empty.append(message)
            else:
                deliveries += self._complete(self._assembler.add(place, message, now))
        self._bridge.ack(empty)
        return deliveries

    def _is_copy(self, message: Message) -> bool:
        """Return whether the broker sent the last message again, for another subscription that fits."""
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
        """Return the readings with a value. Acknowledge the messages of the others."""
        for group in groups:
            if group.is_empty():
                self._note_unread(group.place, group.messages)
                self._bridge.ack(group.messages)
        return [MqttDelivery(group.payload(), group.messages) for group in groups if not group.is_empty()]

    def _note_unread(self, place: Place, messages: list[Message]) -> None:
        """Count messages without a value on topics that the user chose."""
        if place.chosen:
            for message in messages:
                self._stats.unread.count(message.topic)

    async def _stored_values(self, placed: list[tuple[Message, Place | None]]) -> set[ValueId]:
        """Return values of stored readings that the broker may send again."""
        again = {place.group for m, place in placed if m.dup and place is not None and place.key is not None}
        stored: set[ValueId] = set()
        for driver, label in again:
            for raw, delivery in await self._store.readings.latest_deliveries(f"{driver}:{label}"):
                stored.update(_ids_in(driver, label, raw, delivery))
        return stored

    def _store_burst(
        self, deliveries: list[MqttDelivery], tasks: asyncio.TaskGroup, release: Callable[[], None]
    ) -> None:
        """Store a burst, however long that takes, and call `release`: meanwhile senders wait."""

        def end(burst: MqttBurst) -> None:
            refused: list[MqttDelivery] = []
            try:
                refused = self._acknowledge(burst)
            finally:
                # Not once we stop: what is refused then is unacknowledged, so it comes again.
                if refused and self._is_running:
                    why = burst.failed[refused[0]]
                    tasks.create_task(self._try_again(refused, why, tasks, release), name="mqtt-refused")
                else:
                    release()

        self._take(MqttBurst(deliveries, end), tasks)

    async def _try_again(
        self,
        refused: list[MqttDelivery],
        why: Exception,
        tasks: asyncio.TaskGroup,
        release: Callable[[], None],
    ) -> None:
        """Try to store what the store refused until it is stored: meanwhile the bridge fills up."""
        log.warning("mqtt: the store takes nothing (%s); %d readings wait, unacknowledged", why, len(refused))
        state = "waiting for the store; messages are not acknowledged"
        self._stats.say(PART, state, well=False)
        self._waiting += 1
        self._bridge.note_store(refuses=True)
        pause = RETRY_FIRST_S
        while refused:
            await self._clock.sleep(random.uniform(pause / 2, pause))  # noqa: S311 (jitter, no secret)
            pause = min(pause * 2, RETRY_CAP_S)
            for delivery in refused:
                # A commit that failed may turn out to have happened; intake looks before it stores.
                delivery.payload.redelivered = True
            refused = await self._take_all(refused, tasks)
        log.warning("mqtt: the store takes readings again")
        self._waiting -= 1
        self._bridge.note_store(refuses=self._waiting > 0)
        self._publish_state(self._bridge.state)
        release()

    async def _take_all(self, deliveries: list[MqttDelivery], tasks: asyncio.TaskGroup) -> list[MqttDelivery]:
        """Store all deliveries at once. Return the ones that the store refused."""
        if not deliveries:
            return []
        ended = asyncio.Event()
        burst = MqttBurst(deliveries, lambda _: ended.set())
        self._take(burst, tasks)
        await ended.wait()
        return self._acknowledge(burst)

    def _take(self, burst: MqttBurst, tasks: asyncio.TaskGroup) -> None:
        """Hand the deliveries of a burst to the intake. One that is not ordinary gets a task."""
        take_now = self._intake.take_now
        for delivery in burst.deliveries:
            try:
                if not take_now(delivery.payload, delivery.settle):
                    tasks.create_task(self._take_in_steps(delivery), name="mqtt-delivery")
            except Exception as error:
                delivery.settle(error)

    async def _take_in_steps(self, delivery: MqttDelivery) -> None:
        try:
            async with self._steps:
                result: Taken | Exception = await self._intake.take_in_steps(delivery.payload)
        except Exception as error:
            result = error
        delivery.settle(result)

    def _acknowledge(self, burst: MqttBurst) -> list[MqttDelivery]:
        """Acknowledge the messages of a burst, in one go. Return the deliveries that the store refused."""
        refused: list[MqttDelivery] = []
        done: list[Message] = []
        for delivery in burst.deliveries:
            if burst.failed and (error := burst.failed.get(delivery)) is not None:
                if isinstance(error, NO_ROOM) and self._bridge.refuse(delivery.messages):
                    continue
                if isinstance(error, ShareUsedUp):
                    # Not left to wait, because all devices of a broker share one connection: it would stand
                    # still for hours, and the broker has said yes to the sender already.
                    if count := self._lines.due("share"):
                        log.warning("mqtt: %s; %d of the broker's readings are dropped", error, count)
                elif isinstance(error, StoreUnavailable):
                    refused.append(delivery)
                    continue
                else:  # a mistake of ours; without an acknowledgement it would come for ever
                    channel = delivery.payload.channel
                    log.error("mqtt: %s was not understood and is dropped", channel, exc_info=error)
            done += delivery.messages
        self._bridge.ack(done)
        return refused

    def _publish_state(self, state: str) -> None:
        self._stats.say(PART, state, well=self._bridge.is_receiving)


def whole_payload(place: Place, message: Message) -> Payload:
    """Make a payload of a message with a whole reading, however large: the quarantine has its own bound."""
    return Payload(
        body=message.payload,
        received_at=message.received_at,
        channel=place.channel,
        driver=place.driver,
        source=message.source,
        label=place.label,
        delivery=str(message.mid) if message.qos else None,
        redelivered=message.dup,
        retained=message.retain,
        chosen=place.chosen,
        key=message.key,
    )


def _ids_in(driver: str, label: str, raw: bytes, delivery: str) -> Iterable[ValueId]:
    """Identify the values of a stored reading; none if it did not come in single values."""
    try:
        values = json.loads(raw)
        ids = [int(mid) for mid in delivery.split(",")]
    except ValueError:
        return []
    if not isinstance(values, dict) or len(values) != len(ids):
        return []
    pairs = zip(values.items(), ids, strict=True)
    return [(driver, label, key, str(text), mid) for (key, text), mid in pairs]
