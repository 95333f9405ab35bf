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
from gateway.domain.target import Delivery, ReadingDelivery, Target
from gateway.domain.totals import Storage, Totals
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


@dataclass(frozen=True, slots=True)
class Moment:
    """When something came while the wall clock was in doubt: a boot's id, and milliseconds since then.

    `place` tells several readings in one payload apart.
    """

    boot: int
    monotonic_ms: int
    place: int = 0


@dataclass(frozen=True, slots=True)
class Boot:
    """A boot of the machine: `offset_ms` makes Unix milliseconds of those since then, None: not known.

    `last_ms` is the last moment of it that waits for the right time, None where nothing does.
    """

    id: int
    offset_ms: int | None
    last_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """A stored reading that waits for its right time."""

    moment: Moment
    device_id: int
    sent: Sent


class Retiming(Protocol):
    """What came while the wall clock was not known, and the boots of the machine."""

    async def boot(self, name: str) -> Boot:
        """This boot, noted where it is new."""

    async def boots(self) -> list[Boot]:
        """Every boot that something waits of or that is remembered, the latest first."""

    async def newest_arrival(self) -> int | None:
        """When the last readings of devices came (Unix milliseconds), of those whose time is believed."""

    async def believe(self, boot_id: int, offset_ms: int) -> None:
        """The clock of this boot is known; earlier boots that nothing waits of are forgotten."""

    async def note(self, oid: str, moment: Moment) -> None:
        """The reading with this id waits; told together with it, this is stored no later."""

    async def note_payload(self, received_at_ms: int, moment: Moment) -> None:
        """So does what is in quarantine under this arrival (Unix milliseconds)."""

    async def seen_since(self, boot_id: int, monotonic_ms: int) -> list[tuple[str, bytes, int]]:
        """Device key, raw bytes and milliseconds since the boot of what was noted since, oldest first."""

    async def page(self, boot_id: int, limit: int) -> list[Suspect]:
        """Readings of a boot that wait, in order of arrival."""

    async def retime(self, changes: Sequence[tuple[Suspect, Reading]]) -> None:
        """They are these readings from now on, under new ids, and wait no longer; together."""

    async def retime_payloads(self, boot_id: int, offset_ms: int) -> None:
        """Put the arrivals of a boot's payloads in quarantine right."""

    async def waits(self) -> bool:
        """Whether there is anything that waits."""

    async def payload_waits(self, received_at_ms: int) -> bool:
        """Whether what is in quarantine under this arrival waits."""


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


class Targets(Protocol):
    """Services that are forwarded to."""

    async def all(self) -> list[Target]:
        """Every target: where unnamed brew sessions go, then those of options, then by name."""

    async def add(self, target: Target) -> None:
        """A new one; `NameTaken` where its name or its address is known."""

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


class Deliveries(Protocol):
    """What became of readings at targets."""

    async def counts(self, session_id: int | None = None) -> list[Delivery]:
        """Per target and brew session, of one session or of all; looks at every reading of those."""

    async def of_readings(
        self, session_id: int, *, state: str | None, limit: int, skip: int
    ) -> list[ReadingDelivery]:
        """Single readings of a brew session, oldest first; with `state`, those that are so at some target."""


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

    async def send_again(self, item_id: int, oid: str) -> bool:
        """Out of here and into the forwarding queue: the reading with that id, if it is in a brew session.

        Both or neither, or the end of the process between them could send it twice.
        """


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


class Ledger(Protocol):
    """What there is, counted."""

    async def totals(self, targets: Mapping[str, bool]) -> Totals:
        """All readings by what became of them, in one look, for targets that forward at present.

        Their values say whether brew sessions that name no service are theirs.
        """

    async def storage(self) -> Storage:
        """What the database takes on its disk, and what is left there."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that was found damaged (Unix seconds), and what was made of its readings.

    It is kept under the name `aside`; `finished_at` is None while readings are still being brought over.
    """

    found_at: int
    reason: str
    aside: str
    salvaged: int
    quarantined: int
    bad_pages: int
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class StoreCondition:
    """How the store is: `trouble` says why nothing can be stored, if so.

    `damages` are all that were ever met, `aside` the files that are kept of them; `damaged` and `pruned`
    count readings. `scrubbed_until` is a place in the queue, `scrubbed_at` the end of the last round (Unix
    seconds, 0: none yet), `repairs` counts since the start.
    """

    trouble: str | None
    salvaging: bool
    damages: list[Damage]
    aside: list[str]
    damaged: int
    pruned: int
    scrubbed_until: int
    scrubbed_at: int
    repairs: int
    quota_bytes: int
    free_bytes: int
    sqlite: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A brew session that nothing is added to any more; places up to `settled_until` are forwarded."""

    session_id: int
    settled_until: int


class Upkeep(Protocol):
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
