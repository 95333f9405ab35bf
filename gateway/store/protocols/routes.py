"""The protocol of a store's part for targets that are no Brewing Data Service: what goes there, how far.

Nothing goes to such a target before a route names it. Progress is kept by device: `Batch.session_id` and
`Backlog.session_id` are the id of a device, 0 for readings of none. No attempt is noted before it is sent,
because a repetition is harmless there.
"""

from collections.abc import Set
from typing import NamedTuple, Protocol

from gateway.domain.delivery import Backlog, Batch
from gateway.domain.quarantined import Quarantined
from gateway.domain.target import Route


class RouteStore(Protocol):
    """Routes and progress of targets of other kinds. `target` is always the target's `url`."""

    async def of(self, target: str) -> list[Route]:
        """Return the target's routes: all, then devices, then brews."""

    async def add(self, target: str, route: Route, since: int | None) -> None:
        """Let readings go to the target from now on, or from the first one since `since` (Unix seconds)."""

    async def remove(self, target: str, route: Route) -> bool:
        """Let them go there no longer; False if there is no such route."""

    async def backlogs(self, target: str, *, unnamed: bool = True) -> list[Backlog]:
        """Return what waits, by device, the longest waiting first. `unnamed` does not matter."""

    async def begin(self, target: str, lane: int, limit: int) -> Batch | None:
        """Return the oldest waiting readings of a device, None without any. Nothing is written.

        The rows are JSON objects: `id`, `at` (Unix seconds), `device` (its key), `device_id`, `name`,
        `session`, `batchcode`, `sg`, `temp_c`, `facts` (an object), `flags` (an array), `comment`. What
        is not known is null.
        """

    async def settle(
        self, batch: Batch, sent: Set[int] | None = None, *, withheld: Set[int] = frozenset()
    ) -> None:
        """Move the watermark past the batch. `sent` and `withheld` do not matter."""

    async def refuse(self, batch: Batch, item: Quarantined) -> None:
        """Note that the target never takes the batch's only reading, and quarantine it. Both or neither."""

    async def release(self, batch: Batch) -> None:
        """Do nothing: no attempt is noted."""

    async def send_again(self, target: str, since: int, *, lane: int | None = None) -> dict[int, int]:
        """Send what was sent again, from the first reading since `since` (Unix seconds) on, by device.

        With `lane`, only those of that device. Return how many readings there are.
        """


class LatestReading(NamedTuple):
    """The newest reading of a device that a target should show, and how long it has waited (Unix ms).

    `sent_at` is the last success with this device, `session_sent_at` with any device of the same brew session
    (Unix seconds, None without any).
    """

    device_id: int
    seq: int
    received_at: int
    sent_at: int | None
    session_sent_at: int | None


class LatestStore(Protocol):
    """Targets that show the latest reading only. `target` is the target's `url`; times are Unix seconds."""

    async def look(self, target: str, since: int) -> list[LatestReading]:
        """Return the newest reading of each device, measured after `since`, that the target does not have.

        Readings with a flag are none. All others that wait are passed over: they are superseded from then on.
        """

    async def begin(self, target: str, lane: int, since: int) -> Batch | None:
        """Return the newest reading of a device as a batch; the row is that of `RouteStore.begin`."""

    async def settle(self, batch: Batch, now: int) -> None:
        """Note that the target took the batch's reading at this time."""
