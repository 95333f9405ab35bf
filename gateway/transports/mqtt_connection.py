"""One client of the MQTT listener: its bytes, its line of acknowledgements, and what it waits for.

A client is held, that is not read from, while there is no room for its message, while its source reports too
often, or while too many of its acknowledgements are outstanding. The sockets keep the rest; nothing is
dropped. A client that leaves is heard to its last byte, even if it resets its connection.
"""

import asyncio
import logging
import os
import socket
import ssl
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, cast

from gateway.domain.key import ApiKey
from gateway.network import Peer, written_address
from gateway.transports.mqtt_answers import (
    connack,
    disconnect,
    pingresp,
    puback,
    pubcomp,
    pubrec,
    suback,
    unsuback,
)
from gateway.transports.mqtt_fields import MQTT_5, Code, Malformed
from gateway.transports.mqtt_memory import KEEP_S, MqttSession, Turn
from gateway.transports.mqtt_packets import (
    Connect,
    Filters,
    Goodbye,
    Packet,
    Packets,
    Ping,
    Publish,
    Release,
)
from gateway.transports.topics import Place

if TYPE_CHECKING:
    from gateway.transports.mqtt_listener import MqttListener

log = logging.getLogger(__name__)

PACKETS_AT_ONCE = 512
"""Packets of a client that are handled before other clients have their turn."""

UNREAD_BYTES = 16 * 1024
"""Bytes of answers that may wait for a client; beyond it the client is not read from."""

PACKET_BYTES_A_SECOND = 16 * 1024
"""Bytes of a packet for which its deadline is a second later."""

HELD_AGAIN_S = 0.05
"""Seconds at least until a client that is held for its rate is tried again."""

SMALL_BYTES = 4 * 1024
"""Bytes of an unfinished packet that any client may have, whatever all others have."""

KEEP_ALIVE_S = 3_600
"""The longest keep-alive of a client of MQTT 5, in seconds; the others are not told of any."""

IDLE_S, PROBE_S, PROBES = 60, 20, 3
"""TCP keep-alive, in seconds and probes: it finds clients without keep-alive that have vanished."""

READING_COST, VALUE_COST, CONNECT_COST, FILTER_COST, UNHEARD_COST = 1.0, 0.1, 0.1, 0.1, 0.02
"""Shares of a source's rate: a whole reading, a single value, a connection, a filter, and a message on a
topic that nobody listens to."""

FREE, NO_ROOM, LINE_FULL = 0.0, -1.0, -2.0
"""Results for a packet: handled, or held until there is room, or until acknowledgements have left. A positive
number holds the packet for so many seconds."""


@dataclass(frozen=True, slots=True)
class MqttLimits:
    """Limits of the listener. Times are in seconds.

    `connections` in all and of one source, those with TLS apart; a source on this machine has only the
    first. `connect_s` from the connection to CONNECT, TLS included; `packet_s` within a packet; `unread_s`
    with answers that the client does not read; `leave_s` for the commits of a client that leaves, and
    `leave_held_s` while it is held; `stop_s` for those of all clients at the end. A connection that was
    silent for `silent_s` makes room for another of its source. After the store has refused for `refusing_s`
    clients are told. `line` bounds a client's outstanding acknowledgements and its open ids of QoS 2.
    """

    connections: int = 500
    per_source: int = 16
    tls_connections: int = 64
    tls_per_source: int = 8
    connect_s: float = 10.0
    packet_s: float = 10.0
    unread_s: float = 30.0
    leave_s: float = 2.0
    leave_held_s: float = 60.0
    stop_s: float = 1.5
    silent_s: float = 5.0
    refusing_s: float = 30.0
    look_s: float = 1.0
    line: int = 1_000
    unfinished_bytes: int = 8 * 1024 * 1024


class State(Enum):
    """The states of a connection, in their order."""

    HANDSHAKE = auto()
    NEW = auto()
    SERVING = auto()
    LEAVING = auto()
    OVER = auto()


class MqttConnection(asyncio.BufferedProtocol):
    """A connection of a client. `line` holds the acknowledgements that wait, in the order of the messages."""

    __slots__ = (
        "_continues",
        "_deadline",
        "_is_mute",
        "_is_unread",
        "_limits",
        "_listener",
        "_out",
        "_packet_began",
        "_place",
        "_reads",
        "_rest",
        "_timer",
        "_unread_since",
        "_waits_for",
        "began",
        "buffered",
        "client_id",
        "heard",
        "held",
        "is_connected",
        "is_lost",
        "keep_alive_s",
        "key",
        "line",
        "number",
        "packets",
        "peer",
        "session",
        "state",
        "tls",
        "transport",
    )

    def __init__(self, listener: "MqttListener", number: int, tls: ssl.SSLContext | None) -> None:
        self._listener = listener
        self._limits = listener.limits
        self.number = number
        self.tls = tls
        self.state = State.NEW
        self.transport: asyncio.Transport | None = None
        self.peer = Peer("")
        self.packets = Packets()
        self.session = MqttSession(("", ""))
        self.client_id = ""
        self.key: ApiKey | None = None
        self.keep_alive_s = 0.0
        self.line: deque[Turn] = deque()
        self.held: Packet | None = None
        self.is_connected = self.is_lost = self._is_mute = False
        self.buffered = 0
        self.began = self.heard = listener.now()
        self._place: Place | None = None
        self._waits_for = FREE
        self._timer: asyncio.TimerHandle | None = None
        self._continues = False
        self._reads = True
        self._is_unread = False
        self._unread_since = self._packet_began = self._deadline = 0.0
        self._out: list[bytes] = []
        self._rest: socket.socket | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether nothing of this client is under way."""
        return not (self.line or self.held is not None or self.buffered) and self.state in {
            State.NEW,
            State.SERVING,
        }

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask the listener whether the client may stay."""
        transport = self.transport = cast(asyncio.Transport, transport)
        self.peer = Peer(written_address(str((transport.get_extra_info("peername") or ("",))[0])))
        if not self._listener.admit(self):
            self.state = State.OVER
            transport.close()
            return
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", IDLE_S), ("TCP_KEEPINTVL", PROBE_S), ("TCP_KEEPCNT", PROBES)):
            if hasattr(socket, option):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        if self.tls is None:
            transport.set_write_buffer_limits(UNREAD_BYTES)
        else:
            self.state = State.HANDSHAKE
            transport.pause_reading()  # `start_tls` reads on
            self._listener.secure(self, transport, self.tls)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer of all connections. A view, because TLS slices it and writes into the slices."""
        return self._listener.read_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes that have arrived."""
        if self.state is State.OVER:
            return
        self.heard = self._listener.now()
        self.packets.feed(self._listener.buffer[:nbytes])
        if self.state is not State.HANDSHAKE:  # else the transport for answers is not there yet
            self._pump(PACKETS_AT_ONCE)

    def eof_received(self) -> bool:
        """Note that the client has sent all; answers may still reach it, but for TLS."""
        self.leave()
        return self.tls is None

    def connection_lost(self, exc: Exception | None) -> None:
        """Take what arrived before the connection was lost."""
        self.is_lost = self._is_mute = True
        if self.state is State.HANDSHAKE:
            return
        if exc is not None:
            # A write to a client that has reset ends the transport; bytes from before are in the socket.
            self._keep_rest()
        self.transport = None
        if self.state is State.OVER:
            self._forget()
        else:
            self.leave()

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read our answers."""
        self._is_unread, self._unread_since = True, self._listener.now()
        self._regulate()

    def resume_writing(self) -> None:
        """Go on reading."""
        self._is_unread = False
        self._regulate()

    # Called by the listener.

    def secured(self, transport: asyncio.Transport | None) -> None:
        """Go on when the TLS handshake is done; without a transport it has failed."""
        self.transport = transport
        if transport is None or self.state is not State.HANDSHAKE:
            self.state = State.OVER
            self._forget()
            return
        transport.set_write_buffer_limits(UNREAD_BYTES)
        self.state = State.NEW
        if self.is_lost:
            self.transport = None
            self.leave()
        else:
            self._pump(PACKETS_AT_ONCE)

    def send_settled(self) -> None:
        """Send the acknowledgements at the head of the line that are settled."""
        line, out = self.line, self._out
        while line and line[0].settled:
            out.append(line.popleft().packet)
        self._flush()
        if self._waits_for == LINE_FULL:
            asyncio.get_running_loop().call_soon(self.go_on)
        elif self.state is State.LEAVING:
            self._end_if_done()

    def go_on(self, budget: int = PACKETS_AT_ONCE) -> None:
        """Try the packet that is held once more, and go on with the next ones."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._continues = False
        if self.state is not State.OVER:
            self._pump(budget)

    def leave(self, code: int | None = None) -> None:
        """Take what has arrived, wait a moment for its commits, and close. `code` tells MQTT 5 why."""
        if self.state in {State.LEAVING, State.OVER}:
            if self.is_lost:
                self._end_if_done()
            return
        self.state = State.LEAVING
        self._deadline = self._listener.now() + self._limits.leave_s
        if code is not None and self.transport is not None:
            self.transport.pause_reading()
            self._keep_rest()
            self._out.append(disconnect(self.packets.level, code))
            self._flush()
            self._is_mute = True  # MQTT 5 section 4.13: a DISCONNECT is the last packet
        self._pump(PACKETS_AT_ONCE)

    def refuse(self, code: int, words: str) -> None:
        """Answer a fault and end the connection."""
        answer = disconnect if self.is_connected else connack
        self._out.append(answer(self.packets.level, code))
        self._listener.count_refusal(code)
        log.debug("mqtt: %s: %s", self.peer.address, words)
        self.close()

    def close(self) -> None:
        """Send what is to be sent, and close."""
        self._flush()
        self.state = State.OVER
        self._deadline = self._listener.now() + self._limits.leave_s
        if self.transport is not None:
            self.transport.close()
        if self.is_lost:
            self._forget()

    def stop_reading(self) -> None:
        """Read no more, because the listener stops."""
        if self.transport is not None and self.state is not State.HANDSHAKE:
            self.transport.pause_reading()
            self._reads = False

    def look(self, now: float) -> None:
        """End a client that is beyond a deadline. Not one that is held: its PINGREQ cannot be seen."""
        limits = self._limits
        if self.state is State.OVER or (self._is_unread and now - self._unread_since >= limits.unread_s):
            if self.transport is not None and (self.state is not State.OVER or now >= self._deadline):
                self.state = State.OVER
                self.transport.abort()
        elif self.state is State.LEAVING:
            if now >= self._deadline:
                self.close()
        elif self.state in {State.HANDSHAKE, State.NEW}:
            if now - self.began >= limits.connect_s and self.held is None:
                self._expire()
        elif self.held is None and not self._is_unread and not self._continues:
            silent = self.keep_alive_s and now - self.heard >= 1.5 * self.keep_alive_s
            packet_s = limits.packet_s + self.buffered / PACKET_BYTES_A_SECOND
            if silent or (self.buffered and now - self._packet_began >= packet_s):
                self.refuse(Code.KEEP_ALIVE, "keep-alive, or a packet that takes too long")

    def _expire(self) -> None:
        """Close, without a word, a client that does not connect."""
        if self.state is State.HANDSHAKE and self.transport is not None:
            self.transport.abort()  # ends the handshake, which ends the connection
        else:
            self.close()

    # The way of the packets.

    def _pump(self, budget: int) -> None:
        """Handle packets until one has to be held, or none is left."""
        was_held, self._waits_for = self.held is not None, FREE
        handled = 0
        try:
            while self.state is not State.OVER:
                if handled == budget:
                    self._continues = True
                    asyncio.get_running_loop().call_soon(self.go_on)
                    break
                packet = self.held or self.packets.next()
                if packet is None:
                    if self._read_rest():
                        continue
                    break
                wait = self._handle(packet)
                if wait:
                    self._hold(packet, wait)
                    break
                self.held = self._place = None
                handled += 1
        except Malformed as fault:
            self.held = None
            self.refuse(fault.code, fault.words)
        if self._out:
            self._flush()
        if self.state is State.OVER:
            return
        if was_held:
            self.heard = self._listener.now()
        if was_held or handled or not self.buffered:
            self._packet_began = self._listener.now()
        self._set_buffered(self.packets.unfinished)
        if self.state is State.LEAVING:
            if was_held and self.held is None:
                self._deadline = self._listener.now() + self._limits.leave_s
            self._end_if_done()
        else:
            self._regulate()

    def _handle(self, packet: Packet) -> float:
        match packet:
            case Publish():
                return self._publish(packet)
            case Ping():
                self._out.append(pingresp())
            case Release(mid):
                known = self.session.open.pop(mid, None) is not None
                self._out.append(pubcomp(self.packets.level, mid, 0 if known else Code.UNKNOWN_ID))
            case Filters(mid, filters, subscribe):
                return self._answer_filters(mid, filters, subscribe=subscribe)
            case Connect():
                return self._listener.connect(self, packet)
            case Goodbye(_, expiry):
                if expiry is not None:
                    self.session.keep_s = min(expiry, KEEP_S)
                self.state = State.LEAVING
                self._deadline = self._listener.now() + self._limits.leave_s
        return FREE

    def _publish(self, packet: Publish) -> float:
        """Hand over a message, and give its acknowledgement a place in the line."""
        listener, level = self._listener, self.packets.level
        qos, mid, opened = packet.qos, packet.mid, self.session.open
        if self.held is None:
            self._place = listener.topics.place_of(packet.topic)
        place = self._place
        if qos and len(self.line) >= self._limits.line:
            return LINE_FULL
        earlier = opened.get(mid) if qos == 2 else None
        if earlier is None and place is not None:
            if listener.must_wait(self):
                return NO_ROOM
            cost = READING_COST if place.key is None else VALUE_COST
        else:
            cost = UNHEARD_COST
        if qos == 2 and earlier is None and len(opened) >= self._limits.line:
            raise Malformed(Code.TOO_MANY_IDS, "too many ids of QoS 2 without PUBREL")
        if wait := listener.admission.take(self.peer, cost):
            return wait
        listener.counts.messages[qos] += 1
        if not qos:
            if place is not None:
                listener.receive(self, packet, None)
            return FREE
        code = Code.NOBODY_LISTENS if place is None and earlier is None else 0
        turn = Turn(self, (puback if qos == 1 else pubrec)(level, mid, code))
        if earlier is not None:
            turn.settled = earlier.settled
            if not turn.settled:
                earlier.followers = [*(earlier.followers or ()), turn]
        else:
            if qos == 2:
                opened[mid] = turn
            # A single value is acknowledged at once: a device that waits for each never sends the second.
            turn.settled = place is None or place.key is not None
            if place is not None:
                listener.receive(self, packet, None if turn.settled else turn)
        if turn.settled and not self.line:
            self._out.append(turn.packet)
        elif not self._is_mute:
            self.line.append(turn)
        return FREE

    def _answer_filters(self, mid: int, filters: tuple[str, ...], *, subscribe: bool) -> float:
        """Refuse filters that want to read. Accept plain command topics of devices: nothing comes on them."""
        if wait := self._listener.admission.take(self.peer, FILTER_COST * len(filters)):
            return wait
        level = self.packets.level
        if subscribe:
            wanted = self._listener.topics.is_heard
            codes = [
                Code.NOT_AUTHORISED if {"+", "#"} & set(name.split("/")) or wanted(name) else 0
                for name in filters
            ]
            self._out.append(suback(level, mid, codes))
        else:
            self._out.append(unsuback(level, mid, len(filters)))
        return FREE

    def accepted(self, packet: Connect, session: MqttSession, *, is_present: bool, given: str) -> None:
        """Answer a CONNECT that is accepted; `given` is the client id of a client that has none."""
        self.is_connected, self.session, self.client_id = True, session, packet.client_id or given
        if self.state is State.NEW:  # not of a client that has left already, unheard so far
            self.state = State.SERVING
        capped = session.keep_s if session.keep_s != packet.session_expiry else None
        keep_alive, told = packet.keep_alive, None
        if packet.level == MQTT_5 and not 0 < keep_alive <= KEEP_ALIVE_S:
            told = keep_alive = KEEP_ALIVE_S
        self.keep_alive_s = keep_alive
        self._out.append(
            connack(
                packet.level,
                0,
                is_present,
                keep_alive=told,
                session_expiry=None if capped is None else int(capped),
                client_id=given,
            )
        )

    # Holding, sending, leaving.

    def _hold(self, packet: Packet, wait: float) -> None:
        self.held, self._waits_for = packet, wait
        self._listener.counts.held += 1
        if wait == NO_ROOM:
            self._listener.queue(self)
        elif wait > 0:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(wait, HELD_AGAIN_S), self.go_on)
        if self.state is State.LEAVING:
            self._deadline = self._listener.now() + self._limits.leave_held_s

    def _regulate(self) -> None:
        """Read on, or stop reading."""
        if self.transport is None or self.state in {State.HANDSHAKE, State.OVER} or self._listener.stops:
            return
        reads = self.held is None and not self._is_unread and not self._continues
        if reads == self._reads:
            return
        self._reads = reads
        if reads:
            self.heard = self._packet_began = self._listener.now()
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def _set_buffered(self, size: int) -> None:
        listener = self._listener
        listener.buffered += size - self.buffered
        self.buffered = size
        if (
            listener.buffered > self._limits.unfinished_bytes
            and size > SMALL_BYTES
            and self.held is None
            and not self._continues
            and self.state in {State.NEW, State.SERVING}
        ):
            self.refuse(Code.TOO_MUCH, "too many unfinished packets of all clients")

    def _flush(self) -> None:
        if self._out and self.transport is not None and not self._is_mute:
            self.transport.write(b"".join(self._out))
        self._out.clear()

    def _keep_rest(self) -> None:
        """Keep a descriptor of the socket, to read what the client has sent before it is closed."""
        if self.transport is not None and self.tls is None and self._rest is None:
            descriptor = os.dup(self.transport.get_extra_info("socket").fileno())
            self._rest = socket.socket(fileno=descriptor)

    def _read_rest(self) -> bool:
        """Read once from the kept descriptor. Return whether there was something."""
        if self._rest is None:
            return False
        buffer = self._listener.read_buffer()
        try:
            size = self._rest.recv_into(buffer)
        except OSError:  # nothing is there, or the reset that ended the connection
            size = 0
        if size:
            self.packets.feed(buffer[:size])
        else:
            self._rest.close()
            self._rest = None
        return bool(size)

    def _drop_line(self) -> None:
        for turn in self.line:
            turn.connection = None
        self.line.clear()

    def _end_if_done(self) -> None:
        """Close once all is handed over, and all is acknowledged or nobody is there to hear it."""
        if self._is_mute:
            self._drop_line()
        if self.state is State.LEAVING and not (self.held is not None or self.line or self._continues):
            self.close()

    def _forget(self) -> None:
        """Leave nothing behind but what the memory keeps."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._rest is not None:
            self._rest.close()
            self._rest = None
        self.held = None
        self._drop_line()
        self._set_buffered(0)
        self._listener.forget(self)
