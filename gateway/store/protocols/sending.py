"""The protocols of a store's part for forwarding: targets, progress, and the states of readings.

The rules of `gateway.store.protocol` hold here, too.
"""

from collections.abc import Sequence, Set
from typing import Protocol

from gateway.domain.delivery import Backlog, Batch
from gateway.domain.quarantined import Quarantined
from gateway.domain.target import Delivery, ReadingDelivery, Target
from gateway.store.records import ReadingRow


class OutboxStore(Protocol):
    """Forwarding progress: one watermark per target and brew session."""

    async def backlogs(self, target: str, *, unnamed: bool = True) -> list[Backlog]:
        """Return a target's backlogs: one for each brew session in which readings or edits wait for it.

        Only with `unnamed`, brew sessions that name no service belong to this target.
        """

    async def begin(self, target: str, session_id: int, limit: int) -> Batch | None:
        """Return the oldest readings above the watermark; the open attempt is on the medium then.

        An attempt that is still open comes again as it was. If no reading waits, return edits of readings
        that the target has already: a batch that `corrects`. None if there are no edits either.
        """

    async def settle(
        self, batch: Batch, sent: Set[int] | None = None, *, withheld: Set[int] = frozenset()
    ) -> None:
        """Move the watermark past the batch and close the attempt.

        `sent` are the places in the queue that were sent this time, None for all; the other readings were
        there already. Of a batch that corrects, `withheld` are places of readings that the target has under
        other ids.
        """

    async def refuse(self, batch: Batch, item: Quarantined) -> None:
        """Note that the target never takes the batch's only reading, and quarantine it. Both or neither."""

    async def send_again(
        self, target: str, since: int, *, unnamed: bool, session_id: int | None = None
    ) -> dict[int, int]:
        """Send readings of a target's brew sessions again, from the first one since `since` (Unix seconds).

        They count as an attempt of unknown outcome: they are read back, and only the missing ones are sent.
        Readings that were refused stay refused. Return how many readings there are, by session.
        """

    async def release(self, batch: Batch) -> None:
        """Close the attempt and leave the watermark: the target certainly took none of it."""

    async def forwarded(self, target: str) -> dict[int, int]:
        """Count the readings at or below the watermark, by brew session id."""


class TargetStore(Protocol):
    """Services that readings are forwarded to."""

    async def all(self) -> list[Target]:
        """Return every target: of unnamed brew sessions first, then of options, then the rest, by name."""

    async def add(self, target: Target) -> None:
        """Add a target; `NameTaken` if its name or its address is in use."""

    async def put(self, target: Target) -> None:
        """Add a target, or give the target of that name this address and key file; it begins afresh."""

    async def take_options(self, options: Sequence[Target]) -> None:
        """Take over the targets that options of `serve` name; an added one keeps its name and its key."""

    async def pause(self, name: str, *, paused: bool) -> None:
        """Pause forwarding to a target, or begin afresh at once."""

    async def remove(self, name: str) -> None:
        """Remove a target; its forwarded readings and its mappings stay known."""

    async def map(self, session_id: int, url: str, upstream_id: int | None) -> None:
        """Set the brew session's number at a target that is not its own; None stops forwarding it there."""

    async def sessions(self, target: Target) -> dict[int, int]:
        """Return the number at the target of each brew session that goes there, by its id here."""


class DeliveryStore(Protocol):
    """Delivery states of readings at targets."""

    async def counts(self, session_id: int | None = None) -> list[Delivery]:
        """Count states per target and brew session, of one session or of all; read each of their readings."""

    async def newest(
        self, session_id: int, start: int | None, end: int | None, *, limit: int, skip: int
    ) -> tuple[int, list[ReadingRow]]:
        """Return how many readings a brew has from `start` to `end` (Unix seconds), and a page of them.

        The newest comes first. None leaves an end open.
        """

    async def of_readings(
        self, session_id: int, *, state: str | None, limit: int, skip: int
    ) -> list[ReadingDelivery]:
        """Return readings of a brew session with their states, oldest first.

        With `state`, only readings that have that state at a target.
        """
