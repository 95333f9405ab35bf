"""All of the SQLite store in one object."""

from pathlib import Path

from gateway.domain.device import Device
from gateway.store.records import Arrival, BootTime, Settle
from gateway.store.sqlite import arrivals
from gateway.store.sqlite.alarms import SqliteAlarms
from gateway.store.sqlite.arrivals import ArrivalRows
from gateway.store.sqlite.audit import SqliteAudit
from gateway.store.sqlite.brewsessions import SqliteBrewSessions
from gateway.store.sqlite.deliveries import SqliteDeliveries
from gateway.store.sqlite.devices import SqliteDevices
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.quota import DiskQuota
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.events import SqliteEvents
from gateway.store.sqlite.figures import SqliteFigures
from gateway.store.sqlite.inbox import SqliteInbox
from gateway.store.sqlite.keys import SqliteKeys
from gateway.store.sqlite.latest import SqliteLatest
from gateway.store.sqlite.library import SqliteAccounts, SqliteFolders, SqliteMirrors, SqlitePhotos
from gateway.store.sqlite.logins import SqliteLogins
from gateway.store.sqlite.messages import SqliteMessages
from gateway.store.sqlite.outbox import SqliteOutbox
from gateway.store.sqlite.page_settings import SqlitePageSettings
from gateway.store.sqlite.payloads import SqlitePayloads
from gateway.store.sqlite.published import SqlitePublished
from gateway.store.sqlite.quarantine import SqliteQuarantine
from gateway.store.sqlite.readings import SqliteReadings
from gateway.store.sqlite.recipes import SqliteRecipes
from gateway.store.sqlite.repair import FileRepair
from gateway.store.sqlite.retiming import SqliteRetiming
from gateway.store.sqlite.routes import SqliteRoutes
from gateway.store.sqlite.rows import row_of
from gateway.store.sqlite.series import SqliteSeries
from gateway.store.sqlite.targets import SqliteTargets
from gateway.store.sqlite.totals import SqliteTotals
from gateway.store.sqlite.upkeep import SqliteUpkeep
from gateway.store.sqlite.view_links import SqliteViewLinks


class SqliteStore:
    """The `Store` protocol on one SQLite file in a data directory."""

    def __init__(self, directory: Path, *, quota_bytes: int | None = None, repair: bool = False) -> None:
        """Build the parts. With `repair`, salvage a damaged file; else it is `StoreUnavailable`."""
        room = DiskQuota(directory, quota_bytes)
        repairer = FileRepair(room) if repair else None
        self._database = Database(directory, room, repairer)
        self._writer = Writer(self._database, ArrivalRows())
        self.upkeep = SqliteUpkeep(self._database, self._writer, repairer)
        self.readings = SqliteReadings(self._database, self._writer)
        self.payloads = SqlitePayloads(self._database, self._writer)
        self.retiming = SqliteRetiming(self._database, self._writer)
        self.outbox = SqliteOutbox(self._database, self._writer)
        self.latest = SqliteLatest(self._database, self._writer)
        self.routes = SqliteRoutes(self._database, self._writer)
        self.targets = SqliteTargets(self._database, self._writer)
        self.deliveries = SqliteDeliveries(self._database)
        self.quarantine = SqliteQuarantine(self._database, self._writer)
        self.inbox = SqliteInbox(self._database, self._writer)
        self.devices = SqliteDevices(self._database, self._writer)
        self.sessions = SqliteBrewSessions(self._database, self._writer)
        self.events = SqliteEvents(self._database, self._writer)
        self.figures = SqliteFigures(self._database, self._writer)
        self.alarms = SqliteAlarms(self._database, self._writer)
        self.messages = SqliteMessages(self._database, self._writer)
        self.published = SqlitePublished(self._database, self._writer)
        self.recipes = SqliteRecipes(self._database, self._writer)
        self.folders = SqliteFolders(self._database, self._writer)
        self.photos = SqlitePhotos(self._database, self._writer)
        self.accounts = SqliteAccounts(self._database, self._writer)
        self.keys = SqliteKeys(self._database, self._writer)
        self.logins = SqliteLogins(self._database, self._writer)
        self.view_links = SqliteViewLinks(self._database, self._writer)
        self.page_settings = SqlitePageSettings(self._database, self._writer)
        self.audit = SqliteAudit(self._database, self._writer)
        self.mirrors = SqliteMirrors(self._database, self._writer)
        self.totals = SqliteTotals(self._database)
        self.series = SqliteSeries(self._database)

    async def open(self) -> None:
        """Lock the data directory, open the database and bring its schema up to date."""
        await self._database.open()

    async def open_read_only(self) -> None:
        """Open for reading beside a process that writes."""
        await self._database.open_read_only()

    async def take(
        self, arrival: Arrival, device: Device | None = None, arrival_time: BootTime | None = None
    ) -> Device | None:
        return await arrivals.take(self._writer, arrival, device, arrival_time)

    def take_soon(self, arrival: Arrival, settle: Settle) -> None:
        self._writer.insert(row_of(arrival), settle)

    async def close(self) -> None:
        await self._writer.drain()
        await self._database.close()
