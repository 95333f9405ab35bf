"""The ports that devices talk to: free, or in use by our own gateway."""

import asyncio
import errno
import socket
from collections.abc import Iterator, Sequence

import aiohttp

from gateway.doctor.finding import Context, Finding, ok, problem, warning
from gateway.errors import GatewayError, in_words

ANSWER_S = 5.0
"""Seconds that a running gateway may take to say how it is."""

LISTENING = "listening on "
"""How the state of a listener begins."""

TROUBLE = (
    *("already in use", "wait", "paused", "FAILED", "cannot", "refuse", "taken over", "failing"),
    *("lost ", "again and again"),
)
"""Words in the state of a part that is not as it should be."""


async def ports(case: Context) -> Sequence[Finding]:
    """Of a running gateway what it says itself, else whether each port can be had."""
    if case.is_open():
        return await _running(case)
    return [_tried(what, case.settings.host, port, option) for what, port, option in _wanted(case)]


def _wanted(case: Context) -> Iterator[tuple[str, int, str]]:
    settings = case.settings
    yield "HTTP", settings.port, "--port"
    for port in settings.also_listen:
        yield "HTTP for devices", port, "--also-listen"
    if not settings.no_mqtt and settings.mqtt_url is None:
        yield "MQTT", settings.mqtt_port, "--mqtt-port"
    if not settings.no_tcp:
        yield "TCP", settings.tcp_port, "--tcp-port"


def _tried(what: str, host: str, port: int, option: str) -> Finding:
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
                f"{what}: port {port} is in use by another program", f"stop it, or choose another: {option}"
            )
        remedy = (
            f"sysctl net.ipv4.ip_unprivileged_port_start={port}"
            if error.errno == errno.EACCES
            else "look at --host"
        )
        return problem(f"{what}: port {port} cannot be had: {in_words(error)}", remedy)
    return ok(f"{what}: port {port} is free")


async def _running(case: Context) -> Sequence[Finding]:
    try:
        states = await asyncio.wait_for(case.parts(), ANSWER_S)
    except (OSError, TimeoutError, GatewayError) as error:
        text = f"a gateway has the data open, but does not answer: {in_words(error)}"
        return [warning(text, "it may be starting or stopping; its log says more")]
    found = [_of_part(name, state) for name, state in sorted(states.items())]
    if not states.get("http", "").startswith(LISTENING):
        return [*found, warning("http: the gateway does not listen yet", "it is starting; look again")]
    address = states["http"].removeprefix(LISTENING)
    try:
        await asyncio.wait_for(_health(address), ANSWER_S)
    except (OSError, TimeoutError, ValueError, GatewayError, aiohttp.ClientError) as error:
        text = f"http: the gateway listens on {address}, but nothing of it answers: {in_words(error)}"
        found.append(problem(text, "nor do devices reach it: look for a firewall, and into its log"))
    return found


async def _health(url: str) -> None:
    async with aiohttp.ClientSession() as client, client.get(f"{url}/healthz") as response:
        health = await response.json()
    if not isinstance(health, dict) or not isinstance(health.get("parts"), dict):
        raise GatewayError("another program listens there")


def _of_part(name: str, state: str) -> Finding:
    text = f"{name}: {state}"
    if any(word in state for word in TROUBLE):
        return warning(text, "the gateway's log says more")
    return ok(text)
