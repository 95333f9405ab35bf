"""The store itself: what is in it, how it is, and what is done for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.totals import Storage, Totals


class Ledger(Protocol):
    """What there is, counted."""

    async def totals(self, targets: Mapping[str, bool]) -> Totals:
        """All readings by what became of them, in one look, for targets that forward at present.

        Their values say whether brew sessions that name no service are theirs.
        """

    async def own_readings(self) -> dict[int, int]:
        """How many readings each brew session has, by its id, without those copied from another service."""

    async def unassigned(self) -> dict[int, int]:
        """How many readings in no brew session each device has, by its id; those without any are left out."""

    async def storage(self) -> Storage:
        """What the database takes on its disk, and what is left there."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that was found damaged (Unix seconds), and what was made of its readings.

    It is kept under the name `aside`; `finished_at` is None while readings are still being brought over.
    """

    found_at: int
    reason: str
    aside: str
    salvaged: int
    quarantined: int
    bad_pages: int
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class StoreCondition:
    """How the store is: `trouble` says why nothing can be stored, if so.

    `damages` are all that were ever met, `aside` the files that are kept of them; `damaged` and `pruned`
    count readings. `scrubbed_until` is a place in the queue, `scrubbed_at` the end of the last round (Unix
    seconds, 0: none yet), `repairs` counts since the start.
    """

    trouble: str | None
    salvaging: bool
    damages: list[Damage]
    aside: list[str]
    damaged: int
    pruned: int
    scrubbed_until: int
    scrubbed_at: int
    repairs: int
    quota_bytes: int
    free_bytes: int
    sqlite: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A brew session that nothing is added to any more; places up to `settled_until` are forwarded."""

    session_id: int
    settled_until: int


class Upkeep(Protocol):
    """What a store needs done while it runs."""

    @property
    def busy(self) -> bool:
        """Whether readings are being stored at this moment."""

    async def condition(self) -> StoreCondition:
        """How the store is."""

    async def tend(self) -> None:
        """Make up for what failures have left; once in a while."""

    async def salvage(self) -> bool:
        """Bring over some more readings of a damaged file; whether there are more."""

    async def scrub(self, after: int) -> int | None:
        """Verify readings behind this place in the queue; the place to go on from, None at the end."""

    async def note_scrub(self, until: int, finished_at: int | None) -> None:
        """Remember how far the scrub has come; `finished_at` (Unix seconds) ends a round."""

    async def finished(self, before: int) -> list[Finished]:
        """Sessions that no device is in, without readings since then (Unix seconds), forwarded somewhere."""

    async def prune(self, session: Finished, before: int, limit: int) -> tuple[int, float]:
        """Delete some of what is forwarded; how many readings, and for how many seconds nothing else went."""
