"""A delivery as it arrived, before a driver reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.key import ApiKey


@dataclass(slots=True)
class Payload:
    """A delivery: the bytes as received, with their channel, sender, arrival and driver.

    `driver` is the name in the address (`/ingest/ispindel`); no other driver is tried, except for Tilts.
    `hint` is the driver that an address usually means (`/tilt`); it is used if the content shows no other.
    `channel` is the way in, in words for people: `http /ingest/tilt`, `mqtt hydrometer/red`. `label` is a
    name in the address (path or topic), used if the body has none; `token` is a key. `fields` are the body's
    members after the first parsing. `delivery` is the broker's packet id, by which a redelivery is
    recognised. `chosen` means, of a payload by MQTT, that the user named the topic; on other topics other
    programs may publish too. `retained` means that the broker had kept the message; it was not just sent.
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
    key: ApiKey | None = field(default=None, repr=False, compare=False)
