"""The sockets that devices and clients connect to: HTTP, further HTTP ports for devices alone, TCP.

A port of a device that cannot be had is said and leaves the rest alone; without HTTP there is no gateway.
"""

import asyncio
import errno
import resource
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from aiohttp import web

from gateway import site
from gateway.clock import Clock
from gateway.config import Settings
from gateway.connections import CONNECTIONS, Bounds, Gate
from gateway.errors import ConfigError, PortTaken
from gateway.guard import SERVER, GuardedSite, Refusals
from gateway.ingest.http import HttpIngest
from gateway.ingest.tcp import TcpListener
from gateway.logs import loop_trouble
from gateway.services.parts import Parts
from gateway.web import errors_middleware

HTTP_SHUTDOWN_S = 1.5
"""What requests under way may take once we were told to stop; aiohttp waits so long twice."""

PRIVILEGED_PORTS = range(1, 1024)

DESCRIPTORS = 65_536
"""Open files and sockets that the process asks for, where the system lets it."""

OTHER_DESCRIPTORS = 512
"""Of them for everything but HTTP: MQTT, TCP, the database, connections of our own."""

HTTP_REMEDY = "stop the other program or choose another with --port"
DEVICE_PORT_REMEDY = "stop the other program, or leave out --also-listen {port}"
TCP_REMEDY = "choose another with --tcp-port, or --no-tcp"
PRIVILEGE_REMEDY = "; allow it with `sysctl net.ipv4.ip_unprivileged_port_start={port}`"

Say = Callable[[str], None]


class Listeners:
    """Opens sockets until told to stop; `say` gets a line for each, the health page the same."""

    def __init__(self, settings: Settings, parts: Parts, say: Say, clock: Clock) -> None:
        self._settings = settings
        self._parts = parts
        self._say = say
        self._clock = clock
        self._refusals = Refusals(clock, parts.stats)
        self._gate = Gate(parts.stats, Bounds(connections=http_connections()))

    async def start_http(self, inputs: AsyncExitStack) -> None:
        """The API and the device paths, and the ports where there are only the latter."""
        asyncio.get_running_loop().set_exception_handler(loop_trouble)
        ingest = HttpIngest(self._parts.intake, self._parts.access, self._clock)
        own, aliases = ingest.routes(), ingest.alias_routes()
        app = site.build(self._parts, own, aliases, cors_origins=self._settings.cors_origin)
        runner = await _runner(app, inputs)
        listener = listen("HTTP", self._settings.host, self._settings.port, HTTP_REMEDY)
        await GuardedSite(runner, listener, self._refusals, self._gate).start()
        address = f"http://{self._address(listener)}"
        self._parts.stats.say("http", f"listening on {address}")
        self._say(f"HTTP on {address} (devices: {address}/ingest, API: {address}/v1)")
        if self._settings.also_listen:
            await self._start_device_ports([*own, *aliases], inputs)

    async def _start_device_ports(self, routes: Sequence[web.RouteDef], inputs: AsyncExitStack) -> None:
        app = web.Application(middlewares=[errors_middleware])
        app.add_routes(routes)
        runner = await _runner(app, inputs)
        for port in self._settings.also_listen:
            listener = self._try_to_listen("HTTP", f"http {port}", port, DEVICE_PORT_REMEDY.format(port=port))
            if listener is not None:
                await GuardedSite(runner, listener, self._refusals, self._gate).start()
                self._started(f"http {port}", f"http://{self._address(listener)}", "Devices on")

    async def start_tcp(self, inputs: AsyncExitStack) -> None:
        """The iSpindel's TCP service, where it is wanted."""
        if self._settings.no_tcp:
            return
        listener = self._try_to_listen("TCP", "tcp", self._settings.tcp_port, TCP_REMEDY)
        if listener is not None:
            tcp = TcpListener(self._parts.intake, self._clock)
            await tcp.start(listener)
            inputs.push_async_callback(tcp.stop)
            self._started("tcp", self._address(listener), "TCP on")

    def _try_to_listen(self, what: str, part: str, port: int, remedy: str) -> socket.socket | None:
        """The socket, or None where it cannot be had: everything else goes on without it."""
        try:
            return listen(what, self._settings.host, port, remedy)
        except (PortTaken, ConfigError) as error:
            self._parts.stats.say(part, str(error), well=False)
            self._say(f"No {part}: {error}")
            return None

    def _started(self, part: str, address: str, words: str) -> None:
        self._parts.stats.say(part, f"listening on {address}")
        self._say(f"{words} {address}")

    def _address(self, listener: socket.socket) -> str:
        return f"{shown_host(self._settings.host)}:{listener.getsockname()[1]}"


async def _runner(app: web.Application, inputs: AsyncExitStack) -> web.AppRunner:
    runner = web.AppRunner(app, shutdown_timeout=HTTP_SHUTDOWN_S, **SERVER)
    await runner.setup()
    inputs.push_async_callback(runner.cleanup)
    return runner


def http_connections() -> int:
    """HTTP connections at once: as many as there are descriptors for, which the system is asked for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    limit = DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    return min(CONNECTIONS, max(limit // 4, limit - OTHER_DESCRIPTORS))


def listen(what: str, host: str, port: int, remedy: str) -> socket.socket:
    """A listening socket; no host means every interface, IPv4 and IPv6. `PortTaken` names the remedy."""
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
            f"cannot listen on {host or 'all interfaces'} port {port}: {error.strerror}"
            + (PRIVILEGE_REMEDY.format(port=port) if allow else "")
        ) from error


def shown_host(host: str) -> str:
    """What to type into a device to reach this machine."""
    if host not in {"", "0.0.0.0", "::"}:  # noqa: S104
        return f"[{host}]" if ":" in host else host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # chooses a route, sends nothing
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
