"""Puts one-value messages `ispindel/<name>/<key>` together as one reading; pure, its caller has the clock.

A firmware sends its values in a fixed order, but any may be lost and not every firmware ends alike:
iSpindel, GravityMon and eManometer end with `RSSI`; eManometer sends no gravity, old firmware no `RSSI`.
So a reading is complete with `RSSI`, when a key comes a second time, or after a short silence.
"""

import json
from dataclasses import dataclass, field

from gateway.domain.payload import Payload
from gateway.ingest.mqtt_link import Message

ROOT = "ispindel"

QUIET_S = 3.0
"""Silence that ends a reading."""

OPEN_S = 4.0
"""A reading is open no longer than this: its messages wait unacknowledged, and amqtt gives up after 5 s."""

OPEN_GROUPS = 1_000
GROUP_KEYS = 32
"""Bounds; devices send 6 to 8 keys. Beyond either, a reading is closed early."""

LAST_KEYS = frozenset({"RSSI", "rssi"})


@dataclass(slots=True)
class Group:
    """Messages of one device that make one reading, in order of arrival."""

    name: str
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
            channel=f"mqtt {ROOT}/{self.name}",
            driver=ROOT,
            label=self.name,
            delivery=",".join(ids) or None,
            redelivered=any(message.dup for message in self.messages),
        )

    def due_at(self) -> float:
        """When it closes without a further message."""
        return min(self.last + QUIET_S, self.opened + OPEN_S)


def text_of(message: Message) -> str:
    """The value as text."""
    return message.payload.decode(errors="replace")


def split_topic(topic: str) -> tuple[str, str] | None:
    """Device name (may be empty) and key of a one-value topic; None for any other topic."""
    # Trimmed: GravityMon's documentation breaks its template over lines, and people paste it as it is.
    levels = topic.strip().split("/")
    return (levels[1], levels[2]) if len(levels) == 3 and levels[0] == ROOT else None


class Assembler:
    """Open readings by device name; `now` is monotonic seconds throughout."""

    def __init__(self) -> None:
        self._open: dict[str, Group] = {}

    def add(self, name: str, key: str, message: Message, now: float) -> list[Group]:
        """Put a value in its place; returns what is complete by it, oldest first."""
        closed: list[Group] = []
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
            group = self._open[name] = Group(name, opened=now, last=now)
        group.values[key] = message
        group.messages.append(message)
        group.last = now
        if key in LAST_KEYS or len(group.values) >= GROUP_KEYS:
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
