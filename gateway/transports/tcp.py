"""The iSpindel's TCP service: JSON objects over a bare socket; the answer is one byte, or a new interval.

One object and CRLF, then up to 2 s of waiting for any byte (universam1/iSpindel `pio/lib/Sender/Sender.cpp`).
Objects without an end of line come from mp-se/gravitymon (`src/pushtarget.cpp`, option TCP), and as forwards
of DottoreTozzi/iSpindel-TCP-Server; the answers 0x06, 0x15 or an object with `interval` are that server's.
"""

import asyncio
import json
import logging
import socket
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.domain.payload import Payload
from gateway.errors import StoreUnavailable
from gateway.intake.intake import Intake
from gateway.logs import MINUTE_S, RareLines
from gateway.network import Admission, Peer, written_address
from gateway.transports.json_stream import JsonSplitter
from gateway.transports.streams import protocol_factory

log = logging.getLogger(__name__)

CHANNEL = "tcp"
HINT = "ispindel"

ACK, NAK = b"\x06", b"\x15"
"""The answers: the payload is stored, as a reading or in quarantine; or the payload could not be stored."""

INTERVAL_OVER_S, INTERVAL_UNDER_S = 10, 86_400
"""The limits, in seconds, between which an iSpindel takes an interval."""

READ_BYTES = 16 * 1024
STOP_S = 1.5


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


class TcpListener:
    """Takes JSON objects from devices of the local network until it is stopped."""

    def __init__(
        self, intake: Intake, clock: Clock, admission: Admission, limits: TcpLimits | None = None
    ) -> None:
        self._intake = intake
        self._clock = clock
        self._limits = limits or TcpLimits()
        self._admission = admission
        self._sources: Counter[str] = Counter()
        self.connections: set[asyncio.Task[None]] = set()
        self._reading: set[asyncio.Task[None]] = set()
        self._crowds = RareLines(clock.monotonic, MINUTE_S)
        self._foreign = RareLines(clock.monotonic)
        self._stopping = False
        self._servers: list[asyncio.Server] = []

    async def start(self, listener: socket.socket) -> None:
        """Accept connections on a listening socket; call it once for each socket."""
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_server(protocol_factory(self._accept), sock=listener))

    async def stop(self) -> None:
        """Close the listening sockets. Payloads that are being stored are stored and answered."""
        self._stopping = True
        for server in self._servers:
            server.close()
        for task in list(self._reading):
            task.cancel()
        if self.connections:
            await asyncio.wait(set(self.connections), timeout=STOP_S)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        peer = Peer(written_address(str((writer.get_extra_info("peername") or ("",))[0])))
        if task is None or not self._is_welcome(peer):
            writer.close()
            return
        self.connections.add(task)
        self._sources[peer.source] += 1
        try:
            await self._serve(reader, writer, task, peer)
        except (asyncio.CancelledError, OSError, TimeoutError):
            pass  # we stop, or the device does not read the answer
        except Exception:
            log.exception("tcp: a connection failed")
        finally:
            self.connections.discard(task)
            self._sources[peer.source] -= 1
            self._sources += Counter()  # drops those at zero
            writer.close()

    def _is_welcome(self, peer: Peer) -> bool:
        full = len(self.connections) >= self._limits.connections
        crowded = self._sources[peer.source] >= self._limits.per_source and not peer.is_loopback
        if (full or crowded) and self._crowds.due(""):
            sender = "all" if full else peer.source
            log.warning("tcp: connections of %s are refused: too many are open", sender)
        if self._stopping or full or crowded:
            return False
        if peer.is_neighbour:
            return True
        if self._foreign.due(peer.source):
            log.warning("tcp: %s is refused: not an address of the local network", peer.address)
        return False

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        task: asyncio.Task[None],
        peer: Peer,
    ) -> None:
        """Read object by object and answer each after its commit."""
        splitter = JsonSplitter()
        ends_at = self._clock.monotonic() + self._limits.life_s
        while not self._stopping:
            left_s = max(0.0, ends_at - self._clock.monotonic())
            wait_s = min(left_s, self._limits.quiet_s) if splitter else left_s
            data = await self._read(reader, task, wait_s)
            for piece in splitter.feed(data) if data else splitter.flush():
                answer = await self._answer(piece, peer)
                await self._write(writer, answer)
                if answer == NAK or self._stopping:
                    return
            if data == b"" or self._clock.monotonic() >= ends_at:
                return
            if len(splitter) > self._limits.object_bytes:
                await self._write(writer, NAK)
                return

    async def _write(self, writer: asyncio.StreamWriter, answer: bytes) -> None:
        """Write an answer. A device that has left gets none; its objects are stored all the same."""
        writer.write(answer)
        with suppress(ConnectionError):
            async with asyncio.timeout(self._limits.quiet_s):
                await writer.drain()

    async def _read(
        self, reader: asyncio.StreamReader, task: asyncio.Task[None], wait_s: float
    ) -> bytes | None:
        """Return the next bytes: `b""` at the end of the connection, None after `wait_s` of silence."""
        self._reading.add(task)
        try:
            async with asyncio.timeout(wait_s):
                return await reader.read(READ_BYTES)
        except TimeoutError:
            return None
        finally:
            self._reading.discard(task)

    async def _answer(self, body: bytes, peer: Peer) -> bytes:
        if len(body) > self._limits.object_bytes:
            return NAK
        if self._admission.take(peer):
            return NAK
        payload = Payload(body, self._clock.now(), CHANNEL, source=peer.address, hint=HINT)
        try:
            interval = (await self._intake.take(payload)).interval_s
        except StoreUnavailable:
            return NAK
        if interval is not None and INTERVAL_OVER_S < interval < INTERVAL_UNDER_S:
            return json.dumps({"interval": interval}, separators=(",", ":")).encode()
        return ACK
