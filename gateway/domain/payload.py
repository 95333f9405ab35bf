"""What arrived, before anybody tried to understand it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Payload:
    """One delivery: the bytes as received, and how, when and for which driver.

    `driver` is the name that the path or topic gave, or None on the shared ones, where the content decides.
    `channel` is what a person would call the way in: `http /ingest/tilt`, `mqtt hydrometer/red`.
    `label` is a name that the address carries (topic level), used where the body has none.
    `fields` are its members once somebody has read them.
    `delivery` is the broker's packet id, kept so that a redelivery is known for what it is.
    """

    body: bytes
    received_at: float
    channel: str
    driver: str | None = None
    source: str = ""
    query: str = ""
    label: str = ""
    delivery: str | None = None
    redelivered: bool = False
    fields: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
