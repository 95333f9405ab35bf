"""What happened in a brew: notes, dry hops, additions, readings by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HAND_KINDS = (
    "note",
    "dry_hop",
    "addition",
    "transfer",
    "cold_crash",
    "packaged",
    "hand_reading",
    "photo",
)
"""Kinds of events that people write."""

GATEWAY_KINDS = ("begun", "device_in", "device_out", "ended", "alarm")
"""Kinds of events that the gateway writes."""


@dataclass(frozen=True, slots=True)
class BrewEvent:
    """An event of a brew. `at` is Unix seconds; `oid` names the reading of a hand reading.

    `facts` are values of the kind, such as an amount, a photo's uuid or a device's id. `author` is the name
    of the key, empty for the gateway.
    """

    id: int
    session_id: int
    at: int
    kind: str
    text: str
    author: str
    created_at: int
    updated_at: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    oid: str | None = None
