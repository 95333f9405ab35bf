"""The iSpindel's TCP service: JSON objects over a bare socket; the answer is one byte, or a new interval.

One object and CRLF, then up to 2 s of waiting for any byte (universam1/iSpindel `pio/lib/Sender/Sender.cpp`).
Objects without an end of line come from mp-se/gravitymon (`src/pushtarget.cpp`, option TCP), and as forwards
of DottoreTozzi/iSpindel-TCP-Server; the answers 0x06, 0x15 or an object with `interval` are that server's.
"""

import asyncio
import json
import logging
import socket
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from gateway.clock import Clock
from gateway.domain.payload import Payload
from gateway.errors import StoreUnavailable
from gateway.intake.intake import Intake
from gateway.intake.ordinary import Taken
from gateway.logs import MINUTE_S, RareLines
from gateway.network import Admission, Peer, written_address
from gateway.services.knocks import KnockKind, Knocks
from gateway.transports.json_stream import JsonSplitter
from gateway.transports.streams import SocketRest

log = logging.getLogger(__name__)

CHANNEL = "tcp"
HINT = "ispindel"

ACK, NAK = b"\x06", b"\x15"
"""The answers: the payload is stored, as a reading or in quarantine; or the payload could not be stored."""

INTERVAL_OVER_S, INTERVAL_UNDER_S = 10, 86_400
"""The limits, in seconds, between which an iSpindel takes an interval."""

AHEAD_BYTES = 64 * 1024
"""Bytes that may wait for an earlier object of their connection; beyond it the connection is not read."""

REST_BYTES = 16 * 1024
"""Bytes that are read at once of a connection that was reset."""

UNREAD_BYTES = 16 * 1024
"""Bytes of answers that may wait for a device; beyond it no object of the device is taken."""

STOP_S = 1.5
"""Seconds in which payloads that are being stored are answered when the listener stops."""


@dataclass(frozen=True, slots=True)
class TcpLimits:
    """Limits of the listener: connections at once, in all and of one address, and bytes of an object.

    `quiet_s` is the longest silence within an object, `life_s` the age at which a connection ends.
    """

    connections: int = 100
    per_source: int = 16
    object_bytes: int = 64 * 1024
    quiet_s: float = 5.0
    life_s: float = 300.0


class TcpConnection(asyncio.Protocol):
    """One device. Its objects are taken one after another, and each is answered after its commit.

    A device that has left gets no answer; its objects are stored all the same.
    """

    def __init__(self, listener: "TcpListener") -> None:
        self.peer = Peer("")
        self._listener = listener
        self._limits = listener.limits
        self._transport: asyncio.Transport | None = None
        self._splitter = JsonSplitter()
        self._pieces: deque[bytes] = deque()
        self._rest: SocketRest | None = None
        self._task: asyncio.Task[None] | None = None
        self._life: asyncio.TimerHandle | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._is_busy = self._is_unread = self._is_paused = self._has_ended = False
        self._is_over = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask the listener whether the device may stay."""
        transport = self._transport = cast(asyncio.Transport, transport)
        self.peer = Peer(written_address(str((transport.get_extra_info("peername") or ("",))[0])))
        if not self._listener.admit(self):
            transport.close()
            return
        self._is_over = False
        transport.set_write_buffer_limits(UNREAD_BYTES)
        self._life = asyncio.get_running_loop().call_later(self._limits.life_s, self._end_input)

    def data_received(self, data: bytes) -> None:
        """Take bytes that have arrived."""
        if self._has_ended or self._is_over:
            return
        self._pieces.extend(self._splitter.feed(data))
        self._go_on()

    def eof_received(self) -> bool:
        """Note that the device has sent all; answers may still reach it."""
        self._end_input()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Take what arrived before the connection was lost."""
        if exc is not None and self._transport is not None and not self._is_over:
            # A write to a device that has reset ends the transport; bytes from before are in the socket.
            self._rest = SocketRest(self._transport)
        self._transport = None
        if self._rest is None:
            self._end_input()
        else:
            self._go_on()

    def pause_writing(self) -> None:
        """Take nothing more of a device that does not read our answers; end it if that lasts."""
        self._is_unread = True
        self._wait(self._abort)

    def resume_writing(self) -> None:
        """Go on taking objects."""
        self._is_unread = False
        self._go_on()

    def stop(self) -> None:
        """Close, unless an object is being stored: its answer closes then."""
        if not self._is_busy:
            self._end()

    def _end_input(self) -> None:
        """Take the bytes that are there, whole objects or not, and close."""
        self._has_ended = True
        self._pieces.extend(self._splitter.flush())
        self._go_on()

    def _flush(self) -> None:
        """Take an object that was broken off, after a silence."""
        self._pieces.extend(self._splitter.flush())
        self._go_on()

    def _go_on(self) -> None:
        """Take the next object, if none is under way, or wait for more bytes."""
        while not (self._is_over or self._is_busy or self._is_unread):
            self._wait(None)
            if self._pieces:
                self._take(self._pieces.popleft())
            elif self._rest is not None:
                self._read_rest(self._rest)
            elif self._has_ended:
                self._end()
            elif len(self._splitter) > self._limits.object_bytes:
                self._refuse(KnockKind.TOO_LARGE)
            else:
                if self._splitter:
                    self._wait(self._flush)
                break
        self._regulate()

    def _take(self, body: bytes) -> None:
        if len(body) > self._limits.object_bytes:
            self._refuse(KnockKind.TOO_LARGE)
            return
        if self._listener.admission.take(self.peer):
            self._refuse(KnockKind.TOO_OFTEN)
            return
        payload = Payload(body, self._listener.clock.now(), CHANNEL, source=self.peer.address, hint=HINT)
        self._is_busy = True
        try:
            if not self._listener.intake.take_now(payload, self._settle):
                self._task = asyncio.create_task(self._take_in_steps(payload), name="tcp-payload")
        except Exception as error:
            self._settle(error)

    async def _take_in_steps(self, payload: Payload) -> None:
        try:
            result: Taken | Exception = await self._listener.intake.take_in_steps(payload)
        except Exception as error:
            result = error
        self._task = None
        self._settle(result)

    def _settle(self, result: Taken | Exception) -> None:
        """Answer an object, and go on with the next one."""
        self._is_busy = False
        if isinstance(result, StoreUnavailable):
            self._answer(NAK)
        elif isinstance(result, Exception):
            log.error("tcp: a connection failed", exc_info=result)
            self._end()
        else:
            interval = result.interval_s
            if interval is not None and INTERVAL_OVER_S < interval < INTERVAL_UNDER_S:
                self._answer(json.dumps({"interval": interval}, separators=(",", ":")).encode())
            else:
                self._answer(ACK)
        self._go_on()

    def _answer(self, answer: bytes) -> None:
        """Send an answer; after one that says no, or once we stop, close."""
        if self._transport is not None:
            self._transport.write(answer)
        if answer == NAK or self._listener.stops:
            self._end()

    def _refuse(self, kind: KnockKind) -> None:
        """Refuse an object that is not kept."""
        self._listener.note_knock(kind, self.peer)
        self._answer(NAK)

    def _read_rest(self, rest: SocketRest) -> None:
        """Read what a device sent before it reset the connection."""
        buffer = bytearray(REST_BYTES)
        size = rest.read_into(memoryview(buffer))
        if size:
            self._pieces.extend(self._splitter.feed(bytes(buffer[:size])))
            if len(self._splitter) <= self._limits.object_bytes:
                return
        rest.close()
        self._rest = None
        self._end_input()

    def _regulate(self) -> None:
        """Read on, or stop reading while too much waits."""
        if self._transport is None or self._is_over:
            return
        waiting = (self._is_busy or self._is_unread) and (
            len(self._splitter) + sum(map(len, self._pieces)) > AHEAD_BYTES
        )
        if waiting != self._is_paused:
            self._is_paused = waiting
            (self._transport.pause_reading if waiting else self._transport.resume_reading)()

    def _wait(self, then: Callable[[], None] | None) -> None:
        """Call `then` after a silence, in place of what was to be called."""
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None
        if then is not None:
            self._quiet = asyncio.get_running_loop().call_later(self._limits.quiet_s, then)

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._end()

    def _end(self) -> None:
        """Close, and leave nothing behind."""
        if self._is_over:
            return
        self._is_over = True
        self._wait(None)
        if self._life is not None:
            self._life.cancel()
        if self._rest is not None:
            self._rest.close()
            self._rest = None
        self._pieces.clear()
        if self._transport is not None:
            self._transport.close()
            if self._transport.get_write_buffer_size():
                # A device that never reads would keep the connection for ever.
                asyncio.get_running_loop().call_later(self._limits.quiet_s, self._transport.abort)
        self._listener.forget(self)


class TcpListener:
    """Takes JSON objects from devices of the local network until it is stopped."""

    def __init__(
        self,
        intake: Intake,
        clock: Clock,
        admission: Admission,
        limits: TcpLimits | None = None,
        knocks: Knocks | None = None,
    ) -> None:
        self._knocks = knocks
        self.intake = intake
        self.clock = clock
        self.admission = admission
        self.limits = limits or TcpLimits()
        self.connections: set[TcpConnection] = set()
        self.stops = False
        self._sources: Counter[str] = Counter()
        self._crowds = RareLines(clock.monotonic, MINUTE_S)
        self._foreign = RareLines(clock.monotonic)
        self._ended = asyncio.Event()
        self._servers: list[asyncio.Server] = []

    async def start(self, listener: socket.socket) -> None:
        """Accept connections on a listening socket; call it once for each socket."""
        server = await asyncio.get_running_loop().create_server(lambda: TcpConnection(self), sock=listener)
        self._servers.append(server)

    async def stop(self) -> None:
        """Close the listening sockets. Payloads that are being stored are stored and answered."""
        self.stops = True
        for server in self._servers:
            server.close()
        for connection in list(self.connections):
            connection.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                while self.connections:
                    self._ended.clear()
                    await self._ended.wait()

    # What a connection asks.

    def admit(self, connection: TcpConnection) -> bool:
        """Count a new connection, and return whether it may stay."""
        peer = connection.peer
        full = len(self.connections) >= self.limits.connections
        crowded = self._sources[peer.source] >= self.limits.per_source and not peer.is_loopback
        if (full or crowded) and self._crowds.due(""):
            sender = "all" if full else peer.source
            log.warning("tcp: connections of %s are refused: too many are open", sender)
        if self.stops or full or crowded:
            self.note_knock(KnockKind.TOO_MANY, peer)
            return False
        if not peer.is_neighbour:
            self.note_knock(KnockKind.STRANGER, peer)
            if self._foreign.due(peer.source):
                log.warning("tcp: %s is refused: not an address of the local network", peer.address)
            return False
        self.connections.add(connection)
        self._sources[peer.source] += 1
        return True

    def note_knock(self, kind: KnockKind, peer: Peer) -> None:
        """Note an attempt that leaves nothing else behind."""
        if self._knocks is not None:
            self._knocks.add(kind, peer.address)

    def forget(self, connection: TcpConnection) -> None:
        """Forget a connection that is over."""
        self.connections.discard(connection)
        self._sources[connection.peer.source] -= 1
        self._sources += Counter()  # drops those at zero
        self._ended.set()
