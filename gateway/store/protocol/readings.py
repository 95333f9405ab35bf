"""Readings: as they come in, as they were sent, and those whose time was not known."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device, DeviceSummary
from gateway.domain.quarantined import Quarantined, QuarantineState
from gateway.domain.reading import Reading
from gateway.store.queries import ReadingsQuery

NOTHING: Mapping[str, frozenset[str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Arrival:
    """A reading of a device, with the delivery it came in. `raw` are the bytes as received."""

    reading: Reading
    device_key: str
    raw: bytes
    channel: str
    delivery: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A stored reading as a mirror finds it.

    `original` is a JSON object of the columns that were edited, as they were before. `is_copy` says that it
    came from the service, `was_sent` that it went there, or may have; `there_id` is the id that it has there,
    where that is certain.
    """

    reading: Reading
    original: str | None
    is_copy: bool
    was_sent: bool
    there_id: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A stored reading of a device with the bytes that it came in; `seq` is its place in the queue."""

    seq: int
    reading: Reading
    raw: bytes
    channel: str


@dataclass(frozen=True, slots=True)
class Part:
    """What a device sent into one brew session, or into none: how many, from when to when (Unix seconds)."""

    session_id: int | None
    readings: int
    first: int
    last: int
    gravities: int


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

    async def held(self, session: BrewSession, like: Sequence[Reading], upstream: str) -> list[Held]:
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
        self, *, last: int, device_id: int | None, session_id: int | None
    ) -> AsyncGenerator[str, None]:
        """The newest `last` readings with device facts, one JSON object each, newest last."""

    async def count(self) -> int:
        """How many readings there are."""


class SentReadings(Protocol):
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

    async def page(self, device_id: int, after: tuple[int, int], limit: int) -> list[Sent]:
        """What the device sent, in order of time, behind this place: time (Unix seconds) and `seq`."""

    async def latest(self, device_id: int, limit: int) -> list[Sent]:
        """What the device sent last, newest first."""

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

    async def rename(self, device: Device, key: str, stable_id: str, *, keep: bool = False) -> Device | None:
        """Give it another key; with `keep` what comes under the old one is its own, too.

        None where it has not the key of `device` any more, or another device has the new one.
        """

    async def parts(self, device_id: int) -> list[Part]:
        """What the device sent, by brew session; those in none come last."""

    async def overlap(self, into: int, other: int, seconds: int) -> int:
        """How many readings of `other` lie at most so many seconds from one of `into`."""

    async def merge(self, into: Device, other: Device) -> Device:
        """Make the other one part of this one, whose settings and `rereading` are those given.

        Readings come along as they are. What the other learned, and its brew session, count where this one
        has none. Its key and those that it had taken over become this one's. Returns the device as stored.
        """

    async def assign(self, device_id: int, session_id: int, claim_since: int | None) -> int:
        """Put the device into the session, and its unassigned readings since then (Unix seconds).

        Returns how many those were.
        """

    async def release(self, device_id: int) -> None:
        """Take the device out of its session; what was stored stays where it is."""
