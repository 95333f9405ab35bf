"""MQTT messages to payloads: one reading per message on `hydrometer/<name>`, one value per message below
`ispindel/<name>/`. A message is acknowledged when its reading is on the medium, or when there is none in it.

When the store takes nothing, the messages wait here and are tried again; the broker is not asked to send
them anew by a reconnect, because it would not: what a device published at QoS 0 (iSpindel, GravityMon) is
sent once, and amqtt forgets a message after 5 s. A broker that keeps sessions still has them, unacknowledged,
if this process ends before it could store them.
"""

import asyncio
import json
import logging
import random
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.clock import Clock
from gateway.domain.payload import Payload
from gateway.errors import StoreUnavailable
from gateway.ingest.assembler import ROOT, Assembler, Group, split_topic, text_of
from gateway.ingest.mqtt_link import Message
from gateway.ingest.paho_bridge import Bridge
from gateway.stats import Stats
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

JSON_ROOT = "hydrometer"

TOPICS = (f"{ROOT}/+/+", f" {ROOT}/+/+", f"{JSON_ROOT}/+")
"""What the bridge subscribes to; the blank as GravityMon sends it when its template was pasted in lines."""

PART = "mqtt"

RETRY_FIRST_S, RETRY_CAP_S = 1.0, 30.0
"""Pauses while the store takes nothing: doubling, jittered."""

BURSTS_UNDER_WAY = 4
"""Bursts that may be stored at once; the bridge puts their acknowledgements in order."""

WAIT_S = 30.0
"""Without messages, look after the connection's state this often."""


class Intake(Protocol):
    """What the listener needs of `services.intake`."""

    def take(self, payload: Payload) -> Coroutine[Any, Any, object]:
        """Returns after the commit; raises `StoreUnavailable` when nothing was stored."""


@dataclass(slots=True)
class Delivery:
    """A payload and the messages that are acknowledged once it is stored."""

    payload: Payload
    messages: list[Message]


class MqttListener:
    """Takes what the bridge hands over until it is cancelled."""

    def __init__(self, bridge: Bridge, intake: Intake, store: Store, stats: Stats, clock: Clock) -> None:
        self._bridge = bridge
        self._intake = intake
        self._store = store
        self._stats = stats
        self._clock = clock
        self._assembler = Assembler()
        bridge.on_state = self._say
        self._say(bridge.state)

    async def run(self) -> None:
        """Burst by burst: all of one is stored together, while the next is read already."""
        slots = asyncio.Semaphore(BURSTS_UNDER_WAY)
        async with asyncio.TaskGroup() as bursts:
            while True:
                due = self._assembler.next_due()
                wait = WAIT_S if due is None else max(0.0, due - self._clock.monotonic())
                messages = await self._bridge.next_batch(min(wait, WAIT_S))
                deliveries = await self._sort(messages)
                deliveries += map(_of_group, self._assembler.due(self._clock.monotonic()))
                if deliveries:
                    await slots.acquire()
                    burst = bursts.create_task(self._store_all(deliveries), name="mqtt-burst")
                    burst.add_done_callback(lambda _: slots.release())

    async def store_open(self) -> None:
        """At the end: store readings that still wait for a value, which nobody would send again."""
        await self._take_all([_of_group(group) for group in self._assembler.due(float("inf"))])

    async def _sort(self, messages: list[Message]) -> list[Delivery]:
        """Payloads that are complete now; messages that carry no reading are acknowledged at once."""
        deliveries: list[Delivery] = []
        empty: list[Message] = []
        stored = await self._stored_values(messages)
        now = self._clock.monotonic()
        for message in messages:
            value = split_topic(message.topic)
            # Retained: an old value, however new the subscription. Without payload: a retained one deleted.
            if message.retain or not message.payload or _id_of(message) in stored:
                empty.append(message)
            elif value is not None:
                deliveries += map(_of_group, self._assembler.add(*value, message, now))
            elif message.topic.startswith(JSON_ROOT + "/"):
                deliveries.append(_of_json(message))
            else:
                empty.append(message)
        self._bridge.ack(empty)
        return deliveries

    async def _stored_values(self, messages: list[Message]) -> set[tuple[str, str, str, int]]:
        """Values that the broker may send again although their reading is stored, as `_id_of` names them.

        Known by packet id, which a redelivery keeps, together with key and text.
        """
        again = {value[0] for m in messages if m.dup and (value := split_topic(m.topic)) is not None}
        stored: set[tuple[str, str, str, int]] = set()
        for name in again:
            for raw, delivery in await self._store.readings.latest_deliveries(f"{ROOT}:{name}"):
                stored.update(_ids_in(name, raw, delivery))
        return stored

    async def _store_all(self, deliveries: list[Delivery]) -> None:
        """Returns when each is stored, however long that takes: the window at the bridge fills meanwhile."""
        pause = RETRY_FIRST_S
        while deliveries:
            refused = await self._take_all(deliveries)
            if not refused:
                break
            if pause == RETRY_FIRST_S:
                log.warning("mqtt: the store takes nothing; %d readings wait, unacknowledged", len(refused))
                self._say("waiting for the store; messages are not acknowledged")
            await self._clock.sleep(random.uniform(pause / 2, pause))  # noqa: S311 (jitter, no secret)
            pause = min(pause * 2, RETRY_CAP_S)
            for delivery in refused:
                # A commit that failed may turn out to have happened; intake looks before it stores.
                delivery.payload.redelivered = True
            deliveries = refused
        if pause != RETRY_FIRST_S:
            log.warning("mqtt: the store takes readings again")
            self._say(self._bridge.state)

    async def _take_all(self, deliveries: list[Delivery]) -> list[Delivery]:
        """Offer all at once, so that one commit can carry them; returns what could not be stored."""
        tasks = [asyncio.create_task(self._intake.take(each.payload)) for each in deliveries]
        refused: list[Delivery] = []
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

    def _say(self, words: str) -> None:
        self._stats.parts[PART] = words


def _of_json(message: Message) -> Delivery:
    """However large: what nobody understands goes to quarantine, which has its own bound."""
    name = message.topic.partition("/")[2]
    payload = Payload(
        body=message.payload,
        received_at=message.received_at,
        channel=f"mqtt {message.topic}",
        label=name,
        delivery=str(message.mid) if message.qos else None,
        redelivered=message.dup,
    )
    return Delivery(payload, [message])


def _of_group(group: Group) -> Delivery:
    return Delivery(group.payload(), group.messages)


def _id_of(message: Message) -> tuple[str, str, str, int] | None:
    """What names a value that was sent again; None for one that is new."""
    value = split_topic(message.topic) if message.dup else None
    return None if value is None else (*value, text_of(message), message.mid)


def _ids_in(name: str, raw: bytes, delivery: str) -> Iterable[tuple[str, str, str, int]]:
    """The same names, of a stored reading; nothing where it did not come in single values."""
    try:
        values = json.loads(raw)
        ids = [int(mid) for mid in delivery.split(",")]
    except ValueError:
        return []
    if not isinstance(values, dict) or len(values) != len(ids):
        return []
    return [(name, key, str(text), mid) for (key, text), mid in zip(values.items(), ids, strict=True)]
