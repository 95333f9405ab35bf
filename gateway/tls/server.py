"""The TLS server: every connection is counted by its address first, and shakes hands afterwards.

Not asyncio's `create_server(ssl=...)`, because that shows a connection only after its handshake. Until then
nobody would count it.
"""

import asyncio
import logging
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable

from gateway.network import LOOPBACK, TokenBuckets, source_of, written_address

log = logging.getLogger(__name__)

HANDSHAKE_S = 10.0
"""Seconds that a handshake may take."""

GOODBYE_S = 5.0
"""Seconds that a client may take to end TLS once the connection closes."""

READ_BYTES = 32 * 1024
"""Bytes of a connection that are read at once: two TLS records."""

# asyncio keeps 256 KiB for reading for each TLS connection, and has no option for it. With this each takes
# 60 kB instead of 280 kB.
sslproto.SSLProtocol.max_size = READ_BYTES

RETRY_S = 1.0
"""Seconds without accepting after the system had no descriptor or no memory for a connection."""

HANDSHAKE_RATE, HANDSHAKE_BURST = 5.0, 40.0
"""Handshakes of one source: each second in the long run, and at once. Each costs more than a reading."""

Admit = Callable[[str, Callable[[], object]], asyncio.BaseProtocol | None]
"""Admits a connection from an address, or returns None. The function that it is given ends the handshake.

The protocol's `connection_lost` is called once the connection has ended, also if the handshake failed and
`connection_made` was never called.
"""


class HandshakeRate:
    """The rate of handshakes of each source. Loopback has none."""

    def __init__(self) -> None:
        self._buckets = TokenBuckets(HANDSHAKE_RATE, HANDSHAKE_BURST)

    async def wait(self, address: str) -> None:
        """Wait until the source of this address may shake hands; `TimeoutError` if that takes too long."""
        if address in LOOPBACK:
            return
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(HANDSHAKE_S):
            while True:
                wait_s = self._buckets.take(source_of(address), loop.time())
                if not wait_s:
                    return
                await asyncio.sleep(wait_s)


class TlsServer:
    """Accepts the connections of a listening socket until it is closed."""

    def __init__(self, listener: socket.socket, context: Callable[[], ssl.SSLContext], admit: Admit) -> None:
        self._listener = listener
        self._context = context
        self._admit = admit
        self._handshakes: set[asyncio.Task[None]] = set()
        self._rate = HandshakeRate()
        listener.setblocking(False)
        self._accepting = asyncio.get_running_loop().create_task(self._accept(), name="tls accept")

    def close(self) -> None:
        """Accept no more, and end the handshakes under way. Connections go on."""
        self._accepting.cancel()
        for task in self._handshakes:
            task.cancel()
        self._listener.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(self._listener)
            except ConnectionError:
                continue  # the client has left before we got to it
            except OSError as error:
                log.warning("tls: no connection can be accepted: %s", error.strerror)
                await asyncio.sleep(RETRY_S)
                continue
            try:
                self._begin(connection, written_address(str(address[0])))
            except Exception as error:  # one connection must not end the listener
                connection.close()
                loop.call_exception_handler({"exception": error, "task": self._accepting})
            # A full backlog is accepted without a wait, and nothing else would run until it is empty.
            await asyncio.sleep(0)

    def _begin(self, connection: socket.socket, address: str) -> None:
        tasks: list[asyncio.Task[None]] = []
        protocol = self._admit(address, lambda: tasks[0].cancel())
        if protocol is None:
            connection.close()
            return
        task = asyncio.get_running_loop().create_task(self._shake_hands(connection, protocol, address))
        tasks.append(task)
        self._handshakes.add(task)

        def end(ended: asyncio.Task[None]) -> None:
            self._handshakes.discard(ended)
            failure = None if ended.cancelled() else ended.exception()
            if failure is not None:
                log.error("tls: a handshake with %s failed: %r", address, failure)
            if ended.cancelled() or failure is not None:
                connection.close()  # perhaps the task had not begun, and nothing else has closed the socket
                protocol.connection_lost(None)

        task.add_done_callback(end)

    async def _shake_hands(
        self, connection: socket.socket, protocol: asyncio.BaseProtocol, address: str
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self._rate.wait(address)
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=self._context(),
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=GOODBYE_S,
            )
        except OSError as error:  # a `TimeoutError`, too, and a client without TLS or without trust in us
            # No more than debug, because GravityMon tries out TLS and leaves in the midst of it.
            log.debug("tls: no handshake with %s: %s", address, error)
            connection.close()
            protocol.connection_lost(None)
            return
        # asyncio reports a connection that was aborted during its handshake as made, but calls nobody.
        if transport.get_extra_info("cipher") is None:
            protocol.connection_lost(None)
