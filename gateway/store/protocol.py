"""The protocols of a store: callers see these, and nothing of the database behind them.

A call that writes is one transaction, and returns when it is on the medium. If that is impossible the call
raises `StoreUnavailable`, and nothing was stored. A call that reads raises it if the store cannot be read.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence, Set
from typing import Protocol

from gateway.domain.account import Account
from gateway.domain.audit import AuditEntry, AuditRow
from gateway.domain.brewsession import BrewSession, DeletedSession, Milestones, SessionEntry
from gateway.domain.delivery import Backlog, Batch
from gateway.domain.device import Device, DeviceSummary
from gateway.domain.folder import Folder, FolderKind
from gateway.domain.inbox import InboxState, RefusedName, WaitingName, WaitingPayload
from gateway.domain.key import ApiKey
from gateway.domain.payload import Payload
from gateway.domain.photo import Photo
from gateway.domain.quarantined import Quarantined, QuarantineState
from gateway.domain.reading import Reading
from gateway.domain.recipe import Recipe
from gateway.domain.target import Delivery, ReadingDelivery, Sending, Target
from gateway.domain.totals import Storage, Totals
from gateway.store.page_protocol import (
    EventStore,
    FigureStore,
    LoginStore,
    PageSettingStore,
    SeriesStore,
    ViewLinkStore,
)
from gateway.store.queries import ReadingsQuery, RecipeSearch, Search
from gateway.store.records import (
    NOTHING,
    Arrival,
    Boot,
    BootTime,
    DeviceSource,
    Engine,
    Finished,
    ImportPart,
    Mirrored,
    PendingRetime,
    RawReading,
    ReadingRow,
    Settle,
    StoreCondition,
    StoredMatch,
)


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


class QuarantineStore(Protocol):
    """Payloads that no driver understands or that a target refused; bounded, with a share for each source."""

    async def add(self, item: Quarantined, arrival_time: BootTime | None = None) -> None:
        """Keep a payload. With `arrival_time`, note that it waits for its right time. Both or neither.

        Beyond its source's share, or beyond the bounds of all, the oldest payloads that no driver can read
        go, and are counted. A readable payload never goes: `ShareUsedUp` if the new one finds no place.
        """

    async def count(self) -> int:
        """Count the payloads in quarantine."""

    async def state(self) -> QuarantineState:
        """Return how full quarantine is, its limits, and how many payloads it has lost to them."""

    async def newest(self, limit: int) -> list[Quarantined]:
        """Return the newest payloads, oldest first."""

    async def after(self, item_id: int, limit: int) -> list[Quarantined]:
        """Return the payloads with a higher id, oldest first."""

    async def get(self, item_id: int) -> Quarantined | None:
        """Return one payload, None if there is none with this id."""

    async def remove(self, item_ids: Sequence[int]) -> None:
        """Remove payloads that are stored as readings by now."""

    async def send_again(self, item_id: int, oid: str) -> bool:
        """Remove a refused reading from quarantine and queue it for forwarding. Both or neither.

        Return False, and change nothing, if no brew session has a reading with that id. Two steps could send
        it twice, if the process ended between them.
        """


class InboxStore(Protocol):
    """Payloads that wait for the owner's word. It is bounded, and what does not fit is not taken."""

    async def add(
        self, payload: Payload, waiting: Sequence[WaitingName], arrival_time: BootTime | None = None
    ) -> list[WaitingName]:
        """Keep a payload for each of these names, each with its number of readings in the payload.

        Return the names that it does not fit for; it is kept for the others. With `arrival_time`, note that
        the payload waits for its right time.
        """

    async def names(self) -> list[WaitingName]:
        """Return every name that waits, the one that waits longest first."""

    async def page(self, name_ids: Sequence[int], after: tuple[int, int], limit: int) -> list[WaitingPayload]:
        """Return payloads of these names behind an arrival (Unix ms) and an id, in order of arrival."""

    async def remove(self, item_ids: Sequence[int]) -> None:
        """Remove payloads that are readings by now; a name without any is gone, too."""

    async def accept(self, name_ids: Sequence[int]) -> list[WaitingName]:
        """Note that the owner has accepted these names; return the ones that there are."""

    async def refuse(self, name_id: int, now: int) -> WaitingName | None:
        """Remove a name with its payloads, and remember the refusal; `now` is Unix seconds.

        Return the name as it was, None if no name has this id.
        """

    async def refused(self) -> list[RefusedName]:
        """Return the refused names, by id; expired ones may be among them."""

    async def allow(self, refused_id: int) -> bool:
        """Forget a refusal; return whether there was one with this id."""

    async def state(self) -> InboxState:
        """Return how full the inbox is, and its limits."""


class DeviceStore(Protocol):
    """Devices, and the brew session that each is in."""

    async def all(self) -> list[Device]:
        """Return every device, by id."""

    async def save(self, device: Device) -> Device:
        """Insert or update the name and the learned facts of a device; return it with its id and session."""

    async def configure(self, device: Device) -> Device:
        """Write the settings of a device, which counts as being reprocessed until `mark_reprocessed`."""

    async def mark_reprocessed(self, device_id: int) -> Device:
        """Note that all of the device's readings follow its settings."""

    async def summaries(self) -> list[DeviceSummary]:
        """Return every device with its last reading."""

    async def sources(self, device_id: int) -> list[DeviceSource]:
        """Return the addresses that readings of the device came from, in the order of their first reading.

        The number is bounded: beyond it the addresses with the fewest readings are left out.
        """

    async def first_sources(self) -> dict[int, str]:
        """Return the address that the oldest reading of each device came from, by device id."""

    async def rename(self, device: Device, key: str, stable_id: str, *, keep: bool = False) -> Device | None:
        """Give a device another key; with `keep`, let its old key belong to it, too.

        Return None, and change nothing, if the device has lost `device.key` or another device has the new
        key.
        """

    async def parts(self, device_id: int) -> list[ImportPart]:
        """Return the device's readings by brew session, in counts; readings in no session come last."""

    async def overlap(self, into: int, other: int, seconds: int) -> int:
        """Count the readings of `other` that lie at most `seconds` from a reading of `into`."""

    async def merge(self, into: Device, other: Device) -> Device:
        """Make `other` a part of `into`, which is given with its new settings and `reprocessing`.

        Readings move as they are. What `other` learned, and its brew session, count if `into` has none. The
        keys of `other` become keys of `into`. Return the device as stored.
        """

    async def assign(
        self, device_id: int, session_id: int, claim_since: int | None, now: int | None = None
    ) -> int:
        """Put the device into the session, with its unassigned readings since `claim_since` (Unix seconds).

        Return how many readings came along; none if `claim_since` is None. `now` is the time of the event.
        """

    async def get(self, device_id: int) -> Device | None:
        """Return a device, a forgotten one as well; None if no readings are left of it."""

    async def forget(
        self, device_id: int, now: int, *, with_readings: bool, unless_since: int | None = None
    ) -> tuple[int, int]:
        """Remove a device, its settings, its other keys and its place in a session; `now` is Unix seconds.

        Its readings stay where they are. With `with_readings`, they are to be deleted by `delete_readings`.
        Return how many there are, and how many of them in no brew session. `NameTaken`, and nothing changes,
        if the device has reported since `unless_since` (Unix seconds).
        """

    async def forgotten_with_readings(self) -> list[int]:
        """Return the ids of forgotten devices whose readings are still being deleted."""

    async def delete_readings(self, device_id: int, limit: int) -> int:
        """Delete up to `limit` readings of a device that was forgotten with its readings; return how many."""

    async def release(self, device_id: int, now: int | None = None) -> None:
        """Take the device out of its session; its readings stay there. `now` is the time of the event."""


class OutboxStore(Protocol):
    """Forwarding progress: one watermark per target and brew session."""

    async def backlogs(self, target: str, *, unnamed: bool = True) -> list[Backlog]:
        """Return a target's backlogs: one for each brew session in which readings or edits wait for it.

        Only with `unnamed`, brew sessions that name no service belong to this target.
        """

    async def begin(self, target: str, session_id: int, limit: int) -> Batch | None:
        """Return the oldest readings above the watermark; the open attempt is on the medium then.

        An attempt that is still open comes again as it was. If no reading waits, return edits of readings
        that the target has already: a batch that `corrects`. None if there are no edits either.
        """

    async def settle(
        self, batch: Batch, sent: Set[int] | None = None, *, withheld: Set[int] = frozenset()
    ) -> None:
        """Move the watermark past the batch and close the attempt.

        `sent` are the places in the queue that were sent this time, None for all; the other readings were
        there already. Of a batch that corrects, `withheld` are places of readings that the target has under
        other ids.
        """

    async def refuse(self, batch: Batch, item: Quarantined) -> None:
        """Note that the target never takes the batch's only reading, and quarantine it. Both or neither."""

    async def send_again(
        self, target: str, since: int, *, unnamed: bool, session_id: int | None = None
    ) -> dict[int, int]:
        """Send readings of a target's brew sessions again, from the first one since `since` (Unix seconds).

        They count as an attempt of unknown outcome: they are read back, and only the missing ones are sent.
        Readings that were refused stay refused. Return how many readings there are, by session.
        """

    async def release(self, batch: Batch) -> None:
        """Close the attempt and leave the watermark: the target certainly took none of it."""

    async def forwarded(self, target: str) -> dict[int, int]:
        """Count the readings at or below the watermark, by brew session id."""


class TargetStore(Protocol):
    """Services that readings are forwarded to."""

    async def all(self) -> list[Target]:
        """Return every target: of unnamed brew sessions first, then of options, then the rest, by name."""

    async def add(self, target: Target) -> None:
        """Add a target; `NameTaken` if its name or its address is in use."""

    async def put(self, target: Target) -> None:
        """Add a target, or give the target of that name this address and key file; it begins afresh."""

    async def take_options(self, options: Sequence[Target]) -> None:
        """Take over the targets that options of `serve` name; an added one keeps its name and its key."""

    async def pause(self, name: str, *, paused: bool) -> None:
        """Pause forwarding to a target, or begin afresh at once."""

    async def remove(self, name: str) -> None:
        """Remove a target; its forwarded readings and its mappings stay known."""

    async def map(self, session_id: int, url: str, upstream_id: int | None) -> None:
        """Set the brew session's number at a target that is not its own; None stops forwarding it there."""

    async def sessions(self, target: Target) -> dict[int, int]:
        """Return the number at the target of each brew session that goes there, by its id here."""


class DeliveryStore(Protocol):
    """Delivery states of readings at targets."""

    async def counts(self, session_id: int | None = None) -> list[Delivery]:
        """Count states per target and brew session, of one session or of all; read each of their readings."""

    async def newest(
        self, session_id: int, start: int | None, end: int | None, *, limit: int, skip: int
    ) -> tuple[int, list[ReadingRow]]:
        """Return how many readings a brew has from `start` to `end` (Unix seconds), and a page of them.

        The newest comes first. None leaves an end open.
        """

    async def of_readings(
        self, session_id: int, *, state: str | None, limit: int, skip: int
    ) -> list[ReadingDelivery]:
        """Return readings of a brew session with their states, oldest first.

        With `state`, only readings that have that state at a target.
        """


class BrewSessionStore(Protocol):
    """Brew sessions."""

    async def add(
        self,
        session: BrewSession,
        snapshot: Recipe | None = None,
        *,
        device_id: int | None = None,
        since: int | None = None,
    ) -> BrewSession:
        """Insert a brew session, under a new id if its own is 0; `NameTaken` if that id is in use.

        With `snapshot`, insert that recipe, too, and let the session refer to it. With `device_id`, put that
        device into it, with its readings since `since` (Unix seconds) that are in no session, or in the one
        that the device leaves.
        """

    async def follow(
        self, old: BrewSession, new: BrewSession, snapshot: Recipe | None, since: int | None, now: int
    ) -> tuple[BrewSession, list[int]]:
        """Insert the session of the next beer as `add` does, and write `old`, which is done.

        Every device of `old` goes into the new session, with its readings since `since`. Return the new
        session and the ids of these devices. Times are Unix seconds.
        """

    async def end(self, session: BrewSession, now: int) -> None:
        """Write a session that is done, and take its devices out; `now` is Unix seconds."""

    async def reopen(self, session: BrewSession, now: int) -> None:
        """Write a session that is not done after all; devices that its end took out go back if they are free.

        Their readings since then that are in no session come along. `now` is Unix seconds.
        """

    async def update(self, session: BrewSession) -> None:
        """Write all members of a session over the stored ones; `NotFound` if there is no such folder."""

    async def delete(self, session_id: int, now: int) -> None:
        """Mark a session deleted (Unix seconds) and take its devices out; its readings stay."""

    async def deleted(self) -> list[DeletedSession]:
        """Return the sessions that are deleted and not purged, by id, each with its number of readings."""

    async def undelete(self, session_id: int, now: int) -> None:
        """Bring a deleted session back without its devices; `NotFound` if there is none with this id."""

    async def purge(self, session_id: int, limit: int) -> int:
        """Delete up to `limit` readings of a deleted session for good; return how many.

        Fewer than `limit` were the last ones: then the session cannot be brought back.
        """

    async def get(self, session_id: int) -> BrewSession | None:
        """Return a session, None if there is none or it is deleted."""

    async def all(self) -> list[BrewSession]:
        """Return every session that is not deleted, by id."""

    async def entry(self, session_id: int) -> SessionEntry | None:
        """Return a session as lists show it, None if there is none or it is deleted."""

    async def entries(self, session_ids: Sequence[int]) -> list[SessionEntry]:
        """Return sessions as lists show them, in the order of their ids; deleted ones are left out."""

    async def search(self, search: Search) -> tuple[int, list[SessionEntry]]:
        """Return how many sessions match, and the requested page of them."""

    async def milestones(self, session_id: int) -> Milestones:
        """Return the readings that a session's statistics need; as fast for many readings as for few."""


class RecipeStore(Protocol):
    """Recipes, snapshots among them."""

    async def add(self, recipe: Recipe) -> Recipe:
        """Insert a recipe, under a new id if its own is 0; return it as stored.

        `NameTaken` if the id is in use, or there is no such folder.
        """

    async def add_all(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        """Insert several recipes as `add` does, all or none."""

    async def file(self, recipe_ids: Sequence[int], folder_id: int | None, now: int) -> None:
        """Put recipes into a folder, or into none, all or none; `now` is Unix seconds.

        `NotFound` if there is no such folder, or no recipe with one of the ids.
        """

    async def update(self, recipe: Recipe) -> None:
        """Write all members of a recipe over the stored ones; `NotFound` if there is no such folder."""

    async def delete(self, recipe_id: int, now: int) -> None:
        """Mark a recipe deleted (Unix seconds); its snapshots stay."""

    async def get(self, recipe_id: int) -> Recipe | None:
        """Return a recipe, None if there is none or it is deleted."""

    async def search(self, search: RecipeSearch) -> tuple[int, list[Recipe]]:
        """Return how many recipes match, and the requested page of them."""


class FolderStore(Protocol):
    """Folders of recipes and of brew sessions."""

    async def add(self, account_id: int, kind: FolderKind, name: str, now: int) -> Folder:
        """Add a folder (`now` is Unix seconds); `NameTaken` if the account has one of that kind and name."""

    async def get(self, folder_id: int) -> Folder | None:
        """Return a folder, None if there is none with this id."""

    async def all(self, account_id: int | None = None) -> list[Folder]:
        """Return an account's folders, or all, by kind and name."""

    async def rename(self, folder_id: int, name: str) -> None:
        """Rename a folder; `NameTaken` as for `add`."""

    async def delete(self, folder_id: int) -> None:
        """Remove a folder; its recipes and sessions are in none then."""


class PhotoStore(Protocol):
    """Records of photos; their bytes are files."""

    async def add(self, photo: Photo) -> None:
        """Store the record of a photo, whose file exists already."""

    async def get(self, recipe_id: int, uuid: str) -> Photo | None:
        """Return a photo of a recipe, None if there is none."""

    async def of_recipe(self, recipe_id: int) -> list[Photo]:
        """Return a recipe's photos, oldest first."""

    async def set_caption(self, recipe_id: int, uuid: str, caption: str) -> bool:
        """Give a photo another caption; return whether there was such a photo."""

    async def delete(self, recipe_id: int, uuid: str) -> bool:
        """Remove the record of a photo; return whether there was one."""

    async def file_names(self) -> set[str]:
        """Return the names of the files that photos need."""


class AccountStore(Protocol):
    """Accounts."""

    async def add(self, name: str, now: int) -> Account:
        """Add an account (`now` is Unix seconds); `NameTaken` if there is one of that name."""

    async def all(self) -> list[Account]:
        """Return every account, by id."""


class KeyStore(Protocol):
    """API keys, and the account of the owner."""

    async def owner(self, now: int) -> tuple[int, bool]:
        """Return the owner account's id, and whether no key was ever made; make the account if needed."""

    async def active(self) -> list[ApiKey]:
        """Return the keys that are not revoked, oldest first."""

    async def add(self, key: ApiKey) -> None:
        """Store a key; `NameTaken` if an active key of its account has that name."""

    async def rotate(self, old: ApiKey, new: ApiKey) -> None:
        """Store a new key of the same name, and the new end of the old one, which is replaced by it.

        Both or neither.
        """

    async def note_uses(self, uses: Mapping[bytes, Mapping[str, int]]) -> None:
        """Note the last use of keys: Unix seconds by address, the latest last, by the SHA-256 of the key.

        Write a row of the audit log for each address that a key did not come from before.
        """

    async def revoke(self, account_id: int, name: str, now: int) -> bool:
        """Revoke a key (Unix seconds); return whether the account had an active one of that name."""


class AuditStore(Protocol):
    """The audit log. Every call that changes something writes its row itself, in its own transaction."""

    async def add(self, entry: AuditEntry) -> None:
        """Write a row for a change that is none of the store's, such as a backup."""

    async def page(self, *, since: int = 0, about: str = "", limit: int) -> list[AuditRow]:
        """Return the latest rows since then (Unix seconds), in the order in which they were written.

        With `about`, only rows of this object, `device:3`, or of this kind of object, `device`.
        """

    async def count_wrong_keys(self, counts: Sequence[tuple[str, int, int]]) -> None:
        """Count wrong keys: source, time of the first (Unix seconds) and number. A row a source and hour."""

    async def note_options(self, options: Mapping[str, str]) -> None:
        """Remember the options of this start, and write a row with those that differ from the last start."""

    async def prune(self, now: int) -> None:
        """Delete the rows that are too old; `now` is Unix seconds."""


class MirrorStore(Protocol):
    """Which record of another service became which record here; `upstream` is the service's address."""

    async def copies(self, upstream: str, account_id: int, kind: str) -> Mapping[str, Mirrored]:
        """Return the copies of one kind of record, by the id there."""

    async def former(self, upstream: str, account_id: int, kind: str) -> list[Mirrored]:
        """Return copies of one kind whose ids the service has given to other records since."""

    async def remember(self, upstream: str, account_id: int, kind: str, entry: Mirrored) -> None:
        """Remember a copy, in place of an earlier one with the same id there."""

    async def add_recipe(self, upstream: str, kind: str, recipe: Recipe, entry: Mirrored) -> Recipe:
        """Insert a recipe as `RecipeStore.add` does, and remember its copy. Both or neither."""

    async def make_former(self, upstream: str, account_id: int, kind: str, remote_id: str) -> None:
        """Make the copy with that id a former one: the id belongs to another record there now."""

    async def stop_forwarding(self, upstream: str, account_id: int, number: int) -> list[int]:
        """Forward no brew session of the account to this number there; return the sessions' ids."""


class TotalsStore(Protocol):
    """Counts over the whole store."""

    async def totals(self, targets: Mapping[str, bool]) -> Totals:
        """Count all readings by their states at the targets that forward at present, in one snapshot.

        `targets` says by target whether brew sessions that name no service belong to it.
        """

    async def sending(self, session_id: int | None = None) -> list[Sending]:
        """Count what was sent and what waits, by target and brew session, of one session or of all.

        Quick, because indexes hold nearly all of it. A session that a target never took is left out.
        """

    async def own_readings(self) -> dict[int, int]:
        """Count the readings of each brew session, by its id, without copies from another service."""

    async def unassigned(self) -> dict[int, int]:
        """Count the readings in no brew session, by device id; devices without any are left out."""

    async def storage(self) -> Storage:
        """Return the size of the database on its disk, and the free space there."""


class UpkeepStore(Protocol):
    """Upkeep of a store while it runs."""

    @property
    def busy(self) -> bool:
        """True while readings are being stored."""

    def engine(self) -> Engine:
        """Return the database engine in use."""

    async def condition(self) -> StoreCondition:
        """Return the condition of the store; `StoreUnavailable` if it cannot even be read."""

    async def tend(self) -> None:
        """Repair the leftovers of failures; to be called every few seconds."""

    async def salvage(self) -> bool:
        """Bring over some more readings of a damaged file; return whether there are more."""

    async def scrub(self, after: int) -> int | None:
        """Verify readings behind a place in the queue, and quarantine damaged ones.

        Return the place to go on from, None at the end.
        """

    async def note_scrub(self, until: int, finished_at: int | None) -> None:
        """Remember how far the scrub has come; `finished_at` (Unix seconds) ends a round."""

    async def finished(self, before: int) -> list[Finished]:
        """Return forwarded sessions without devices, and without readings since `before` (Unix seconds)."""

    async def prune(self, session: Finished, before: int, limit: int) -> tuple[int, float]:
        """Delete up to `limit` forwarded readings of a session, older than `before` (Unix seconds).

        Return how many, and for how many seconds the writer did nothing else.
        """


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
