"""Durable MQTT ingest through Mosquitto against a bare paho consumer of the same broker."""

import dataclasses
import os
import re
import shutil
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.benchmarks.plan import BenchmarkError, Plan, alternate, next_payload
from tests.benchmarks.processes import ROOT, START_S, Child, cpu_s, module, running
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import HOST, Server, free_port, serving

GOAL = Goal("ratio", ">=", 0.80)

WHAT = "MQTT QoS 1 ingest through Mosquitto"

SHIPPED_CONF = ROOT / "deploy" / "mosquitto" / "mosquitto.conf"

PRODUCT_ROOT = "hydrometer"
BARE_ROOT = "barereader"
"""Topics as long as the product's: both stay connected, so the broker keeps nothing for an absent one."""

Changes = tuple[tuple[str, str], ...]
"""Patterns of lines of the configuration, and what stands there instead."""

LIMIT_S = 120.0
"""How long a round may take."""

POLL_S = 0.01
POLLS_AHEAD = 0.5
"""Look again after this share of the time that the rest should take: few looks, and a sharp end."""


SAVES = (
    (r"autosave_on_changes .*", "autosave_on_changes false"),
    (r"autosave_interval .*", "autosave_interval 1800"),
)
"""As mosquitto saves by default. Ours make it save at every change, which is then what limits both."""

SHIPPED_SHARE = 4
"""With the shipped settings only one in so many messages: each save writes all that waits."""


def measure(plan: Plan) -> list[Figure]:
    """Messages per second from the first that is published to the last that is stored."""
    if (program := shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")) is None:
        return [Figure(WHAT, "/s", GOAL, None, note="skipped: mosquitto is not installed")]
    fewer = dataclasses.replace(plan, messages=plan.messages // SHIPPED_SHARE)
    return [
        _measured(program, f"{WHAT}, its shipped settings", fewer),
        _measured(program, f"{WHAT}, its default saves", plan, SAVES),
    ]


def _measured(program: str, what: str, plan: Plan, changes: Changes = ()) -> Figure:
    with (
        tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory,
        mosquitto(program, Path(directory), changes) as (broker, port),
        serving(Path(directory) / "data", "--mqtt-url", f"mqtt://{HOST}:{port}") as server,
        running(*module("ceilings", "mqtt", port, f"{BARE_ROOT}/+")) as bare,
    ):
        bare.line()
        wait_subscribed(server)
        server.introduce(plan.devices, next_payload())
        return _compare(what, plan, server, bare, broker, port)


def _compare(what: str, plan: Plan, server: Server, bare: Child, broker: Child, port: int) -> Figure:
    brokers: list[float] = []

    def rate(count: int, is_product: bool) -> float:
        used = cpu_s(broker.pid)
        root = PRODUCT_ROOT if is_product else BARE_ROOT
        command = module(
            *("mqtt_load", "--port", port, "--root", root, "--first", next_payload()),
            *("--count", count, "--devices", plan.devices),
        )
        seconds = stored_after(server, command, count) if is_product else _seen_after(bare, command, count)
        brokers.append((cpu_s(broker.pid) - used) / seconds)
        return count / seconds

    rate(plan.warm_up_messages, is_product=True)
    rate(plan.warm_up_messages, is_product=False)
    brokers.clear()
    pairs = alternate(
        plan.rounds,
        lambda: rate(plan.messages, is_product=True),
        lambda: rate(plan.messages, is_product=False),
    )
    note = f"mosquitto {statistics.median(brokers):.0%} of a core"
    return Figure.of_rounds(what, "/s", GOAL, pairs, note)


def stored_after(server: Server, command: tuple[str, ...], count: int) -> float:
    """Seconds from the first message to the last commit, by the counter of the health page."""
    before: int = server.health()["stored"]
    with running(*command) as publisher:
        started = float(publisher.line())
        while (elapsed := time.monotonic() - started) < LIMIT_S:
            stored = server.health()["stored"] - before
            elapsed = time.monotonic() - started
            if stored >= count:
                publisher.wait()
                return elapsed
            rest_s = elapsed * (count - stored) / stored if stored else POLL_S
            time.sleep(max(POLL_S, min(rest_s * POLLS_AHEAD, 1.0)))
    raise BenchmarkError(f"{WHAT}: {stored} of {count} were stored within {LIMIT_S:g} s")


def _seen_after(bare: Child, command: tuple[str, ...], count: int) -> float:
    """Seconds from the first message to the last one in the bare consumer's hands."""
    bare.ask(str(count))
    with running(*command) as publisher:
        started = float(publisher.line())
        ended = float(bare.line(LIMIT_S))
        publisher.wait()
    return ended - started


def wait_subscribed(server: Server) -> None:
    """Until the gateway has its broker."""
    deadline = time.monotonic() + START_S
    while not str(server.health()["parts"]["mqtt"]).startswith("connected"):
        if time.monotonic() > deadline:
            raise BenchmarkError("the gateway did not connect to mosquitto")
        time.sleep(POLL_S)


@contextmanager
def mosquitto(program: str, directory: Path, changes: Changes) -> Iterator[tuple[Child, int]]:
    """Mosquitto with the settings that we ship, on a free port of loopback, without passwords."""
    port = free_port()
    text = SHIPPED_CONF.read_text("utf-8")
    for pattern, line in (
        (r"listener .*", f"listener {port} {HOST}"),
        (r"allow_anonymous .*", "allow_anonymous true"),
        (r"password_file .*\n", ""),
        (r"persistence_location .*", f"persistence_location {directory}/"),
        *changes,
    ):
        text, found = re.subn(f"(?m)^{pattern}", line, text)
        if found != 1:
            raise BenchmarkError(f"{SHIPPED_CONF.name} has no line, or more than one, like {pattern!r}")
    if os.geteuid() == 0:
        text += "user root\n"  # else it becomes a user who may not write here
    path = directory / "mosquitto.conf"
    path.write_text(text, "utf-8")
    with running(program, "-c", str(path)) as child:
        _wait_listening(port)
        yield child, port


def _wait_listening(port: int) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with suppress(ConnectionRefusedError):
            socket.create_connection((HOST, port)).close()
            return
        time.sleep(POLL_S)
    raise BenchmarkError("mosquitto does not listen")
