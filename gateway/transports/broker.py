"""The broker for those who have none: amqtt in this process, for devices of the local network.

It acknowledges what is stored (`embedded_bridge`). Its limits, which `--mqtt-url` with a real broker does not
have: it keeps nothing for clients that are away or over a restart, and retains nothing.

The listening socket is ours, amqtt gets the connections: so a port that is taken is an exception of its own,
port 0 works, and nothing of a foreign address reaches amqtt. That could not be left to an authentication
plugin: amqtt deletes a session of the same client id before it asks who is there.
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
from gateway.transports.streams import protocols

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
"""Clients at once; devices stay for a second, bridges and browsers for long."""

IDLE_S, PROBES, PROBE_S = 60, 3, 20
"""TCP keep-alive: amqtt keeps a client that vanished for ever, whatever keep-alive that client announced."""

CONNECT_S = 10.0
"""For a client to say who it is."""

STOP_S = 1.5


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
        """Listen; `PortTaken` says what to do where another broker is there already."""
        try:
            server = await asyncio.get_running_loop().create_server(
                protocols(self._accept), self.host or None, self.port, start_serving=False
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
        self._bridge.say(f"connected to the embedded broker on port {self.port}")
        log.info("mqtt: embedded broker listens on %s:%d", self.host or "*", self.port)

    async def stop(self) -> None:
        """Disconnect everybody; what was retained is gone."""
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
        _probe(writer.get_extra_info("socket"))
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
            self._refused.add(address)  # once for each, lest the log be a way to fill the disk
            log.warning("mqtt: embedded broker refuses %s: not an address of the local network", address)
        return False


async def _new_broker(bridge: EmbeddedBridge) -> "Broker":
    # Here and not above: these modules cost 5 MB that nobody pays who has a broker or uses no MQTT.
    from amqtt.broker import Broker
    from amqtt.contexts import BrokerConfig, ListenerConfig, ListenerType

    # It says WARNING for every client that leaves without a word and ERROR with a traceback for every
    # acknowledgement that comes late; nobody can do anything about either.
    logging.getLogger("amqtt").setLevel(logging.CRITICAL)
    logging.getLogger("transitions").setLevel(logging.WARNING)
    config = BrokerConfig(
        listeners={LISTENER: ListenerConfig(type=ListenerType.EXTERNAL)},
        # It lets everybody in. Not AnonymousAuthPlugin: that one makes sessions end with their connection.
        plugins={"amqtt.plugins.base.BaseAuthPlugin": {}},
    )

    class Forgetful(Broker):
        """Retains nothing: amqtt sends what is retained to every client that connects, subscribed or not.

        A device does not read that, and closing a connection with bytes unread resets it: its own
        messages, sent and not yet looked at, would be gone with it.
        """

        async def retain_message(self, *_: object, **__: object) -> None:
            pass

        async def _retain_broadcast_message(self, *_: object, **__: object) -> None:
            """Nor for clients that are away: amqtt would keep that without a bound."""

        async def _handle_client_session(
            self, reader: Any, writer: Any, client_session: "Session", *rest: Any, **more: Any
        ) -> None:
            inlet = SessionQueue(bridge)
            client_session.delivered_message_queue = inlet
            reader.inlet = inlet
            await super()._handle_client_session(reader, writer, client_session, *rest, **more)

    broker = Forgetful(config)
    await broker.start()
    return broker


async def _serve(broker: "Broker", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    from amqtt.adapters import StreamReaderAdapter, StreamWriterAdapter

    class Reader(StreamReaderAdapter):
        """Gives what was read before its turn, and no more than there is room for.

        Since Python 3.12 `wait_for` does not when the bytes are there already; amqtt would then read on to
        the DISCONNECT, and cancel the PUBLISH packets before it that it has not looked at.
        """

        inlet: SessionQueue | None = None
        is_over = False

        async def read(self, n: int = -1) -> bytes:
            await asyncio.sleep(0)
            if self.is_over or n > PACKET_BYTES:
                self.is_over = True
                raise ConnectionResetError  # the one error after which amqtt reads no further
            if self.inlet is not None:
                await self.inlet.room()
                return await super().read(n)
            async with asyncio.timeout(CONNECT_S):
                return await super().read(n)

    class Writer(StreamWriterAdapter):
        """A client that is gone is no error: amqtt leaves that exception to nobody."""

        async def drain(self) -> None:
            with suppress(OSError):
                await super().drain()

        async def close(self) -> None:
            with suppress(OSError):
                await super().close()

    await broker.external_connected(Reader(reader), Writer(writer), LISTENER)


def _probe(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", IDLE_S), ("TCP_KEEPINTVL", PROBE_S), ("TCP_KEEPCNT", PROBES)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
