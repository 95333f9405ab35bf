"""The sockets that devices and clients connect to: HTTP, HTTPS, HTTP ports for devices alone, MQTT, TCP.

If a device port is taken, report it and go on. If the port of the API is taken, stop.
"""

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from gateway import site
from gateway.clock import Clock
from gateway.errors import ConfigError, GatewayError, PortTaken
from gateway.http import cors, self_check
from gateway.http.browsers import OwnHosts, ReportRules
from gateway.http.connections import CONNECTIONS, ConnectionLimiter, ConnectionLimits
from gateway.http.guard import LIFE_S, SERVER, GuardedSite, Refusals
from gateway.http.hardening import protect
from gateway.http.middleware import KNOCKS, PROXIES, errors_middleware
from gateway.http.peers import Proxies
from gateway.http.proxy_socket import close_for_proxy, listen_for_proxy
from gateway.http.short_way import ShortWay
from gateway.interfaces import is_loopback, public_warning, reach
from gateway.logs import loop_trouble
from gateway.network import Admission, TrustedProxies
from gateway.services.build import Services
from gateway.settings import Settings
from gateway.sockets import Bound, device_for, listen
from gateway.tls.certificate import CertificateFiles
from gateway.transports.http import HttpIngest
from gateway.transports.tcp import TcpListener

if TYPE_CHECKING:
    from gateway.transports.mqtt_listener import MqttListener

log = logging.getLogger(__name__)

HTTP_SHUTDOWN_S = 1.5
"""Seconds that requests under way may take once the gateway stops; aiohttp waits this long twice."""

DESCRIPTORS = 65_536
"""Open files and sockets that the process asks the system for, or the hard limit if that is lower."""

OTHER_DESCRIPTORS = 512
"""Descriptors kept for everything but HTTP: MQTT, TCP, the database, outgoing connections."""

HTTP_REMEDY = "stop the other program or choose another with --port"
DEVICE_PORT_REMEDY = "stop the other program, or leave out --also-listen {port}"
TLS_REMEDY = "choose another with --tls-port"
MQTT_REMEDY = (
    "use that broker with --mqtt-url mqtt://127.0.0.1:{port}, another port with --mqtt-port, or --no-mqtt"
)
MQTTS_REMEDY = "choose another with --mqtt-tls-port"
TCP_REMEDY = "choose another with --tcp-port, or --no-tcp"

HTTP, HTTPS, MQTT, MQTTS, TCP = "http", "https", "mqtt", "mqtts", "tcp"
PROXY_SOCKET_PART, PAGE_PART = "http socket", "page"
"""Names of these parts on the health page."""

WITHOUT = "Ready, but without "
"""The beginning of the last line of a start that lacks a listener."""

BOTH = "devices: {url}/ingest, API: {url}/v1; "

LOCAL_KEYLESS = "local devices need no key, all others do"
KEYED = "nothing without a key"
LOCAL_ALONE = "local devices alone, without a key"
"""Words for a listener: which devices it takes, and whether they need a key."""

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
        certificate: CertificateFiles | None = None,
    ) -> None:
        self._settings = settings
        self._services = services
        self._on_message = on_message
        self._clock = clock
        self._certificate = certificate
        self._refusals = Refusals(clock, services.stats, services.knocks)
        self._admission = admission
        ingress = [settings.ingress_proxy] if settings.ingress_proxy else []
        trusted = TrustedProxies([*settings.trusted_proxy, *ingress], socket=settings.http_socket is not None)
        self._proxies = Proxies(trusted, clock, services.stats, ingress=TrustedProxies(ingress))
        bounds = ConnectionLimits(connections=http_connections())
        self._gate = ConnectionLimiter(services.stats, bounds, trusted)
        self._hosts = OwnHosts(settings.hostname)
        if certificate is not None:
            certificate.tell_names(self._hosts.add)
        self._bound: list[Bound] = []
        self._deadlines = True
        self._way: ShortWay | None = None
        self._proxy_socket: socket.socket | None = None
        self.missing: list[str] = []

    def bind(self) -> None:
        """Bind all ports; early clients wait for their answer. `PortTaken` if the API's port is taken."""
        settings = self._settings
        hosts = settings.hosts(settings.http_host)
        self._bind(HTTP, "HTTP", hosts, settings.port, HTTP_REMEDY)
        if self._certificate is not None:
            bind = self._bind if settings.tls_only else self._try_to_bind
            bind(HTTPS, "HTTPS", hosts, settings.tls_port, TLS_REMEDY)
        for port in settings.also_listen:
            self._try_to_bind(f"http {port}", "HTTP", hosts, port, DEVICE_PORT_REMEDY.format(port=port))
        if settings.http_socket is not None:
            try:
                self._proxy_socket = listen_for_proxy(settings.http_socket)
            except ConfigError as error:
                self._lacks(PROXY_SOCKET_PART, "HTTP for a proxy", error)
        if not settings.no_mqtt and settings.mqtt_url is None:
            hosts, remedy = settings.hosts(settings.mqtt_host), MQTT_REMEDY.format(port=settings.mqtt_port)
            self._try_to_bind(MQTT, "MQTT", hosts, settings.mqtt_port, remedy)
            if self._certificate is not None:
                self._try_to_bind(MQTTS, "MQTT over TLS", hosts, settings.mqtt_tls_port, MQTTS_REMEDY)
        if not settings.no_tcp and settings.require_key:
            self._on_message("TCP is off, because --require-key is on: TCP can send no key")
        elif not settings.no_tcp:
            self._try_to_bind(TCP, "TCP", settings.hosts(settings.tcp_host), settings.tcp_port, TCP_REMEDY)

    def close(self) -> None:
        """Close the ports. A port that its server has closed already makes no difference."""
        for bound in self._bound:
            bound.socket.close()
        if self._proxy_socket is not None and self._settings.http_socket is not None:
            close_for_proxy(self._proxy_socket, self._settings.http_socket)

    def warn_of_the_internet(self) -> None:
        """Print one line if the Internet may reach a listener at a public address of this machine."""
        if warning := public_warning([bound.host for bound in self._bound]):
            self._on_message(f"Warning: {warning}.")

    def ports(self) -> set[int]:
        """Return the ports on which the gateway listens."""
        return {bound.port for bound in self._bound}

    def of(self, part: str) -> list[Bound]:
        """Return the bound sockets of a part."""
        return [bound for bound in self._bound if bound.part == part]

    async def start_http(self, inputs: AsyncExitStack) -> None:
        """Start the API with the device paths, and further ports with the device paths alone."""
        handler = partial(loop_trouble, count=self._services.stats.count_task_error)
        asyncio.get_running_loop().set_exception_handler(handler)
        services, origins = self._services, self._settings.origins
        ingest = HttpIngest(
            services.intake,
            services.access,
            self._clock,
            self._admission,
            ReportRules(origins, self._hosts),
            services.stats,
            require_key=self._settings.require_key,
        )
        self._way = ingest.short_way()
        own, aliases = ingest.routes(), ingest.alias_routes()
        app = site.build(
            services, own, aliases, allowed_origins=origins, hosts=self._hosts, proxies=self._proxies,
            page=not self._settings.no_page,
        )  # fmt: skip
        everything = await _runner(app, inputs)
        await self._check_deadlines()
        if self._proxy_socket is not None:
            await self._serve(everything, self._proxy_socket)
            path = self._settings.http_socket
            services.stats.say(PROXY_SOCKET_PART, f"listening on {path}")
            self._on_message(f"HTTP for a proxy on {path}")
        devices = everything
        if self._settings.also_listen or self._settings.tls_only:
            app = web.Application(middlewares=[errors_middleware])
            app[PROXIES] = self._proxies
            app[KNOCKS] = services.knocks
            reports = app.add_routes([*own, *aliases])
            protect(app)
            if origins:
                cors.allow(app, origins, reports)
            devices = await _runner(app, inputs)
        if self._settings.tls_only:
            await self._start_site(devices, self.of(HTTP), "HTTP on", "devices: {url}/ingest; ")
        else:
            await self._start_site(everything, self.of(HTTP), "HTTP on", BOTH)
        await self._start_site(everything, self.of(HTTPS), "HTTPS on", BOTH)
        self._note_page()
        for port in dict.fromkeys(self._settings.also_listen):
            await self._start_site(devices, self.of(f"http {port}"), "Devices on", "")

    async def _start_site(
        self, runner: web.AppRunner, listeners: Sequence[Bound], words: str, urls: str
    ) -> None:
        scheme = HTTPS if words.startswith("HTTPS") else HTTP
        tls = self._certificate.context if self._certificate is not None and scheme == HTTPS else None
        for bound in listeners:
            await self._serve(runner, bound.socket, tls)
            url = f"{scheme}://{bound.address}"
            keys = KEYED if self._settings.require_key else LOCAL_KEYLESS
            self.started(bound, words, url, keys, urls.format(url=url))

    def _note_page(self) -> None:
        """Report the address of the page, at best one that a phone reaches."""
        if self._settings.no_page:
            return
        part = HTTPS if self._settings.tls_only else HTTP
        bound = min(self.of(part), key=lambda each: is_loopback(each.host))
        page = self._services.page
        page.address = f"{part}://{bound.address}"
        self._services.stats.say(PAGE_PART, f"on {page.address}{site.PAGE_ROOT}")
        self._on_message(f"Page on {page.address}{site.PAGE_ROOT}")

    async def _serve(
        self, runner: web.AppRunner, listener: socket.socket, tls: Callable[[], ssl.SSLContext] | None = None
    ) -> None:
        guarded = GuardedSite(
            runner, listener, self._refusals, self._gate, tls, deadlines=self._deadlines, way=self._way
        )
        await guarded.start()

    async def _check_deadlines(self) -> None:
        """Check that connections can have deadlines for their phases; if not, report why and do without."""
        reason = await self_check.trouble()
        if reason is not None:
            self._deadlines = False
            log.error("http: deadlines are off, a connection ends after %.0f s: %s", LIFE_S, reason)
            self._services.stats.say("deadlines", f"deadlines are off: {reason}", well=False)

    async def start_mqtt(self, mqtt: "MqttListener", inputs: AsyncExitStack) -> None:
        """Let the MQTT listener take clients, with TLS where there is a certificate."""
        inputs.push_async_callback(mqtt.stop)
        keyed, tls = self._settings.require_key, self._certificate
        for bound in self.of(MQTT):
            await self._start_mqtt(mqtt, bound, KEYED if keyed else LOCAL_ALONE)
        for bound in self.of(MQTTS) if tls is not None else ():
            await self._start_mqtt(mqtt, bound, KEYED if keyed else LOCAL_KEYLESS, tls)

    async def _start_mqtt(
        self, mqtt: "MqttListener", bound: Bound, keys: str, tls: CertificateFiles | None = None
    ) -> None:
        words = f"{bound.part}://{bound.address} ({reach(bound.host)}; {keys})"
        self._note_address(bound)
        await mqtt.start(bound.socket, tls.context if tls is not None else None, words)
        self._on_message(f"MQTT on {words}")

    async def start_tcp(self, inputs: AsyncExitStack) -> None:
        """Start the iSpindel's TCP service, unless it is switched off."""
        tcp = TcpListener(self._services.intake, self._clock, self._admission, knocks=self._services.knocks)
        inputs.push_async_callback(tcp.stop)
        for bound in self.of(TCP):
            await tcp.start(bound.socket)
            self.started(bound, "TCP on", bound.address, LOCAL_ALONE)

    def _bind(self, part: str, what: str, hosts: list[str], port: int, remedy: str) -> None:
        """Bind the port at each host. A port that the system chooses is the same at all hosts."""
        for host in hosts:
            made = listen(what, host, port, remedy, device_for(host, hosts))
            self._bound.append(Bound(part, host, made))
            port = self._bound[-1].port

    def _try_to_bind(self, part: str, what: str, hosts: list[str], port: int, remedy: str) -> None:
        """Bind a device port. If that fails at a host, report it and go on without the hosts from there."""
        try:
            self._bind(part, what, hosts, port, remedy)
        except (PortTaken, ConfigError) as error:
            self._lacks(part, what, error)

    def _lacks(self, part: str, what: str, error: GatewayError) -> None:
        self._services.stats.say(part, str(error), well=False)
        name = what if part in {MQTT, MQTTS, TCP} else part
        self._on_message(f"No {name}: {str(error).removeprefix(f'{what}: ')}")
        self.missing.append(f"{what} ({_why_missing(error)})")

    def started(self, bound: Bound, words: str, address: str, keys: str, urls: str = "") -> None:
        """Report a listener that works: its address, who can reach it, and whether a key is needed."""
        stats, access = self._services.stats, f"{reach(bound.host)}; {keys}"
        states = (stats.parts.get(bound.part, ""), f"listening on {address} ({access})")
        self._note_address(bound)
        stats.say(bound.part, ", ".join(filter(None, states)), well=bound.part not in stats.in_trouble)
        self._on_message(f"{words} {address} ({urls}{access})")

    def _note_address(self, bound: Bound) -> None:
        """Note the address to type into a device, if possible one that other machines reach."""
        listening = self._services.stats.listening
        if bound.part not in listening or is_loopback(listening[bound.part].rpartition(":")[0]):
            listening[bound.part] = bound.address


def _why_missing(error: GatewayError) -> str:
    """Return in a few words why a listener is missing; the line of the listener says more."""
    if not isinstance(error, PortTaken):
        return str(error).partition(";")[0]
    whose = "taken" if error.holder is None else f"{error.holder.name}'s"
    return f"port {error.port} is {whose}"


def named_together(names: Sequence[str]) -> str:
    """Join names as a sentence does: `A`, `A and B`, `A, B and C`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


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
