"""One client of the MQTT listener: its bytes, its line of acknowledgements, and what it waits for.

A client is held, that is not read from, while there is no room for its message, while its source reports too
often, or while too many of its acknowledgements are outstanding. The sockets keep the rest; nothing is
dropped. A client that leaves is heard to its last byte, even if it resets its connection.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from gateway.domain.key import ApiKey
from gateway.network import Peer, written_address
from gateway.transports.mqtt_answers import connack, disconnect
from gateway.transports.mqtt_fields import Code, Malformed
from gateway.transports.mqtt_handling import handle
from gateway.transports.mqtt_limits import (
    FREE,
    HELD_AGAIN_S,
    LINE_FULL,
    NO_ROOM,
    PACKET_BYTES_A_SECOND,
    PACKETS_AT_ONCE,
    SMALL_BYTES,
    UNREAD_BYTES,
    State,
)
from gateway.transports.mqtt_memory import MqttSession, Turn
from gateway.transports.mqtt_packets import Packet, Packets
from gateway.transports.streams import SocketRest, keep_alive
from gateway.transports.topics import Place

if TYPE_CHECKING:
    from gateway.transports.mqtt_listener import MqttListener

log = logging.getLogger(__name__)

TlsContext = Callable[[], ssl.SSLContext]
"""Gives the context for the next TLS connection: certificates are renewed while we run."""


class MqttConnection(asyncio.BufferedProtocol):
    """A connection of a client. `line` holds the acknowledgements that wait, in the order of the messages."""

    __slots__ = (
        "_continues",
        "_is_unread",
        "_packet_began",
        "_reads",
        "_rest",
        "_timer",
        "_unread_since",
        "_waits_for",
        "began",
        "buffered",
        "client_id",
        "deadline",
        "heard",
        "held",
        "is_connected",
        "is_lost",
        "is_mute",
        "keep_alive_s",
        "key",
        "limits",
        "line",
        "listener",
        "number",
        "out",
        "packets",
        "peer",
        "place",
        "session",
        "state",
        "tls",
        "transport",
    )

    def __init__(self, listener: "MqttListener", number: int, tls: "TlsContext | None") -> None:
        self.listener = listener
        self.limits = listener.limits
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
        self.is_connected = self.is_lost = self.is_mute = False
        self.buffered = 0
        self.began = self.heard = listener.now()
        self.place: Place | None = None
        self._waits_for = FREE
        self._timer: asyncio.TimerHandle | None = None
        self._continues = False
        self._reads = True
        self._is_unread = False
        self._unread_since = self._packet_began = self.deadline = 0.0
        self.out: list[bytes] = []
        self._rest: SocketRest | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether nothing of this client is under way."""
        is_busy = self.line or self.held is not None or self.buffered
        return not is_busy and self.state in {State.NEW, State.SERVING}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask the listener whether the client may stay."""
        transport = self.transport = cast(asyncio.Transport, transport)
        self.peer = Peer(written_address(str((transport.get_extra_info("peername") or ("",))[0])))
        if not self.listener.admit(self):
            self.state = State.OVER
            transport.close()
            return
        keep_alive(transport)
        if self.tls is None:
            transport.set_write_buffer_limits(UNREAD_BYTES)
        else:
            self.state = State.HANDSHAKE
            transport.pause_reading()  # `start_tls` reads on
            self.listener.secure(self, transport, self.tls())

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer of all connections. A view, because TLS slices it and writes into the slices."""
        return self.listener.read_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes that have arrived."""
        if self.state is State.OVER:
            return
        self.heard = self.listener.now()
        self.packets.feed(self.listener.buffer[:nbytes])
        if self.state is not State.HANDSHAKE:  # else the transport for answers is not there yet
            self._pump(PACKETS_AT_ONCE)

    def eof_received(self) -> bool:
        """Note that the client has sent all; answers may still reach it, but for TLS."""
        self.leave()
        return self.tls is None

    def connection_lost(self, exc: Exception | None) -> None:
        """Take what arrived before the connection was lost."""
        self.is_lost = self.is_mute = True
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
        self._is_unread, self._unread_since = True, self.listener.now()
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
        line, out = self.line, self.out
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
        self.deadline = self.listener.now() + self.limits.leave_s
        if code is not None and self.transport is not None:
            self.transport.pause_reading()
            self._keep_rest()
            self.out.append(disconnect(self.packets.level, code))
            self._flush()
            self.is_mute = True  # MQTT 5 section 4.13: a DISCONNECT is the last packet
        self._pump(PACKETS_AT_ONCE)

    def refuse(self, code: int, words: str) -> None:
        """Answer a fault and end the connection."""
        answer = disconnect if self.is_connected else connack
        self.out.append(answer(self.packets.level, code))
        self.listener.count_refusal(self, code)
        log.debug("mqtt: %s: %s", self.peer.address, words)
        self.close()

    def close(self) -> None:
        """Send what is to be sent, and close."""
        self._flush()
        self.state = State.OVER
        self.deadline = self.listener.now() + self.limits.leave_s
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
        limits = self.limits
        if self.state is State.OVER or (self._is_unread and now - self._unread_since >= limits.unread_s):
            if self.transport is not None and (self.state is not State.OVER or now >= self.deadline):
                self.state = State.OVER
                self.transport.abort()
        elif self.state is State.LEAVING:
            if now >= (self.deadline if self.held is None else self.deadline + limits.leave_held_s):
                self.close()
        elif self.state in {State.HANDSHAKE, State.NEW}:
            if now - self.began >= limits.connect_s and self.held is None:
                if self.state is State.HANDSHAKE and self.transport is not None:
                    self.transport.abort()  # ends the handshake, which ends the connection
                else:
                    self.close()
        elif self.held is None and not self._is_unread and not self._continues:
            silent = self.keep_alive_s and now - self.heard >= 1.5 * self.keep_alive_s
            packet_s = limits.packet_s + self.buffered / PACKET_BYTES_A_SECOND
            if silent or (self.buffered and now - self._packet_began >= packet_s):
                self.refuse(Code.KEEP_ALIVE, "keep-alive, or a packet that takes too long")

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
                wait = handle(self, packet)
                if wait:
                    self._hold(packet, wait)
                    break
                self.held = self.place = None
                handled += 1
        except Malformed as fault:
            self.held = None
            self.refuse(fault.code, fault.words)
        if self.out:
            self._flush()
        if self.state is State.OVER:
            return
        if was_held:
            self.heard = self.listener.now()
        if was_held or handled or not self.buffered:
            self._packet_began = self.listener.now()
        self._set_buffered(self.packets.unfinished)
        if self.state is State.LEAVING:
            if was_held and self.held is None:
                self.deadline = self.listener.now() + self.limits.leave_s
            self._end_if_done()
        else:
            self._regulate()

    # Holding, sending, leaving.

    def _hold(self, packet: Packet, wait: float) -> None:
        self.held, self._waits_for = packet, wait
        self.listener.counts.held += 1
        if wait == NO_ROOM:
            self.listener.queue(self)
        elif wait > 0:
            self._timer = asyncio.get_running_loop().call_later(max(wait, HELD_AGAIN_S), self.go_on)

    def _regulate(self) -> None:
        """Read on, or stop reading."""
        if self.transport is None or self.state in {State.HANDSHAKE, State.OVER} or self.listener.stops:
            return
        reads = self.held is None and not self._is_unread and not self._continues
        if reads == self._reads:
            return
        self._reads = reads
        if reads:
            self.heard = self._packet_began = self.listener.now()
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def _set_buffered(self, size: int) -> None:
        listener = self.listener
        listener.buffered += size - self.buffered
        self.buffered = size
        if (
            listener.buffered > self.limits.unfinished_bytes
            and size > SMALL_BYTES
            and self.held is None
            and not self._continues
            and self.state in {State.NEW, State.SERVING}
        ):
            self.refuse(Code.TOO_MUCH, "too many unfinished packets of all clients")

    def _flush(self) -> None:
        if self.out and self.transport is not None and not (self.is_mute or self.transport.is_closing()):
            self.transport.write(b"".join(self.out))
        self.out.clear()

    def _keep_rest(self) -> None:
        """Keep the socket open, to read what the client has sent before it is closed."""
        if self.transport is not None and self.tls is None and self._rest is None:
            self._rest = SocketRest(self.transport)

    def _read_rest(self) -> bool:
        """Read once from the kept socket. Return whether there was something."""
        if self._rest is None:
            return False
        buffer = self.listener.read_buffer()
        size = self._rest.read_into(buffer)
        self.packets.feed(buffer[:size])
        if not size:
            self._rest.close()
            self._rest = None
        return bool(size)

    def _drop_line(self) -> None:
        for turn in self.line:
            turn.connection = None
        self.line.clear()

    def _end_if_done(self) -> None:
        """Close once all is handed over, and all is acknowledged or nobody is there to hear it."""
        if self.is_mute:
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
        self.listener.forget(self)
