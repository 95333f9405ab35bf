"""An event of a brew: something that happened in it, by hand or by the gateway."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HAND_READING = "hand_reading"
"""The kind of an event that is a reading taken by a person."""

PITCHED = "pitched"
"""The kind of an event that yeast was pitched: the first begins the fermentation, a later one rouses it."""

RISE, SUGAR = "rise", "sugar"
"""Facts of the answer whether sugar was added: when gravity began to rise (Unix seconds), and how much (SG).

Without sugar, the rise had another reason.
"""

HAND_KINDS = (
    "note",
    PITCHED,
    "dry_hop",
    "addition",
    "transfer",
    "cold_crash",
    "packaged",
    HAND_READING,
    "photo",
)
"""Kinds of events that people write."""

GATEWAY_KINDS = ("begun", "device_in", "device_out", "ended", "alarm")
"""Kinds of events that the gateway writes."""

SOURCE = "hand"
"""The `source` of a reading that a person took, and of a note that is sent on."""

INSTRUMENT = "Hydrometer"
"""The instrument of a hand reading, if nobody names another one."""

EVENTS_MAX = 2_000
"""Events of a brew at most. Beyond it people get an error, and the gateway writes no more."""


@dataclass(frozen=True, slots=True)
class BrewEvent:
    """An event of a brew. `at` is Unix seconds; `oid` names the reading of a hand reading or of a note.

    `facts` are values of the kind, such as an amount, a photo's uuid, a device's id, or the gravity of a hand
    reading as it was typed. `author` is the name of the key, empty for the gateway. `sg` and `celsius` are
    the numbers of a hand reading. `was_sent` says that a target has its reading, or may have it.
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
    sg: float | None = None
    celsius: float | None = None
    was_sent: bool = False

    @property
    def is_by_hand(self) -> bool:
        """Return whether a person wrote the event, and so may change it."""
        return self.kind in HAND_KINDS
