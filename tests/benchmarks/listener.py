"""Durable MQTT ingest by our listener against the same gateway with Mosquitto in front, and what it costs."""

import dataclasses
import socket
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests import mqtt_wire as wire
from tests.benchmarks.mqtt import (
    NO_MOSQUITTO,
    PRODUCT_ROOT,
    SAVES,
    SHIPPED_SHARE,
    Changes,
    Sample,
    Turns,
    bare_consumer,
    by_gateway,
    cpu_figure,
    mosquitto,
    mosquitto_program,
    turns_of,
    wait_subscribed,
)
from tests.benchmarks.plan import BEFORE, CEILING, PRODUCT, BenchmarkError, Plan, next_payload
from tests.benchmarks.processes import START_S, cpu_s, memory_bytes, module, running
from tests.benchmarks.report import Figure, Goal, in_turn
from tests.benchmarks.server import HOST, serving, trees

RATE_GOAL = Goal("ratio", ">=", 1.0)
CPU_GOAL = Goal("ratio", "<=", 0.8)
ALONE_GOAL = Goal("measured", "<=", 15)
SILENT_GOAL = Goal("measured", "<=", 3)

WHAT = "MQTT QoS 1 ingest by our listener"

BEHIND_MOSQUITTO = "behind mosquitto"
"""Name of this checkout's gateway with a broker in front, among those that take turns."""

WINDOW = 200
"""Unacknowledged messages of the publisher."""

SOURCES, EACH = 31, 16
"""Silent connections: 16 of each source, and not quite all that there may be."""


def measure(plan: Plan) -> list[Figure]:
    """Messages per second and CPU a message, by turns with Mosquitto in front; the listener alone."""
    if (program := mosquitto_program()) is None:
        return [Figure(WHAT, "/s", RATE_GOAL, None, note=NO_MOSQUITTO), _alone(plan), _silent()]
    fewer = dataclasses.replace(plan, messages=plan.messages // SHIPPED_SHARE)
    shipped, saving = _turns(program, fewer), _turns(program, plan, SAVES)
    return [
        *_against_mosquitto(shipped, "mosquitto as shipped"),
        *_against_mosquitto(saving, "mosquitto with its default saves"),
        _against_bare(saving),
        _alone(plan),
        _silent(),
    ]


def _turns(program: str, plan: Plan, changes: Changes = ()) -> Turns:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-bench-")))
        broker, port = stack.enter_context(mosquitto(program, folder, changes))
        url = f"mqtt://{HOST}:{port}"
        behind = stack.enter_context(serving(folder / "behind", "--mqtt-url", url))
        wait_subscribed(behind)
        behind.introduce(plan.devices, next_payload())
        play: dict[str, Callable[[int], Sample]] = {
            BEHIND_MOSQUITTO: partial(by_gateway, behind, port, plan.devices, broker, window=WINDOW),
            CEILING: stack.enter_context(bare_consumer(program, plan, changes)),
        }
        for name, tree in trees(plan).items():
            server = stack.enter_context(serving(folder / name, "--mqtt-port", "0", tree=tree))
            server.introduce(plan.devices, next_payload())
            play[name] = partial(by_gateway, server, server.mqtt_port, plan.devices, None, window=WINDOW)
        return turns_of(plan, play)


def _against_mosquitto(turns: Turns, how: str) -> list[Figure]:
    """Against the gateway of this checkout with Mosquitto and paho in front."""
    both = {PRODUCT: turns[PRODUCT], CEILING: turns[BEHIND_MOSQUITTO]}
    note = f"ceiling: the same gateway behind {how}"
    return [
        Figure.of_turns(WHAT, "/s", RATE_GOAL, both, lambda sample: sample.per_second, note),
        Figure.of_turns(
            *("the same, CPU of a message", "us", CPU_GOAL, both),
            *(lambda sample: sample.cpu_us + sample.broker_us, f"{note}, its CPU too"),
        ),
    ]


def _against_bare(turns: Turns) -> Figure:
    turns = {name: turns[name] for name in (PRODUCT, BEFORE, CEILING) if name in turns}
    figure = cpu_figure("the same, against bare paho", turns)
    rates = in_turn(turns, lambda sample: sample.per_second)
    return dataclasses.replace(figure, note=f"{figure.note}; {rates} messages/s")


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
