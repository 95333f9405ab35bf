"""What a driver is: a name, and a pure function from a payload to reports."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.domain.payload import Payload
from gateway.domain.report import Report


@dataclass(frozen=True, slots=True)
class Driver:
    """One device family.

    `parse` raises `DriverError` where the bytes are not of this family, and nothing else, whatever the
    bytes are. `name` is also the last word of the family's path: `/ingest/<name>`.
    """

    name: str
    title: str
    parse: Callable[[Payload], list[Report]]
