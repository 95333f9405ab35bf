"""How much is measured: rounds, seconds and counts, from the whole run down to a smoke test."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeVar

from tests.benchmarks.payloads import ROUND_PAYLOADS


class BenchmarkError(Exception):
    """A figure could not be measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of one run; times in seconds."""

    rounds: int = 5
    seconds: float = 3.0
    warm_up_s: float = 1.0
    connections: tuple[int, ...] = (32, 128)
    devices: int = 50
    messages: int = 20_000
    warm_up_messages: int = 2_000
    readings: int = 35_000
    reads: int = 7
    latency_s: float = 6.0
    idle_s: float = 5.0
    starts: int = 5
    lone_readings: int = 500
    grouped_readings: int = 5_000
    recipes: int = 10_000
    payloads: int = 20_000
    requests: int = 300
    command_calls: int = 3
    """Calls of each command in a round."""
    fresh_rounds: int = 3
    """Rounds of the figures that need a new process in each."""
    views: int = 500
    """Pages that are looked at before memory is measured."""
    against: Path | None = None
    """Another checkout; its gateway takes turns with ours and stands beside it as "before"."""


QUICK = Plan(
    rounds=2,
    seconds=1.5,
    warm_up_s=0.5,
    messages=8_000,
    reads=5,
    latency_s=3.0,
    starts=3,
    requests=100,
    command_calls=2,
    fresh_rounds=1,
    views=200,
)
"""Coarse figures in two minutes."""

SMOKE = Plan(
    rounds=1,
    seconds=0.2,
    warm_up_s=0.1,
    connections=(4,),
    devices=2,
    messages=50,
    warm_up_messages=10,
    readings=600,
    reads=1,
    latency_s=0.3,
    idle_s=0.1,
    starts=1,
    lone_readings=5,
    grouped_readings=50,
    recipes=60,
    payloads=50,
    requests=5,
    command_calls=1,
    fresh_rounds=1,
    views=3,
)
"""Proves that every figure can still be measured; its numbers mean nothing."""


Result = TypeVar("Result")

_rounds = count(1)


def next_payload() -> int:
    """Number of the first payload of a load run: no two runs send the same bytes."""
    return next(_rounds) * ROUND_PAYLOADS


PRODUCT, BEFORE, CEILING = "product", "before", "ceiling"
"""Names of those that take turns."""


def take_turns(rounds: int, players: Mapping[str, Callable[[], Result]]) -> dict[str, list[Result]]:
    """Results of each player, round by round; every other round backwards, so that a drift cancels out."""
    results: dict[str, list[Result]] = {name: [] for name in players}
    for number in range(rounds):
        for name in reversed(list(players)) if number % 2 else players:
            results[name].append(players[name]())
    return results


def alternate(
    rounds: int, product: Callable[[], float], ceiling: Callable[[], float]
) -> list[tuple[float, float]]:
    """Values of product and ceiling, round by round, by turns."""
    results = take_turns(rounds, {PRODUCT: product, CEILING: ceiling})
    return list(zip(results[PRODUCT], results[CEILING], strict=True))
