"""What a gateway with its MQTT listener needs: memory, and time from the start to the first reading."""

import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.benchmarks import payloads
from tests.benchmarks.plan import CEILING, PRODUCT, BenchmarkError, Plan, next_payload, take_turns
from tests.benchmarks.processes import START_S, memory_bytes, module, private_bytes, running
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import HOST, environment, free_port, load, serve_command, serving, trees

IDLE_GOAL = Goal("measured", "<=", 62, 60)
PEAK_GOAL = Goal("measured", "<=", 90)
START_GOAL = Goal("measured", "<=", 1.5)

RETRY_S = 0.005
"""Pause between two attempts to connect."""

OK = b"HTTP/1.1 200"
ANSWER_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one process, in MB."""

    idle: float
    private: float
    """Of the idle memory, the part that no other process shares."""
    peak: float


def measure_memory(plan: Plan) -> list[Figure]:
    """Resident memory after a reading by either way in, and its peak under HTTP load."""
    play: dict[str, Callable[[], Memory]] = {CEILING: partial(_memory_of_bare, plan)}
    play |= {name: partial(_memory_of_gateway, plan, tree) for name, tree in trees(plan).items()}
    turns = take_turns(plan.fresh_rounds, play)
    private = statistics.median(sample.private for sample in turns[PRODUCT])
    bare = "ceiling: bare aiohttp"
    return [
        Figure.of_turns(
            *("RSS of serve with its MQTT listener, idle", "MB", IDLE_GOAL, turns),
            *(lambda memory: memory.idle, f"private {private:.1f} MB; {bare}"),
        ),
        Figure.of_turns(
            *(f"the same, peak, {max(plan.connections)} connections", "MB", PEAK_GOAL, turns),
            *(lambda memory: memory.peak, bare),
        ),
    ]


def _memory_of_gateway(plan: Plan, tree: Path) -> Memory:
    with (
        tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory,
        serving(Path(directory), "--mqtt-port", "0", tree=tree) as server,
    ):
        one = ("--count", 1, "--first", next_payload())
        with running(*module("mqtt_load", "--port", server.mqtt_port, *one)) as publisher:
            publisher.wait()
        return _memory(plan, server.port, server.child.pid)


def _memory_of_bare(plan: Plan) -> Memory:
    with running(*module("ceilings", "http")) as bare:
        return _memory(plan, int(bare.line()), bare.pid)


def _memory(plan: Plan, port: int, pid: int) -> Memory:
    load(port, next_payload(), "--connections", 1, "--requests", 1)
    time.sleep(plan.idle_s)
    idle, private = memory_bytes(pid), private_bytes(pid)
    options = ("--connections", max(plan.connections), "--devices", plan.devices)
    load(port, next_payload(), *options, "--seconds", plan.seconds * 2)
    return Memory(idle / 1e6, private / 1e6, memory_bytes(pid, "VmHWM") / 1e6)


def measure_start(plan: Plan) -> list[Figure]:
    """Seconds from the start of the process to the first accepted reading, in a new data directory."""
    play: dict[str, Callable[[], float]] = {CEILING: _start_bare}
    play |= {name: partial(_start, tree) for name, tree in trees(plan).items()}
    for warm_up in play.values():
        warm_up()
    turns = take_turns(plan.starts, play)
    what = "start to the first accepted reading"
    return [Figure.of_turns(what, "s", START_GOAL, turns, float, "new data directory; ceiling: bare aiohttp")]


def _start(tree: Path) -> float:
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory:
        port = free_port()
        command = serve_command(Path(directory), "--mqtt-port", "0", port=port)
        started = time.perf_counter()
        with running(*command, environment=environment(Path(directory), tree), tree=tree):
            return _first_accepted(port) - started


def _start_bare() -> float:
    port = free_port()
    started = time.perf_counter()
    with running(*module("ceilings", "http", port)):
        return _first_accepted(port) - started


def _first_accepted(port: int) -> float:
    """When the first reading was answered with 200."""
    request = payloads.http_request(next_payload())
    deadline = time.perf_counter() + START_S
    while time.perf_counter() < deadline:
        try:
            with socket.create_connection((HOST, port), timeout=START_S) as connection:
                connection.sendall(request)
                answer = connection.recv(ANSWER_BYTES)
        except ConnectionRefusedError:
            time.sleep(RETRY_S)
            continue
        if not answer.startswith(OK):
            raise BenchmarkError(f"the first answer was {answer[:200]!r}")
        return time.perf_counter()
    raise BenchmarkError(f"nobody listened within {START_S:g} s")
