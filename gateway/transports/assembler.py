"""Make readings of messages with one value each. Pure: the caller has the clock.

A firmware sends its values in a fixed order, but any value may be lost, and firmware differs in its last key:
iSpindel and GravityMon's default template end with `RSSI`; an eManometer, on the same topics, then sends two
more keys; in a template of GravityMon's users `RSSI` may stand anywhere; other firmware has no certain last
key. So a reading is complete a moment after a key that its driver calls the last, when a key comes a second
time, or after a silence.
"""

import heapq
import itertools
import json
from dataclasses import dataclass, field, replace

from gateway.domain.payload import Payload
from gateway.drivers.wire import MISSING_WORDS
from gateway.transports.mqtt_link import Message
from gateway.transports.topics import Place

LAST_S = 0.3
"""Seconds after a reading's last key in which other keys of the same burst may come."""

QUIET_S = 3.0
"""Seconds of silence that end a reading."""

QUIET_BEFORE_LAST_S = 5.0
"""Seconds of silence that end a reading while its last key is missing: a weak radio sends late."""

OPEN_S = 15.0
"""Seconds that a reading is open at most: its messages count as in flight while they wait."""

OPEN_GROUPS = 1_000
GROUP_KEYS = 32
"""Readings open at once, and keys of a reading, at most; devices send 6 to 17 keys. Beyond, a reading is
closed early."""

QUEUE_ENTRIES = 8 * OPEN_GROUPS
"""Dates that wait in the queue at most, those of readings that were closed early included."""

GroupId = tuple[str, str, str, bytes]
"""Identifies an open reading: driver, device name, source, digest of the key."""

WORD_BYTES = 32
"""Bytes of the longest value that may be a word for no value."""


@dataclass(slots=True)
class Group:
    """Messages of a device that make one reading, in order of arrival; `place` is the first message's.

    `queued_at` is the date at which the assembler looks at the group, in monotonic seconds.
    """

    place: Place
    opened: float
    last: float
    queued_at: float = float("inf")
    values: dict[str, Message] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)

    def payload(self) -> Payload:
        """Return the values as one JSON object of texts; the driver interprets them."""
        texts = {key: text_of(message) for key, message in self.values.items()}
        ids = [str(message.mid) for message in self.values.values() if message.qos]
        first = self.messages[0]
        return Payload(
            body=json.dumps(texts, ensure_ascii=False, separators=(",", ":")).encode(),
            received_at=first.received_at,
            channel=self.place.channel,
            driver=self.place.driver,
            source=first.source,
            label=self.place.label,
            delivery=",".join(ids) or None,
            redelivered=any(message.dup for message in self.messages),
            chosen=self.place.chosen,
            key=first.key,
        )

    def is_empty(self) -> bool:
        """Return whether all values are missing: ESPHome sends `nan`, Home Assistant `unknown`, by itself."""
        return all(is_missing(message.payload) for message in self.values.values())

    def due_at(self) -> float:
        """Return when the reading closes without a further message, in monotonic seconds."""
        last_keys = self.place.values.last
        if not last_keys:
            quiet_s = QUIET_S
        else:
            quiet_s = QUIET_BEFORE_LAST_S if last_keys.isdisjoint(self.values) else LAST_S
        return min(self.last + quiet_s, self.opened + OPEN_S)


def text_of(message: Message) -> str:
    """Return the value of a message as text."""
    return message.payload.decode(errors="replace")


def is_missing(payload: bytes) -> bool:
    """Return whether a payload is empty or a word for no value."""
    return len(payload) <= WORD_BYTES and payload.decode(errors="replace").strip().lower() in MISSING_WORDS


class Assembler:
    """Keeps open readings by device, source and key. Every `now` is monotonic seconds.

    The values of a reading come from one source: a stranger's value must not get into another's reading.
    """

    def __init__(self) -> None:
        self._open: dict[GroupId, Group] = {}
        self._queue: list[tuple[float, int, GroupId, Group]] = []
        self._numbers = itertools.count()

    def add(self, place: Place, message: Message, now: float) -> list[Group]:
        """Add a message to its reading. Return the readings that are complete by it, oldest first."""
        closed: list[Group] = []
        # A message is nearly always a single value; some drivers find several values in it.
        found = place.values.parts(message.payload) if place.values.parts is not None else {}
        parts = {key: replace(message, payload=value) for key, value in found.items()}
        parts = parts or {place.key or "": message}
        name = (*place.group, message.source, message.key.sha256 if message.key is not None else b"")
        group = self._open.get(name)
        if group is not None and all(_is_repeat(group.values.get(key), part) for key, part in parts.items()):
            # No next reading, because the broker sent the same value again after a lost connection.
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
        elif (due_at := group.due_at()) < group.queued_at:
            self._enqueue(name, group, due_at)
        return closed

    def due(self, now: float) -> list[Group]:
        """Return and close the readings that silence has completed."""
        groups = []
        while (due_at := self.next_due()) is not None and due_at <= now:
            groups.append(self._open.pop(heapq.heappop(self._queue)[2]))
        return groups

    def next_due(self) -> float | None:
        """Return when to call `due` again; None while no reading is open."""
        while self._queue:
            queued_at, _, name, group = self._queue[0]
            if self._open.get(name) is group:
                due_at = group.due_at()
                if due_at <= queued_at:
                    return due_at
                # Later values have moved the date: a reading is moved once it is first, not at each value.
                heapq.heappop(self._queue)
                self._enqueue(name, group, due_at)
            else:
                heapq.heappop(self._queue)
        return None

    def _enqueue(self, name: GroupId, group: Group, due_at: float) -> None:
        group.queued_at = due_at
        heapq.heappush(self._queue, (due_at, next(self._numbers), name, group))
        if len(self._queue) > QUEUE_ENTRIES:
            # Most are of readings that were closed early; the others stand there again with their own date.
            self._queue = [entry for entry in self._queue if self._open.get(entry[2]) is entry[3]]
            heapq.heapify(self._queue)


def _is_repeat(earlier: Message | None, message: Message) -> bool:
    return (
        earlier is not None
        and message.dup
        and message.mid == earlier.mid
        and message.payload == earlier.payload
        and message.connection != earlier.connection
    )
