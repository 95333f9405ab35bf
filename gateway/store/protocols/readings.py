"""The protocols of a store's part for readings, also by their raw bytes, and of a time in doubt.

The rules of `gateway.store.protocol` hold here, too.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol

from gateway.domain.brewsession import BrewSession
from gateway.domain.reading import Reading
from gateway.store.queries import ReadingsQuery
from gateway.store.records import NOTHING, Arrival, Boot, PendingRetime, RawReading, StoredMatch


class ReadingStore(Protocol):
    """Readings of devices and of imports."""

    async def add(self, arrivals: Sequence[Arrival]) -> None:
        """Store readings of known devices, each in the brew session that its device is in."""

    async def seen_since(self, received_at_ms: int) -> list[tuple[str, bytes, int]]:
        """Return device key, raw bytes and arrival (Unix ms) of readings since then, oldest first.

        The number is bounded: the oldest may be missing.
        """

    async def bytes_by_source(self, since_ms: int) -> list[tuple[str, int, int, int]]:
        """Return address, arrival (Unix ms, cut to the hour), number and bytes of readings since then.

        The bytes are of what a device sent. The number is bounded: the oldest readings may be missing.
        """

    async def holds_delivery(self, device_key: str, raw: bytes, delivery: str) -> bool:
        """Return whether one of the device's latest readings arrived in exactly this delivery."""

    async def latest_deliveries(self, device_key: str) -> list[tuple[bytes, str]]:
        """Return raw bytes and delivery of the device's latest readings that have a delivery id."""

    async def import_readings(
        self,
        session: BrewSession,
        readings: Sequence[Reading],
        *,
        reset: bool,
        unsaid: Mapping[str, frozenset[str]] = NOTHING,
        later: Sequence[str] = (),
    ) -> None:
        """Import readings, all or none.

        `unsaid` names, by reading id, the members that an item left out: they stay as they are in a stored
        reading. With `reset`, delete the session's other readings, but keep those with an id in `later`.

        A reading whose id the session has keeps its device, raw bytes, arrival, place in the queue and
        delivery states: if its content is equal, nothing changes, else it is edited. If the id belongs to a
        deleted brew session, or to none, the reading moves into this session. If the id belongs to another
        session, a copy is made, under an id that follows from both.
        """

    async def take_back(self, session: BrewSession, ids: Sequence[str], now: int) -> int:
        """Undo all edits of the session's readings with these `ids`, or of all; `now` is Unix seconds.

        Return how many readings were edited; `NotFound` for an id that the session does not have.
        """

    async def add_mirrored(self, session: BrewSession, readings: Sequence[Reading]) -> None:
        """Store copies of readings that the session's target has, and never send them there.

        A reading whose id the session has stays as it is here.
        """

    async def find_matches(
        self, session: BrewSession, like: Sequence[Reading], upstream: str
    ) -> list[StoredMatch]:
        """Find the session's readings that may be the same as these: of the same time, or with their ids."""

    async def differing(self, pairs: Sequence[tuple[str, Reading]]) -> list[tuple[str, Reading]]:
        """Return the pairs, of an id here and a reading there, that `correct` would change."""

    async def correct(
        self, session: BrewSession, pairs: Sequence[tuple[str, Reading]], upstream: str, now: int
    ) -> tuple[int, int]:
        """Take corrections of the service, by pairs of an id here and the reading there, member by member.

        Return how many readings changed, and how many keep a value of ours though it changed there, too.
        `now` is Unix seconds.
        """

    async def version(self, session: BrewSession) -> str | None:
        """Return a text that differs after every change of what `json_chunks` gives for the brew session.

        Ask before the readings are read: then a change in between makes the text old, never the readings.
        None if another process may change readings.
        """

    def json_chunks(self, query: ReadingsQuery) -> AsyncGenerator[bytes, None]:
        """Yield the readings as JSON objects joined by commas, in pieces of bounded size."""

    def json_lines(
        self, *, last: int, device_id: int | None, session_id: int | None, account_id: int | None = None
    ) -> AsyncGenerator[str, None]:
        """Yield the newest `last` readings with facts of their devices, one JSON object each, newest last.

        The other arguments choose among them; readings in no brew session belong to the owner's account.
        """

    async def count(self) -> int:
        """Count all readings."""


class PayloadStore(Protocol):
    """Readings of devices, by the raw bytes in which they arrived."""

    async def holds(self, device_key: str, raw: bytes, received_at_ms: int) -> bool:
        """Return whether a reading of the device arrived at that time (Unix ms) in these bytes."""

    async def find_stored(self, device_key: str, since: int, raws: Sequence[bytes]) -> set[bytes]:
        """Return the `raws` stored as readings that the device measured since `since` (Unix seconds)."""

    async def latest_at(self, device_key: str) -> int | None:
        """Return the time (Unix seconds) of the device's newest reading, None if it has none."""

    async def latest_comment(self, device_id: int) -> str:
        """Return the comment of the device's newest reading, empty if there is none."""

    async def recent_gravities(self, device_id: int, limit: int) -> list[tuple[str, int, float]]:
        """Return id, time (Unix seconds) and specific gravity of the newest readings, oldest first."""

    async def add_flag(self, oid: str, flag: str) -> None:
        """Put a flag on a stored reading; a second call changes nothing."""

    async def page(self, device_id: int, after: tuple[int, int], limit: int) -> list[RawReading]:
        """Return the device's readings behind a place (Unix seconds and `seq`), in order of time."""

    async def latest(self, device_id: int, limit: int) -> list[RawReading]:
        """Return the device's newest readings, newest first."""

    async def count(self, device_id: int, first: int, last: int) -> int:
        """Count the device's readings from `first` to `last` (Unix seconds, both inclusive)."""

    async def rewrite(self, changes: Sequence[tuple[int, Reading]]) -> None:
        """Write new values over stored readings, by `seq`; the raw bytes stay."""

    async def send_again(self, device_id: int, since: int) -> int:
        """Queue the device's readings since `since` (Unix seconds) for forwarding again; count them."""


class RetimingStore(Protocol):
    """Readings and payloads that arrived while the wall clock was in doubt, and the boots of the machine."""

    async def boot(self, name: str) -> Boot:
        """Return the boot with this name; note it if it is new."""

    async def boots(self) -> list[Boot]:
        """Return the boots that are remembered or still have arrivals waiting, the latest first."""

    async def newest_arrival(self) -> int | None:
        """Return the newest arrival (Unix ms) of a reading whose time is trusted, None without any."""

    async def trust(self, boot_id: int, offset_ms: int) -> None:
        """Note the offset of a boot whose clock is trusted; forget earlier boots with nothing waiting."""

    async def seen_since(self, boot_id: int, monotonic_ms: int) -> list[tuple[str, bytes, int]]:
        """Return device key, raw bytes and ms since the boot of readings noted since then, oldest first."""

    async def page(self, boot_id: int, limit: int) -> list[PendingRetime]:
        """Return readings of a boot that wait for their right time, in order of arrival."""

    async def retime(self, changes: Sequence[tuple[PendingRetime, Reading]]) -> None:
        """Replace each pending reading by its corrected one, in one transaction."""

    async def retime_payloads(self, boot_id: int, offset_ms: int) -> None:
        """Put the arrivals of a boot's quarantined payloads right: `offset_ms` plus ms since the boot."""

    async def waits(self) -> bool:
        """Return whether any reading or payload waits for its right time."""

    async def payload_waits(self, received_at_ms: int) -> bool:
        """Return whether the quarantined payload that arrived then (Unix ms) waits for its right time."""
