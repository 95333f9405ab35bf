"""What a store must offer; callers see these protocols and nothing of the database behind them.

Every coroutine that writes returns after its transaction is on the medium. When that is impossible it
raises `StoreUnavailable` and nothing was stored.
"""

from typing import Protocol

from gateway.store.protocol.forwarding import Deliveries, Outbox, Targets
from gateway.store.protocol.library import (
    Accounts,
    BrewSessions,
    Folders,
    Keys,
    Mirrored,
    Mirrors,
    Photos,
    Recipes,
)
from gateway.store.protocol.readings import (
    Arrival,
    Boot,
    Devices,
    Held,
    Moment,
    Part,
    Quarantine,
    Readings,
    Retiming,
    Sent,
    SentReadings,
    Suspect,
)
from gateway.store.protocol.upkeep import Damage, Finished, Ledger, StoreCondition, Upkeep

__all__ = [
    "Accounts",
    "Arrival",
    "Boot",
    "BrewSessions",
    "Damage",
    "Deliveries",
    "Devices",
    "Finished",
    "Folders",
    "Held",
    "Keys",
    "Ledger",
    "Mirrored",
    "Mirrors",
    "Moment",
    "Outbox",
    "Part",
    "Photos",
    "Quarantine",
    "Readings",
    "Recipes",
    "Retiming",
    "Sent",
    "SentReadings",
    "Store",
    "StoreCondition",
    "Suspect",
    "Targets",
    "Upkeep",
]


class Store(Protocol):
    """A store; closing it waits for what was begun."""

    @property
    def readings(self) -> Readings:
        """Readings of devices and imports."""

    @property
    def sent(self) -> SentReadings:
        """Readings of devices by the bytes that they came in."""

    @property
    def retiming(self) -> Retiming:
        """What came while the clock was not known."""

    @property
    def outbox(self) -> Outbox:
        """Forwarding progress."""

    @property
    def targets(self) -> Targets:
        """Services that are forwarded to."""

    @property
    def deliveries(self) -> Deliveries:
        """What became of readings there."""

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
    def recipes(self) -> Recipes:
        """Recipes."""

    @property
    def folders(self) -> Folders:
        """Folders."""

    @property
    def photos(self) -> Photos:
        """Photos."""

    @property
    def accounts(self) -> Accounts:
        """Accounts."""

    @property
    def keys(self) -> Keys:
        """Api keys."""

    @property
    def mirrors(self) -> Mirrors:
        """Copies of other services' records."""

    @property
    def upkeep(self) -> Upkeep:
        """What it needs done while it runs."""

    @property
    def ledger(self) -> Ledger:
        """What there is, counted."""

    async def close(self) -> None:
        """Close all connections, the writer last."""
