"""Puts messages with one value each together as one reading; pure, its caller has the clock.

A firmware sends its values in a fixed order, but any may be lost and not every firmware ends alike: iSpindel
and GravityMon's default template end with `RSSI`, after which an eManometer, on the same topics, has two more
keys to send; in a template of GravityMon's users it may stand anywhere; others end in no way that shows. So a
reading is complete a moment after a key that its driver calls the last, when a key comes a second time, or
after a silence.
"""

import json
from dataclasses import dataclass, field, replace

from gateway.domain.payload import Payload
from gateway.drivers.wire import MISSING_WORDS
from gateway.transports.mqtt_link import Message
from gateway.transports.topics import Place

LAST_S = 0.3
"""How long after its last key others of the same burst are waited for."""

QUIET_S = 3.0
"""Silence that ends a reading."""

QUIET_BEFORE_LAST_S = 5.0
"""The same where a last key is still to come: packets of a weak radio may take that long to be sent again."""

OPEN_S = 15.0
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
            chosen=self.place.chosen,
        )

    def says_nothing(self) -> bool:
        """Whether none of its values is one: ESPHome sends `nan`, Home Assistant `unknown`, by itself."""
        return all(is_missing(message.payload) for message in self.values.values())

    def due_at(self) -> float:
        """When it closes without a further message."""
        return min(self.last + self._quiet_s(), self.opened + OPEN_S)

    def _quiet_s(self) -> float:
        last_keys = self.place.values.last
        if not last_keys:
            return QUIET_S
        return QUIET_BEFORE_LAST_S if last_keys.isdisjoint(self.values) else LAST_S


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
        name, parts = place.group, _parts_of(place, message)
        group = self._open.get(name)
        if group is not None and all(_is_repeat(group.values.get(key), part) for key, part in parts.items()):
            # Sent again after a lost connection while the reading was open: the same value, not the next.
            group.values.update(parts)
            group.messages.append(message)
            return closed
        if group is not None and not group.values.keys().isdisjoint(parts):
            closed.append(self._open.pop(name))
            group = None
        if group is None:
            if len(self._open) >= OPEN_GROUPS:
                closed.append(self._open.pop(next(iter(self._open))))
            group = self._open[name] = Group(place, opened=now, last=now)
        group.values.update(parts)
        group.messages.append(message)
        group.last = now
        if len(group.values) >= GROUP_KEYS:
            closed.append(self._open.pop(name))
        return closed

    def due(self, now: float) -> list[Group]:
        """What silence has completed."""
        names = [name for name, group in self._open.items() if group.due_at() <= now]
        return [self._open.pop(name) for name in names]

    def next_due(self) -> float | None:
        """When to ask `due` again; None while nothing is open."""
        return min((group.due_at() for group in self._open.values()), default=None)


def _parts_of(place: Place, message: Message) -> dict[str, Message]:
    """The values in a message, each as a message of its own, by key; nearly always it is one."""
    found = place.values.parts(message.payload) if place.values.parts is not None else {}
    if not found:
        return {place.key or "": message}
    return {key: replace(message, payload=value) for key, value in found.items()}


def _is_repeat(held: Message | None, message: Message) -> bool:
    return (
        held is not None
        and message.dup
        and message.mid == held.mid
        and message.payload == held.payload
        and message.connection != held.connection
    )
