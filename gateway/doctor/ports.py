"""Checks the ports that devices send to: free, or in use by our own gateway."""

import asyncio
import errno
import socket
from collections.abc import Sequence

import aiohttp

from gateway.doctor.finding import Context, Finding, ok, problem, warning
from gateway.errors import GatewayError, in_words

ANSWER_S = 5.0
"""Seconds in which a running gateway must answer."""

LISTENING = "listening on "
"""The beginning of the state of a listener that is well."""

TROUBLE = (
    *("already in use", "wait", "paused", "FAILED", "cannot", "refuse", "taken over", "failing"),
    *("lost ", "again and again", "forwards for others"),
)
"""Words in the state of a part that is not well."""


async def ports(context: Context) -> Sequence[Finding]:
    """Check the parts of a running gateway; without one, check that each port is free."""
    if context.is_open():
        return await _running(context)
    settings = context.settings
    ports: list[tuple[str, int, str]] = [("HTTP", settings.port, "--port")]
    ports += [("HTTP for devices", port, "--also-listen") for port in settings.also_listen]
    if not settings.no_mqtt and settings.mqtt_url is None:
        ports.append(("MQTT", settings.mqtt_port, "--mqtt-port"))
    if not settings.no_tcp and not settings.require_key:
        ports.append(("TCP", settings.tcp_port, "--tcp-port"))
    return [_try_port(part, settings.host, port, option) for part, port, option in ports]


def _try_port(part: str, host: str, port: int, option: str) -> Finding:
    family = socket.AF_INET6 if ":" in host or not host else socket.AF_INET
    dual = not host and socket.has_dualstack_ipv6()
    try:
        made = socket.create_server(
            (host, port), family=family if dual or host else socket.AF_INET, dualstack_ipv6=dual
        )
        made.close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return problem(
                f"{part}: port {port} is in use by another program", f"stop it, or choose another: {option}"
            )
        remedy = (
            f"sysctl net.ipv4.ip_unprivileged_port_start={port}"
            if error.errno == errno.EACCES
            else "check --host"
        )
        return problem(f"{part}: port {port} cannot be opened: {in_words(error)}", remedy)
    return ok(f"{part}: port {port} is free")


async def _running(context: Context) -> Sequence[Finding]:
    try:
        states = await asyncio.wait_for(context.parts(), ANSWER_S)
    except (OSError, TimeoutError, GatewayError) as error:
        text = f"a gateway has the data open, but does not answer: {in_words(error)}"
        return [warning(text, "it may be starting or stopping; its log says more")]
    found = []
    for name, state in sorted(states.items()):
        is_well = not any(word in state for word in TROUBLE)
        text = f"{name}: {state}"
        found.append(ok(text) if is_well else warning(text, "the gateway's log says more"))
    if not states.get("http", "").startswith(LISTENING):
        return [*found, warning("http: the gateway does not listen yet", "it is starting; try again")]
    address = states["http"].removeprefix(LISTENING)
    try:
        await asyncio.wait_for(_check_health(address), ANSWER_S)
    except (OSError, TimeoutError, ValueError, GatewayError, aiohttp.ClientError) as error:
        text = f"http: the gateway listens on {address}, but does not answer: {in_words(error)}"
        found.append(problem(text, "devices do not reach it either: check the firewall, and its log"))
    return found


async def _check_health(url: str) -> None:
    async with aiohttp.ClientSession() as client, client.get(f"{url}/healthz") as response:
        health = await response.json()
    if not isinstance(health, dict) or not isinstance(health.get("parts"), dict):
        raise GatewayError("another program listens there")
