"""Values that a store takes and returns, beside the values of the domain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from gateway.domain.brewsession import PHASES_AFTER
from gateway.domain.reading import Reading
from gateway.domain.units import SECONDS_PER_DAY

Settle = Callable[[Exception | None], None]
"""Gets the outcome of a reading that was put into a commit: None, or the exception. It never raises."""

NOTHING: Mapping[str, frozenset[str]] = MappingProxyType({})

QUIET_S = 30 * SECONDS_PER_DAY
"""Seconds without any news after which a brew without a device no longer runs."""


class Arrival(NamedTuple):
    """A reading of a device, with the id of its delivery. `raw` are the bytes as received."""

    reading: Reading
    device_key: str
    raw: bytes
    channel: str
    delivery: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceSource:
    """An address that readings of a device came from: how many, the first and the last (Unix seconds).

    The address is empty where a broker hides it.
    """

    address: str
    readings: int
    first_at: int
    last_at: int


@dataclass(frozen=True, slots=True)
class StoredMatch:
    """A stored reading as a mirror finds it.

    `original` is a JSON object of the columns that were edited, as they were before. `is_copy` says that it
    came from the service, `was_sent` that it went there, or may have; `there_id` is its id there, None if
    that is not certain.
    """

    reading: Reading
    original: str | None
    is_copy: bool
    was_sent: bool
    there_id: str | None = None


@dataclass(frozen=True, slots=True)
class RawReading:
    """A stored reading of a device with its bytes as received; `seq` is its place in the queue."""

    seq: int
    reading: Reading
    raw: bytes
    channel: str


@dataclass(frozen=True, slots=True)
class ImportPart:
    """Counts of a device's readings in a brew session, or in none, from `first` to `last` (Unix seconds)."""

    session_id: int | None
    readings: int
    first: int
    last: int
    gravities: int


@dataclass(frozen=True, slots=True)
class BootTime:
    """An arrival while the wall clock was in doubt: the id of a boot, and milliseconds since that boot.

    `place` is the number of a reading in its payload.
    """

    boot: int
    monotonic_ms: int
    place: int = 0


@dataclass(frozen=True, slots=True)
class Boot:
    """A boot of the machine. `offset_ms` plus milliseconds since the boot is Unix milliseconds, if known.

    `last_ms` is the latest arrival in this boot that waits for its right time, None if nothing waits.
    """

    id: int
    offset_ms: int | None
    last_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PendingRetime:
    """A stored reading that waits for its right time."""

    arrival_time: BootTime
    device_id: int
    stored: RawReading


@dataclass(frozen=True, slots=True)
class Mirrored:
    """A copied record: its id there and here, and its `updated_at` there when it was copied.

    It is the same record while `created_at` (Unix seconds) and `token` there are the same, as far as the
    service gives them. `said` is a JSON object that only the mirror reads.
    """

    remote_id: str
    local_id: str
    remote_updated_at: str
    created_at: int | None = None
    token: str | None = None
    said: str | None = None


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged file, the time when it was found (Unix seconds), and counts of its readings.

    The file is kept as `aside`; `finished_at` is None while its readings are still being brought over.
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
    """The condition of a store: `trouble` is the reason why nothing can be stored, None if all is well.

    `damages` lists every damage ever found, `aside` the damaged files that are kept; `damaged` and `pruned`
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
    quota_full: bool


@dataclass(frozen=True, slots=True)
class Engine:
    """The database engine that is in use; `wal_reset_bug` is a bug of some SQLite versions."""

    version: str
    wal_reset_bug: bool
    words: str


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a database: `counts` by kind, `newest_at` the last arrival (Unix seconds).

    `photos` has the SHA-256 (hex) of each photo by the name of its file. `channels` are the names of those
    whose secret is in a file beside the database.
    """

    schema: int
    counts: Mapping[str, int]
    newest_at: int | None
    photos: Mapping[str, str]
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """A brew session that gets no more readings; its places up to `settled_until` are forwarded."""

    session_id: int
    settled_until: int


class FoundValue(NamedTuple):
    """A gravity (SG) or a temperature (°C) of a brew, and its time (Unix seconds).

    `by_hand` says that a person measured it; `device_id` is None for readings of no device.
    """

    value: float
    at: int
    device_id: int | None
    by_hand: bool


@dataclass(frozen=True, slots=True)
class BrewFacts:
    """What the figures of a brew show beside its insight. Times are Unix seconds, values SG and °C.

    `first_at` is the time of the first reading that counts, `last_at` that of the last reading of any kind.
    `final` is the final gravity in the recipe.
    """

    first_at: int | None
    last_at: int | None
    gravity: FoundValue | None
    temp: FoundValue | None
    final: float | None


class StoredSample(NamedTuple):
    """A reading of a brew for its insight: SG of what counts, °C. `device_id` is None for imported ones."""

    oid: bytes
    device_id: int | None
    at: int
    sg: float | None
    celsius: float | None


class NewSample(NamedTuple):
    """The same as it arrived: `seq` is its place in the queue, `session_id` its brew, None for none."""

    seq: int
    oid: bytes
    session_id: int | None
    device_id: int | None
    at: int
    sg: float | None
    celsius: float | None


class Expected(NamedTuple):
    """What a brew's recipe expects: gravities (SG), and the °C that its yeast works at."""

    og: float | None = None
    fg: float | None = None
    yeast_low_c: float | None = None
    yeast_high_c: float | None = None


class BrewActivity(NamedTuple):
    """What tells whether a brew runs. `happened_at` is the last reading, event or change (Unix seconds).

    `searched` are batch code and title of the recipe, without case.
    """

    session_id: int
    batchcode: str
    phase: str
    ended_at: int | None
    has_device: bool
    happened_at: int
    searched: str

    def is_running(self, now: float) -> bool:
        """Return whether the brew runs: it is not marked done, and has a device or had news lately."""
        if self.ended_at is not None:
            return False
        # A phase after fermenting ends a brew without a device, too: so earlier versions and other services
        # do.
        over = self.phase.strip().casefold() in PHASES_AFTER
        return self.has_device or (not over and self.happened_at > now - QUIET_S)


class Bucket(NamedTuple):
    """Readings of one device within a span of time, or a single reading.

    `at` is about the middle of the span, or the time of its only reading (Unix seconds). Gravities are SG,
    of the readings that count; temperatures are °C, of all. `n` counts all, `left_out` the ones whose
    gravity does not count.
    """

    device_id: int | None
    at: int
    n: int
    sg_min: float | None
    sg_max: float | None
    sg: float | None
    temp_min: float | None
    temp_max: float | None
    temp: float | None
    left_out: int


class VitalSigns(NamedTuple):
    """What a device tells about itself in one reading: volts or percent, dBm, degrees of tilt."""

    at: int
    battery: float | None
    battery_percent: float | None
    rssi: float | None
    angle: float | None


class LeftOutReading(NamedTuple):
    """A reading that is left out of curves: values as they are given out, and its flags as JSON."""

    device_id: int | None
    at: int
    sg: float | None
    gravity: str
    gravity_unit: str
    temp: str
    temp_unit: str
    flags: str


class HandReading(NamedTuple):
    """A reading that a person took: the id of its event, its time (Unix seconds), SG and °C."""

    event_id: int
    at: int
    sg: float | None
    temp: float | None


class EventMark(NamedTuple):
    """An event of a brew as a chart shows it; `at` is Unix seconds."""

    event_id: int
    at: int
    kind: str
    text: str


class ReadingRow(NamedTuple):
    """A reading of a brew as a table shows it; texts are those that the API gives out.

    `at` is Unix seconds; `sg` and `celsius` are None if they count in nothing. `flags` are words. `states`
    has its state at each target by name, `reasons` those of refusals and of edits that are only here.
    """

    at: int
    name: str
    device_id: int | None
    gravity: str
    gravity_unit: str
    sg: float | None
    temp: str
    temp_unit: str
    celsius: float | None
    comment: str
    flags: tuple[str, ...]
    left_out: bool
    is_edited: bool
    states: Mapping[str, str]
    reasons: Mapping[str, str]
