"""The banner of the page: the worst of what keeps readings from being stored or sent on."""

from dataclasses import dataclass
from typing import Literal

from gateway.forward.forwarding import PAUSED
from gateway.stats import Stats

Kind = Literal["store", "listener", "clock", "sending", "keeping"]

KINDS: dict[str, Kind] = {
    "store": "store",
    "http": "listener",
    "https": "listener",
    "mqtt": "listener",
    "mqtts": "listener",
    "tcp": "listener",
    "clock": "clock",
    "upstream": "sending",
    "nightly": "keeping",
    "tls": "keeping",
}
"""Parts by the first word of their names, the worst first. Other parts need nobody who hurries."""

ORDER = tuple(dict.fromkeys(KINDS.values()))


@dataclass(frozen=True, slots=True)
class Trouble:
    """A part that does not do its work: its kind, its name, and its state in words.

    The words are those of `doctor` and the status page.
    """

    kind: Kind
    part: str
    words: str

    @property
    def is_bad(self) -> bool:
        """Whether readings may be lost. Else they wait, or a remedy has time."""
        return self.kind in {"store", "listener"}


def worst_trouble(stats: Stats) -> Trouble | None:
    """Return the worst of the parts in trouble, None if all is well. It asks nobody: all is in memory."""
    found = [
        Trouble(kind, part, words)
        for part in sorted(stats.in_trouble)
        if (kind := KINDS.get(part.partition(" ")[0])) is not None
        # Not a service that the owner has paused, because a banner for a choice is soon overlooked.
        if (words := stats.parts.get(part, "")) != PAUSED
    ]
    return min(found, key=lambda trouble: ORDER.index(trouble.kind), default=None)
