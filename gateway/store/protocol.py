"""What a store must offer; callers see these protocols and nothing of the database behind them.

Every coroutine that writes returns after its transaction is on the medium. When that is impossible it
raises `StoreUnavailable` and nothing was stored.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.account import Account
from gateway.domain.brewsession import BrewSession, Milestones, SessionEntry
from gateway.domain.delivery import Backlog, Batch
from gateway.domain.device import Device, DeviceSummary
from gateway.domain.folder import Folder, FolderKind
from gateway.domain.key import ApiKey
from gateway.domain.photo import Photo
from gateway.domain.quarantined import Quarantined, QuarantineState
from gateway.domain.reading import Reading
from gateway.domain.recipe import Recipe
from gateway.store.queries import ReadingsQuery, RecipeSearch, Search


@dataclass(frozen=True, slots=True)
class Arrival:
    """A reading of a device, with the delivery it came in. `raw` are the bytes as received."""

    reading: Reading
    device_key: str
    raw: bytes
    channel: str
    delivery: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A stored reading of a device with the bytes that it came in; `seq` is its place in the queue."""

    seq: int
    reading: Reading
    raw: bytes
    channel: str


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

    async def add_mirrored(self, session: BrewSession, readings: Sequence[Reading]) -> None:
        """Copies of what the service has that the session is forwarded to: they are not sent there again.

        A reading whose id exists in this session is left as it is here.
        """

    async def between(self, session: BrewSession, first: int, last: int) -> list[Reading]:
        """A session's readings of these Unix seconds, both inclusive, oldest first."""

    def json_chunks(self, query: ReadingsQuery) -> AsyncGenerator[bytes, None]:
        """The readings as JSON objects joined by commas, in pieces of bounded size, oldest first."""

    def json_lines(
        self, *, last: int, device_id: int | None, session_id: int | None
    ) -> AsyncGenerator[str, None]:
        """The newest `last` readings with device facts, one JSON object each, newest last."""

    async def count(self) -> int:
        """How many readings there are."""


class SentReadings(Protocol):
    """Readings of devices by the bytes that they came in."""

    async def holds(self, device_key: str, raw: bytes, received_at_ms: int) -> bool:
        """Whether a reading of the device arrived at that time (Unix milliseconds) in these bytes."""

    async def latest_at(self, device_key: str) -> int | None:
        """When the device's newest reading is of, in Unix seconds."""

    async def recent_gravities(self, device_id: int, limit: int) -> list[tuple[str, int, float]]:
        """Id, time (Unix seconds) and specific gravity of the device's newest readings, oldest first."""

    async def add_flag(self, oid: str, flag: str) -> None:
        """Put a flag on a reading that is stored; once, however often it is told."""

    async def page(self, device_id: int, after: tuple[int, int], limit: int) -> list[Sent]:
        """What the device sent, in order of time, behind this place: time (Unix seconds) and `seq`."""

    async def rewrite(self, changes: Sequence[tuple[int, Reading]]) -> None:
        """Write what is understood of readings over what was, by `seq`; what was sent stays."""

    async def send_again(self, device_id: int, since: int) -> int:
        """Put the device's readings since then (Unix seconds) into the queue again; how many those are."""

    async def send_one_again(self, oid: str) -> bool:
        """Put one reading into the queue again; whether there is one with that id in a brew session."""


class Outbox(Protocol):
    """Forwarding progress: one watermark per target and brew session."""

    async def backlogs(self, target: str, *, unnamed: bool = True) -> list[Backlog]:
        """What waits for this target, one entry per forwarded brew session that has something.

        Sessions that name no service are this target's only where `unnamed` says so.
        """

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

    async def state(self) -> QuarantineState:
        """How full it is, and how many it has lost to its bounds."""

    async def newest(self, limit: int) -> list[Quarantined]:
        """The newest ones, oldest first."""

    async def after(self, item_id: int, limit: int) -> list[Quarantined]:
        """Those behind this id, oldest first."""

    async def get(self, item_id: int) -> Quarantined | None:
        """One of them."""

    async def remove(self, item_ids: Sequence[int]) -> None:
        """They are understood by now."""


class Devices(Protocol):
    """Known devices."""

    async def all(self) -> list[Device]:
        """Every device, by id."""

    async def save(self, device: Device) -> Device:
        """Insert or update what the device is called and taught us; returns it with its id and session."""

    async def configure(self, device: Device) -> Device:
        """Its settings are those from now on; the device counts as being read again until `reread`."""

    async def reread(self, device_id: int) -> Device:
        """Its readings are all understood as its settings say."""

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

    async def add(self, session: BrewSession) -> BrewSession:
        """A new session, under a new id where its own is 0; `NameTaken` where that id is in use."""

    async def update(self, session: BrewSession) -> None:
        """Write everything that this session says, over what was."""

    async def delete(self, session_id: int, now: int) -> None:
        """Mark it deleted and take the devices out of it; its readings stay."""

    async def get(self, session_id: int) -> BrewSession | None:
        """One session, unless deleted."""

    async def all(self) -> list[BrewSession]:
        """Every session that is not deleted, by id."""

    async def entry(self, session_id: int) -> SessionEntry | None:
        """One session as lists show it, unless deleted."""

    async def search(self, search: Search) -> tuple[int, list[SessionEntry]]:
        """How many match, and the page of them that was asked for."""

    async def milestones(self, session_id: int) -> Milestones:
        """What the session's statistics are made of; takes as long for many readings as for few."""


class Recipes(Protocol):
    """Recipes, snapshots among them."""

    async def add(self, recipe: Recipe) -> Recipe:
        """A new recipe, under a new id where its own is 0; `NameTaken` where that id is in use."""

    async def update(self, recipe: Recipe) -> None:
        """Write everything that this recipe says, over what was."""

    async def delete(self, recipe_id: int, now: int) -> None:
        """Mark it deleted; snapshots of it stay."""

    async def get(self, recipe_id: int) -> Recipe | None:
        """One recipe, unless deleted."""

    async def search(self, search: RecipeSearch) -> tuple[int, list[Recipe]]:
        """How many match, and the page of them that was asked for."""


class Folders(Protocol):
    """Folders of recipes and of brew sessions."""

    async def add(self, account_id: int, kind: FolderKind, name: str, now: int) -> Folder:
        """A new folder; `NameTaken` where the account has one of that kind and name."""

    async def get(self, folder_id: int) -> Folder | None:
        """One folder."""

    async def all(self, account_id: int | None = None) -> list[Folder]:
        """An account's folders, or everybody's, by kind and name."""

    async def rename(self, folder_id: int, name: str) -> None:
        """Another name; `NameTaken` as for a new one."""

    async def delete(self, folder_id: int) -> None:
        """Remove it; what was in it is filed nowhere."""


class Photos(Protocol):
    """What is known of photos; their bytes are files."""

    async def add(self, photo: Photo) -> None:
        """Keep it; its file is there already."""

    async def get(self, recipe_id: int, uuid: str) -> Photo | None:
        """One photo of a recipe."""

    async def of_recipe(self, recipe_id: int) -> list[Photo]:
        """A recipe's photos, oldest first."""

    async def delete(self, recipe_id: int, uuid: str) -> bool:
        """Forget it; whether there was one."""

    async def file_names(self) -> set[str]:
        """The files that photos need."""


class Accounts(Protocol):
    """Accounts."""

    async def add(self, name: str, now: int) -> Account:
        """A new account; `NameTaken` where there is one of that name."""

    async def all(self) -> list[Account]:
        """Every account, by id."""


class Keys(Protocol):
    """Accounts and their API keys."""

    async def owner(self, now: int) -> tuple[int, bool]:
        """The owner account's id, made where there is none; and whether no key was ever made."""

    async def active(self) -> list[ApiKey]:
        """Keys that are not revoked, oldest first."""

    async def add(self, key: ApiKey) -> None:
        """Keep a key; `NameTaken` where an active one of its account has that name."""

    async def revoke(self, account_id: int, name: str, now: int) -> bool:
        """Whether the account had such an active key."""


@dataclass(frozen=True, slots=True)
class Mirrored:
    """One copied record: its id there and here, and its `updated_at` there when it was copied."""

    remote_id: str
    local_id: str
    remote_updated_at: str


class Mirrors(Protocol):
    """Which record of which service became which record here."""

    async def known(self, upstream: str, account_id: int, kind: str) -> Mapping[str, Mirrored]:
        """What was copied so far of a kind, by the id there."""

    async def remember(self, upstream: str, account_id: int, kind: str, entry: Mirrored) -> None:
        """That this was copied; over what was known before."""


class Store(Protocol):
    """A store; closing it waits for what was begun."""

    @property
    def readings(self) -> Readings:
        """Readings of devices and imports."""

    @property
    def sent(self) -> SentReadings:
        """Readings of devices by the bytes that they came in."""

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

    async def close(self) -> None:
        """Close all connections, the writer last."""
