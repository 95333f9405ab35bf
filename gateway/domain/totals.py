"""The number of readings by their state: counts that add up."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TargetTotals:
    """Readings for one target: readings = forwarded + refused + pending + not_sent + superseded.

    `name` is the target's base URL, or `kind:name`. `superseded` readings were passed over by a target that
    gets the newest reading only. `not_sent` counts readings that no target ever gets: readings that have
    lost their checksum, and readings without a value.
    """

    name: str
    readings: int
    forwarded: int
    refused: int
    pending: int
    not_sent: int
    superseded: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """All readings: stored = unassigned + kept_here + mirrored + without_target + to_forward.

    `unassigned` readings are in no brew session. `kept_here` readings are in a session that is deleted or not
    forwarded. `mirrored` readings came from a service themselves. Readings `without_target` belong to a
    service that is not configured. With one target, `to_forward` is its number of readings.
    """

    stored: int
    unassigned: int
    kept_here: int
    mirrored: int
    without_target: int
    to_forward: int
    targets: tuple[TargetTotals, ...]


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes of the database, of its log of changes, of their disk, and of the disk's free room.

    `reusable_bytes` of the database are free for new readings.
    """

    database_bytes: int
    reusable_bytes: int
    wal_bytes: int
    disk_bytes: int
    free_bytes: int
