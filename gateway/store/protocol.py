"""The protocol of a store: callers see these, and nothing of the database behind them.

A call that writes is one transaction, and returns when it is on the medium. If that is impossible the call
raises `StoreUnavailable`, and nothing was stored. A call that reads raises it if the store cannot be read.
"""

from typing import Protocol

from gateway.domain.device import Device
from gateway.store.protocols.access import AccountStore, AuditStore, KeyStore
from gateway.store.protocols.alarms import AlarmStore, MessageStore, PublishedStore
from gateway.store.protocols.brews import BrewSessionStore, FolderStore, PhotoStore, RecipeStore
from gateway.store.protocols.devices import DeviceStore
from gateway.store.protocols.page import (
    EventStore,
    FigureStore,
    LoginStore,
    PageSettingStore,
    SeriesStore,
    ViewLinkStore,
)
from gateway.store.protocols.quarantine import InboxStore, QuarantineStore
from gateway.store.protocols.readings import PayloadStore, ReadingStore, RetimingStore
from gateway.store.protocols.routes import LatestStore, RouteStore
from gateway.store.protocols.sending import DeliveryStore, OutboxStore, TargetStore
from gateway.store.protocols.upkeep import MirrorStore, TotalsStore, UpkeepStore
from gateway.store.records import Arrival, BootTime, Settle


class Store(Protocol):
    """A store. Closing it waits for calls that have begun."""

    @property
    def readings(self) -> ReadingStore:
        """Readings of devices and of imports."""

    @property
    def payloads(self) -> PayloadStore:
        """Readings of devices by their raw bytes."""

    @property
    def retiming(self) -> RetimingStore:
        """Readings that arrived while the clock was in doubt."""

    @property
    def outbox(self) -> OutboxStore:
        """Forwarding progress."""

    @property
    def latest(self) -> LatestStore:
        """Targets that show the latest reading only."""

    @property
    def routes(self) -> RouteStore:
        """What goes to targets that are no Brewing Data Service, and how far they are."""

    @property
    def targets(self) -> TargetStore:
        """Services that readings are forwarded to."""

    @property
    def deliveries(self) -> DeliveryStore:
        """Delivery states of readings."""

    @property
    def quarantine(self) -> QuarantineStore:
        """Payloads that were not understood or were refused."""

    @property
    def inbox(self) -> InboxStore:
        """Payloads that wait for the owner's word."""

    @property
    def devices(self) -> DeviceStore:
        """Devices."""

    @property
    def sessions(self) -> BrewSessionStore:
        """Brew sessions."""

    @property
    def events(self) -> EventStore:
        """Events of brews."""

    @property
    def figures(self) -> FigureStore:
        """What the figures of brews are made of."""

    @property
    def alarms(self) -> AlarmStore:
        """Alarms, their events and settings."""

    @property
    def messages(self) -> MessageStore:
        """Channels, and messages on their way."""

    @property
    def published(self) -> PublishedStore:
        """Retained messages of ours on the user's broker."""

    @property
    def recipes(self) -> RecipeStore:
        """Recipes."""

    @property
    def folders(self) -> FolderStore:
        """Folders."""

    @property
    def photos(self) -> PhotoStore:
        """Photos."""

    @property
    def accounts(self) -> AccountStore:
        """Accounts."""

    @property
    def keys(self) -> KeyStore:
        """API keys."""

    @property
    def logins(self) -> LoginStore:
        """Logins of browsers."""

    @property
    def view_links(self) -> ViewLinkStore:
        """Links that need no login."""

    @property
    def page_settings(self) -> PageSettingStore:
        """Settings of the page."""

    @property
    def audit(self) -> AuditStore:
        """The audit log."""

    @property
    def mirrors(self) -> MirrorStore:
        """Copies of other services' records."""

    @property
    def upkeep(self) -> UpkeepStore:
        """Upkeep while the store runs."""

    @property
    def totals(self) -> TotalsStore:
        """Counts over the whole store."""

    @property
    def series(self) -> SeriesStore:
        """Readings over time, for charts."""

    async def take(
        self, arrival: Arrival, device: Device | None = None, arrival_time: BootTime | None = None
    ) -> Device | None:
        """Store a reading, in the brew session that its device is in.

        With `device`, insert or update that device first, and return it as stored. With `arrival_time`, note
        that the reading waits for its right time. All of it is stored, or nothing. `NotFound` if no device
        has the reading's key.
        """

    def take_soon(self, arrival: Arrival, settle: Settle) -> None:
        """Put a reading into the next commit; `StoreUnavailable` if it cannot wait there.

        `settle` gets the outcome in the event loop, never before this function has returned: None once the
        reading is on the medium, else the exception. It is no `StoreUnavailable` if this reading can never be
        stored as it is: its device may have been forgotten.
        """

    async def close(self) -> None:
        """Close all connections, the writer last."""
