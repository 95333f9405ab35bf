"""Puts messages with one value each together as one reading; pure, its caller has the clock.

A firmware sends its values in a fixed order, but any may be lost and not every firmware ends alike: iSpindel,
GravityMon's default template and eManometer end with `RSSI`, others in no way that shows. So a reading is
complete with a key that its driver calls the last, when a key comes a second time, or after a short silence.
"""

import json
from dataclasses import dataclass, field

from gateway.domain.payload import Payload
from gateway.drivers.wire import MISSING_WORDS
from gateway.ingest.mqtt_link import Message
from gateway.ingest.topics import Place

QUIET_S = 3.0
"""Silence that ends a reading."""

OPEN_S = 4.0
"""A reading is open no longer than this: its messages fill a place in the window while they wait."""

OPEN_GROUPS = 1_000
GROUP_KEYS = 32
"""Bounds; devices send 6 to 17 keys. Beyond either, a reading is closed early."""


WORD_BYTES = 32
"""Nothing longer is looked through for a word that means no value."""


@dataclass(slots=True)
class Group:
    """Messages of one device that make one reading, in order of arrival; `place` is that of the first."""

    place: Place
    opened: float
    last: float
    values: dict[str, Message] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)

    def payload(self) -> Payload:
        """The values as one JSON object of texts; what a text means is the driver's business."""
        texts = {key: text_of(message) for key, message in self.values.items()}
        ids = [str(message.mid) for message in self.values.values() if message.qos]
        return Payload(
            body=json.dumps(texts, ensure_ascii=False, separators=(",", ":")).encode(),
            received_at=self.messages[0].received_at,
            channel=self.place.channel,
            driver=self.place.driver,
            label=self.place.label,
            delivery=",".join(ids) or None,
            redelivered=any(message.dup for message in self.messages),
        )

    def says_nothing(self) -> bool:
        """Whether none of its values is one: ESPHome sends `nan`, Home Assistant `unknown`, by itself."""
        return all(is_missing(message.payload) for message in self.values.values())

    def due_at(self) -> float:
        """When it closes without a further message."""
        return min(self.last + QUIET_S, self.opened + OPEN_S)


def text_of(message: Message) -> str:
    """The value as text."""
    return message.payload.decode(errors="replace")


def is_missing(payload: bytes) -> bool:
    """Whether it is a word for no value, or nothing at all."""
    return len(payload) <= WORD_BYTES and payload.decode(errors="replace").strip().lower() in MISSING_WORDS


class Assembler:
    """Open readings by driver and device name; `now` is monotonic seconds throughout."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Group] = {}

    def add(self, place: Place, message: Message, now: float) -> list[Group]:
        """Put a value in its place; returns what is complete by it, oldest first."""
        closed: list[Group] = []
        name, key = place.group, place.key or ""
        group = self._open.get(name)
        if group is not None and _is_repeat(group.values.get(key), message):
            # Sent again after a lost connection while the reading was open: the same value, not the next.
            group.values[key] = message
            group.messages.append(message)
            return closed
        if group is not None and key in group.values:
            closed.append(self._open.pop(name))
            group = None
        if group is None:
            if len(self._open) >= OPEN_GROUPS:
                closed.append(self._open.pop(next(iter(self._open))))
            group = self._open[name] = Group(place, opened=now, last=now)
        group.values[key] = message
        group.messages.append(message)
        group.last = now
        if key in place.last or len(group.values) >= GROUP_KEYS:
            closed.append(self._open.pop(name))
        return closed

    def due(self, now: float) -> list[Group]:
        """What silence has completed."""
        names = [name for name, group in self._open.items() if group.due_at() <= now]
        return [self._open.pop(name) for name in names]

    def next_due(self) -> float | None:
        """When to ask `due` again; None while nothing is open."""
        return min((group.due_at() for group in self._open.values()), default=None)


def _is_repeat(held: Message | None, message: Message) -> bool:
    return (
        held is not None
        and message.dup
        and message.mid == held.mid
        and message.payload == held.payload
        and message.connection != held.connection
    )
