"""Connects paho's thread with the event loop.

The broker keeps a message until it is acknowledged: the session is persistent, QoS is 1, and `ack` is called
after the commit. Not QoS 2, because paho confirms that to the broker before the gateway has the message.

paho limits neither the size of a packet nor the number of messages that it hands over. `InFlight` bounds the
number, `paho_client` the size. A burst is handed over as one list, and acknowledged in one write.
"""

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from paho.mqtt import client as paho

from gateway.clock import Clock
from gateway.transports.mqtt_link import PACKET_BYTES, InFlight, Message, MqttUrl, Reconnects
from gateway.transports.paho_client import Client, log_in

__all__ = ["Bridge", "MqttUrl"]

log = logging.getLogger(__name__)

KEEPALIVE_S = 30
"""Seconds of silence until paho sends a PINGREQ; as long again without an answer ends the connection."""

ROOM_S = 1.0
"""Seconds until paho's thread looks after its pings while the window is full."""


class Bridge:
    """Subscribes to `topics` and hands over messages, burst by burst. It belongs to one event loop."""

    copies = True
    """True, because a broker may send a message once for each subscription that fits the message."""

    def __init__(self, url: MqttUrl, client_id: str, topics: Sequence[str], clock: Clock) -> None:
        self._url = url
        self._client_id = client_id
        self._topics = tuple(topics)
        self._clock = clock
        self._client: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reconnects = Reconnects()
        self._burst: list[Message] = []
        self._inbox: list[Message] = []
        self._unacknowledged: deque[Message] = deque()
        self._settled: set[int] = set()
        self._connection = 0
        self._in_flight = InFlight()
        self._full = self._stopping = self._taken_over = False
        self._room = threading.Condition()
        self._arrived = asyncio.Event()
        self.state = "not started"
        """The state of the connection, in words for users."""
        self.is_receiving = False
        self.on_state: Callable[[str], None] | None = None

    @property
    def in_flight(self) -> int:
        """Return the number of messages that are handed over, or about to be, and not acknowledged."""
        return self._in_flight.messages

    def start(self) -> None:
        """Begin to connect. From then on paho's thread keeps the connection up."""
        self._loop = asyncio.get_running_loop()
        client = self._client = Client(self._client_id, self._on_broken, self._on_burst, self._has_room)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_connect_fail = lambda client, _: self._lost(
            client, f"cannot reach {self._url.where}; trying again"
        )
        client.on_disconnect = lambda client, *_: self._lost(client, f"lost {self._url.where}; trying again")
        client.on_message = self._on_message
        log_in(client, self._url)
        self._set_state(f"connecting to {self._url.where}")
        client.connect_async(self._url.host, self._url.port, keepalive=KEEPALIVE_S)
        client.loop_start()

    async def stop(self) -> None:
        """Disconnect. The broker keeps unacknowledged messages for the next start."""
        client, self._client = self._client, None
        if client is None:
            return
        self._stopping = True
        with self._room:
            self._room.notify_all()
        client.disconnect()
        await asyncio.to_thread(client.loop_stop)
        client.on_connect = client.on_subscribe = client.on_connect_fail = None
        client.on_disconnect = client.on_message = None  # no cycle is left: its sockets close here and now

    async def next_batch(self, timeout_s: float | None = None) -> list[Message]:
        """Return messages in order of arrival; an empty list if none arrives within `timeout_s`."""
        if not self._inbox:
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._arrived.wait()
        if self._taken_over:
            self._set_connected()  # as soon as a connection has lasted
        batch, self._inbox = self._inbox, []
        self._unacknowledged.extend(batch)
        return batch

    def ack(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages: a PUBACK is sent once all messages before it are acknowledged, too."""
        queue, settled = self._unacknowledged, self._settled
        done: list[Message] = []
        for message in messages:
            if queue and queue[0] is message:
                done.append(queue.popleft())
            else:
                settled.add(message.number)
        while settled and queue and queue[0].number in settled:
            settled.remove(queue[0].number)
            done.append(queue.popleft())
        for message in done:
            self._in_flight.remove(message)
        # Only on its own connection, because on the next one the broker has sent it again, and once that
        # copy is acknowledged the packet id may already stand for another message.
        if self._client is not None:
            due = [message for message in done if message.connection == self._connection]
            self._client.acknowledge([message.mid for message in due if message.qos == 1])
            for message in due:
                if message.qos == 2:
                    self._client.ack(message.mid, message.qos)
        if self._full:
            with self._room:
                self._room.notify_all()

    def refuse(self, messages: Sequence[Message]) -> bool:
        """Refuse nothing: a broker would send the messages again at once."""
        return False

    def note_store(self, *, refuses: bool) -> None:
        """Nothing: a broker waits for acknowledgements as long as it takes."""

    def _receive(self, burst: list[Message]) -> None:
        self._inbox += burst
        self._arrived.set()

    # The methods below are called in paho's thread.

    def _on_message(self, _client: paho.Client, _userdata: Any, message: paho.MQTTMessage) -> None:
        if self._stopping:
            return  # unacknowledged, so it comes again
        topic, payload = "", bytes(message.payload)
        with contextlib.suppress(UnicodeDecodeError):
            topic = message.topic
        if self._client is not None and self._client.is_too_long:
            log.warning("mqtt: a message on %.80r is longer than %d bytes; dropped", topic, PACKET_BYTES)
            payload = b""
        flags = message.qos, message.retain, message.dup
        number = self._in_flight.added + 1
        arrived = Message(topic, payload, *flags, message.mid, self._clock.now(), self._connection, number)
        self._in_flight.add(arrived)
        self._reconnects.received()
        self._burst.append(arrived)

    def _on_burst(self) -> None:
        if self._burst:
            burst, self._burst = self._burst, []
            self._post(self._receive, burst)

    def _has_room(self) -> bool:
        """Return whether the next message may be read. If not, the broker has to keep it."""
        if self._stopping or not self._in_flight.is_full():
            return True
        self._on_burst()
        with self._room:
            self._full = True
            if not self._stopping and self._in_flight.is_full():
                self._room.wait(ROOM_S)
            self._full = False
        return self._stopping or not self._in_flight.is_full()

    def _on_connect(
        self, client: paho.Client, _userdata: Any, _flags: Any, reason: Any, _properties: Any
    ) -> None:
        if reason.is_failure:
            self._set_state(f"{self._url.where} refuses us: {reason}", logging.WARNING)
            return
        self._connection += 1
        self._reconnects.connected(self._clock.monotonic())
        client.subscribe([(topic, 1) for topic in self._topics])

    def _on_subscribe(
        self, _client: paho.Client, _userdata: Any, _mid: int, reasons: list[Any], _properties: Any
    ) -> None:
        refused = [t for t, reason in zip(self._topics, reasons, strict=False) if reason.is_failure]
        if refused:
            rest = "" if len(refused) == len(self._topics) else f"connected to {self._url.where}; "
            text = f"{self._url.where} refuses to let us read {', '.join(refused)}"
            self._set_state(rest + text, logging.WARNING)
        else:
            self._set_connected()

    def _on_broken(self, fault: str) -> None:
        self._reconnects.broken()
        self._set_state(
            f"{self._url.where} sent an unreadable packet ({fault}); trying again", logging.WARNING
        )

    def _lost(self, client: paho.Client, words: str) -> None:
        # Before paho walks through its queue and empties it, because nothing may be added meanwhile.
        self._connection += 1
        was_connected = self._reconnects.lost(self._clock.monotonic())
        # paho doubles without jitter, so it gets a fixed delay each time; a fraction is fine, it only sleeps.
        delay: Any = self._reconnects.delay_s()
        client.reconnect_delay_set(delay, delay)
        if self._stopping:
            return
        if self._reconnects.taken_over(self._clock.monotonic()):
            self._taken_over = True
            self._set_state(
                f"{self._url.where} drops us again and again: probably another client uses the id "
                f"{self._client_id!r}, and only one can; trying less often",
                logging.WARNING,
            )
        elif was_connected or words.startswith("cannot"):
            self._set_state(words, logging.WARNING)

    def _set_connected(self) -> None:
        self._taken_over = self._reconnects.taken_over(self._clock.monotonic())
        if not self._taken_over:
            self._set_state(f"connected to {self._url.where}", is_receiving=True)

    def _set_state(self, state: str, level: int = logging.INFO, *, is_receiving: bool = False) -> None:
        if state == self.state:
            return  # logged once, not at every attempt
        self.state, self.is_receiving = state, is_receiving
        log.log(level, "mqtt: %s", state)
        if self.on_state is not None:
            self._post(self.on_state, state)

    def _post(self, callback: Callable[..., object], *arguments: object) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop may close before paho's thread ends
                self._loop.call_soon_threadsafe(callback, *arguments)
