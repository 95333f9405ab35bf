"""The embedded broker's messages, handed to `MqttListener` within this process; PUBACK means stored.

amqtt puts each message that it takes into a queue of its client's session, and sends PUBACK (QoS 1) or
PUBCOMP (QoS 2) when `put` has returned (Yakifo/amqtt `amqtt/mqtt/protocol/handler.py`, 0.12). The queue here
is ours: `put` returns when the listener has acknowledged the message, and that is after the commit. A client
that is gone before gets no PUBACK and sends again; what it sent is stored all the same, and its copy is known
by its bytes and, sent again with DUP, by its packet id.

The exception are readings of one value per message (BrewPiLess' topics for each key): a device that waits for
every PUBACK would never send the second value, so each has its PUBACK at once, before the reading is stored.

Messages in flight are bounded in number and bytes. When there is no room, a client that has sent one more is
not read from until there is: the sockets hold the rest back, not our memory.
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
    ApplicationMessage = object  # its module costs 5 MB that only those pay who have the broker

log = logging.getLogger(__name__)

AWS = "$aws/"
"""Topics that are for us alone: amqtt ends the connection of who publishes on any that begins with `$`."""


@dataclass(slots=True)
class PendingAck:
    """A PUBACK to be sent; they leave in the order of the messages of their client (MQTT 3.1.1, 4.6)."""

    line: deque["PendingAck"]
    sent: asyncio.Future[None]
    settled: bool = False

    def settle(self) -> None:
        """This one may leave, as soon as all before it may."""
        self.settled = True
        while self.line and self.line[0].settled:
            sent = self.line.popleft().sent
            if not sent.done():  # else its client is gone
                sent.set_result(None)


class EmbeddedBridge:
    """What `paho_bridge.Bridge` is for a broker elsewhere; belongs to one event loop."""

    copies = False

    def __init__(self, topics: TopicMap, clock: Clock) -> None:
        self._topics = topics
        self._clock = clock
        self._inbox: list[Message] = []
        self._turns: dict[int, PendingAck] = {}
        self._window = InFlight()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self.state = "not started"
        """How the broker is doing, in words for people."""
        self.is_heard = False
        self.on_state: Callable[[str], None] | None = None

    def say(self, words: str) -> None:
        """How the broker is doing from now on: it listens."""
        self.state, self.is_heard = words, True
        if self.on_state is not None:
            self.on_state(words)

    @property
    def in_flight(self) -> int:
        """Messages that are not acknowledged."""
        return self._window.messages

    def is_full(self) -> bool:
        """Whether who sends has to wait."""
        return self._window.is_full()

    async def room(self) -> None:
        """Wait until there is room for one more."""
        while self.is_full():
            self._room.clear()
            await self._room.wait()

    def receive(
        self, item: ApplicationMessage, connection: int, line: deque[PendingAck]
    ) -> PendingAck | None:
        """Hand a message to the listener; the turn of its PUBACK, None where nothing has to be waited for."""
        turn = PendingAck(line, asyncio.get_running_loop().create_future()) if item.qos else None
        if turn is not None:
            line.append(turn)
        place = None if _is_no_name(item.topic) else self._topics.place_of(item.topic)
        waits = place is not None and place.key is None
        if place is not None:
            message = self._message(item, connection)
            self._window.take(message)
            self._inbox.append(message)
            self._arrived.set()
            if waits and turn is not None:
                self._turns[message.place] = turn
        if turn is not None and not waits:
            turn.settle()
        return turn

    async def next_batch(self, timeout_s: float | None = None) -> list[Message]:
        """What has come, in order of arrival; empty when nothing did within `timeout_s`."""
        if not self._inbox:
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._arrived.wait()  # and for no more: a commit is when the next ones gather
        batch, self._inbox = self._inbox, []
        return batch

    def ack(self, messages: Sequence[Message]) -> None:
        """These are dealt with: their clients may have PUBACK."""
        for message in messages:
            self._window.release(message)
            turn = self._turns.pop(message.place, None)
            if turn is not None:
                turn.settle()
        if not self.is_full():
            self._room.set()

    def _message(self, item: ApplicationMessage, connection: int) -> Message:
        packet = item.publish_packet
        return Message(
            topic=item.topic,
            payload=bytes(item.data or b""),
            qos=item.qos or 0,
            retain=False,  # that was for the broker: nobody had kept this one
            dup=bool(packet and packet.dup_flag),
            mid=item.packet_id or 0,
            received_at=self._clock.now(),
            connection=connection,
            place=self._window.taken + 1,
        )


class SessionQueue(asyncio.Queue[ApplicationMessage]):
    """The queue in a client's session: `put` for QoS 1 and 2, `put_nowait` for QoS 0.

    amqtt takes out of it what other clients have subscribed to.
    """

    _connections = itertools.count(1)

    def __init__(self, bridge: EmbeddedBridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._connection = next(self._connections)
        self._line: deque[PendingAck] = deque()
        self._was_full = False

    async def put(self, item: ApplicationMessage) -> None:
        """Returns when the message is acknowledged."""
        if self._bridge.is_full():
            self._was_full = True
            await self._bridge.room()
        turn = self._pass_on(item)
        if turn is not None:
            await turn.sent

    def put_nowait(self, item: ApplicationMessage) -> None:
        """Take a message that nobody waits for."""
        self._pass_on(item)

    async def room(self) -> None:
        """Wait, before the client's next packet is read, where the message before it has found no room."""
        if self._was_full:
            await self._bridge.room()
            self._was_full = False

    def _pass_on(self, item: ApplicationMessage) -> PendingAck | None:
        turn = self._bridge.receive(item, self._connection, self._line)
        self._was_full = self._bridge.is_full()
        if not item.topic.startswith(AWS):
            super().put_nowait(item)
        return turn


def _is_no_name(topic: str) -> bool:
    """Whether nobody may publish on it; amqtt ends the connection of who does."""
    return not topic or "+" in topic or "#" in topic
