"""The protocols of a store's part for payloads that wait: in quarantine, or for the owner's word.

The rules of `gateway.store.protocol` hold here, too.
"""

from collections.abc import Sequence
from typing import Protocol

from gateway.domain.inbox import InboxState, RefusedName, WaitingName, WaitingPayload
from gateway.domain.payload import Payload
from gateway.domain.quarantined import Quarantined, QuarantineState
from gateway.store.records import BootTime


class QuarantineStore(Protocol):
    """Payloads that no driver understands or that a target refused; bounded, with a share for each source."""

    async def add(self, item: Quarantined, arrival_time: BootTime | None = None) -> None:
        """Keep a payload. With `arrival_time`, note that it waits for its right time. Both or neither.

        Beyond its source's share, or beyond the bounds of all, the oldest payloads that no driver can read
        go, and are counted. A readable payload never goes: `ShareUsedUp` if the new one finds no place.
        """

    async def count(self) -> int:
        """Count the payloads in quarantine."""

    async def state(self) -> QuarantineState:
        """Return how full quarantine is, its limits, and how many payloads it has lost to them."""

    async def newest(self, limit: int) -> list[Quarantined]:
        """Return the newest payloads, oldest first."""

    async def after(self, item_id: int, limit: int) -> list[Quarantined]:
        """Return the payloads with a higher id, oldest first."""

    async def get(self, item_id: int) -> Quarantined | None:
        """Return one payload, None if there is none with this id."""

    async def remove(self, item_ids: Sequence[int]) -> None:
        """Remove payloads that are stored as readings by now."""

    async def send_again(self, item_id: int, oid: str) -> bool:
        """Remove a refused reading from quarantine and queue it for forwarding. Both or neither.

        Return False, and change nothing, if no brew session has a reading with that id. Two steps could send
        it twice, if the process ended between them.
        """


class InboxStore(Protocol):
    """Payloads that wait for the owner's word. It is bounded, and what does not fit is not taken."""

    async def add(
        self, payload: Payload, waiting: Sequence[WaitingName], arrival_time: BootTime | None = None
    ) -> list[WaitingName]:
        """Keep a payload for each of these names, each with its number of readings in the payload.

        Return the names that it does not fit for; it is kept for the others. With `arrival_time`, note that
        the payload waits for its right time.
        """

    async def names(self) -> list[WaitingName]:
        """Return every name that waits, the one that waits longest first."""

    async def page(self, name_ids: Sequence[int], after: tuple[int, int], limit: int) -> list[WaitingPayload]:
        """Return payloads of these names behind an arrival (Unix ms) and an id, in order of arrival."""

    async def remove(self, item_ids: Sequence[int]) -> None:
        """Remove payloads that are readings by now; a name without any is gone, too."""

    async def accept(self, name_ids: Sequence[int]) -> None:
        """Note that the owner has accepted those of these names that there are."""

    async def refuse(self, name_id: int, now: int) -> WaitingName | None:
        """Remove a name with its payloads, and remember the refusal; `now` is Unix seconds.

        Return the name as it was, None if no name has this id.
        """

    async def refused(self) -> list[RefusedName]:
        """Return the refused names, by id; expired ones may be among them."""

    async def allow(self, refused_id: int) -> bool:
        """Forget a refusal; return whether there was one with this id."""

    async def state(self) -> InboxState:
        """Return how full the inbox is, and its limits."""
