"""What goes out: the queue, the targets, and what became of each reading there."""

from collections.abc import Sequence, Set
from typing import Protocol

from gateway.domain.delivery import Backlog, Batch
from gateway.domain.quarantined import Quarantined
from gateway.domain.target import Delivery, ReadingDelivery, Target


class Outbox(Protocol):
    """Forwarding progress: one watermark per target and brew session."""

    async def backlogs(self, target: str, *, unnamed: bool = True) -> list[Backlog]:
        """What waits for this target, one entry per forwarded brew session that has something.

        Sessions that name no service are this target's only where `unnamed` says so.
        """

    async def begin(self, target: str, session_id: int, limit: int) -> Batch | None:
        """The oldest readings above the watermark; the open attempt is on the medium on return.

        An attempt that is still open comes again as it was. Where nothing waits, edits of readings that the
        target already has: a batch that `corrects`.
        """

    async def settle(
        self, batch: Batch, sent: Set[int] | None = None, *, withheld: Set[int] = frozenset()
    ) -> None:
        """Move the watermark past the batch and close the attempt.

        `sent` are the places in the queue of what was sent this time, None for all; the rest was there
        already. Of a batch that corrects, `withheld` is what the target has under ids of its own.
        """

    async def refuse(self, batch: Batch, item: Quarantined) -> None:
        """The target never takes the batch's only reading: note it, and quarantine that, or neither."""

    async def send_again(
        self, target: str, since: int, *, unnamed: bool, session_id: int | None = None
    ) -> dict[int, int]:
        """Look at the target's brew sessions again, from their first reading since then (Unix seconds) on.

        Those readings count as an attempt of unknown outcome: they are read back, and only what is missing is
        sent. Returns how many they are by session; those that were refused stay so.
        """

    async def release(self, batch: Batch) -> None:
        """Close the attempt, watermark unmoved: the target certainly took none of it."""

    async def forwarded(self, target: str) -> dict[int, int]:
        """Readings at or below the watermark, by brew session id."""


class Targets(Protocol):
    """Services that are forwarded to."""

    async def all(self) -> list[Target]:
        """Every target: where unnamed brew sessions go, then those of options, then by name."""

    async def add(self, target: Target) -> None:
        """A new one; `NameTaken` where its name or its address is known."""

    async def put(self, target: Target) -> None:
        """A new one, or this address and key file for the one of that name, which begins afresh."""

    async def take_options(self, told: Sequence[Target]) -> None:
        """Those that `serve` is told of this time; of one that was added, the name and the key stay."""

    async def pause(self, name: str, *, paused: bool) -> None:
        """Stop forwarding there, or begin afresh at once."""

    async def remove(self, name: str) -> None:
        """Forget it; what it was sent, and the mappings, stay known."""

    async def map(self, session_id: int, url: str, upstream_id: int | None) -> None:
        """The brew session's number at a target that is not its own; None stops forwarding it there."""

    async def sessions(self, target: Target) -> dict[int, int]:
        """The number there of each brew session that goes there, by its id here."""


class Deliveries(Protocol):
    """What became of readings at targets."""

    async def counts(self, session_id: int | None = None) -> list[Delivery]:
        """Per target and brew session, of one session or of all; looks at every reading of those."""

    async def of_readings(
        self, session_id: int, *, state: str | None, limit: int, skip: int
    ) -> list[ReadingDelivery]:
        """Single readings of a brew session, oldest first; with `state`, those that are so at some target."""
