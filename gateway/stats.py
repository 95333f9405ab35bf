"""Counters and the state of each part; parts write them, the health and status pages read them."""

from dataclasses import dataclass, field

UNREAD_TOPICS = 32
"""Topics that are named; of more, those that were heard last."""

TOPIC_CHARACTERS = 128
"""Of a topic that is named, so many."""


@dataclass(slots=True)
class UnreadTopicLog:
    """MQTT topics whose messages came to nothing here, and how many came since the process started.

    Nobody listens to them, or there was no reading in what came on a topic that the user named. `messages`
    has the topics that were heard last, the last one at the end; `others` counts those of all the rest.
    """

    messages: dict[str, int] = field(default_factory=dict)
    others: int = 0

    def count(self, topic: str) -> None:
        """One more message on this topic."""
        name = "".join(char if char.isprintable() else "\ufffd" for char in topic[:TOPIC_CHARACTERS])
        self.messages[name] = self.messages.pop(name, 0) + 1
        if len(self.messages) > UNREAD_TOPICS:
            self.others += self.messages.pop(next(iter(self.messages)))


@dataclass(slots=True)
class Stats:
    """Counts since the process started. `parts` says in words how each listener or target is doing,
    `in_trouble` names those of them that do not do their work; advice is no trouble.

    `received` counts deliveries. What was in them is `accepted`: each reading that was understood, and one
    for each delivery in which there was something that was not. Of these it holds at any time at rest that
    accepted = stored + duplicates + thinned + quarantined + not_stored, where `thinned` are readings of
    bridges that push every few seconds, of which one a minute is kept, and `not_stored` those that the store
    could not take: the device was told so, or the delivery is in quarantine.

    `connections` is a state, not a count: how many HTTP connections there are. `targets` are the services
    that are forwarded to, and whether brew sessions go there that name none. `unread` are MQTT topics whose
    messages came to nothing.
    """

    received: int = 0
    accepted: int = 0
    stored: int = 0
    duplicates: int = 0
    thinned: int = 0
    quarantined: int = 0
    not_stored: int = 0
    imported: int = 0
    forwarded: int = 0
    refused_upstream: int = 0
    connections: int = 0
    connections_refused: int = 0
    connections_cut: int = 0
    unreadable: int = 0
    wrong_keys: int = 0
    parts: dict[str, str] = field(default_factory=dict)
    in_trouble: set[str] = field(default_factory=set)
    targets: dict[str, bool] = field(default_factory=dict)
    unread: UnreadTopicLog = field(default_factory=UnreadTopicLog)

    def say(self, part: str, words: str, *, well: bool = True) -> None:
        """How a part is doing from now on, and whether it does its work."""
        self.parts[part] = words
        (self.in_trouble.discard if well else self.in_trouble.add)(part)

    def forget(self, part: str) -> None:
        """There is no such part any more."""
        self.parts.pop(part, None)
        self.in_trouble.discard(part)
