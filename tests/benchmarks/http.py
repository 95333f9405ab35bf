"""Durable HTTP ingest against a bare aiohttp handler that parses JSON and answers."""

import statistics
import tempfile
from functools import partial
from pathlib import Path

from tests.benchmarks.plan import Plan, alternate, next_payload
from tests.benchmarks.processes import module, running
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import Server, load, serving

GOALS = {32: 0.75, 128: 1.00}
"""Connections and the share of the ceiling."""


def measure(plan: Plan) -> list[Figure]:
    """Readings per second, one per POST, for each number of connections."""
    with (
        tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory,
        serving(Path(directory), "--no-mqtt") as server,
        running(*module("ceilings", "http")) as bare,
    ):
        bare_port = int(bare.line())
        server.introduce(plan.devices, next_payload())
        return [_compare(plan, server, bare_port, connections) for connections in plan.connections]


def _compare(plan: Plan, server: Server, bare_port: int, connections: int) -> Figure:
    clients: list[float] = []
    p99s: list[float] = []

    def rate(port: int) -> float:
        result = load(
            *(port, next_payload(), "--connections", connections, "--devices", plan.devices),
            *("--seconds", plan.seconds, "--warm-up", plan.warm_up_s),
        )
        if port == server.port:
            p99s.append(result["p99_ms"])
        else:
            clients.append(result["cpu_share"])
        return float(result["per_second"])

    pairs = alternate(plan.rounds, partial(rate, server.port), partial(rate, bare_port))
    goal = Goal("ratio", ">=", GOALS.get(connections, min(GOALS.values())))
    note = f"p99 {statistics.median(p99s):.0f} ms; client {max(clients):.0%} of a core at the ceiling"
    return Figure.of_rounds(f"HTTP ingest, {connections} connections", "/s", goal, pairs, note)
