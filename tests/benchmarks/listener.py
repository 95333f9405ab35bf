"""Durable MQTT ingest by our listener against the same gateway with Mosquitto in front, and what it costs."""

import dataclasses
import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests import mqtt_wire as wire
from tests.benchmarks.mqtt import (
    PRODUCT_ROOT,
    SAVES,
    SHIPPED_SHARE,
    Changes,
    mosquitto,
    stored_after,
    wait_subscribed,
)
from tests.benchmarks.plan import BenchmarkError, Plan, alternate, next_payload
from tests.benchmarks.processes import START_S, cpu_s, memory_bytes, module, running
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import HOST, Server, serving

RATE_GOAL = Goal("ratio", ">=", 1.0)
CPU_GOAL = Goal("ratio", "<=", 0.8)
ALONE_GOAL = Goal("measured", "<=", 15)
SILENT_GOAL = Goal("measured", "<=", 3)

WHAT = "MQTT QoS 1 ingest by our listener"

WINDOW = 200
"""Unacknowledged messages of the publisher."""

SOURCES, EACH = 31, 16
"""Silent connections: 16 of each source, and not quite all that there may be."""


def measure(plan: Plan) -> list[Figure]:
    """Messages per second and CPU a message, both ways in by turns; CPU and memory of the listener alone."""
    fewer = dataclasses.replace(plan, messages=plan.messages // SHIPPED_SHARE)
    return [
        *_by_turns(fewer, "as shipped"),
        *_by_turns(plan, "with its default saves", SAVES),
        _alone(plan),
        _silent(),
    ]


def _by_turns(plan: Plan, how: str, changes: Changes = ()) -> list[Figure]:
    if (program := shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")) is None:
        return [Figure(WHAT, "/s", RATE_GOAL, None, note="skipped: mosquitto is not installed")]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-bench-")))
        broker, port = stack.enter_context(mosquitto(program, folder, changes))
        ours = stack.enter_context(serving(folder / "ours", "--mqtt-port", "0"))
        theirs = stack.enter_context(serving(folder / "theirs", "--mqtt-url", f"mqtt://{HOST}:{port}"))
        wait_subscribed(theirs)
        for server in (ours, theirs):
            server.introduce(plan.devices, next_payload())

        def by_ours(count: int) -> tuple[float, float]:
            return _round(ours, ours.mqtt_port, (ours.child.pid,), count, plan.devices)

        def by_theirs(count: int) -> tuple[float, float]:
            return _round(theirs, port, (theirs.child.pid, broker.pid), count, plan.devices)

        by_ours(plan.warm_up_messages)
        by_theirs(plan.warm_up_messages)
        rounds = _rounds(plan, by_ours, by_theirs)
    note = f"ceiling: the same gateway, mosquitto {how} and paho in front"
    rates = [(high[0], low[0]) for high, low in rounds]
    costs = [(high[1], low[1]) for high, low in rounds]
    return [
        Figure.of_rounds(WHAT, "/s", RATE_GOAL, rates, note),
        Figure.of_rounds("the same, CPU a message", "us", CPU_GOAL, costs, f"{note}, its CPU too"),
    ]


Round = tuple[float, float]
"""Messages a second, and microseconds of CPU a message."""


def _rounds(
    plan: Plan, ours: Callable[[int], Round], theirs: Callable[[int], Round]
) -> list[tuple[Round, Round]]:
    """Both, round by round, as `alternate` has it for one value."""
    results: tuple[list[Round], list[Round]] = [], []

    def noted(place: int, play: Callable[[int], Round]) -> float:
        results[place].append(play(plan.messages))
        return 0.0

    alternate(plan.rounds, lambda: noted(0, ours), lambda: noted(1, theirs))
    return list(zip(*results, strict=True))


def _round(server: Server, port: int, pids: tuple[int, ...], count: int, devices: int) -> Round:
    command = _load(port, count, devices)
    before = sum(map(cpu_s, pids))
    seconds = stored_after(server, command, count)
    return count / seconds, (sum(map(cpu_s, pids)) - before) / count * 1e6


def _load(port: int, count: int, devices: int) -> tuple[str, ...]:
    options = ("--first", next_payload(), "--count", count, "--devices", devices)
    return module("mqtt_load", "--port", port, "--root", PRODUCT_ROOT, "--window", WINDOW, *options)


def _alone(plan: Plan) -> Figure:
    """CPU a message of the transport: everything is acknowledged at once, and nothing is stored."""
    with running(*module("ceilings", "listener")) as child:
        port = int(child.line())
        costs = []
        for count in (plan.warm_up_messages, *[plan.messages] * plan.rounds):
            before = cpu_s(child.pid)
            with running(*_load(port, count, plan.devices)) as publisher:
                publisher.wait()
            costs.append((cpu_s(child.pid) - before) / count * 1e6)
    low, high = min(costs[1:]), max(costs[1:])
    note = f"acknowledged at once, nothing stored; {low:.1f} - {high:.1f} us"
    return Figure(
        "MQTT listener alone, CPU a message", "us", ALONE_GOAL, sorted(costs[1:])[plan.rounds // 2], note=note
    )


def _silent() -> Figure:
    """Resident memory of a connection that has connected and says nothing."""
    with (
        tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory,
        serving(Path(directory), "--mqtt-port", "0") as server,
        ExitStack() as stack,
    ):
        _connected(stack, server.mqtt_port, "127.0.0.1", "first")
        before = memory_bytes(server.child.pid)
        for source in range(SOURCES):
            for number in range(EACH):
                _connected(stack, server.mqtt_port, f"127.0.1.{source + 1}", f"silent{source}-{number}")
        grown = memory_bytes(server.child.pid) - before
    number = SOURCES * EACH
    return Figure(
        "memory of a silent MQTT connection",
        "kB",
        SILENT_GOAL,
        grown / number / 1e3,
        note=f"{number} connections",
    )


def _connected(stack: ExitStack, port: int, source: str, client_id: str) -> None:
    connection = stack.enter_context(socket.create_connection((HOST, port), START_S, (source, 0)))
    connection.sendall(wire.connect(client_id=client_id, keep_alive=600))
    if (answer := connection.recv(4)) != b"\x20\x02\x00\x00":
        raise BenchmarkError(f"{source} is answered {answer!r}")
