"""The sockets that devices and clients connect to: HTTP, further HTTP ports for devices alone, MQTT, TCP.

If a device port is taken, report it and go on. If the HTTP port is taken, stop.
"""

import asyncio
import errno
import resource
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from aiohttp import web

from gateway import site
from gateway.clock import Clock
from gateway.config import Settings
from gateway.errors import ConfigError, PortTaken, in_words
from gateway.http.connections import CONNECTIONS, ConnectionLimiter, ConnectionLimits
from gateway.http.guard import SERVER, GuardedSite, Refusals
from gateway.http.middleware import PROXIES, errors_middleware
from gateway.http.peers import Proxies
from gateway.logs import loop_trouble
from gateway.network import Admission, TrustedProxies
from gateway.services.build import Services
from gateway.transports.http import HttpIngest
from gateway.transports.tcp import TcpListener

if TYPE_CHECKING:
    from gateway.transports.mqtt_listener import MqttListener

HTTP_SHUTDOWN_S = 1.5
"""Seconds that requests under way may take once the gateway stops; aiohttp waits this long twice."""

PRIVILEGED_PORTS = range(1, 1024)

DESCRIPTORS = 65_536
"""Open files and sockets that the process asks the system for, or the hard limit if that is lower."""

OTHER_DESCRIPTORS = 512
"""Descriptors kept for everything but HTTP: MQTT, TCP, the database, outgoing connections."""

HTTP_REMEDY = "stop the other program or choose another with --port"
DEVICE_PORT_REMEDY = "stop the other program, or leave out --also-listen {port}"
MQTT_REMEDY = (
    "use that broker with --mqtt-url mqtt://127.0.0.1:{port}, another port with --mqtt-port, or --no-mqtt"
)
TCP_REMEDY = "choose another with --tcp-port, or --no-tcp"
PRIVILEGE_REMEDY = "; allow it with `sysctl net.ipv4.ip_unprivileged_port_start={port}`"

HTTP, MQTT, TCP = "http", "mqtt", "tcp"
"""Names of these parts on the health page."""

OnMessage = Callable[[str], None]


class Listeners:
    """The listening sockets. `on_message` gets a line for each, and the health page shows the same."""

    def __init__(
        self,
        settings: Settings,
        services: Services,
        admission: Admission,
        on_message: OnMessage,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._services = services
        self._on_message = on_message
        self._clock = clock
        self._refusals = Refusals(clock, services.stats)
        self._admission = admission
        trusted = TrustedProxies(settings.trusted_proxy)
        self._proxies = Proxies(trusted, clock, services.stats)
        bounds = ConnectionLimits(connections=http_connections())
        self._gate = ConnectionLimiter(services.stats, bounds, trusted)
        self._bound: list[tuple[str, socket.socket]] = []
        self.missing: list[str] = []

    def bind(self) -> None:
        """Bind all ports; early clients wait for their answer. `PortTaken` if the HTTP port is taken."""
        settings = self._settings
        self._bound.append((HTTP, listen("HTTP", settings.host, settings.port, HTTP_REMEDY)))
        for port in settings.also_listen:
            self._try_to_bind(f"http {port}", "HTTP", port, DEVICE_PORT_REMEDY.format(port=port))
        if not settings.no_mqtt and settings.mqtt_url is None:
            remedy = MQTT_REMEDY.format(port=settings.mqtt_port)
            self._try_to_bind(MQTT, "MQTT", settings.mqtt_port, remedy)
        if not settings.no_tcp and settings.require_key:
            self._on_message("TCP is off, because --require-key is on: TCP can send no key")
        elif not settings.no_tcp:
            self._try_to_bind(TCP, "TCP", settings.tcp_port, TCP_REMEDY)

    def close(self) -> None:
        """Close the ports. A port that its server has closed already makes no difference."""
        for _, listener in self._bound:
            listener.close()

    def _of(self, part: str) -> list[socket.socket]:
        return [listener for name, listener in self._bound if name == part]

    async def start_http(self, inputs: AsyncExitStack) -> None:
        """Start the API with the device paths, and further ports with the device paths alone."""
        asyncio.get_running_loop().set_exception_handler(loop_trouble)
        services, require_key = self._services, self._settings.require_key
        ingest = HttpIngest(
            services.intake, services.access, self._clock, self._admission, require_key=require_key
        )
        own, aliases = ingest.routes(), ingest.alias_routes()
        origins = self._settings.cors_origin
        app = site.build(self._services, own, aliases, cors_origins=origins, proxies=self._proxies)
        runner = await _runner(app, inputs)
        [listener] = self._of(HTTP)
        await GuardedSite(runner, listener, self._refusals, self._gate).start()
        address = f"http://{self._address(listener)}"
        self._services.stats.say(HTTP, f"listening on {address}")
        self._on_message(f"HTTP on {address} (devices: {address}/ingest, API: {address}/v1)")
        if self._settings.also_listen:
            app = web.Application(middlewares=[errors_middleware])
            app[PROXIES] = self._proxies
            app.add_routes([*own, *aliases])
            runner = await _runner(app, inputs)
            for port in dict.fromkeys(self._settings.also_listen):
                for listener in self._of(f"http {port}"):
                    await GuardedSite(runner, listener, self._refusals, self._gate).start()
                    self._started(f"http {port}", f"http://{self._address(listener)}", "Devices on")

    @property
    def binds_mqtt(self) -> bool:
        """Return whether there is a port for MQTT."""
        return bool(self._of(MQTT))

    async def start_mqtt(self, mqtt: "MqttListener", inputs: AsyncExitStack) -> None:
        """Let the MQTT listener take clients."""
        inputs.push_async_callback(mqtt.stop)
        for listener in self._of(MQTT):
            await mqtt.start(listener)
            self._on_message(f"MQTT on mqtt://{self._address(listener)}")

    async def start_tcp(self, inputs: AsyncExitStack) -> None:
        """Start the iSpindel's TCP service, unless it is switched off."""
        for listener in self._of(TCP):
            tcp = TcpListener(self._services.intake, self._clock, self._admission)
            await tcp.start(listener)
            inputs.push_async_callback(tcp.stop)
            self._started(TCP, self._address(listener), "TCP on")

    def _try_to_bind(self, part: str, what: str, port: int, remedy: str) -> None:
        """Bind a device port. If that fails, report it and go on without this port."""
        try:
            self._bound.append((part, listen(what, self._settings.host, port, remedy)))
        except (PortTaken, ConfigError) as error:
            self._services.stats.say(part, str(error), well=False)
            self._on_message(f"No {part if what == 'HTTP' else what}: {error}")
            self.missing.append(f"{what}: {str(error).removeprefix(f'{what}: ')}")

    def _started(self, part: str, address: str, words: str) -> None:
        self._services.stats.say(part, f"listening on {address}")
        self._on_message(f"{words} {address}")

    def _address(self, listener: socket.socket) -> str:
        return f"{shown_host(self._settings.host)}:{listener.getsockname()[1]}"


async def _runner(app: web.Application, inputs: AsyncExitStack) -> web.AppRunner:
    runner = web.AppRunner(app, shutdown_timeout=HTTP_SHUTDOWN_S, **SERVER)
    await runner.setup()
    inputs.push_async_callback(runner.cleanup)
    return runner


def http_connections() -> int:
    """Raise the limit of descriptors, and return how many HTTP connections it allows at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    requested = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < requested:
        resource.setrlimit(resource.RLIMIT_NOFILE, (requested, hard))
        soft = requested
    limit = DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    # A quarter at least, because under a low limit the reserve would leave nothing for HTTP.
    return min(CONNECTIONS, max(limit // 4, limit - OTHER_DESCRIPTORS))


def listen(what: str, host: str, port: int, remedy: str) -> socket.socket:
    """Open a listening socket; no host means every interface, IPv4 and IPv6. `PortTaken` names the remedy."""
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(what, host, port, remedy) from error
        allow = error.errno == errno.EACCES and port in PRIVILEGED_PORTS
        raise ConfigError(
            f"cannot listen on {host or 'all interfaces'} port {port}: {in_words(error)}"
            + (PRIVILEGE_REMEDY.format(port=port) if allow else "")
        ) from error


def shown_host(host: str) -> str:
    """Return the address to type into a device, so that the device reaches this machine."""
    if host not in {"", "0.0.0.0", "::"}:  # noqa: S104
        return f"[{host}]" if ":" in host else host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # chooses a route, sends nothing
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
