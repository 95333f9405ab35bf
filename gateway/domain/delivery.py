"""Forwarding: the batch of readings that goes to a target, and the outcome of its request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class DeliveryResult(Enum):
    """The five ways in which a request to a target can end."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    """The target will never take this batch as it is. Halve the batch to find the reading that is refused."""
    KEPT = "kept"
    """The target has certainly not taken the batch. Send the same batch again later."""
    AMBIGUOUS = "ambiguous"
    """The target has perhaps taken the batch. Read back before anything is sent again."""
    PAUSED = "paused"
    """The target has certainly not taken the batch, and a person must act (key, mapping). Try again at long
    intervals."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a request, its reason, and the pause that the target asked for (seconds)."""

    verdict: DeliveryResult
    reason: str = ""
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit that a target does not have yet.

    `was` is the reading as it was sent to the target, as JSON. `version` counts the edits since. `withheld`
    means that the target has the reading under an id of its own, and that only the user sends the edit.
    """

    was: str
    version: int
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Readings of one brew session on their way to one target, oldest arrival first.

    Of a target that does not take brew sessions, `session_id` is the id of a device, and `upstream_id` is 0.

    `rows` are the readings as JSON text in the specification's shape, `seqs` their places in the queue.
    `unsettled` means that an earlier attempt at these readings has no known outcome. `after` is the watermark
    below the batch. `edits` and `uncalibrated` are keyed by place; an uncalibrated entry is a JSON object
    with the members of a calibrated reading as the device sent them. If `corrects` is set, the target already
    has the readings, and the watermark does not move.

    `earlier` are readings of the same seconds that the target has got before, each with its entry as in
    `uncalibrated`. Only an unsettled batch has them: what is alike at the target may be one of these.
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
    earlier: tuple[tuple[str, str | None], ...] = ()

    @property
    def last_seq(self) -> int:
        """Return the place in the queue that the watermark moves to."""
        return self.seqs[-1]


@dataclass(frozen=True, slots=True)
class Backlog:
    """Readings of one brew session that wait for one target; `oldest_at` is Unix milliseconds.

    Of a target that does not take brew sessions, `session_id` is the id of a device, and `upstream_id` is 0.
    Before `not_before` (Unix seconds) the target takes none of them.
    """

    session_id: int
    upstream_id: int
    waiting: int
    oldest_at: int
    unsettled: bool
    not_before: float = 0.0
