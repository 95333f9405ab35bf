"""Shared parts of one run, and small rules that hold for every kind of record."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from gateway.domain.folder import FolderKind
from gateway.domain.progress import Progress
from gateway.domain.target import MIRROR_RATE
from gateway.errors import NameTaken
from gateway.mirror.client import RemoteService
from gateway.mirror.counts import MirrorCounts
from gateway.services.build import Services
from gateway.store.protocol import Store
from gateway.store.records import Mirrored

PENDING = ""
"""A mark in notes. As `remote_updated_at`: the copy is not finished, so the next run reads the record again.

As `local_id`: the copy was about to be added.
"""

DAY = timedelta(days=1)

IN_A_ROW = 3
"""Failures in a row of one kind of request, after which a run gives this kind up."""


@dataclass(frozen=True, slots=True)
class MirrorSource:
    """The service to copy, at `rate` requests a second.

    With `unnamed`, brew sessions that name no service are forwarded to this one.
    """

    url: str
    key: str
    photos: bool = False
    rate: float = MIRROR_RATE
    unnamed: bool = False

    @property
    def name(self) -> str:
        """Return the base URL as brew sessions and watermarks have it."""
        return self.url.rstrip("/")


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the mirror: its source, the services that write the copies, its account and its result."""

    service: RemoteService
    services: Services
    account_id: int
    result: MirrorCounts
    progress: Progress

    @property
    def store(self) -> Store:
        """Return the store that copies go to."""
        return self.services.store

    @property
    def now(self) -> int:
        """Return the time in Unix seconds."""
        return int(self.services.clock.now())

    async def mirrored(self, kind: str) -> dict[str, Mirrored]:
        """Return the notes on copied records of a kind, by the id at the service."""
        return dict(await self.store.mirrors.copies(self.service.name, self.account_id, kind))

    async def remember(self, kind: str, entry: Mirrored) -> None:
        """Note that a record was copied."""
        await self.store.mirrors.remember(self.service.name, self.account_id, kind, entry)

    async def folder_id(self, kind: FolderKind, name: str | None) -> int | None:
        """Return the id of the account's folder of that name, made if there is none; None without a name."""
        if name is None:
            return None
        for _ in range(2):
            for folder in await self.store.folders.all(self.account_id):
                if (folder.kind, folder.name) == (kind, name):
                    return folder.id
            try:
                return (await self.store.folders.add(self.account_id, kind, name, self.now)).id
            except NameTaken:
                continue  # a user made it a moment ago: look for it once more
        return None

    def day_before(self, unix_seconds: int) -> str:
        """Return the day from which to ask for changes after this time."""
        # A day earlier, because the zone of the service's days is not known; and never later than
        # yesterday, or one record with a wrong clock would hide all that follow.
        moment = max(min(unix_seconds, self.now), int(DAY.total_seconds()))
        return (datetime.fromtimestamp(moment, UTC).date() - DAY).isoformat()


class FailureLimit:
    """Counts failures in a row of one kind of request."""

    def __init__(self) -> None:
        self._failures = 0

    @property
    def reached(self) -> bool:
        """Return whether so many requests have failed in a row that further ones are of no use."""
        return self._failures >= IN_A_ROW

    def failed(self) -> None:
        """Count one more failed request in a row."""
        self._failures += 1

    def succeeded(self) -> None:
        """Reset the count after a success."""
        self._failures = 0
