"""Between paho's thread and the event loop.

A message is the broker's until it is acknowledged: the session is persistent, QoS is 1, and `ack` is called
after the commit. Not QoS 2: paho confirms that to the broker before anybody here has seen the message.

paho limits neither the size of a packet nor how much it hands over. The window bounds the second,
`paho_client` the first.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from paho.mqtt import client as paho

from gateway.clock import Clock
from gateway.transports.mqtt_link import PACKET_BYTES, InFlight, Message, MqttUrl, Reconnects
from gateway.transports.paho_client import Client

__all__ = ["Bridge", "MqttUrl"]

log = logging.getLogger(__name__)

KEEPALIVE_S = 60

BURST_S = 0.002
"""How long the first message of a burst waits for the others: a wake-up for each is what costs."""


class Bridge:
    """Subscribes to `topics` and hands over what comes, burst by burst; belongs to one event loop."""

    copies = True
    """A broker may send a message once for each subscription that fits it."""

    def __init__(self, url: MqttUrl, client_id: str, topics: Sequence[str], clock: Clock) -> None:
        self._url = url
        self._client_id = client_id
        self._topics = tuple(topics)
        self._clock = clock
        self._client: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reconnects = Reconnects()
        self._inbox: deque[Message] = deque()
        self._unacknowledged: deque[Message] = deque()
        self._settled: set[int] = set()
        self._connection = 0
        self._window = InFlight()
        self._waking = self._full = self._stopping = self._taken_over = False
        self._room = threading.Condition()
        self._arrived = asyncio.Event()
        self.state = "not started"
        """How the connection is doing, in words for people."""
        self.is_heard = False
        self.on_state: Callable[[str], None] | None = None

    @property
    def in_flight(self) -> int:
        """Messages that are handed over or about to be, and not acknowledged."""
        return self._window.messages

    def start(self) -> None:
        """Begin to connect; from here on paho's thread keeps the connection up."""
        self._loop = asyncio.get_running_loop()
        client = self._client = Client(self._client_id, self._on_broken)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_connect_fail = self._on_connect_fail
        client.on_disconnect = self._on_disconnect
        client.on_message = self._on_message
        if self._url.user is not None:
            client.username_pw_set(self._url.user, self._url.password)
        if self._url.tls:
            client.tls_set()
        self._say(f"connecting to {self._url.where}")
        client.connect_async(self._url.host, self._url.port, keepalive=KEEPALIVE_S)
        client.loop_start()

    async def stop(self) -> None:
        """Disconnect; the broker keeps what is not acknowledged for the next start."""
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
        """What has come, in order of arrival; empty when nothing did within `timeout_s`."""
        if not self._inbox:
            self._arrived.clear()
            self._waking = False
            if not self._inbox:  # one that came in between finds the flag still up and wakes nobody
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(timeout_s):
                        await self._arrived.wait()
                        await asyncio.sleep(BURST_S)
        if self._taken_over:
            self._say_connected()  # as soon as a connection has lasted
        batch = [self._inbox.popleft() for _ in range(len(self._inbox))]
        self._unacknowledged.extend(batch)
        return batch

    def ack(self, messages: Sequence[Message]) -> None:
        """These are dealt with: PUBACKs go out as soon as everything that came before them is, too."""
        queue, settled = self._unacknowledged, self._settled
        for message in messages:
            if queue and queue[0] is message:
                self._release(queue.popleft())
            else:
                settled.add(message.place)
        while settled and queue and queue[0].place in settled:
            settled.remove(queue[0].place)
            self._release(queue.popleft())
        if self._full:
            with self._room:
                self._room.notify_all()

    def _release(self, message: Message) -> None:
        self._window.release(message)
        # Only on the connection it came by: on the next one the broker has sent it again, and once that
        # copy is acknowledged the packet id may already stand for another message.
        if message.qos and message.connection == self._connection and self._client is not None:
            self._client.ack(message.mid, message.qos)

    # From here on: called in paho's thread.

    def _on_message(self, _client: paho.Client, _userdata: Any, message: paho.MQTTMessage) -> None:
        if self._stopping:
            return  # unacknowledged, so it comes again
        taken = self._taken(message)
        self._window.take(taken)
        self._reconnects.carried()
        self._inbox.append(taken)
        if not self._waking:
            self._waking = True
            self._post(self._arrived.set)
        if self._window.is_full():
            self._wait_for_room()

    def _taken(self, message: paho.MQTTMessage) -> Message:
        topic, payload = "", bytes(message.payload)
        with contextlib.suppress(UnicodeDecodeError):
            topic = message.topic
        if self._client is not None and self._client.is_too_long:
            log.warning("mqtt: a message on %.80r is longer than %d bytes; dropped", topic, PACKET_BYTES)
            payload = b""
        flags = message.qos, message.retain, message.dup
        number = self._window.taken + 1
        return Message(topic, payload, *flags, message.mid, self._clock.now(), self._connection, number)

    def _wait_for_room(self) -> None:
        """Hold paho's thread: nobody reads the socket, so the broker has to keep what it has."""
        with self._room:
            self._full = True
            self._room.wait_for(lambda: self._stopping or not self._window.is_full())
            self._full = False

    def _on_connect(
        self, client: paho.Client, _userdata: Any, _flags: Any, reason: Any, _properties: Any
    ) -> None:
        if reason.is_failure:
            self._say(f"{self._url.where} refuses us: {reason}", logging.WARNING)
            return
        self._connection += 1
        self._reconnects.connected(time.monotonic())
        client.subscribe([(topic, 1) for topic in self._topics])

    def _on_subscribe(
        self, _client: paho.Client, _userdata: Any, _mid: int, reasons: list[Any], _properties: Any
    ) -> None:
        refused = [t for t, reason in zip(self._topics, reasons, strict=False) if reason.is_failure]
        if refused:
            taken = "" if len(refused) == len(self._topics) else f"connected to {self._url.where}; "
            words = f"{self._url.where} refuses to let us read {', '.join(refused)}"
            self._say(taken + words, logging.WARNING)
        else:
            self._say_connected()

    def _on_connect_fail(self, client: paho.Client, _userdata: Any) -> None:
        self._lost(client, f"cannot reach {self._url.where}; trying again")

    def _on_disconnect(
        self, client: paho.Client, _userdata: Any, _flags: Any, _reason: Any, _properties: Any
    ) -> None:
        self._lost(client, f"lost {self._url.where}; trying again")

    def _on_broken(self, what: str) -> None:
        self._reconnects.broken()
        self._say(f"{self._url.where} sent what cannot be read ({what}); trying again", logging.WARNING)

    def _lost(self, client: paho.Client, words: str) -> None:
        was_connected = self._reconnects.lost(time.monotonic())
        # paho doubles without jitter, so it gets a fixed delay each time; a fraction is fine, it only sleeps.
        delay: Any = self._reconnects.delay_s()
        client.reconnect_delay_set(delay, delay)
        if self._stopping:
            return
        if self._reconnects.taken_over(time.monotonic()):
            self._taken_over = True
            self._say(
                f"{self._url.where} drops us again and again: probably another client uses the id "
                f"{self._client_id!r}, and only one can; trying less often",
                logging.WARNING,
            )
        elif was_connected or words.startswith("cannot"):
            self._say(words, logging.WARNING)

    def _say_connected(self) -> None:
        self._taken_over = self._reconnects.taken_over(time.monotonic())
        if not self._taken_over:
            self._say(f"connected to {self._url.where}", is_heard=True)

    def _say(self, words: str, level: int = logging.INFO, *, is_heard: bool = False) -> None:
        if words == self.state:
            return  # once, not at every attempt
        self.state, self.is_heard = words, is_heard
        log.log(level, "mqtt: %s", words)
        if self.on_state is not None:
            self._post(self.on_state, words)

    def _post(self, callback: Callable[..., object], *arguments: object) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop may close before paho's thread ends
                self._loop.call_soon_threadsafe(callback, *arguments)
