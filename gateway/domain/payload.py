"""What arrived, before anybody tried to understand it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Payload:
    """One delivery: the bytes as received, and how, when and for which driver.

    `driver` is the name that the address gave (`/ingest/ispindel`), and then it is not asked whose the
    content is, but for Tilts. `hint` is the driver that an address usually means (`/tilt`), asked where the
    content shows no other.
    `channel` is what a person would call the way in: `http /ingest/tilt`, `mqtt hydrometer/red`.
    `label` is a name that the address carries (path or topic), used where the body has none; `token` a key.
    `fields` are its members once somebody has read them.
    `delivery` is the broker's packet id, kept so that a redelivery is known for what it is.
    `chosen` says, of what came by MQTT, whether the user named the topic; else it is one that others may use.
    `retained` says that the broker gave it because it had kept it, not because it was just sent.
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
    hint: str | None = None
    token: str = field(default="", repr=False)
    retained: bool = False
    chosen: bool | None = field(default=None, compare=False)
