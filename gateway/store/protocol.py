"""What a store must offer; callers see these protocols and nothing of the database behind them.

Every coroutine that writes returns after its transaction is on the medium. When that is impossible it
raises `StoreUnavailable` and nothing was stored.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from gateway.domain.brewsession import BrewSession
from gateway.domain.delivery import Backlog, Batch
from gateway.domain.device import Device, DeviceSummary
from gateway.domain.key import ApiKey
from gateway.domain.quarantined import Quarantined
from gateway.domain.reading import Reading


@dataclass(frozen=True, slots=True)
class Arrival:
    """A reading of a device, with the delivery it came in. `raw` are the bytes as received."""

    reading: Reading
    device_key: str
    raw: bytes
    channel: str
    delivery: str | None = None


@dataclass(frozen=True, slots=True)
class ReadingsQuery:
    """Which readings of a brew session: UTC calendar days, both inclusive; filter, then skip, then limit."""

    session: BrewSession
    skip: int = 0
    limit: int | None = None
    first_day: date | None = None
    last_day: date | None = None


class Readings(Protocol):
    """Readings of devices and of imports."""

    async def add(self, arrivals: Sequence[Arrival]) -> None:
        """Store readings of known devices, each in the brew session that its device is in."""

    async def seen_since(self, received_at_ms: int) -> list[tuple[str, bytes, int]]:
        """Device key, raw bytes and arrival (ms) of what came since then, oldest first, bounded."""

    async def holds_delivery(self, device_key: str, raw: bytes, delivery: str) -> bool:
        """Whether one of the device's latest readings came in exactly this delivery."""

    async def latest_deliveries(self, device_key: str) -> list[tuple[bytes, str]]:
        """Raw bytes and delivery of the device's latest readings that came with a delivery id."""

    async def import_readings(
        self, session: BrewSession, readings: Sequence[Reading], *, reset: bool
    ) -> None:
        """All or none: with `reset`, the session's readings are deleted in the same transaction.

        A reading whose id exists in this session replaces that one; an id used elsewhere is given anew.
        """

    def json_chunks(self, query: ReadingsQuery) -> AsyncGenerator[bytes, None]:
        """The readings as JSON objects joined by commas, in pieces of bounded size, oldest first."""

    def json_lines(
        self, *, last: int, device_id: int | None, session_id: int | None
    ) -> AsyncGenerator[str, None]:
        """The newest `last` readings with device facts, one JSON object each, newest last."""

    async def count(self) -> int:
        """How many readings there are."""


class Outbox(Protocol):
    """Forwarding progress: one watermark per target and brew session."""

    async def backlogs(self, target: str) -> list[Backlog]:
        """What waits for this target, one entry per forwarded brew session that has something."""

    async def begin(self, target: str, session_id: int, limit: int) -> Batch | None:
        """The oldest readings above the watermark; the open attempt is on the medium on return."""

    async def settle(self, batch: Batch) -> None:
        """Move the watermark past the batch and close the attempt."""

    async def release(self, batch: Batch) -> None:
        """Close the attempt, watermark unmoved: the target certainly took none of it."""

    async def forwarded(self, target: str) -> dict[int, int]:
        """Readings at or below the watermark, by brew session id."""


class Quarantine(Protocol):
    """Bounded; the oldest goes first."""

    async def add(self, item: Quarantined) -> None:
        """Keep it."""

    async def count(self) -> int:
        """How many are kept."""


class Devices(Protocol):
    """Known devices."""

    async def all(self) -> list[Device]:
        """Every device, by id."""

    async def save(self, device: Device) -> Device:
        """Insert or update what the device is called and taught us; returns it with its id and session."""

    async def summaries(self) -> list[DeviceSummary]:
        """Every device with its last reading."""

    async def assign(self, device_id: int, session_id: int, claim_since: int | None) -> int:
        """Put the device into the session, and its unassigned readings since then (Unix seconds).

        Returns how many those were.
        """

    async def release(self, device_id: int) -> None:
        """Take the device out of its session; what was stored stays where it is."""


class BrewSessions(Protocol):
    """Brew sessions."""

    async def add(
        self, *, account_id: int, batchcode: str, phase: str, upstream_id: int | None, now: int
    ) -> BrewSession:
        """A new session."""

    async def get(self, session_id: int) -> BrewSession | None:
        """One session, unless deleted."""

    async def all(self) -> list[BrewSession]:
        """Every session that is not deleted, by id."""


class Keys(Protocol):
    """Accounts and their API keys."""

    async def owner(self, now: int) -> tuple[int, bool]:
        """The owner account's id, made where there is none; and whether no key was ever made."""

    async def active(self) -> list[ApiKey]:
        """Keys that are not revoked, oldest first."""

    async def add(self, key: ApiKey) -> None:
        """Keep a key; `NameTaken` where an active one has that name."""

    async def revoke(self, name: str, now: int) -> bool:
        """Whether there was such an active key."""


class Store(Protocol):
    """A store; closing it waits for what was begun."""

    @property
    def readings(self) -> Readings:
        """Readings of devices and imports."""

    @property
    def outbox(self) -> Outbox:
        """Forwarding progress."""

    @property
    def quarantine(self) -> Quarantine:
        """What was not understood or refused."""

    @property
    def devices(self) -> Devices:
        """Known devices."""

    @property
    def sessions(self) -> BrewSessions:
        """Brew sessions."""

    @property
    def keys(self) -> Keys:
        """Accounts and api keys."""

    async def close(self) -> None:
        """Close all connections, the writer last."""


__all__ = [
    "Arrival",
    "BrewSessions",
    "Devices",
    "Keys",
    "Outbox",
    "Quarantine",
    "Readings",
    "ReadingsQuery",
    "Store",
]
