"""What all parts of one run share, and small rules that hold for every kind of record."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

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
"""As `remote_updated_at` of a copied record: it is not finished, so the next run looks at it again.

As `local_id`: it was about to be added.
"""

DAY = timedelta(days=1)

IN_A_ROW = 3
"""Failures in a row of one kind of request; then a run asks no more for that."""


@dataclass(frozen=True, slots=True)
class MirrorSource:
    """The service to copy, `rate` in requests a second.

    `unnamed` says that brew sessions which name no service are forwarded to this one.
    """

    url: str
    key: str
    photos: bool = False
    rate: float = MIRROR_RATE
    unnamed: bool = False

    @property
    def name(self) -> str:
        """The base URL as sessions and watermarks have it."""
        return self.url.rstrip("/")


@dataclass(frozen=True, slots=True)
class Run:
    """One run: where it reads, where it writes, and what it tells."""

    service: RemoteService
    services: Services
    account_id: int
    tally: MirrorCounts
    progress: Progress

    @property
    def store(self) -> Store:
        """Where copies go."""
        return self.services.store

    @property
    def now(self) -> int:
        """Unix seconds."""
        return int(self.services.clock.now())

    async def known(self, kind: str) -> dict[str, Mirrored]:
        """What was copied so far of a kind, by the id there."""
        return dict(await self.store.mirrors.known(self.service.name, self.account_id, kind))

    async def remember(self, kind: str, entry: Mirrored) -> None:
        """That this was copied."""
        await self.store.mirrors.remember(self.service.name, self.account_id, kind, entry)

    async def folder_id(self, kind: FolderKind, name: str | None) -> int | None:
        """The account's own folder of that name, made where there is none."""
        if name is None:
            return None
        for _ in range(2):
            for folder in await self.store.folders.all(self.account_id):
                if (folder.kind, folder.name) == (kind, name):
                    return folder.id
            try:
                return (await self.store.folders.add(self.account_id, kind, name, self.now)).id
            except NameTaken:
                continue  # somebody made it a moment ago
        return None

    def day_before(self, unix_seconds: int) -> str:
        """Where an incremental question begins.

        A day earlier, as nobody says in whose zone the service's days are; and never later than yesterday,
        or one record with a wrong clock would hide all that follow.
        """
        return (self._day(min(unix_seconds, self.now)) - DAY).isoformat()

    def _day(self, unix_seconds: int) -> date:
        return datetime.fromtimestamp(max(unix_seconds, int(DAY.total_seconds())), UTC).date()


class Patience:
    """Counts failures in a row of one kind of request."""

    def __init__(self) -> None:
        self._failures = 0

    @property
    def lost(self) -> bool:
        """Whether it is no use asking for more."""
        return self._failures >= IN_A_ROW

    def failed(self) -> None:
        """One more."""
        self._failures += 1

    def succeeded(self) -> None:
        """It works."""
        self._failures = 0
