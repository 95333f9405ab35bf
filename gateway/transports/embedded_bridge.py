"""Hands the embedded broker's messages to `MqttIngest` within this process. A PUBACK means stored.

amqtt puts each message that it takes into a queue of its client's session, and sends PUBACK (QoS 1) or
PUBCOMP (QoS 2) when `put` has returned (Yakifo/amqtt `amqtt/mqtt/protocol/handler.py`, 0.12). The queue here
is ours: `put` returns when the listener has acknowledged the message, and that is after the commit. A client
that is gone before gets no PUBACK and sends again. Its first message is stored all the same; the copy is
recognised by its bytes and, sent again with DUP, by its packet id.

The exception is a reading of one value per message (BrewPiLess' topics for each key): a device that waits for
every PUBACK would never send the second value, so each message gets its PUBACK at once, before the reading is
stored.

Messages in flight are bounded in number and bytes. Without room, a client that has sent one more message is
not read until there is room: the sockets hold the rest back, not our memory.
"""

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.clock import Clock
from gateway.transports.mqtt_link import InFlight, Message
from gateway.transports.topics import TopicMap

if TYPE_CHECKING:
    from amqtt.session import ApplicationMessage
else:
    ApplicationMessage = object  # its module costs 5 MB, which only a gateway with this broker should pay

log = logging.getLogger(__name__)

AWS = "$aws/"
"""Topics that amqtt must not see: amqtt ends the connection of a client that publishes on `$` topics."""


@dataclass(slots=True)
class PendingAck:
    """A PUBACK to be sent, one of the `acks` of a client, in the order of its messages (MQTT 3.1.1, 4.6)."""

    acks: deque["PendingAck"]
    sent: asyncio.Future[None]
    settled: bool = False

    def settle(self) -> None:
        """Let this PUBACK be sent as soon as all earlier ones may be sent."""
        self.settled = True
        while self.acks and self.acks[0].settled:
            sent = self.acks.popleft().sent
            if not sent.done():  # else its client is gone
                sent.set_result(None)


class EmbeddedBridge:
    """The message source of the embedded broker. It belongs to one event loop."""

    copies = False

    def __init__(self, topics: TopicMap, clock: Clock) -> None:
        self._topics = topics
        self._clock = clock
        self._inbox: list[Message] = []
        self._pending: dict[int, PendingAck] = {}
        self._in_flight = InFlight()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self.state = "not started"
        """The state of the broker, in words for users."""
        self.is_receiving = False
        self.on_state: Callable[[str], None] | None = None

    def set_state(self, state: str) -> None:
        """Note the new state of the broker, which listens."""
        self.state, self.is_receiving = state, True
        if self.on_state is not None:
            self.on_state(state)

    @property
    def in_flight(self) -> int:
        """Return the number of messages that are not acknowledged."""
        return self._in_flight.messages

    def is_full(self) -> bool:
        """Return whether clients have to wait before they send more."""
        return self._in_flight.is_full()

    async def wait_for_room(self) -> None:
        """Wait until there is room for one more message."""
        while self.is_full():
            self._room.clear()
            await self._room.wait()

    def receive(
        self, item: ApplicationMessage, connection: int, acks: deque[PendingAck]
    ) -> PendingAck | None:
        """Hand a message to the listener. Return its PUBACK; None for QoS 0, which has none."""
        ack = PendingAck(acks, asyncio.get_running_loop().create_future()) if item.qos else None
        if ack is not None:
            acks.append(ack)
        # A client must not publish on another topic; amqtt ends the connection for it.
        is_valid = item.topic and "+" not in item.topic and "#" not in item.topic
        place = self._topics.place_of(item.topic) if is_valid else None
        waits = place is not None and place.key is None
        if place is not None:
            packet = item.publish_packet
            message = Message(
                topic=item.topic,
                payload=bytes(item.data or b""),
                qos=item.qos or 0,
                retain=False,  # the flag is for the broker: it had not kept this message
                dup=bool(packet and packet.dup_flag),
                mid=item.packet_id or 0,
                received_at=self._clock.now(),
                connection=connection,
                number=self._in_flight.added + 1,
            )
            self._in_flight.add(message)
            self._inbox.append(message)
            self._arrived.set()
            if waits and ack is not None:
                self._pending[message.number] = ack
        if ack is not None and not waits:
            ack.settle()
        return ack

    async def next_batch(self, timeout_s: float | None = None) -> list[Message]:
        """Return messages in order of arrival; an empty list if none arrives within `timeout_s`."""
        if not self._inbox:
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._arrived.wait()  # not for more: the next ones gather during a commit
        batch, self._inbox = self._inbox, []
        return batch

    def ack(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages that are dealt with: their clients may get PUBACKs."""
        for message in messages:
            self._in_flight.remove(message)
            ack = self._pending.pop(message.number, None)
            if ack is not None:
                ack.settle()
        if not self.is_full():
            self._room.set()


class SessionQueue(asyncio.Queue[ApplicationMessage]):
    """The queue in a client's session: `put` for QoS 1 and 2, `put_nowait` for QoS 0.

    amqtt takes messages out of this queue that other clients have subscribed to.
    """

    _connections = itertools.count(1)

    def __init__(self, bridge: EmbeddedBridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._connection = next(self._connections)
        self._acks: deque[PendingAck] = deque()
        self._was_full = False

    async def put(self, item: ApplicationMessage) -> None:
        """Hand over a message and wait until it is acknowledged."""
        if self._bridge.is_full():
            self._was_full = True
            await self._bridge.wait_for_room()
        ack = self._pass_on(item)
        if ack is not None:
            await ack.sent

    def put_nowait(self, item: ApplicationMessage) -> None:
        """Hand over a message whose client does not wait."""
        self._pass_on(item)

    async def wait_for_room(self) -> None:
        """Wait before the client's next packet is read, if the message before it found no room."""
        if self._was_full:
            await self._bridge.wait_for_room()
            self._was_full = False

    def _pass_on(self, item: ApplicationMessage) -> PendingAck | None:
        ack = self._bridge.receive(item, self._connection, self._acks)
        self._was_full = self._bridge.is_full()
        if not item.topic.startswith(AWS):
            super().put_nowait(item)
        return ack
