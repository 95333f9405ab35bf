"""What a store must offer; callers see these protocols and nothing of the database behind them.

Every coroutine that writes returns after its transaction is on the medium. When that is impossible it
raises `StoreUnavailable` and nothing was stored.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence, Set
from typing import Protocol

from gateway.domain.account import Account
from gateway.domain.brewsession import BrewSession, DeletedSession, Milestones, SessionEntry
from gateway.domain.delivery import Backlog, Batch
from gateway.domain.device import Device, DeviceSummary
from gateway.domain.folder import Folder, FolderKind
from gateway.domain.key import ApiKey
from gateway.domain.photo import Photo
from gateway.domain.quarantined import Quarantined, QuarantineState
from gateway.domain.reading import Reading
from gateway.domain.recipe import Recipe
from gateway.domain.target import Delivery, ReadingDelivery, Target
from gateway.domain.totals import Storage, Totals
from gateway.store.queries import ReadingsQuery, RecipeSearch, Search
from gateway.store.records import (
    NOTHING,
    Arrival,
    Boot,
    BootTime,
    Finished,
    ImportPart,
    Mirrored,
    PendingRetime,
    RawReading,
    StoreCondition,
    StoredMatch,
)


class ReadingStore(Protocol):
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
        self,
        session: BrewSession,
        readings: Sequence[Reading],
        *,
        reset: bool,
        unsaid: Mapping[str, frozenset[str]] = NOTHING,
        later: Sequence[str] = (),
    ) -> None:
        """Import readings, all or none.

        `unsaid` has, by id, members that an item left out: where the reading is known they stay as they are.
        With `reset`, other readings of the session are deleted, but for those with an id in `later`.

        A reading whose id is known in this session keeps its device, raw bytes, arrival, place in the queue
        and delivery states: where it says the same, nothing changes, else it is edited. The same id in a brew
        session that is deleted, or in none, means the same reading: it is put into this one. An id of another
        session makes a copy, under an id that follows from both.
        """

    async def take_back(self, session: BrewSession, ids: Sequence[str], now: int) -> int:
        """Give edited readings of a session out as they were before all edits; all of them without `ids`.

        Returns how many were edited; `NotFound` for an id that is none of the session.
        """

    async def add_mirrored(self, session: BrewSession, readings: Sequence[Reading]) -> None:
        """Copies of what the service has that the session is forwarded to: they are not sent there again.

        A reading whose id exists in this session is left as it is here.
        """

    async def held(self, session: BrewSession, like: Sequence[Reading], upstream: str) -> list[StoredMatch]:
        """A session's readings that may be these: of the same time, or with their ids."""

    async def differing(self, pairs: Sequence[tuple[str, Reading]]) -> list[tuple[str, Reading]]:
        """Of ids here and the readings there, those of which `correct` has something to write."""

    async def correct(
        self, session: BrewSession, pairs: Sequence[tuple[str, Reading]], upstream: str, now: int
    ) -> tuple[int, int]:
        """Take what the service corrected, of ids here and the readings there, member by member.

        Returns how many changed, and of how many ours stays though they changed there, too. `now` is Unix
        seconds.
        """

    def json_chunks(self, query: ReadingsQuery) -> AsyncGenerator[bytes, None]:
        """The readings as JSON objects joined by commas, in pieces of bounded size, oldest first."""

    def json_lines(
        self, *, last: int, device_id: int | None, session_id: int | None, account_id: int | None = None
    ) -> AsyncGenerator[str, None]:
        """Give the newest `last` readings with device facts, one JSON object each, newest last.

        The others choose among them; readings in no brew session belong to the owner's account.
        """

    async def count(self) -> int:
        """How many readings there are."""


class PayloadStore(Protocol):
    """Readings of devices by the bytes that they came in."""

    async def holds(self, device_key: str, raw: bytes, received_at_ms: int) -> bool:
        """Whether a reading of the device arrived at that time (Unix milliseconds) in these bytes."""

    async def held(self, device_key: str, since: int, raws: Sequence[bytes]) -> set[bytes]:
        """Which of these bytes readings of the device since then (Unix seconds) were made of."""

    async def latest_at(self, device_key: str) -> int | None:
        """When the device's newest reading is of, in Unix seconds."""

    async def latest_comment(self, device_id: int) -> str:
        """The comment of the device's newest reading; empty where it has none."""

    async def recent_gravities(self, device_id: int, limit: int) -> list[tuple[str, int, float]]:
        """Id, time (Unix seconds) and specific gravity of the device's newest readings, oldest first."""

    async def add_flag(self, oid: str, flag: str) -> None:
        """Put a flag on a reading that is stored; once, however often it is told."""

    async def page(self, device_id: int, after: tuple[int, int], limit: int) -> list[RawReading]:
        """What the device sent, in order of time, behind this place: time (Unix seconds) and `seq`."""

    async def latest(self, device_id: int, limit: int) -> list[RawReading]:
        """What the device sent last, newest first."""

    async def rewrite(self, changes: Sequence[tuple[int, Reading]]) -> None:
        """Write what is understood of readings over what was, by `seq`; what was sent stays."""

    async def send_again(self, device_id: int, since: int) -> int:
        """Put the device's readings since then (Unix seconds) into the queue again; how many those are."""


class RetimingStore(Protocol):
    """What came while the wall clock was not known, and the boots of the machine."""

    async def boot(self, name: str) -> Boot:
        """This boot, noted where it is new."""

    async def boots(self) -> list[Boot]:
        """Every boot that something waits of or that is remembered, the latest first."""

    async def newest_arrival(self) -> int | None:
        """When the last readings of devices came (Unix milliseconds), of those whose time is believed."""

    async def trust(self, boot_id: int, offset_ms: int) -> None:
        """The clock of this boot is known; earlier boots that nothing waits of are forgotten."""

    async def note(self, oid: str, moment: BootTime) -> None:
        """The reading with this id waits; told together with it, this is stored no later."""

    async def note_payload(self, received_at_ms: int, moment: BootTime) -> None:
        """So does what is in quarantine under this arrival (Unix milliseconds)."""

    async def seen_since(self, boot_id: int, monotonic_ms: int) -> list[tuple[str, bytes, int]]:
        """Device key, raw bytes and milliseconds since the boot of what was noted since, oldest first."""

    async def page(self, boot_id: int, limit: int) -> list[PendingRetime]:
        """Readings of a boot that wait, in order of arrival."""

    async def retime(self, changes: Sequence[tuple[PendingRetime, Reading]]) -> None:
        """They are these readings from now on, under new ids, and wait no longer; together."""

    async def retime_payloads(self, boot_id: int, offset_ms: int) -> None:
        """Put the arrivals of a boot's payloads in quarantine right."""

    async def waits(self) -> bool:
        """Whether there is anything that waits."""

    async def payload_waits(self, received_at_ms: int) -> bool:
        """Whether what is in quarantine under this arrival waits."""


class QuarantineStore(Protocol):
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

    async def send_again(self, item_id: int, oid: str) -> bool:
        """Out of here and into the forwarding queue: the reading with that id, if it is in a brew session.

        Both or neither, or the end of the process between them could send it twice.
        """


class DeviceStore(Protocol):
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

    async def rename(self, device: Device, key: str, stable_id: str, *, keep: bool = False) -> Device | None:
        """Give it another key; with `keep` what comes under the old one is its own, too.

        None where it has not the key of `device` any more, or another device has the new one.
        """

    async def parts(self, device_id: int) -> list[ImportPart]:
        """What the device sent, by brew session; those in none come last."""

    async def overlap(self, into: int, other: int, seconds: int) -> int:
        """How many readings of `other` lie at most so many seconds from one of `into`."""

    async def merge(self, into: Device, other: Device) -> Device:
        """Make the other one part of this one, whose settings and `reprocessing` are those given.

        Readings come along as they are. What the other learned, and its brew session, count where this one
        has none. Its key and those that it had taken over become this one's. Returns the device as stored.
        """

    async def assign(self, device_id: int, session_id: int, claim_since: int | None) -> int:
        """Put the device into the session, and its unassigned readings since then (Unix seconds).

        Returns how many those were.
        """

    async def release(self, device_id: int) -> None:
        """Take the device out of its session; what was stored stays where it is."""


class OutboxStore(Protocol):
    """Forwarding progress: one watermark per target and brew session."""

    async def backlogs(self, target: str, *, unnamed: bool = True) -> list[Backlog]:
        """What waits for this target, one entry per forwarded brew session that has something.

        Sessions that name no service are this target's only where `unnamed` says so.
        """

    async def begin(self, target: str, session_id: int, limit: int) -> Batch | None:
        """The oldest readings above the watermark; the open attempt is on the medium on return.

        An attempt that is still open comes again as it was. Where nothing waits, edits of readings that the
        target already has: a batch that `corrects`.
        """

    async def settle(
        self, batch: Batch, sent: Set[int] | None = None, *, withheld: Set[int] = frozenset()
    ) -> None:
        """Move the watermark past the batch and close the attempt.

        `sent` are the places in the queue of what was sent this time, None for all; the rest was there
        already. Of a batch that corrects, `withheld` is what the target has under ids of its own.
        """

    async def refuse(self, batch: Batch, item: Quarantined) -> None:
        """The target never takes the batch's only reading: note it, and quarantine that, or neither."""

    async def send_again(
        self, target: str, since: int, *, unnamed: bool, session_id: int | None = None
    ) -> dict[int, int]:
        """Look at the target's brew sessions again, from their first reading since then (Unix seconds) on.

        Those readings count as an attempt of unknown outcome: they are read back, and only what is missing is
        sent. Returns how many they are by session; those that were refused stay so.
        """

    async def release(self, batch: Batch) -> None:
        """Close the attempt, watermark unmoved: the target certainly took none of it."""

    async def forwarded(self, target: str) -> dict[int, int]:
        """Readings at or below the watermark, by brew session id."""


class TargetStore(Protocol):
    """Services that are forwarded to."""

    async def all(self) -> list[Target]:
        """Every target: where unnamed brew sessions go, then those of options, then by name."""

    async def add(self, target: Target) -> None:
        """A new one; `NameTaken` where its name or its address is known."""

    async def put(self, target: Target) -> None:
        """A new one, or this address and key file for the one of that name, which begins afresh."""

    async def take_options(self, told: Sequence[Target]) -> None:
        """Those that `serve` is told of this time; of one that was added, the name and the key stay."""

    async def pause(self, name: str, *, paused: bool) -> None:
        """Stop forwarding there, or begin afresh at once."""

    async def remove(self, name: str) -> None:
        """Forget it; what it was sent, and the mappings, stay known."""

    async def map(self, session_id: int, url: str, upstream_id: int | None) -> None:
        """The brew session's number at a target that is not its own; None stops forwarding it there."""

    async def sessions(self, target: Target) -> dict[int, int]:
        """The number there of each brew session that goes there, by its id here."""


class DeliveryStore(Protocol):
    """What became of readings at targets."""

    async def counts(self, session_id: int | None = None) -> list[Delivery]:
        """Per target and brew session, of one session or of all; looks at every reading of those."""

    async def of_readings(
        self, session_id: int, *, state: str | None, limit: int, skip: int
    ) -> list[ReadingDelivery]:
        """Single readings of a brew session, oldest first; with `state`, those that are so at some target."""


class BrewSessionStore(Protocol):
    """Brew sessions."""

    async def add(self, session: BrewSession) -> BrewSession:
        """A new session, under a new id where its own is 0; `NameTaken` where that id is in use."""

    async def update(self, session: BrewSession) -> None:
        """Write everything that this session says, over what was."""

    async def delete(self, session_id: int, now: int) -> None:
        """Mark it deleted and take the devices out of it; its readings stay."""

    async def deleted(self) -> list[DeletedSession]:
        """Sessions that are deleted and not purged, by id; counts the readings of each."""

    async def undelete(self, session_id: int, now: int) -> None:
        """Bring a deleted session back, as it was but for its devices; `NotFound` where it is none."""

    async def purge(self, session_id: int, limit: int) -> int:
        """Delete so many readings of a deleted session for good; fewer than `limit`: they were the last.

        Returns how many. After the last ones the session cannot be brought back.
        """

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


class RecipeStore(Protocol):
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


class FolderStore(Protocol):
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


class PhotoStore(Protocol):
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


class AccountStore(Protocol):
    """Accounts."""

    async def add(self, name: str, now: int) -> Account:
        """A new account; `NameTaken` where there is one of that name."""

    async def all(self) -> list[Account]:
        """Every account, by id."""


class KeyStore(Protocol):
    """Accounts and their API keys."""

    async def owner(self, now: int) -> tuple[int, bool]:
        """The owner account's id, made where there is none; and whether no key was ever made."""

    async def active(self) -> list[ApiKey]:
        """Keys that are not revoked, oldest first."""

    async def add(self, key: ApiKey) -> None:
        """Keep a key; `NameTaken` where an active one of its account has that name."""

    async def revoke(self, account_id: int, name: str, now: int) -> bool:
        """Whether the account had such an active key."""


class MirrorStore(Protocol):
    """Which record of which service became which record here."""

    async def known(self, upstream: str, account_id: int, kind: str) -> Mapping[str, Mirrored]:
        """What was copied so far of a kind, by the id there."""

    async def former(self, upstream: str, account_id: int, kind: str) -> list[Mirrored]:
        """Copies of a kind whose ids the service has given to other records since."""

    async def remember(self, upstream: str, account_id: int, kind: str, entry: Mirrored) -> None:
        """That this was copied; over what was known before."""

    async def part(self, upstream: str, account_id: int, kind: str, remote_id: str) -> None:
        """That id is another record's there: what was copied is a former copy from now on."""

    async def cut(self, upstream: str, account_id: int, number: int) -> list[int]:
        """Forward no brew session of the account to this number there; returns which these were."""


class TotalsStore(Protocol):
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


class UpkeepStore(Protocol):
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


class Store(Protocol):
    """A store; closing it waits for what was begun."""

    @property
    def readings(self) -> ReadingStore:
        """Readings of devices and imports."""

    @property
    def payloads(self) -> PayloadStore:
        """Readings of devices by the bytes that they came in."""

    @property
    def retiming(self) -> RetimingStore:
        """What came while the clock was not known."""

    @property
    def outbox(self) -> OutboxStore:
        """Forwarding progress."""

    @property
    def targets(self) -> TargetStore:
        """Services that are forwarded to."""

    @property
    def deliveries(self) -> DeliveryStore:
        """What became of readings there."""

    @property
    def quarantine(self) -> QuarantineStore:
        """What was not understood or refused."""

    @property
    def devices(self) -> DeviceStore:
        """Known devices."""

    @property
    def sessions(self) -> BrewSessionStore:
        """Brew sessions."""

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
        """Api keys."""

    @property
    def mirrors(self) -> MirrorStore:
        """Copies of other services' records."""

    @property
    def upkeep(self) -> UpkeepStore:
        """What it needs done while it runs."""

    @property
    def totals(self) -> TotalsStore:
        """What there is, counted."""

    async def close(self) -> None:
        """Close all connections, the writer last."""
