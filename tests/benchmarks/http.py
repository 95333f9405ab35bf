"""Durable HTTP ingest against a bare aiohttp handler that parses JSON and answers."""

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.benchmarks.plan import CEILING, PRODUCT, Plan, next_payload, take_turns
from tests.benchmarks.processes import module, running
from tests.benchmarks.report import Figure, Goal, in_turn
from tests.benchmarks.server import load, serving, trees

RATE_GOALS = {32: Goal("ratio", ">=", 0.50, 0.60), 128: Goal("ratio", ">=", 0.70, 0.90)}
"""Connections and the share of the ceiling."""

CPU_GOAL = Goal("ratio", "<=", 1.9, 1.5)
ALONE_P99_GOAL = Goal("measured", "<=", 2.8)
P99_GOAL = Goal("ratio", "<=", 3, 2)

LIMITING_SHARE = 0.9
"""A client that takes more of its core than this is what limits the rate."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a round measured."""

    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """CPU of the server's process for each reading."""
    event_loop_us: float
    """Of that, the part of the thread that runs the event loop."""
    client_share: float
    """Of a core, for the client."""


Turns = Mapping[str, Sequence[Sample]]


def measure(plan: Plan) -> list[Figure]:
    """Readings per second, CPU and 99th percentile, one reading per POST, for each number of connections."""
    with ExitStack() as stack:
        ends: dict[str, tuple[int, int]] = {}
        for name, tree in trees(plan).items():
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-bench-"))
            server = stack.enter_context(serving(Path(directory), "--no-mqtt", tree=tree))
            server.introduce(plan.devices, next_payload())
            ends[name] = server.port, server.child.pid
        bare = stack.enter_context(running(*module("ceilings", "http")))
        ends[CEILING] = int(bare.line()), bare.pid

        def turns(connections: int) -> Turns:
            play = {name: partial(_sample, plan, connections, *end) for name, end in ends.items()}
            return take_turns(plan.rounds, play)

        crowds = [figure for number in plan.connections for figure in _crowd(number, turns(number))]
        return [*crowds, _alone(turns(1))]


def _sample(plan: Plan, connections: int, port: int, pid: int) -> Sample:
    result = load(
        *(port, next_payload(), "--connections", connections, "--devices", plan.devices),
        *("--seconds", plan.seconds, "--warm-up", plan.warm_up_s, "--watch", pid),
    )
    return Sample(**{name: result[name] for name in Sample.__slots__})


def _crowd(connections: int, turns: Turns) -> list[Figure]:
    rate_goal = RATE_GOALS.get(connections, min(RATE_GOALS.values(), key=lambda goal: goal.limit))
    where = f"{connections} connections"
    event_loop = f"in the event loop {in_turn(turns, lambda s: s.event_loop_us)}"
    return [
        Figure.of_turns(
            f"HTTP ingest, {where}", "/s", rate_goal, turns, lambda s: s.per_second, _client_words(turns)
        ),
        Figure.of_turns(f"CPU of a reading, {where}", "us", CPU_GOAL, turns, lambda s: s.cpu_us, event_loop),
        Figure.of_turns(f"p99, {where}", "ms", P99_GOAL, turns, lambda s: s.p99_ms),
    ]


def _alone(turns: Turns) -> Figure:
    p50_ms, cpu_us = (_median(turns, PRODUCT, value) for value in (lambda s: s.p50_ms, lambda s: s.cpu_us))
    note = f"p50 {p50_ms:.2f} ms, CPU {cpu_us:.0f} us"
    return Figure.of_turns("p99, 1 connection", "ms", ALONE_P99_GOAL, turns, lambda s: s.p99_ms, note)


def _client_words(turns: Turns) -> str:
    """Share of a core that the client takes, as it could be what limits."""
    shares = {name: _median(turns, name, lambda s: s.client_share) for name in (PRODUCT, CEILING)}
    limited = "; the client limits the ceiling" if shares[CEILING] > LIMITING_SHARE else ""
    return f"client {shares[PRODUCT]:.0%} of a core, at the ceiling {shares[CEILING]:.0%}{limited}"


def _median(turns: Turns, name: str, value: Callable[[Sample], float]) -> float:
    return statistics.median(map(value, turns[name]))
