"""Forwarding: what is sent to a target together, and how that ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class DeliveryResult(Enum):
    """The five ways in which a request to a target can end."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    """The target will never take this batch as it is; halve it to find the reading it dislikes."""
    KEPT = "kept"
    """Certainly not taken; send the same again later."""
    AMBIGUOUS = "ambiguous"
    """Perhaps taken; read back before anything is sent again."""
    PAUSED = "paused"
    """Certainly not taken, and a person must act (key, mapping); look again at long intervals."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a request ended, why, and how long the target asked us to wait (seconds)."""

    verdict: DeliveryResult
    reason: str = ""
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit that a target does not know of.

    `was` is the reading as it was sent there, as JSON, `version` counts the edits since. `withheld` says that
    the target has it under an id of its own, and that only the user sends the edit.
    """

    was: str
    version: int
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Readings of one brew session on their way to one target, oldest arrival first.

    `rows` are the readings as JSON text in the specification's shape, `seqs` their places in the queue.
    `unsettled` says that an earlier attempt at these readings has no known outcome; `after` is the watermark
    that they were found above. `edits` are by place, and so are `uncalibrated`: JSON objects of the members
    of calibrated readings as the device sent them. A batch that `corrects` has readings that the target
    already has, and moves no watermark.
    """

    target: str
    session_id: int
    upstream_id: int
    seqs: tuple[int, ...]
    rows: tuple[str, ...]
    unsettled: bool = False
    after: int = 0
    edits: Mapping[int, Edit] = field(default_factory=dict)
    uncalibrated: Mapping[int, str] = field(default_factory=dict)
    corrects: bool = False

    @property
    def last_seq(self) -> int:
        """The place in the queue that the watermark moves to."""
        return self.seqs[-1]


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits for one target in one brew session. `oldest_at` is Unix milliseconds of arrival."""

    session_id: int
    upstream_id: int
    waiting: int
    oldest_at: int
    unsettled: bool
