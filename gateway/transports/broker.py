"""The embedded broker: amqtt in this process, for devices of the local network.

It acknowledges stored messages (`embedded_bridge`). It keeps nothing for clients that are away or over a
restart, and retains nothing; a real broker with `--mqtt-url` does not have these limits.

The listening socket is ours, and amqtt gets the connections. So a taken port raises an exception of its own,
port 0 works, and no byte of a foreign address reaches amqtt. An authentication plugin would be too late:
amqtt deletes a session of the same client id before it authenticates the client.
"""

import asyncio
import errno
import logging
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gateway.errors import PortTaken
from gateway.network import is_local
from gateway.transports.embedded_bridge import EmbeddedBridge, SessionQueue
from gateway.transports.mqtt_link import PACKET_BYTES
from gateway.transports.streams import protocol_factory

if TYPE_CHECKING:
    from amqtt.broker import Broker
    from amqtt.session import Session

log = logging.getLogger(__name__)

WHAT = "MQTT"
REMEDY = (
    "use that broker with --mqtt-url mqtt://127.0.0.1:{port}, another port with --mqtt-port, or --no-mqtt"
)

LISTENER = "default"
CONNECTIONS = 500
"""Clients at once; devices stay for a second, bridges and browsers much longer."""

IDLE_S, PROBES, PROBE_S = 60, 3, 20
"""TCP keep-alive: without it amqtt keeps a vanished client for ever, whatever keep-alive it announced."""

CONNECT_S = 10.0
"""Seconds in which a client must send CONNECT."""

STOP_S = 1.5
"""Seconds for amqtt to stop."""


class EmbeddedBroker:
    """An MQTT 3.1.1 broker without passwords; `port` is the real one after `start`."""

    def __init__(self, host: str, port: int, bridge: EmbeddedBridge) -> None:
        self.host = host
        self.port = port
        self._bridge = bridge
        self._broker: Broker | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._refused: set[str] = set()

    async def start(self) -> None:
        """Listen. If another broker has the port, `PortTaken` names the remedy."""
        try:
            server = await asyncio.get_running_loop().create_server(
                protocol_factory(self._accept), self.host or None, self.port, start_serving=False
            )
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise PortTaken(WHAT, self.host, self.port, REMEDY.format(port=self.port)) from error
        try:
            self._broker = await _new_broker(self._bridge)
        except BaseException:
            server.close()
            raise
        self._server = server
        self.port = server.sockets[0].getsockname()[1]
        await server.start_serving()
        self._bridge.set_state(f"connected to the embedded broker on port {self.port}")
        log.info("mqtt: embedded broker listens on %s:%d", self.host or "*", self.port)

    async def stop(self) -> None:
        """Disconnect all clients."""
        if self._server is None or self._broker is None:
            return
        self._server.close()
        tasks = set(self._connections)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_S / 2)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._broker.shutdown(), STOP_S)
        self._server = self._broker = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        address = (writer.get_extra_info("peername") or ("",))[0]
        if task is None or self._broker is None or not self._is_welcome(address):
            writer.close()
            return
        self._connections.add(task)
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", IDLE_S), ("TCP_KEEPINTVL", PROBE_S), ("TCP_KEEPCNT", PROBES)):
            if hasattr(socket, option):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        try:
            await _serve(self._broker, reader, writer)
        except asyncio.CancelledError:
            pass  # `stop`; asyncio's stream server would report it as an error
        except Exception as error:  # whatever amqtt makes of bytes that are not MQTT
            log.debug("mqtt: embedded broker dropped %s: %r", address, error)
        finally:
            self._connections.discard(task)
            writer.close()

    def _is_welcome(self, address: str) -> bool:
        if len(self._connections) >= CONNECTIONS:
            return False
        if is_local(address):
            return True
        if address not in self._refused and len(self._refused) < CONNECTIONS:
            self._refused.add(address)  # once for each, or a stranger could fill the disk with log lines
            log.warning("mqtt: embedded broker refuses %s: not an address of the local network", address)
        return False


async def _new_broker(bridge: EmbeddedBridge) -> "Broker":
    # Not above, because these modules cost 5 MB, which a gateway with another broker or none should not pay.
    from amqtt.broker import Broker
    from amqtt.contexts import BrokerConfig, ListenerConfig, ListenerType

    # amqtt logs WARNING for every client that leaves without DISCONNECT and ERROR with a traceback for every
    # late acknowledgement; the user can do nothing about either.
    logging.getLogger("amqtt").setLevel(logging.CRITICAL)
    logging.getLogger("transitions").setLevel(logging.WARNING)
    config = BrokerConfig(
        listeners={LISTENER: ListenerConfig(type=ListenerType.EXTERNAL)},
        # Admits all clients. Not AnonymousAuthPlugin, because it ends sessions with their connection.
        plugins={"amqtt.plugins.base.BaseAuthPlugin": {}},
    )

    class Forgetful(Broker):
        """Retains nothing: amqtt sends retained messages to every client that connects, subscribed or not.

        A device does not read them, and closing a connection with bytes unread resets it: its own
        messages, sent and not yet read, would be lost.
        """

        async def retain_message(self, *_: object, **__: object) -> None:
            pass

        async def _retain_broadcast_message(self, *_: object, **__: object) -> None:
            """Retain nothing for clients that are away: amqtt has no bound for it."""

        async def _handle_client_session(
            self, reader: Any, writer: Any, client_session: "Session", *rest: Any, **more: Any
        ) -> None:
            queue = SessionQueue(bridge)
            client_session.delivered_message_queue = queue
            reader.queue = queue
            await super()._handle_client_session(reader, writer, client_session, *rest, **more)

    broker = Forgetful(config)
    await broker.start()
    return broker


async def _serve(broker: "Broker", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    from amqtt.adapters import StreamReaderAdapter, StreamWriterAdapter

    class BrokerReader(StreamReaderAdapter):
        """Lets other tasks run before each read, and reads no more than there is room for.

        Since Python 3.12 `wait_for` does not let them run if the bytes are there already. amqtt would then
        read on to the DISCONNECT, and cancel PUBLISH packets before it that it has not handled.
        """

        queue: SessionQueue | None = None
        is_over = False

        async def read(self, n: int = -1) -> bytes:
            await asyncio.sleep(0)
            if self.is_over or n > PACKET_BYTES:
                self.is_over = True
                raise ConnectionResetError  # the one error after which amqtt reads no further
            if self.queue is not None:
                await self.queue.wait_for_room()
                return await super().read(n)
            async with asyncio.timeout(CONNECT_S):
                return await super().read(n)

    class BrokerWriter(StreamWriterAdapter):
        """Ignores that a client is gone: nothing in amqtt handles that exception."""

        async def drain(self) -> None:
            with suppress(OSError):
                await super().drain()

        async def close(self) -> None:
            with suppress(OSError):
                await super().close()

    await broker.external_connected(BrokerReader(reader), BrokerWriter(writer), LISTENER)
