"""Counters and the state of each part; parts write them, the health and status pages read them."""

from dataclasses import dataclass, field
from enum import Enum, auto

UNREAD_TOPICS = 32
"""Topics that are listed by name at most: the ones that were heard last."""

TOPIC_CHARACTERS = 128
"""Characters of a topic's name that are kept."""

BROKER = "broker"
"""The name, among the addresses, of a broker whose messages the gateway takes."""


class IntakeOutcome(Enum):
    """What becomes of one reading of a device, or of one payload that no driver understands."""

    STORED = auto()
    DUPLICATE = auto()
    RATE_LIMITED = auto()
    QUARANTINED = auto()
    WAITING = auto()
    REFUSED = auto()
    NOT_STORED = auto()


@dataclass(slots=True)
class UnreadTopicLog:
    """MQTT topics without readings: the topic is not listened to, or its messages hold no reading.

    `messages` counts messages since the start by topic, the topic that was heard last at the end. `others`
    counts the messages of all topics that are not listed.
    """

    messages: dict[str, int] = field(default_factory=dict)
    others: int = 0

    def count(self, topic: str) -> None:
        """Count one more message on this topic."""
        name = "".join(char if char.isprintable() else "\ufffd" for char in topic[:TOPIC_CHARACTERS])
        self.messages[name] = self.messages.pop(name, 0) + 1
        if len(self.messages) > UNREAD_TOPICS:
            self.others += self.messages.pop(next(iter(self.messages)))


class Tally(dict[str, int]):
    """Counts by name, 0 for a name that is not there.

    Not a `Counter`: of one `dataclasses.asdict` makes keys of pairs, which no JSON can hold.
    """

    def __missing__(self, name: str) -> int:
        return 0


SHARED_IDS, SHARED_ID_ADDRESSES = 16, 4
"""MQTT client ids of several devices that are remembered, and addresses of each, at most."""


@dataclass(slots=True)
class MqttCounts:
    """The MQTT listener: open connections, messages by QoS, packets that were held, refusals by code.

    `shared_ids` are client ids that devices of several addresses used at once, with the addresses.
    """

    connections: int = 0
    messages: list[int] = field(default_factory=lambda: [0, 0, 0])
    held: int = 0
    refused: Tally = field(default_factory=Tally)
    shared_ids: dict[str, list[str]] = field(default_factory=dict)

    def note_shared(self, client_id: str, addresses: set[str]) -> None:
        """Remember that devices of several addresses use a client id; the oldest id is forgotten."""
        name = "".join(char if char.isprintable() else "\ufffd" for char in client_id)
        known = {*self.shared_ids.pop(name, ()), *addresses}
        self.shared_ids[name] = sorted(known)[:SHARED_ID_ADDRESSES]
        if len(self.shared_ids) > SHARED_IDS:
            del self.shared_ids[next(iter(self.shared_ids))]


@dataclass(slots=True)
class Stats:
    """Counts since the process started. `parts` has the state of each listener or target in words,
    `in_trouble` the names of the parts that do not do their work; advice is no trouble.

    `received` counts deliveries. `accepted` counts each reading that was decoded, and one for each delivery
    with a rest that no driver understands. At rest, accepted = stored + duplicates + thinned + quarantined +
    waiting + refused + not_stored. `thinned` are readings of bridges that push every few seconds, of which
    one a minute is kept. `waiting` are readings that went into the inbox, `refused` readings under a name
    that the owner has refused. `not_stored` are readings that the store could not take: the device was told,
    or the delivery is in quarantine.

    `pages_refused` are reports of web pages, `hosts_refused` requests for a name that is not this machine's,
    `task_errors` errors that no part of the program handled.

    `backed_up_at` is the time of the newest nightly backup (Unix seconds), None if none is made.

    `listening` are the addresses to type into a device, by part: host and port.

    `connections` is a state, not a count: the number of open HTTP connections. `targets` are the services
    that are forwarded to, and whether brew sessions that name no service go there.
    """

    received: int = 0
    accepted: int = 0
    stored: int = 0
    duplicates: int = 0
    thinned: int = 0
    quarantined: int = 0
    waiting: int = 0
    refused: int = 0
    not_stored: int = 0
    imported: int = 0
    forwarded: int = 0
    refused_upstream: int = 0
    connections: int = 0
    connections_refused: int = 0
    connections_cut: int = 0
    unreadable: int = 0
    wrong_keys: int = 0
    pages_refused: int = 0
    hosts_refused: int = 0
    task_errors: int = 0
    backed_up_at: float | None = None
    parts: dict[str, str] = field(default_factory=dict)
    listening: dict[str, str] = field(default_factory=dict)
    in_trouble: set[str] = field(default_factory=set)
    targets: dict[str, bool] = field(default_factory=dict)
    unread: UnreadTopicLog = field(default_factory=UnreadTopicLog)
    mqtt: MqttCounts = field(default_factory=MqttCounts)

    def count(self, outcome: IntakeOutcome, number: int = 1) -> None:
        """Add readings or payloads to the counter of their outcome."""
        match outcome:
            case IntakeOutcome.STORED:
                self.stored += number
            case IntakeOutcome.DUPLICATE:
                self.duplicates += number
            case IntakeOutcome.RATE_LIMITED:
                self.thinned += number
            case IntakeOutcome.QUARANTINED:
                self.quarantined += number
            case IntakeOutcome.WAITING:
                self.waiting += number
            case IntakeOutcome.REFUSED:
                self.refused += number
            case IntakeOutcome.NOT_STORED:
                self.not_stored += number

    def count_task_error(self) -> None:
        """Count an error that no part of the program handled."""
        self.task_errors += 1

    def say(self, part: str, words: str, *, well: bool = True) -> None:
        """Set the state of a part, and whether the part does its work."""
        self.parts[part] = words
        (self.in_trouble.discard if well else self.in_trouble.add)(part)

    def forget(self, part: str) -> None:
        """Remove a part that no longer exists."""
        self.parts.pop(part, None)
        self.in_trouble.discard(part)
