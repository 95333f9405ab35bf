"""Which module has which scenarios."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

from tests.faults.frame import Scenario

MODULES = (
    "kills", "syscalls", "failing_disk", "power", "sectors", "full_disk", "damage", "stopping", "backups",
    "endurance", "long_reads", "upstream", "points", "mqtt", "clock", "crowding", "messages", "alarms",
)  # fmt: skip
"""Of this package, in the order of the list; one that is not there yet is passed over."""


def scenarios() -> dict[str, Scenario]:
    """All of them by id."""
    return {scenario.id: scenario for scenario in _all()}


def _all() -> Iterator[Scenario]:
    for name in MODULES:
        if find_spec(f"tests.faults.{name}") is not None:
            yield from import_module(f"tests.faults.{name}").SCENARIOS
