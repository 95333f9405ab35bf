"""Checks the ports that devices send to: free, or in use by our own gateway."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

import aiohttp

from gateway.doctor.finding import Context, Finding, ok, problem, warning
from gateway.errors import ConfigError, GatewayError, PortTaken, in_words
from gateway.interfaces import public_warning, reach
from gateway.sockets import device_for, listen
from gateway.tls.certificate import PART as TLS

ANSWER_S = 5.0
"""Seconds in which a running gateway must answer."""

LISTENING = "listening on "
"""The beginning of the state of a listener that is well."""

HERE = re.compile(rf"{LISTENING}(https?://\S++)(?! \(from the network at )")
"""An address in the state of an HTTP listener that this machine reaches, too."""

TROUBLE = (
    *("already in use", "wait", "paused", "FAILED", "cannot", "refuse", "taken over", "failing"),
    *("lost ", "again and again", "forwards for others"),
)
"""Words in the state of a part that is not well."""


SQLITE = "sqlite"

PART_NAMES = {
    "http": "HTTP",
    "https": "HTTPS",
    "mqtt": "MQTT",
    "mqtts": "MQTT over TLS",
    "tcp": "TCP",
    "scrub": "disk check",
    "store": "database",
    SQLITE: "SQLite",
    "retention": "old readings",
    "page": "web page",
}
"""The name of a part of the running gateway, where it has another name on the health page."""


def part_name(part: str) -> str:
    """Return the name of a part as people know it: `http 5000` is `HTTP 5000`."""
    first, blank, rest = part.partition(" ")
    return f"{PART_NAMES.get(first, first)}{blank}{rest}"


async def ports(context: Context) -> Sequence[Finding]:
    """Check the parts of a running gateway; without one, check that each port is free."""
    if context.is_open():
        return await _running(context)
    settings = context.settings
    http, tcp, mqtt = (
        settings.hosts(own) for own in (settings.http_host, settings.tcp_host, settings.mqtt_host)
    )
    ports: list[tuple[str, list[str], int, str]] = [("HTTP", http, settings.port, "--port")]
    ports += [("HTTP for devices", http, port, "--also-listen") for port in settings.also_listen]
    listens = not settings.no_mqtt and settings.mqtt_url is None
    if settings.tls_cert is not None:
        ports.append(("HTTPS", http, settings.tls_port, "--tls-port"))
        if listens:
            ports.append(("MQTT over TLS", mqtt, settings.mqtt_tls_port, "--mqtt-tls-port"))
    if listens:
        ports.append(("MQTT", mqtt, settings.mqtt_port, "--mqtt-port"))
    if not settings.no_tcp and not settings.require_key:
        ports.append(("TCP", tcp, settings.tcp_port, "--tcp-port"))
    return [_try_port(host, *each) for each in ports for host in each[1]]


def _try_port(host: str, part: str, hosts: list[str], port: int, option: str) -> Finding:
    try:
        listen(part, host, port, "", device_for(host, hosts)).close()
    except PortTaken as error:
        text = str(error).removesuffix("; ").replace("already in use", "in use")
        if not error.holder:
            text += " by another program"
        return problem(text, f"stop it, or choose another: {option}")
    except ConfigError as error:
        text, _, remedy = str(error).partition(" `sysctl")
        return problem(f"{part}: {text}", f"sysctl{remedy}".rstrip("`") if remedy else "check the host")
    return ok(f"{part}: port {port} is free, to be reached {reach(host)}")


async def addresses(context: Context) -> Sequence[Finding]:
    """Check whether the Internet may reach the gateway at a public address of this machine."""
    settings = context.settings
    own = [settings.http_host, settings.mqtt_host, settings.tcp_host]
    text = public_warning([host for each in own for host in settings.hosts(each)])
    if not text:
        return [ok("no public address of this machine is listened on")]
    return [warning(text, "name the addresses of your home network with --host, or use TLS and a firewall")]


async def _running(context: Context) -> Sequence[Finding]:
    try:
        states = await asyncio.wait_for(context.parts(), ANSWER_S)
    except (OSError, TimeoutError, GatewayError) as error:
        text = f"a gateway has the data open, but does not answer: {in_words(error)}"
        return [warning(text, "it may be starting or stopping; its log says more")]
    found = []
    for name, state in sorted(states.items()):
        if name in {TLS, SQLITE}:
            continue  # a check of its own shows it
        is_well = not any(word in state for word in TROUBLE)
        finding = ok(state) if is_well else warning(state, "the gateway's log says more")
        found.append(replace(finding, check=part_name(name)))
    if not states.get("http", "").startswith(LISTENING):
        return [*found, warning("the gateway does not listen to HTTP yet", "it is starting; try again")]
    # Without its API over plain HTTP the gateway answers at the other address.
    part = "https" if context.settings.tls_only else "http"
    for address in HERE.findall(states.get(part, "")):
        try:
            await asyncio.wait_for(_check_health(address), ANSWER_S)
        except (OSError, TimeoutError, ValueError, GatewayError, aiohttp.ClientError) as error:
            text = f"the gateway listens on {address}, but does not answer: {in_words(error)}"
            found.append(problem(text, "devices do not reach it either: check the firewall, and its log"))
    return found


async def _check_health(url: str) -> None:
    # Not verified, because the name in the certificate need not be the address: an answer is all that counts.
    async with aiohttp.ClientSession() as client, client.get(f"{url}/healthz", ssl=False) as response:
        health = await response.json()
    if not isinstance(health, dict) or not isinstance(health.get("parts"), dict):
        raise GatewayError("another program listens there")
