"""The MQTT listener: takes messages of MQTT 3.1, 3.1.1 and 5, and never delivers any.

It is the source of messages of `MqttIngest`. PUBACK and PUBREC leave after the commit, in the order of the
messages of a connection. All bounds are here and in `MqttLimits`: what is beyond a bound is not read, so the
sender keeps it. Neighbours need no key; a password that begins like one of our keys must be one.
"""

import asyncio
import contextlib
import itertools
import logging
import secrets
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence

from gateway.clock import Clock
from gateway.network import Admission, source_of
from gateway.services.access import Access
from gateway.services.knocks import Knocks
from gateway.stats import Stats
from gateway.tls.server import GOODBYE_S, HandshakeRate
from gateway.transports.mqtt_connection import MqttConnection, TlsContext
from gateway.transports.mqtt_door import MqttDoor
from gateway.transports.mqtt_fields import Code
from gateway.transports.mqtt_handling import accept
from gateway.transports.mqtt_limits import (
    CONNECT_COST,
    FREE,
    NO_ROOM,
    SHARE,
    SHARE_AGAIN_S,
    SMALL_BYTES,
    MqttLimits,
    State,
)
from gateway.transports.mqtt_link import InFlight, Message
from gateway.transports.mqtt_memory import KEEP_S, MqttMemory, MqttSession, SessionId, Turn
from gateway.transports.mqtt_packets import Connect, Publish
from gateway.transports.topics import TopicMap

log = logging.getLogger(__name__)

READ_BYTES = 64 * 1024
"""Bytes of the one buffer that all connections read into."""

WAITING_AT_ONCE = 64
"""Packets that a client which waited for room may send before the next has its turn."""


class MqttListener:
    """Takes messages on any number of listening sockets, plain and TLS. It belongs to one event loop."""

    copies = False

    def __init__(
        self,
        topics: TopicMap,
        clock: Clock,
        admission: Admission,
        stats: Stats,
        access: Access | None = None,
        *,
        limits: MqttLimits | None = None,
        require_key: bool = False,
        knocks: Knocks | None = None,
    ) -> None:
        self.topics = topics
        self.admission = admission
        self.limits = limits or MqttLimits()
        self.counts = stats.mqtt
        self.now = clock.monotonic
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.buffered = 0
        """Bytes that wait, of all connections together: of unfinished packets, or behind one that is held."""
        self.stops = False
        self.state = "not started"
        self.is_receiving = False
        self.on_state: Callable[[str], None] | None = None
        self._clock = clock
        self._door = MqttDoor(clock, stats.mqtt, access, self.limits, require_key=require_key, knocks=knocks)
        self._servers: list[asyncio.Server] = []
        self._handshakes: set[asyncio.Task[None]] = set()
        self._handshake_rate = HandshakeRate()
        self._timer: asyncio.TimerHandle | None = None
        self._numbers = itertools.count(1)
        self._sessions: dict[SessionId, MqttConnection] = {}
        self._memory = MqttMemory()
        self._inbox: list[Message] = []
        self._arrived = asyncio.Event()
        self._acknowledged = asyncio.Event()
        self._pending: dict[int, Turn] = {}
        self._in_flight = InFlight()
        self._shares: dict[str, InFlight] = {}
        self._waiting: deque[MqttConnection] = deque()
        self._served: MqttConnection | None = None
        self._refusing_since: float | None = None

    async def start(self, listener: socket.socket, tls: TlsContext | None = None, words: str = "") -> None:
        """Accept clients on a listening socket, with TLS if `tls` gives a context; `words` tell where."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: MqttConnection(self, next(self._numbers), tls), sock=listener
        )
        self._servers.append(server)
        if self._timer is None:
            self._timer = loop.call_later(self.limits.look_s, self._look)
        words = words or f"port {listener.getsockname()[1]}"
        self.state = f"{self.state}, {words}" if self.is_receiving else f"listening on {words}"
        self.is_receiving = True
        if self.on_state is not None:
            self.on_state(self.state)

    async def stop(self) -> None:
        """Take no more, acknowledge what is committed within a moment, and disconnect all clients."""
        self.stops = True
        for server in self._servers:
            server.close()
        self._servers.clear()
        if self._timer is not None:
            self._timer.cancel()
        connections = self._door.all()
        for connection in connections:
            connection.stop_reading()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.stop_s):
                while any(connection.line for connection in self._door.all()):
                    self._acknowledged.clear()
                    await self._acknowledged.wait()
        for connection in self._door.all():
            if connection.is_connected:
                connection.refuse(Code.STOPPING, "the gateway stops")
            elif connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)
        if self._handshakes:
            await asyncio.wait(self._handshakes, timeout=self.limits.stop_s)

    # A source of messages.

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
        """Acknowledge messages that are dealt with; clients that wait for room go on, oldest first."""
        reached: dict[MqttConnection, None] = {}
        for message in messages:
            turn = self._take_back(message)
            if turn is not None:
                turn.settle()
                for each in (turn, *(turn.followers or ())):
                    if each.connection is not None:
                        reached[each.connection] = None
        for connection in reached:
            connection.send_settled()
        while self._waiting and not self._in_flight.is_full():
            self._served = self._waiting.popleft()
            self._served.go_on(WAITING_AT_ONCE)
            self._served = None
        self._acknowledged.set()

    def refuse(self, messages: Sequence[Message]) -> bool:
        """End the connections of messages for which the store has no room; QoS 0 has nothing to repeat."""
        numbers = {message.connection for message in messages}
        for message in messages:
            turn = self._take_back(message)
            if turn is not None:
                turn.refused = True
        for connection in self._door.all():
            if connection.number in numbers and connection.state is not State.OVER:
                connection.refuse(Code.TOO_MUCH, "the store has no room")
        self.ack([])
        return True

    def note_store(self, *, refuses: bool) -> None:
        """Note whether the store refuses readings: if that lasts, clients are told."""
        if not refuses:
            self._refusing_since = None
        elif self._refusing_since is None:
            self._refusing_since = self.now()

    @property
    def in_flight(self) -> int:
        """Return the number of messages that are handed over and not acknowledged."""
        return self._in_flight.messages

    def is_full(self) -> bool:
        """Return whether clients have to wait before they send more."""
        return self._in_flight.is_full()

    # What a connection asks.

    def read_buffer(self) -> memoryview:
        """Return the buffer to read into: a small one while much of others waits."""
        return self.buffer if self.buffered < self.limits.unfinished_bytes // 2 else self.buffer[:SMALL_BYTES]

    def admit(self, connection: MqttConnection) -> bool:
        """Count a new connection, and return whether it may stay."""
        return not self.stops and self._door.admit(connection)

    def secure(self, connection: MqttConnection, raw: asyncio.Transport, tls: ssl.SSLContext) -> None:
        """Begin the TLS handshake of a connection."""
        handshake = self._secure(connection, raw, tls)
        task = asyncio.get_running_loop().create_task(handshake, name="mqtt-handshake")
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    def connect(self, connection: MqttConnection, packet: Connect) -> float:
        """Answer a CONNECT, or return the seconds that the client has to wait."""
        if wait := self.admission.take(connection.peer, CONNECT_COST):
            return wait
        if self._refuses:
            connection.refuse(Code.NOT_NOW, "the store refuses readings")
            return FREE
        code, connection.key = self._door.judge(connection, packet)
        if code:
            connection.refuse(code, "no key that fits")
            return FREE
        given = "" if packet.client_id or packet.level < 5 else f"hg-{secrets.token_hex(8)}"
        name = (packet.client_id or given, connection.peer.source)
        session = self._memory.resume(name, self.now())
        other = self._sessions.pop(name, None)
        if other is not None:
            session = other.session
            other.leave(Code.TAKEN_OVER)
        if packet.clean:
            session = None
        is_present = session is not None
        session = session or MqttSession(name)
        session.keep_s = min(packet.session_expiry, KEEP_S)
        if session.keep_s:
            self._sessions[name] = connection
        if packet.client_id:
            same_id = (each for each in self._door.all() if each.client_id == packet.client_id)
            addresses = {connection.peer.address, *(each.peer.address for each in same_id)}
            if len(addresses) > 1:
                self.counts.note_shared(packet.client_id, addresses)
        accept(connection, packet, session, is_present=is_present, given=given)
        return FREE

    def wait_for_room(self, connection: MqttConnection) -> float:
        """Return `FREE` if there is room for a message, else why or for how long it has to wait."""
        if self._in_flight.is_full() or (self._waiting and self._served is not connection):
            return NO_ROOM
        if not self._shares:  # only this machine sends, and has no share
            return FREE
        share = self._shares.get(connection.peer.source)
        # By time, not in the line of those that wait for room: there it would keep others back.
        return SHARE_AGAIN_S if share is not None and share.is_full(SHARE) else FREE

    @property
    def open_ids(self) -> int:
        """Return how many ids of QoS 2 wait for a PUBREL."""
        return sum(len(connection.session.open) for connection in self._door.all())

    def queue(self, connection: MqttConnection) -> None:
        """Let a client wait for room."""
        self._waiting.append(connection)

    def receive(self, connection: MqttConnection, packet: Publish, turn: Turn | None) -> None:
        """Hand a message over. `turn` is settled when the message is stored."""
        peer, in_flight = connection.peer, self._in_flight
        message = Message(
            packet.topic,
            packet.payload,
            packet.qos,
            False,  # not the packet's flag: whoever publishes is live, and nothing was kept
            packet.dup,
            packet.mid,
            self._clock.now(),
            connection.number,
            in_flight.added + 1,
            peer.address,
            connection.key,
        )
        in_flight.add(message)
        if not peer.is_loopback:
            self._shares.setdefault(peer.source, InFlight()).add(message)
        if not self._inbox:
            self._arrived.set()
        self._inbox.append(message)
        if turn is not None:
            self._pending[message.number] = turn

    def count_refusal(self, connection: MqttConnection, code: int) -> None:
        """Count a connection that is refused or ended with this code."""
        self.counts.refused[Code(code).name.lower()] += 1
        if not connection.is_connected and code != Code.STOPPING:
            self._door.note_refused(connection.peer, code, connection.packets.first_byte)

    def forget(self, connection: MqttConnection) -> None:
        """Forget a connection that is over, but not its session."""
        self._door.forget(connection)
        session = connection.session
        if self._sessions.get(session.name) is connection:
            del self._sessions[session.name]
            if session.keep_s:
                self._memory.keep(session, self.now())

    # Private.

    def _take_back(self, message: Message) -> Turn | None:
        """Count a message that is no longer in flight; return its turn, if it has one."""
        self._in_flight.remove(message)
        if self._shares:
            source = source_of(message.source)
            share = self._shares.get(source)
            if share is not None:
                share.remove(message)
                if not share.messages:
                    del self._shares[source]
        return self._pending.pop(message.number, None)

    @property
    def _refuses(self) -> bool:
        since = self._refusing_since
        return since is not None and self.now() - since >= self.limits.refusing_s

    async def _secure(self, connection: MqttConnection, raw: asyncio.Transport, tls: ssl.SSLContext) -> None:
        """Do the TLS handshake. A client that fails makes no log line: some firmware only probes."""
        secured, limit_s = None, self.limits.connect_s
        with contextlib.suppress(OSError, EOFError):
            await self._handshake_rate.wait(connection.peer.address)
            secured = await asyncio.get_running_loop().start_tls(
                raw,
                connection,
                tls,
                server_side=True,
                ssl_handshake_timeout=limit_s,
                ssl_shutdown_timeout=GOODBYE_S,
            )
        connection.secured(secured)

    def _look(self) -> None:
        """Look at all clients once a second: deadlines, revoked keys, what the memory may forget."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self.limits.look_s, self._look)  # first: it goes on whatever happens
        now = self.now()
        valid = self._door.valid_keys()
        for connection in self._door.all():
            connection.look(now)
            if connection.state is not State.SERVING:
                continue
            if connection.key is not None and connection.key.sha256 not in valid:
                connection.refuse(Code.NOT_AUTHORISED, "its key is no longer valid")
            elif self._refuses and connection.line:
                connection.refuse(Code.TOO_MUCH, "the store refuses readings")
        self._memory.forget_ended(now)
