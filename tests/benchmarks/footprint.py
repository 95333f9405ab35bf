"""What a gateway with its MQTT listener needs: memory, and time from the start to the first reading."""

import socket
import tempfile
import time
from pathlib import Path

from tests.benchmarks import payloads
from tests.benchmarks.plan import BenchmarkError, Plan, alternate, next_payload
from tests.benchmarks.processes import START_S, memory_bytes, module, running
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import HOST, environment, free_port, load, serve_command, serving

IDLE_GOAL = Goal("measured", "<=", 60)
PEAK_GOAL = Goal("measured", "<=", 90)
START_GOAL = Goal("measured", "<=", 1.5)

RETRY_S = 0.005
"""Pause between two attempts to connect."""

OK = b"HTTP/1.1 200"
ANSWER_BYTES = 4096


def measure_memory(plan: Plan) -> list[Figure]:
    """Resident memory after a reading by either way in, and its peak under HTTP load."""
    connections = max(plan.connections)
    options = ("--connections", connections, "--devices", plan.devices, "--seconds", plan.seconds * 2)
    with (
        tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory,
        serving(Path(directory), "--mqtt-port", "0") as server,
        running(*module("ceilings", "http")) as bare,
    ):
        bare_port = int(bare.line())
        one = ("--count", 1, "--first", next_payload())
        load(server.port, next_payload(), "--connections", 1, "--requests", 1)
        load(bare_port, next_payload(), "--connections", 1, "--requests", 1)
        with running(*module("mqtt_load", "--port", server.mqtt_port, *one)) as publisher:
            publisher.wait()
        server.wait_for("stored", 2)
        time.sleep(plan.idle_s)
        idle = [memory_bytes(pid) / 1e6 for pid in (server.child.pid, bare.pid)]
        load(server.port, next_payload(), *options)
        load(bare_port, next_payload(), *options)
        peak = [memory_bytes(pid, "VmHWM") / 1e6 for pid in (server.child.pid, bare.pid)]
    note = "ceiling: bare aiohttp, no MQTT, no store"
    return [
        Figure("RSS of serve with its MQTT listener, idle", "MB", IDLE_GOAL, idle[0], idle[1], note=note),
        Figure(f"the same, peak, {connections} connections", "MB", PEAK_GOAL, peak[0], peak[1], note=note),
    ]


def measure_start(plan: Plan) -> list[Figure]:
    """Seconds from the start of the process to the first accepted reading, in a new data directory."""
    pairs = alternate(plan.starts, _start_product, _start_bare)
    what = "start to the first accepted reading"
    return [Figure.of_rounds(what, "s", START_GOAL, pairs, "new data directory; ceiling: bare aiohttp")]


def _start_product() -> float:
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory:
        port = free_port()
        command = serve_command(Path(directory), "--mqtt-port", "0", port=port)
        started = time.perf_counter()
        with running(*command, environment=environment(Path(directory))):
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
