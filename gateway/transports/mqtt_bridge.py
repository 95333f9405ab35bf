"""Takes messages of a broker elsewhere, as a client of MQTT 3.1.1 that subscribes and never publishes.

The broker keeps a message until it is acknowledged: the session is persistent, QoS is 1, and `ack` is called
after the commit. What is beyond `InFlight` is not read, so the broker has to keep it. Not a library, because
one in a thread of its own costs three times as much for a message as all of this.
"""

import asyncio
import contextlib
import logging
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

from gateway.clock import Clock
from gateway.transports import mqtt_broker as broker
from gateway.transports.mqtt_broker import BrokerPackets, Unreadable
from gateway.transports.mqtt_link import PACKET_BYTES, InFlight, Message, MqttUrl, Reconnects

log = logging.getLogger(__name__)

KEEPALIVE_S = 60
"""Seconds of silence after which the broker may end the connection."""

PING_S = KEEPALIVE_S / 2
"""Seconds between two PINGREQ; the connection ends if the broker says nothing in between."""

CONNECT_S = 10.0
"""Seconds until a connection must stand, TLS included; and once more until the broker has accepted us."""

GOODBYE_S = 1.0
"""Seconds that the broker has, when we stop, to read our last acknowledgements and to close."""


class BrokerLink(asyncio.Protocol):
    """One connection to the broker. `number` is 0 until the broker has accepted it."""

    def __init__(self, bridge: "Bridge") -> None:
        self.ended = asyncio.Event()
        self.number = 0
        self._bridge = bridge
        self._packets = BrokerPackets()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_paused = self._is_silent = self._leaves = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Introduce ourselves."""
        self._transport = cast(asyncio.Transport, transport)
        self._timer = asyncio.get_running_loop().call_later(CONNECT_S, self._look)
        self.send(self._bridge.connect_packet())

    def data_received(self, data: bytes) -> None:
        """Take bytes of the broker."""
        self._is_silent = False
        if not self._leaves:  # else unacknowledged, so it comes again
            self._packets.feed(data)
            self._pump()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection has ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._transport = None
        self.ended.set()

    def send(self, packets: bytes) -> None:
        """Send packets, unless the connection has ended."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(packets)

    def go_on(self) -> None:
        """Read on, after messages were acknowledged."""
        if self._is_paused and not self._leaves:
            self._is_paused = False
            self._pump()
            if not self._is_paused and self._transport is not None:
                self._is_silent = False
                self._transport.resume_reading()

    async def leave(self) -> None:
        """Disconnect: send what is to be sent, and let the broker close."""
        self._leaves = True
        self.send(broker.GOODBYE)
        if self._transport is not None:
            # Not closed by us, because with messages unread that would be a reset, and the broker might
            # not read our last acknowledgements.
            self._transport.resume_reading()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_S):
                    await self.ended.wait()
        if self._transport is not None:
            self._transport.abort()

    def _pump(self) -> None:
        """Hand over packets until the window is full, or none is left."""
        bridge, packets = self._bridge, self._packets
        try:
            while not (self._is_paused or self._leaves):
                packet = packets.next()
                if packet is None:
                    break
                first, body = packet
                if not self.number and first != broker.CONNACK:
                    raise Unreadable("not a CONNACK")  # noqa: TRY301 (the one place that ends the connection)
                if first & 0xF0 == broker.PUBLISH:
                    self._is_paused = bridge.receive(self, first, body, is_cut=packets.is_cut)
                elif first == broker.CONNACK and not self.number:
                    self._accept(body[1])
                elif first == broker.SUBACK:
                    bridge.subscribed(body[2:])
                elif first == broker.RELEASE:
                    self.send(broker.PUBCOMP % (body[0], body[1]))
                elif first != broker.PINGRESP:
                    raise Unreadable("malformed")  # noqa: TRY301
        except Unreadable as fault:
            self._leaves = True
            bridge.broken(str(fault))
            if self._transport is not None:
                self._transport.abort()
        if self._is_paused and self._transport is not None:
            self._transport.pause_reading()

    def _accept(self, code: int) -> None:
        if code:
            self._bridge.refused(broker.REFUSALS.get(code, f"code {code}"))
            self._leaves = True
            self.send(broker.GOODBYE)
            if self._transport is not None:
                self._transport.close()
            return
        self.number = self._bridge.accepted()

    def _look(self) -> None:
        """Send a PINGREQ; end the connection if the last one, or the CONNECT, got no answer."""
        if self._transport is None:
            return
        if not self.number or (self._is_silent and not self._is_paused):
            self._transport.abort()
            return
        self._is_silent = True
        self.send(broker.PING)
        self._timer = asyncio.get_running_loop().call_later(PING_S, self._look)


class Bridge:
    """Subscribes to `topics` and hands over messages, burst by burst. It belongs to one event loop."""

    copies = True
    """True, because a broker may send a message once for each subscription that fits the message."""

    def __init__(self, url: MqttUrl, client_id: str, topics: Sequence[str], clock: Clock) -> None:
        self._url = url
        self._client_id = client_id
        self._topics = tuple(topics)
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._link: BrokerLink | None = None
        self._reconnects = Reconnects()
        self._inbox: list[Message] = []
        self._arrived = asyncio.Event()
        self._unacknowledged: deque[Message] = deque()
        self._settled: set[int] = set()
        self._connections = 0
        self._in_flight = InFlight()
        self._taken_over = False
        self.state = "not started"
        self.is_receiving = False
        self.on_state: Callable[[str], None] | None = None

    @property
    def in_flight(self) -> int:
        """Return the number of messages that are handed over, or about to be, and not acknowledged."""
        return self._in_flight.messages

    def start(self) -> None:
        """Begin to connect. From then on a task keeps the connection up."""
        self._set_state(f"connecting to {self._url.where}")
        self._task = asyncio.get_running_loop().create_task(self._keep_connected(), name="mqtt-bridge")

    async def stop(self) -> None:
        """Disconnect. The broker keeps unacknowledged messages for the next start."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait([task])
        if self._link is not None:
            await self._link.leave()
            self._link = None

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
        return batch

    def ack(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages: a PUBACK is sent once all messages before it are acknowledged, too."""
        queue, settled, link = self._unacknowledged, self._settled, self._link
        # Only on its own connection, because on the next one the broker has sent it again, and once that
        # copy is acknowledged the packet id may already stand for another message.
        number = link.number if link is not None else 0
        done: list[Message] = []
        for message in messages:
            if queue and queue[0] is message:
                done.append(queue.popleft())
            else:
                settled.add(message.number)
        while settled and queue and queue[0].number in settled:
            settled.remove(queue[0].number)
            done.append(queue.popleft())
        out: list[bytes] = []
        for message in done:
            self._in_flight.remove(message)
            if message.qos and message.connection == number:
                answer = broker.PUBACK if message.qos == 1 else broker.PUBREC
                out.append(answer % (message.mid >> 8, message.mid & 0xFF))
        if link is not None:
            if out:
                link.send(b"".join(out))
            if not self._in_flight.is_full():
                link.go_on()

    def refuse(self, messages: Sequence[Message]) -> bool:
        """Refuse nothing: a broker would send the messages again at once."""
        return False

    def note_store(self, *, refuses: bool) -> None:
        """Nothing: a broker waits for acknowledgements as long as it takes."""

    # What a connection tells.

    def connect_packet(self) -> bytes:
        """Return the CONNECT; not kept, because it has the password."""
        return broker.connect(self._url, self._client_id, KEEPALIVE_S)

    def receive(self, link: BrokerLink, first: int, body: bytes, *, is_cut: bool) -> bool:
        """Take a PUBLISH. Return whether the window is full, so that no more is to be read."""
        topic, payload, qos, mid = broker.parts_of_publish(first, body)
        if is_cut:
            log.warning("mqtt: a message on %.80r is longer than %d bytes; dropped", topic, PACKET_BYTES)
            payload = b""
        in_flight = self._in_flight
        message = Message(
            topic,
            payload,
            qos,
            first & 1 == 1,
            first & 8 == 8,
            mid,
            self._clock.now(),
            link.number,
            in_flight.added + 1,
        )
        in_flight.add(message)
        self._reconnects.received()
        self._unacknowledged.append(message)
        if not self._inbox:
            self._arrived.set()
        self._inbox.append(message)
        return in_flight.is_full()

    def accepted(self) -> int:
        """Subscribe on a connection that the broker has accepted; return its number."""
        self._connections += 1
        self._reconnects.connected(self._clock.monotonic())
        if self._link is not None:
            self._link.send(broker.subscribe(1, self._topics))
        return self._connections

    def refused(self, reason: str) -> None:
        """Note that the broker does not let us in."""
        self._set_state(f"{self._url.where} refuses us: {reason}", logging.WARNING)

    def subscribed(self, codes: bytes) -> None:
        """Note the answer to our subscriptions, in their order."""
        refused = [
            topic for topic, code in zip(self._topics, codes, strict=False) if code >= broker.REFUSED_FILTER
        ]
        if refused:
            rest = "" if len(refused) == len(self._topics) else f"connected to {self._url.where}; "
            text = f"{self._url.where} refuses to let us read {', '.join(refused)}"
            self._set_state(rest + text, logging.WARNING)
        else:
            self._set_connected()

    def broken(self, fault: str) -> None:
        """Note that we end the connection, because of bytes that cannot be read."""
        self._reconnects.broken()
        self._set_state(
            f"{self._url.where} sent an unreadable packet ({fault}); trying again", logging.WARNING
        )

    # Private.

    async def _keep_connected(self) -> None:
        url, loop, tls = self._url, asyncio.get_running_loop(), None
        if url.tls:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            tls.load_default_certs()
        while True:
            link = self._link = BrokerLink(self)
            try:
                async with asyncio.timeout(CONNECT_S):
                    await loop.create_connection(lambda made=link: made, url.host, url.port, ssl=tls)
            except OSError:  # a time-out too
                self._lost(f"cannot reach {url.where}; trying again")
            else:
                await link.ended.wait()
                self._lost(f"lost {url.where}; trying again")
            await self._clock.sleep(self._reconnects.delay_s())

    def _lost(self, words: str) -> None:
        now = self._clock.monotonic()
        was_connected = self._reconnects.lost(now)
        if self._reconnects.taken_over(now):
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
            self.on_state(state)
