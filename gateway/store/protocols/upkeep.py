"""The protocols of a store's part for mirrors, counts, and upkeep while it runs.

The rules of `gateway.store.protocol` hold here, too.
"""

from collections.abc import Mapping
from typing import Protocol

from gateway.domain.recipe import Recipe
from gateway.domain.target import Sending
from gateway.domain.totals import Storage, Totals
from gateway.store.records import Engine, Finished, Mirrored, StoreCondition


class MirrorStore(Protocol):
    """Which record of another service became which record here; `upstream` is the service's address."""

    async def copies(self, upstream: str, account_id: int, kind: str) -> Mapping[str, Mirrored]:
        """Return the copies of one kind of record, by the id there."""

    async def former(self, upstream: str, account_id: int, kind: str) -> list[Mirrored]:
        """Return copies of one kind whose ids the service has given to other records since."""

    async def remember(self, upstream: str, account_id: int, kind: str, entry: Mirrored) -> None:
        """Remember a copy, in place of an earlier one with the same id there."""

    async def add_recipe(self, upstream: str, kind: str, recipe: Recipe, entry: Mirrored) -> Recipe:
        """Insert a recipe as `RecipeStore.add` does, and remember its copy. Both or neither."""

    async def make_former(self, upstream: str, account_id: int, kind: str, remote_id: str) -> None:
        """Make the copy with that id a former one: the id belongs to another record there now."""

    async def stop_forwarding(self, upstream: str, account_id: int, number: int) -> list[int]:
        """Forward no brew session of the account to this number there; return the sessions' ids."""


class TotalsStore(Protocol):
    """Counts over the whole store."""

    async def totals(self, targets: Mapping[str, bool]) -> Totals:
        """Count all readings by their states at the targets that forward at present, in one snapshot.

        `targets` says by target whether brew sessions that name no service belong to it.
        """

    async def sending(self, session_id: int | None = None) -> list[Sending]:
        """Count what was sent and what waits, by target and brew session, of one session or of all.

        Quick, because indexes hold nearly all of it. A session that a target never took is left out.
        """

    async def own_readings(self) -> dict[int, int]:
        """Count the readings of each brew session, by its id, without copies from another service."""

    async def unassigned(self) -> dict[int, int]:
        """Count the readings in no brew session, by device id; devices without any are left out."""

    async def storage(self) -> Storage:
        """Return the size of the database on its disk, and the free space there."""


class UpkeepStore(Protocol):
    """Upkeep of a store while it runs."""

    @property
    def busy(self) -> bool:
        """True while readings are being stored."""

    def engine(self) -> Engine:
        """Return the database engine in use."""

    async def condition(self) -> StoreCondition:
        """Return the condition of the store; `StoreUnavailable` if it cannot even be read."""

    async def tend(self) -> None:
        """Repair the leftovers of failures; to be called every few seconds."""

    async def salvage(self) -> bool:
        """Bring over some more readings of a damaged file; return whether there are more."""

    async def scrub(self, after: int) -> int | None:
        """Verify readings behind a place in the queue, and quarantine damaged ones.

        Return the place to go on from, None at the end.
        """

    async def note_scrub(self, until: int, finished_at: int | None) -> None:
        """Remember how far the scrub has come; `finished_at` (Unix seconds) ends a round."""

    async def finished(self, before: int) -> list[Finished]:
        """Return forwarded sessions without devices, and without readings since `before` (Unix seconds)."""

    async def prune(self, session: Finished, before: int, limit: int) -> tuple[int, float]:
        """Delete up to `limit` forwarded readings of a session, older than `before` (Unix seconds).

        Return how many, and for how many seconds the writer did nothing else.
        """
